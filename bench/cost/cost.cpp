// SPDX-License-Identifier: Apache-2.0
//
// One thread that lives so many jobs by one way through the public API, from enqueue to ack or
// their enqueue alone, and nothing else. ./dev cost runs it under callgrind twice, with a few jobs
// and with many: the difference of what the function of the way took is what jobs cost, without the
// start and without the keeper's thread.

#include <ojs_shm/ojs_shm.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

using ojs_shm::Job;
using ojs_shm::JobSpec;
using ojs_shm::Producer;
using ojs_shm::Segment;
using ojs_shm::SegmentName;
using ojs_shm::Worker;

constexpr std::size_t kBatch = 16;
constexpr std::string_view kArgs =
    R"(["a body of 64 bytes, as long as that of the other benchmarks."])";
static_assert(kArgs.size() == 64);

/// Ends the program: a job that is refused would make the figure too small.
void must(bool done, const char* what) {
  if (done) return;
  std::cerr << "cost: " << what << " failed\n";
  std::exit(1);
}

JobSpec spec_of(std::size_t i) {
  JobSpec spec;
  spec.type = "bench.job";
  spec.args = kArgs;
  spec.priority = static_cast<std::int64_t>(i % 5);
  return spec;
}

// Inlined, so that a way costs what its caller would.
[[gnu::always_inline]] inline void work(Worker& worker, Job& job) {
  must(worker.try_fetch(job).ok(), "fetch");
  must(job.args().size() == kArgs.size(), "args");
  must(worker.ack(job).ok(), "ack");
}

[[gnu::always_inline]] inline void work_batch(Worker& worker, std::vector<Job>& held) {
  const auto got = worker.fetch_batch(held);
  must(got.ok() && *got == kBatch, "fetch_batch");
  for (const Job& job : held) must(job.args().size() == kArgs.size(), "args");
  const auto done = worker.ack_batch(held);
  must(done.ok() && done->acked == kBatch, "ack_batch");
}

[[gnu::noinline]] void single(const SegmentName& at, std::size_t jobs) {
  auto producer = Producer::attach(at);
  auto worker = Worker::attach(at, {});
  must(producer.ok() && worker.ok(), "attach");
  JobSpec spec = spec_of(0);
  Job job;
  for (std::size_t i = 0; i < jobs; ++i) {
    spec.priority = static_cast<std::int64_t>(i % 5);
    must(producer->enqueue(spec).ok(), "enqueue");
    work(*worker, job);
  }
}

/// The same of jobs of one kind.
[[gnu::noinline]] void prepared(const SegmentName& at, std::size_t jobs) {
  auto producer = Producer::attach(at);
  auto worker = Worker::attach(at, {});
  must(producer.ok() && worker.ok(), "attach");
  const auto kind = producer->prepare(spec_of(0));
  must(kind.ok(), "prepare");
  Job job;
  for (std::size_t i = 0; i < jobs; ++i) {
    must(producer->enqueue(*kind, kArgs, static_cast<std::int64_t>(i % 5)).ok(), "enqueue");
    work(*worker, job);
  }
}

[[gnu::noinline]] void prepared_batch(const SegmentName& at, std::size_t jobs) {
  auto producer = Producer::attach(at);
  auto worker = Worker::attach(at, {});
  must(producer.ok() && worker.ok(), "attach");
  const auto kind = producer->prepare(spec_of(0));
  must(kind.ok(), "prepare");
  std::vector<ojs_shm::PreparedArgs> each;
  for (std::size_t i = 0; i < kBatch; ++i)
    each.push_back({kArgs, static_cast<std::int64_t>(i % 5)});
  std::vector<ojs_shm::JobIdText> ids(kBatch);
  std::vector<Job> held(kBatch);
  for (std::size_t i = 0; i < jobs; i += kBatch) {
    must(producer->enqueue_batch(*kind, each, ids).ok(), "enqueue_batch");
    work_batch(*worker, held);
  }
}

/// The same while every job's three events are told.
[[gnu::noinline]] void events(const SegmentName& at, std::size_t jobs) {
  single(at, jobs);
  must(true, "events");  // not a jump: callgrind finds the way by its name
}

/// The same in a queue with a bound that is far.
[[gnu::noinline]] void bounded(const SegmentName& at, std::size_t jobs) {
  single(at, jobs);
  must(true, "bounded");  // as above
}

[[gnu::noinline]] void batch(const SegmentName& at, std::size_t jobs) {
  auto producer = Producer::attach(at);
  auto worker = Worker::attach(at, {});
  must(producer.ok() && worker.ok(), "attach");
  std::vector<JobSpec> specs;
  for (std::size_t i = 0; i < kBatch; ++i) specs.push_back(spec_of(i));
  std::vector<ojs_shm::JobIdText> ids(kBatch);
  std::vector<Job> held(kBatch);
  for (std::size_t i = 0; i < jobs; i += kBatch) {
    must(producer->enqueue_batch(specs, ids).ok(), "enqueue_batch");
    work_batch(*worker, held);
  }
}

[[gnu::noinline]] void c_abi(const SegmentName& at, std::size_t jobs) {
  ojs_shm_segment* attached = nullptr;
  ojs_shm_producer* producer = nullptr;
  ojs_shm_worker* worker = nullptr;
  ojs_shm_job* job = nullptr;
  must(ojs_shm_segment_attach(at.name.c_str(), at.dir.c_str(), &attached) == OJS_SHM_OK, "attach");
  must(ojs_shm_producer_open(attached, &producer) == OJS_SHM_OK, "producer_open");
  must(ojs_shm_worker_open(attached, nullptr, &worker) == OJS_SHM_OK, "worker_open");
  must(ojs_shm_job_new(&job) == OJS_SHM_OK, "job_new");
  for (std::size_t i = 0; i < jobs; ++i) {
    ojs_shm_job_spec spec{};
    spec.struct_size = sizeof spec;
    spec.type = "bench.job";
    spec.args = kArgs.data();
    spec.args_size = kArgs.size();
    spec.priority = static_cast<std::int64_t>(i % 5);
    spec.flags = OJS_SHM_JOB_HAS_PRIORITY;
    must(ojs_shm_enqueue(producer, &spec, nullptr) == OJS_SHM_OK, "enqueue");
    must(ojs_shm_fetch(worker, job, 0) == OJS_SHM_OK, "fetch");
    ojs_shm_job_fields fields{};
    fields.struct_size = sizeof fields;
    must(ojs_shm_job_read(job, &fields) == OJS_SHM_OK, "job_read");
    must(fields.args.size == kArgs.size(), "args");
    must(ojs_shm_ack(worker, job, nullptr, 0) == OJS_SHM_OK, "ack");
  }
  for (void* handle : {static_cast<void*>(job), static_cast<void*>(worker),
                       static_cast<void*>(producer), static_cast<void*>(attached)})
    ojs_shm_close(handle);
}

/// The same of jobs of one kind.
[[gnu::noinline]] void c_prepared(const SegmentName& at, std::size_t jobs) {
  ojs_shm_segment* attached = nullptr;
  ojs_shm_producer* producer = nullptr;
  ojs_shm_prepared* kind = nullptr;
  ojs_shm_worker* worker = nullptr;
  ojs_shm_job* job = nullptr;
  must(ojs_shm_segment_attach(at.name.c_str(), at.dir.c_str(), &attached) == OJS_SHM_OK, "attach");
  must(ojs_shm_producer_open(attached, &producer) == OJS_SHM_OK, "producer_open");
  must(ojs_shm_worker_open(attached, nullptr, &worker) == OJS_SHM_OK, "worker_open");
  must(ojs_shm_job_new(&job) == OJS_SHM_OK, "job_new");
  ojs_shm_job_spec spec{};
  spec.struct_size = sizeof spec;
  spec.type = "bench.job";
  must(ojs_shm_prepare(producer, &spec, &kind) == OJS_SHM_OK, "prepare");
  for (std::size_t i = 0; i < jobs; ++i) {
    const ojs_shm_args args{sizeof args,
                            kArgs.data(),
                            kArgs.size(),
                            static_cast<std::int64_t>(i % 5),
                            OJS_SHM_JOB_HAS_PRIORITY,
                            0};
    must(ojs_shm_enqueue_prepared(producer, kind, &args, nullptr) == OJS_SHM_OK, "enqueue");
    must(ojs_shm_fetch(worker, job, 0) == OJS_SHM_OK, "fetch");
    ojs_shm_job_fields fields{};
    fields.struct_size = sizeof fields;
    must(ojs_shm_job_read(job, &fields) == OJS_SHM_OK, "job_read");
    must(fields.args.size == kArgs.size(), "args");
    must(ojs_shm_ack(worker, job, nullptr, 0) == OJS_SHM_OK, "ack");
  }
  for (void* handle :
       {static_cast<void*>(job), static_cast<void*>(worker), static_cast<void*>(kind),
        static_cast<void*>(producer), static_cast<void*>(attached)})
    ojs_shm_close(handle);
}

// ---- enqueues alone, of jobs that differ in their args ------------------------------------------

/// Jobs, and keys of them: ready before a way begins.
struct Ready {
  std::vector<std::string> args;
  std::vector<ojs_shm::JobUnique> keys;
};
Ready ready;

void make_ready(std::size_t jobs, ojs_shm::OnConflict conflict) {
  const ojs_shm::UniquePolicy policy{.args = true, .on_conflict = conflict};
  for (std::size_t i = 0; i < jobs; ++i) {
    std::string args = "[\"" + std::to_string(i);
    args.resize(kArgs.size() - 2, '.');
    ready.args.push_back(args + "\"]");
    JobSpec spec = spec_of(i);
    spec.args = ready.args.back();
    const auto key = ojs_shm::JobUnique::of(spec, policy);
    must(key.ok(), "key");
    ready.keys.push_back(*key);
  }
}

void put(Producer& producer, std::size_t jobs, bool with_keys) {
  JobSpec spec = spec_of(0);
  for (std::size_t i = 0; i < jobs; ++i) {
    spec.priority = static_cast<std::int64_t>(i % 5);
    spec.args = ready.args[i];
    spec.unique = with_keys ? &ready.keys[i] : nullptr;
    must(producer.enqueue(spec).ok(), "enqueue");
  }
}

[[gnu::noinline]] void enqueue(const SegmentName& at, std::size_t jobs) {
  auto producer = Producer::attach(at);
  must(producer.ok(), "attach");
  put(*producer, jobs, false);
}

[[gnu::noinline]] void unique(const SegmentName& at, std::size_t jobs) {
  auto producer = Producer::attach(at);
  must(producer.ok(), "attach");
  put(*producer, jobs, true);
}

/// Each takes the place of one that waits.
[[gnu::noinline]] void replace(const SegmentName& at, std::size_t jobs) { unique(at, jobs); }

void before_events(const SegmentName& at, std::size_t) {
  auto admin = ojs_shm::Admin::attach(at);
  must(admin.ok() && admin->set_events(true).ok(), "set_events");
}
void before_bounded(const SegmentName& at, std::size_t) {
  auto admin = ojs_shm::Admin::attach(at);
  must(admin.ok() && admin->set_queue("default", {.max_depth = 10'000}).ok(), "set_queue");
}
void before_enqueue(const SegmentName&, std::size_t jobs) {
  make_ready(jobs, ojs_shm::OnConflict::kReject);
}
void before_replace(const SegmentName& at, std::size_t jobs) {
  make_ready(jobs, ojs_shm::OnConflict::kReplace);
  auto producer = Producer::attach(at);
  must(producer.ok(), "attach");
  put(*producer, jobs, true);
}

struct Way {
  std::string_view name;
  void (*live)(const SegmentName&, std::size_t);
  void (*prepare)(const SegmentName&, std::size_t) = nullptr;
};
constexpr Way kWays[] = {{"single", single},
                         {"prepared", prepared},
                         {"prepared_batch", prepared_batch},
                         {"events", events, before_events},
                         {"bounded", bounded, before_bounded},
                         {"batch", batch},
                         {"c_abi", c_abi},
                         {"c_prepared", c_prepared},
                         {"enqueue", enqueue, before_enqueue},
                         {"unique", unique, before_enqueue},
                         {"replace", replace, before_replace}};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3)
    for (const Way& way : kWays)
      if (way.name == argv[1]) {
        SegmentName name = ojs_shm::segment_name_from_environment();
        name.name = "cost." + std::to_string(::getpid());
        auto segment = Segment::create(name, {});
        must(segment.ok(), "create");
        const std::size_t jobs = std::strtoul(argv[2], nullptr, 10);
        if (way.prepare != nullptr) way.prepare(name, jobs);
        way.live(name, jobs);
        must(ojs_shm::remove_segment(segment.value(), ojs_shm::Removal::kWithJobs).ok(), "remove");
        return 0;
      }
  std::cerr << "usage: ojs_shm_cost WAY JOBS; ways:";
  for (const Way& way : kWays) std::cerr << ' ' << way.name;
  std::cerr << '\n';
  return 2;
}
