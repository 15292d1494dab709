// SPDX-License-Identifier: Apache-2.0
//
// What the topologies share: how much work a run is, how a worker takes a job, and what stands
// beside a result.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/peers/peer.hpp"
#include "bench/stage.hpp"
#include "bench/stopwatch.hpp"

namespace ojs_shm::bench {

/// 1 for a real run, a small fraction for a smoke run. Set once, before the benchmarks start.
inline double effort = 1.0;

/// `full` jobs at full effort, never fewer than a few.
inline std::uint32_t scaled(double full) { return static_cast<std::uint32_t>(full * effort) + 16; }

/// Jobs that keep a run of this pace near a tenth of a second.
template <Peer P>
std::uint32_t jobs_per_run() {
  switch (P::kPace) {
    case Pace::kShared: return scaled(1'500'000);
    case Pace::kKernel: return scaled(150'000);
    case Pace::kNetwork: return scaled(60'000);
    case Pace::kServer: return scaled(3'000);
  }
  return 0;
}

template <Peer P>
constexpr Cast cast_of() {
  return P::kInProcess ? Cast::kThreads : Cast::kProcesses;
}

/// Waits for the next job in the way that suits the peer best while there is plenty.
template <Peer P>
void take(typename P::Worker& worker, Body& body) {
  if constexpr (P::kTaking == Taking::kBlocking) {
    while (!worker.receive(body, Patience{1000})) {}
  } else {
    while (!worker.poll(body)) pause_briefly();
  }
}

/// Proves that what came out is what went in, by count and sum: a fast queue that loses jobs must
/// not win.
class Tally {
 public:
  void add(const Body& body) {
    ++count_;
    sum_ += read_number(body);
  }
  std::uint64_t count() const { return count_; }
  /// Throws unless exactly the numbers 0 to jobs-1 were added (as far as count and sum can tell).
  void expect(std::uint64_t jobs) const {
    if (count_ != jobs || sum_ != jobs * (jobs - 1) / 2) {
      throw std::runtime_error("the worker got " + std::to_string(count_) +
                               " jobs with the wrong contents; " + std::to_string(jobs) +
                               " were sent");
    }
  }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
};

/// Whether every part of a run works or spins all the time. Then a part that had its core for less
/// was disturbed.
enum class Cores { kKeptBusy, kLeftAlone };

template <Peer P>
constexpr Cores cores_of() {
  return P::kPace == Pace::kShared ? Cores::kKeptBusy : Cores::kLeftAlone;
}

/// Plays the stage as the one iteration of a benchmark.
inline void time_stage(benchmark::State& state, Stage& stage, std::uint64_t jobs, Cores cores) {
  const Outcome outcome = stage.play();
  if (!outcome.trouble.empty()) {
    state.SkipWithError(outcome.trouble.c_str());
    return;
  }
  state.SetIterationTime(outcome.seconds);
  state.SetItemsProcessed(static_cast<std::int64_t>(jobs));
  state.counters["ns_per_job"] = outcome.seconds * 1e9 / static_cast<double>(jobs);
  state.counters["line_rtt_ns"] = outcome.line_round_trip_ns;
  if (cores == Cores::kKeptBusy) state.counters["core_share"] = outcome.core_share;
  state.counters["preemptions"] = static_cast<double>(outcome.preemptions);
}

/// Registers one benchmark, measured by our own clock and run once: repeats are whole rounds over
/// all benchmarks, so that the two sides of a ratio are never far apart in time.
template <class Function>
void add_benchmark(const std::string& name, Function function) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [function](benchmark::State& state) {
                                 for (auto _ : state) {
                                   try {
                                     function(state);
                                   } catch (const std::exception& e) {
                                     state.SkipWithError(e.what());
                                   }
                                 }
                               })
      ->UseManualTime()
      ->Iterations(1);
}

}  // namespace ojs_shm::bench
