// SPDX-License-Identifier: Apache-2.0
//
// What an enqueue of a unique job costs, in one thread: laps of plain ones and of unique ones, by
// turns, and the median of the ratios of neighbours. Keys are ready before: what their SHA-256
// takes is a figure of its own. What was enqueued is worked off between laps, untimed.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/one_thread.hpp"
#include "bench/peers/ojs_shm.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

constexpr int kPairs = 31;

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

/// As many jobs as a lap has, each with args of its own and a key of them.
class Jobs {
 public:
  Jobs(std::uint32_t count, OnConflict conflict)
      : policy_{.args = true, .on_conflict = conflict}, count_(count) {
    renew();
  }
  /// Others, which were never there.
  void renew() {
    args_.clear(), keys_.clear();
    args_.reserve(count_), keys_.reserve(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      std::string args = "[\"" + std::to_string(made_++);
      args.resize(sizeof(Body) - 2, '.');
      args_.push_back(args + "\"]");
      keys_.push_back(value_of(JobUnique::of(spec(i), policy_), "key"));
    }
  }
  JobSpec spec(std::uint32_t i) const {
    JobSpec spec;
    spec.type = "bench.job";
    spec.args = args_[i];
    spec.priority = i % 5;
    return spec;
  }
  JobSpec unique_spec(std::uint32_t i) const {
    JobSpec unique = spec(i);
    unique.unique = &keys_[i];
    return unique;
  }
  std::uint32_t count() const { return count_; }

 private:
  UniquePolicy policy_;
  std::uint32_t count_;
  std::uint64_t made_ = 0;
  std::vector<std::string> args_;
  std::vector<JobUnique> keys_;
};

struct Hands {
  explicit Hands(OjsShm& peer)
      : producer(value_of(Producer::attach(peer.attached()), "attach")),
        worker(value_of(Worker::attach(peer.attached(), {}), "attach")) {}
  /// Of each enqueue, ns.
  template <class SpecOf>
  double enqueue(std::uint32_t count, const SpecOf& spec_of) {
    const std::uint64_t begun = ticks();
    for (std::uint32_t i = 0; i < count; ++i)
      if (const auto id = producer.enqueue(spec_of(i)); !id) throw_error("enqueue", id.error());
    return ns_between(begun, ticks()) / count;
  }
  void work_off(std::uint32_t count) {
    Job job;
    std::uint32_t found = 0;
    while (worker.try_fetch(job)) {
      if (const Status done = worker.ack(job); !done) throw_error("ack", done.error());
      ++found;
    }
    if (found != count) throw std::runtime_error("there are not as many jobs as there should be");
  }
  Producer producer;
  Worker worker;
};

enum class Keys : std::uint8_t { kNew, kAgain };

void compare(benchmark::State& state, OnConflict conflict, Keys whose) {
  OjsShm peer{Plan{}};
  std::vector<double> ratios, plain_ns, unique_ns;
  std::uint32_t count = 0;
  Stage stage(Cast::kThreads);
  stage.add(0, [&](Stage::Part& part) {
    Jobs jobs(std::max(100U, scaled(4'000)), conflict);
    count = jobs.count();
    Hands hands(peer);
    const auto plain = [&] {
      const double ns = hands.enqueue(count, [&](std::uint32_t i) { return jobs.spec(i); });
      hands.work_off(count);
      return ns;
    };
    const auto unique = [&] {
      if (whose == Keys::kNew) jobs.renew();
      const auto spec_of = [&](std::uint32_t i) { return jobs.unique_spec(i); };
      // of those that are there already each is replaced
      if (conflict == OnConflict::kReplace) hands.enqueue(count, spec_of);
      const double ns = hands.enqueue(count, spec_of);
      hands.work_off(count);
      return ns;
    };
    plain(), unique();
    part.begin();
    for (int pair = 0; pair < kPairs; ++pair) {
      double without = pair % 2 == 0 ? plain() : 0;
      const double with = unique();
      if (pair % 2 != 0) without = plain();
      ratios.push_back(with / without), plain_ns.push_back(without), unique_ns.push_back(with);
    }
    part.end();
  });
  time_stage(state, stage, std::uint64_t{2} * kPairs * std::max(count, 1U), cores_of<OjsShm>());
  if (ratios.empty()) return;
  state.counters["enqueue_ratio"] = median(ratios);
  state.counters["plain_ns"] = median(plain_ns);
  state.counters["unique_ns"] = median(unique_ns);
  state.counters["plain_best_ns"] = *std::ranges::min_element(plain_ns);
  state.counters["unique_best_ns"] = *std::ranges::min_element(unique_ns);
}

void key(benchmark::State& state) {
  const Jobs jobs(1, OnConflict::kReject);
  const UniquePolicy policy{.args = true};
  const std::uint32_t count = std::max(100U, scaled(100'000));
  Stage stage(Cast::kThreads);
  stage.add(0, [&](Stage::Part& part) {
    part.begin();
    for (std::uint32_t i = 0; i < count; ++i)
      benchmark::DoNotOptimize(JobUnique::of(jobs.spec(0), policy));
    part.end();
  });
  time_stage(state, stage, count, cores_of<OjsShm>());
}

}  // namespace

void add_unique() {
  add_benchmark("unique_reject/ojs_shm",
                [](auto& state) { compare(state, OnConflict::kReject, Keys::kNew); });
  add_benchmark("unique_again/ojs_shm",
                [](auto& state) { compare(state, OnConflict::kReject, Keys::kAgain); });
  add_benchmark("unique_replace/ojs_shm",
                [](auto& state) { compare(state, OnConflict::kReplace, Keys::kNew); });
  add_benchmark("unique_key/ojs_shm", key);
}

}  // namespace ojs_shm::bench
