// SPDX-License-Identifier: Apache-2.0
//
// What looking costs, as ojs-shm-top looks. One sample of a full segment: 100,000 jobs of 1,000
// tenants in 64 queues, in processor time. And a saturated pair of producer and worker, with one
// sample in a window of 100 ms and with none, by turns. What a sample costs is over long before the
// end of its window, so one sample a second costs a tenth of what neighbouring windows differ by;
// windows of a second would differ more by what else moves a machine in that time than by a sample.
// The sampler stands on the worker's core, for the worker is the slower of the two.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "bench/measure.hpp"
#include "bench/peers/ojs_shm.hpp"
#include "bench/topologies.hpp"
#include "tools/top/sampler.hpp"

namespace ojs_shm::bench {

namespace {

double processor_ms() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e3 + static_cast<double>(spent.tv_nsec) / 1e6;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void fill(OjsShm& peer, std::uint32_t jobs, std::uint32_t queues, std::uint32_t tenants) {
  auto producer = value_of(Producer::attach(peer.attached()), "attach");
  const Body body = blank_body();
  for (std::uint32_t i = 0; i < jobs; ++i) {
    const std::string name = "tenant-" + std::to_string(i % tenants);
    const std::string extra = R"({"meta":{"tenant_id":")" + name + R"("}})";
    const std::string queue = "queue-" + std::to_string(i % tenants % queues);
    JobSpec spec;
    spec.type = "bench.job";
    spec.args = {body.bytes, sizeof body};
    spec.queue = queue, spec.priority = static_cast<std::int64_t>(i % 5);
    spec.tenant = name, spec.extra = extra;
    value_of(producer.enqueue(spec), "enqueue");
  }
}

void one_sample(benchmark::State& state) {
  constexpr std::uint32_t kQueues = 64, kTenants = 1000;
  constexpr int kSamples = 31;
  const std::uint32_t jobs = scaled(100'000);
  OjsShm peer({.waiting = jobs, .tenants = kTenants});
  fill(peer, jobs, kQueues, kTenants);
  std::vector<double> took;
  Stage stage(Cast::kThreads);
  stage.add(0, [&](Stage::Part& part) {
    top::Sampler sampler(value_of(Observer::attach(peer.attached()), "observe"));
    const Census& census = sampler.take().census;
    if (census.queues.size() != kQueues || census.tenants.size() != std::min(jobs, kTenants))
      throw std::runtime_error("the sample does not show what is there");
    part.begin();
    for (int i = 0; i < kSamples; ++i) {
      const double begun = processor_ms();
      sampler.take();
      took.push_back(processor_ms() - begun);
    }
    part.end();
  });
  time_stage(state, stage, kSamples, cores_of<OjsShm>());
  if (!took.empty()) state.counters["sample_ms"] = median(took);
}

/// Pages of a list of all jobs, each behind the one before, as a client asks for them.
void pages(benchmark::State& state) {
  constexpr int kPages = 31;
  constexpr std::size_t kJobsOfPage = 100;
  const std::uint32_t jobs = scaled(100'000);
  OjsShm peer({.waiting = jobs, .tenants = 1});
  fill(peer, jobs, 1, 1);
  std::vector<double> took;
  Stage stage(Cast::kThreads);
  stage.add(0, [&](Stage::Part& part) {
    const Observer observer = value_of(Observer::attach(peer.attached()), "observe");
    JobPageRequest request{.limit = kJobsOfPage};
    part.begin();
    for (int i = 0; i < kPages; ++i) {
      const double begun = processor_ms();
      const JobPage page = observer.page(request);
      took.push_back(processor_ms() - begun);
      if (page.total != jobs || page.jobs.empty())
        throw std::runtime_error("the page does not show what is there");
      request.behind.emplace(page.jobs.back().created_at_ms, page.jobs.back().id);
      if (!page.more) request.behind.reset();
    }
    part.end();
  });
  time_stage(state, stage, kPages, cores_of<OjsShm>());
  if (!took.empty()) state.counters["page_ms"] = median(took);
}

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::uint32_t kPairs = 40, kWindows = 2 * kPairs;

/// Window 0 is looked at, 1 and 2 are not, 3 and 4 are: each pair of neighbours has one of both, in
/// alternating order.
constexpr bool is_watched(std::uint32_t window) { return (window + 1) / 2 % 2 == 0; }

struct Course {
  alignas(128) std::atomic<std::int64_t> begun_ns{0};  ///< of window 0, by the steady clock
  alignas(128) std::atomic<bool> over{false};          ///< no further job is wanted
  alignas(128) std::atomic<bool> all_sent{false};
  std::uint64_t done[kWindows] = {};  ///< jobs acked in each window
};

std::int64_t now_ns() { return nanoseconds(Clock::now().time_since_epoch()).count(); }

void work(OjsShm::Worker& worker, Course& course, nanoseconds window) {
  Body body{};
  std::uint64_t jobs = 0;
  const std::int64_t begun = now_ns();
  course.begun_ns.store(begun);
  for (std::uint32_t w = 0; w < kWindows; ++w) {
    const std::int64_t end = begun + (w + 1) * window.count();
    const std::uint64_t before = jobs;
    while (now_ns() < end)
      for (int i = 0; i < 256; ++i)
        if (worker.poll(body)) worker.ack(), ++jobs;
    course.done[w] = jobs - before;
  }
  course.over.store(true);
  while (!course.all_sent.load() || worker.poll(body)) {}
}

void watch(top::Sampler& sampler, const Course& course, nanoseconds window) {
  std::int64_t begun = 0;
  while ((begun = course.begun_ns.load()) == 0) ::sched_yield();
  for (std::uint32_t w = 0; w < kWindows; ++w) {
    if (!is_watched(w)) continue;
    const std::int64_t at = begun + w * window.count() + window.count() / 2;
    const timespec middle{static_cast<time_t>(at / 1'000'000'000), at % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &middle, nullptr);
    sampler.take();
  }
}

void watched(benchmark::State& state) {
  const nanoseconds window(
      std::max<std::int64_t>(20'000'000, static_cast<std::int64_t>(100'000'000 * effort)));
  OjsShm peer{Plan{}};
  SharedArray<Course> course(1);
  new (&*course) Course;
  Stage stage(Cast::kProcesses);
  stage.add(0, [&](Stage::Part& part) {
    OjsShm::Producer producer(peer);
    const Body body = blank_body();
    part.begin();
    for (std::uint32_t i = 0; !course->over.load(); ++i) producer.enqueue(i % 5, body);
    course->all_sent.store(true);
    part.end();
  });
  stage.add(1, [&](Stage::Part& part) {
    OjsShm::Worker worker(peer);
    part.begin();
    work(worker, *course, window);
    part.end();
  });
  stage.add(1, [&](Stage::Part& part) {
    top::Sampler sampler(value_of(Observer::attach(peer.name()), "observe"));
    sampler.take();
    part.begin();
    watch(sampler, *course, window);
    part.end();
  });
  std::uint64_t jobs = 0;
  // The sampler sleeps: the share of its core says nothing.
  time_stage(state, stage, kWindows, Cores::kLeftAlone);
  std::vector<double> ratios;
  for (std::uint32_t w = 0; w < kWindows; w += 2) {
    const auto first = static_cast<double>(course->done[w]),
               second = static_cast<double>(course->done[w + 1]);
    jobs += course->done[w] + course->done[w + 1];
    if (first > 0 && second > 0) ratios.push_back(is_watched(w) ? first / second : second / first);
  }
  if (jobs == 0 || ratios.empty()) return;
  state.SetItemsProcessed(static_cast<std::int64_t>(jobs));
  const double share = std::chrono::duration<double>(window).count();
  state.counters["watched_ratio"] = 1 - (1 - median(ratios)) * share;
}

}  // namespace

void add_sampling() {
  add_benchmark("sampling_full/ojs_shm", one_sample);
  add_benchmark("sampling_page/ojs_shm", pages);
  add_benchmark("sampling_watched/ojs_shm", watched);
}

}  // namespace ojs_shm::bench
