// SPDX-License-Identifier: Apache-2.0
//
// Two producers and two workers, a producer and a worker on each of two cores. A worker that finds
// nothing sleeps where its queue lets it, and otherwise yields: spinning would take the core from
// the producer it waits for.
#include <sched.h>

#include "bench/measure.hpp"
#include "bench/peers/all.hpp"
#include "bench/shared_array.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

constexpr unsigned kPairs = 2;

struct alignas(128) Count {
  std::atomic<std::uint32_t> jobs{0};
};

template <Peer P>
void two_and_two(benchmark::State& state, const Plan& plan) {
  const std::uint32_t each = jobs_per_run<P>() / kPairs;
  SharedArray<Count> taken(kPairs);
  P peer(plan);
  Stage stage(cast_of<P>());
  const auto produce = [&](Stage::Part& part) {
    typename P::Producer producer(peer);
    Body body = blank_body();
    part.begin();
    for (std::uint32_t i = 0; i < each; ++i) {
      write_number(body, i);
      producer.enqueue(i % plan.levels, body);
    }
    part.end();
  };
  const auto work = [&](unsigned self) {
    return [&, self](Stage::Part& part) {
      typename P::Worker worker(peer);
      Body body{};
      const auto all_taken = [&] {
        return taken[0].jobs.load() + taken[1].jobs.load() >= kPairs * each;
      };
      part.begin();
      for (std::uint64_t idle_since = 0;;) {
        bool got = worker.poll(body);
        if (!got) {
          if (idle_since == 0) idle_since = ticks();
          if (all_taken()) return part.end(idle_since);
          if constexpr (ParkingPeer<P>) {
            got = worker.receive(body, Patience{2});
          } else {
            ::sched_yield();
          }
        }
        if (got) {
          worker.ack();
          idle_since = 0;
          taken[self].jobs.store(taken[self].jobs.load(std::memory_order_relaxed) + 1,
                                 std::memory_order_relaxed);
        }
      }
    };
  };
  stage.add(0, produce);
  stage.add(1, work(0));
  stage.add(1, produce);
  stage.add(0, work(1));
  time_stage(state, stage, std::uint64_t{kPairs} * each, Cores::kLeftAlone);
}

}  // namespace

void add_two_and_two() {
  for_each_peer([]<Peer P>() {
    if constexpr (P::kPace == Pace::kShared || P::kPace == Pace::kKernel) {
      add_benchmark(std::string("two_and_two/") + P::kName,
                    [](benchmark::State& state) { two_and_two<P>(state, Plan{}); });
    }
  });
  for (const unsigned shards : {1U, 2U, 4U})
    add_benchmark("two_and_two_shards_" + std::to_string(shards) + "/ojs_shm",
                  [shards](benchmark::State& state) {
                    two_and_two<OjsShm>(
                        state, Plan{.settings = R"({"shards":)" + std::to_string(shards) + "}"});
                  });
}

}  // namespace ojs_shm::bench
