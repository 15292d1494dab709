// SPDX-License-Identifier: Apache-2.0
//
// What a job and a queue cost in bytes of segment. Nothing is timed: a segment is filled until it
// refuses, and what it holds is counted from outside, so that indexes and everything else are in
// the figure.
#include <ojs_shm/observer.hpp>

#include "bench/measure.hpp"
#include "bench/peers/ojs_shm.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

SegmentName own_name() {
  SegmentName name = segment_name_from_environment();
  name.name = "bench-memory." + std::to_string(::getpid());
  return name;
}

/// A segment of this process alone, removed at the end.
class OwnSegment {
 public:
  explicit OwnSegment(const SegmentOptions& options) {
    static_cast<void>(remove_segment(own_name(), Removal::kForced));
    segment_.emplace(value_of(Segment::create(own_name(), options), "create"));
  }
  OwnSegment(const OwnSegment&) = delete;
  OwnSegment& operator=(const OwnSegment&) = delete;
  ~OwnSegment() {
    segment_.reset();
    static_cast<void>(remove_segment(own_name(), Removal::kForced));
  }
  const Segment& get() const { return *segment_; }

 private:
  std::optional<Segment> segment_;
};

/// Enqueues until the segment is full, in five levels of `queues` queues by turns.
std::uint64_t jobs_until_full(const Segment& segment, unsigned queues) {
  auto producer = value_of(ojs_shm::Producer::attach(segment), "attach");
  const Body body = blank_body();
  std::vector<std::string> names;
  for (unsigned i = 0; i < queues; ++i) names.push_back("queue-" + std::to_string(i));
  JobSpec job;
  job.type = "bench.job";
  job.args = {body.bytes, sizeof body};
  for (std::uint64_t held = 0;; ++held) {
    job.queue = names[held % queues];
    job.priority = static_cast<std::int64_t>(held / queues % 5);
    const auto accepted = producer.enqueue(job);
    if (accepted.ok()) continue;
    if (accepted.code() == Code::kSegmentFull) return held;
    throw_error("enqueue", accepted.error());
  }
}

struct Filled {
  double bytes;
  double jobs;
};

Filled fill(const SegmentOptions& options) {
  const OwnSegment segment(options);
  return {static_cast<double>(segment.get().size_bytes()),
          static_cast<double>(jobs_until_full(segment.get(), 1))};
}

void bytes_per_job(benchmark::State& state) {
  const Filled shipped = fill({});
  SegmentOptions twice;
  twice.slots = static_cast<std::uint32_t>(shipped.jobs) * 2;
  const Filled larger = fill(twice);
  state.SetIterationTime(1e-9);
  state.counters["segment_bytes"] = shipped.bytes;
  state.counters["jobs_held"] = shipped.jobs;
  state.counters["bytes_per_job_all_in"] = shipped.bytes / shipped.jobs;
  state.counters["bytes_per_further_job"] =
      (larger.bytes - shipped.bytes) / (larger.jobs - shipped.jobs);
}

/// Two segments that differ only in how many queues they have room for; and what a queue takes out
/// of the pools when it exists.
void bytes_per_idle_queue(benchmark::State& state) {
  constexpr std::uint32_t kFew = 64;
  constexpr std::uint32_t kMany = 1024;
  const auto size_with = [](std::uint32_t queues) {
    SegmentOptions options;
    options.max_queues = queues;
    return static_cast<double>(OwnSegment(options).get().size_bytes());
  };
  const auto pool_bytes_used = [](const Segment& segment) {
    const auto observer = value_of(Observer::attach(segment), "observe");
    double bytes = 0;
    for (const PoolInfo& pool : observer.segment_info().pools) {
      if (pool.name != "queues")
        // the queue's own record is in the size
        bytes += static_cast<double>(pool.used * pool.unit_bytes);
    }
    return bytes;
  };
  SegmentOptions options;
  options.max_queues = kMany;
  const OwnSegment segment(options);
  auto admin = value_of(Admin::attach(segment.get()), "attach");
  const double before = pool_bytes_used(segment.get());
  for (std::uint32_t i = 0; i < kFew; ++i) {
    const Status made = admin.set_queue("idle-" + std::to_string(i), {});
    if (!made.ok()) throw_error("set_queue", made.error());
  }
  const double pools = (pool_bytes_used(segment.get()) - before) / kFew;
  const double records = (size_with(kMany) - size_with(kFew)) / (kMany - kFew);
  state.SetIterationTime(1e-9);
  state.counters["bytes_per_idle_queue"] = records + pools;
}

}  // namespace

void add_memory() {
  add_benchmark("memory_job/ojs_shm", bytes_per_job);
  add_benchmark("memory_idle_queue/ojs_shm", bytes_per_idle_queue);
}

}  // namespace ojs_shm::bench
