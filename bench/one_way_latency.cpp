// SPDX-License-Identifier: Apache-2.0
//
// From just before enqueue to just after the worker has the body, one job in flight. Spinning: the
// worker looks all the time. Parked: the kernel says that the worker sleeps, and has slept for a
// while, before the job is sent.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "bench/measure.hpp"
#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

constexpr unsigned kLevels = 5;

struct Log {
  std::uint64_t sent;
  std::uint64_t received;
};

struct alignas(128) Seen {
  std::atomic<std::uint32_t> count{0};
};

/// Asks the kernel whether a thread sleeps.
class SleepWatch {
 public:
  explicit SleepWatch(pid_t thread) {
    const std::string path = "/proc/" + std::to_string(thread) + "/stat";
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) throw std::runtime_error("cannot open " + path);
  }
  SleepWatch(const SleepWatch&) = delete;
  SleepWatch& operator=(const SleepWatch&) = delete;
  ~SleepWatch() { ::close(fd_); }
  bool asleep() const {
    char bytes[512];
    const ssize_t got = ::pread(fd_, bytes, sizeof bytes, 0);
    const std::string_view line(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
    const std::size_t name_end = line.rfind(')');  // the name may hold anything, even a bracket
    return name_end != std::string_view::npos && name_end + 2 < line.size() &&
           line[name_end + 2] == 'S';
  }

 private:
  int fd_ = -1;
};

/// p50 and p99 in nanoseconds, without the first eighth.
void note_percentiles(benchmark::State& state, std::span<const Log> logs) {
  std::vector<double> ns;
  for (const Log& log : logs.subspan(logs.size() / 8))
    ns.push_back(ns_between(log.sent, log.received));
  std::sort(ns.begin(), ns.end());
  state.counters["p50_ns"] = ns[ns.size() / 2];
  state.counters["p99_ns"] = ns[ns.size() * 99 / 100];
}

template <Peer P, bool kParked>
void one_way(benchmark::State& state) {
  const std::uint32_t jobs = kParked ? scaled(500) : scaled(20'000);
  SharedArray<Log> logs(jobs);
  SharedArray<Seen> seen(1);
  P peer(Plan{.levels = kLevels});
  Stage stage(cast_of<P>());
  stage.add(0, [&](Stage::Part& part) {
    typename P::Producer producer(peer);
    Body body = blank_body();
    std::minstd_rand random(1);
    part.begin();
    const SleepWatch worker(part.thread_of(1));
    for (std::uint32_t i = 0; i < jobs; ++i) {
      while (seen->count.load(std::memory_order_acquire) != i) pause_briefly();
      write_number(body, i);
      if constexpr (kParked) {
        while (!worker.asleep()) pause_briefly();
        stay_busy_ns(100'000);
      } else {
        // never in step with the worker's loop
        stay_busy_ns(300 + static_cast<double>(random() % 1000));
      }
      logs[i].sent = ticks();
      producer.enqueue(i % kLevels, body);
    }
    part.end();
  });
  stage.add(1, [&](Stage::Part& part) {
    typename P::Worker worker(peer);
    Body body{};
    Tally tally;
    part.begin();
    for (std::uint32_t i = 0; i < jobs; ++i) {
      if constexpr (kParked) {
        while (!worker.receive(body, Patience{1000})) {}
      } else {
        while (!worker.poll(body)) pause_briefly();
      }
      logs[i].received = ticks();
      worker.ack();
      tally.add(body);
      seen->count.store(i + 1, std::memory_order_release);
    }
    part.end();
    tally.expect(jobs);
  });
  time_stage(state, stage, jobs, kParked ? Cores::kLeftAlone : cores_of<P>());
  if (!state.error_occurred()) note_percentiles(state, logs.all());
}

template <Peer P>
void add_both() {
  // A poll of a server is a request, not a look; and a spinning worker would starve ZeroMQ's thread
  // on the same core.
  if constexpr (P::kPace == Pace::kShared || P::kPace == Pace::kKernel) {
    add_benchmark(std::string("latency_spinning/") + P::kName, one_way<P, false>);
  }
  if constexpr (ParkingPeer<P>) {
    add_benchmark(std::string("latency_parked/") + P::kName, one_way<P, true>);
  }
}

}  // namespace

void add_one_way_latency() {
  add_both<BareWord>();
  add_both<RingsAndSlots>();
  for_each_peer([]<Peer P>() { add_both<P>(); });
}

}  // namespace ojs_shm::bench
