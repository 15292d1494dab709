// SPDX-License-Identifier: Apache-2.0
//
// What it costs a job that a monitor may look, in one thread: laps with and without, by turns, and
// the median of the differences of neighbours. Waits and runs are always counted and transitions
// always recorded, so there a lap does it once more for each job. Events are told or not.
#include <algorithm>
#include <functional>

#include "bench/one_thread.hpp"
#include "bench/peers/ojs_shm.hpp"
#include "bench/topologies.hpp"
#include "engine/observing/waits.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::bench {

namespace {

constexpr int kPairs = 31;

/// Lives of jobs, a lap at a time.
class Lives {
 public:
  explicit Lives(OjsShm& peer) : producer_(peer), worker_(peer) {}
  template <class Beside>
  double lap(std::uint32_t jobs, Beside beside) {
    const std::uint64_t begun = ticks();
    for (std::uint32_t i = 0; i < jobs; ++i) {
      producer_.enqueue(i % 5, body_);
      take<OjsShm>(worker_, body_);
      beside(i);
      worker_.ack();
    }
    return ns_between(begun, ticks()) / jobs;
  }

 private:
  OjsShm::Producer producer_;
  OjsShm::Worker worker_;
  Body body_ = blank_body();
};

/// Plays both laps in pairs, the other one first each time.
void compare(benchmark::State& state, OjsShm& peer,
             const std::function<double(Lives&, std::uint32_t)>& without,
             const std::function<double(Lives&, std::uint32_t)>& with) {
  const std::uint32_t jobs = scaled(10'000);
  std::vector<double> added;
  Stage stage(Cast::kThreads);
  stage.add(0, [&](Stage::Part& part) {
    Lives lives(peer);
    without(lives, jobs);
    with(lives, jobs);
    part.begin();
    for (int pair = 0; pair < kPairs; ++pair) {
      double plain = pair % 2 == 0 ? without(lives, jobs) : 0;
      const double more = with(lives, jobs);
      if (pair % 2 != 0) plain = without(lives, jobs);
      added.push_back(more - plain);
    }
    part.end();
  });
  time_stage(state, stage, std::uint64_t{2} * kPairs * jobs, cores_of<OjsShm>());
  if (added.empty()) return;
  std::nth_element(added.begin(), added.begin() + kPairs / 2, added.end());
  state.counters["added_ns"] = added[kPairs / 2];
}

void waits(benchmark::State& state) {
  OjsShm peer{Plan{}};
  const auto handle = value_of(internal::Handle::make(peer.attached()), "handle");
  engine::WaitMeter meter(handle->store(), handle->lane());
  constexpr std::uint64_t kNow = 1'000;
  compare(
      state, peer,
      [](Lives& lives, std::uint32_t jobs) { return lives.lap(jobs, [](std::uint32_t) {}); },
      [&meter](Lives& lives, std::uint32_t jobs) {
        return lives.lap(jobs, [&meter](std::uint32_t i) {
          meter.count(0, static_cast<std::uint8_t>(i % 5), kNow, kNow - i % 8, kNow - i % 8);
          meter.count_run(0, static_cast<std::uint8_t>(i % 5), kNow, kNow - i % 8);
        });
      });
}

/// The three transitions of a plain job.
void recorder(benchmark::State& state) {
  OjsShm peer{Plan{}};
  const auto handle = value_of(internal::Handle::make(peer.attached()), "handle");
  engine::Recorder& recorder = handle->actor().recorder();
  compare(
      state, peer,
      [](Lives& lives, std::uint32_t jobs) { return lives.lap(jobs, [](std::uint32_t) {}); },
      [&recorder](Lives& lives, std::uint32_t jobs) {
        return lives.lap(jobs, [&recorder](std::uint32_t i) {
          recorder.note(i, 1, engine::kSlotFree, engine::kSlotAvailable, 1'000 + i);
          recorder.note(i, 1, engine::kSlotAvailable, engine::kSlotActive, 1'000 + i);
          recorder.note(i, 1, engine::kSlotSettling, engine::kSlotCompleted, 1'000 + i);
        });
      });
}

void events(benchmark::State& state) {
  OjsShm peer{Plan{}};
  auto admin = value_of(Admin::attach(peer.attached()), "attach");
  const auto lap = [&admin](bool on) {
    return [&admin, on](Lives& lives, std::uint32_t jobs) {
      if (const Status set = admin.set_events(on); !set.ok())
        throw_error("set_events", set.error());
      return lives.lap(jobs, [](std::uint32_t) {});
    };
  };
  compare(state, peer, lap(false), lap(true));
}

}  // namespace

void add_observing() {
  add_benchmark("observing_waits/ojs_shm", waits);
  add_benchmark("observing_recorder/ojs_shm", recorder);
  add_benchmark("observing_events/ojs_shm", events);
}

}  // namespace ojs_shm::bench
