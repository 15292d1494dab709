// SPDX-License-Identifier: Apache-2.0
//
// One producer on one core, one worker on the other, both as fast as they can. Jobs per second over
// their full life: enqueue, fetch and ack where the peer has an ack.
#include "bench/measure.hpp"
#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

template <Peer P>
void one_to_one(benchmark::State& state, const Plan& plan) {
  const std::uint32_t jobs = jobs_per_run<P>();
  const std::uint32_t warm_up = jobs / 8;
  P peer(plan);
  Stage stage(cast_of<P>());
  stage.add(0, [&](Stage::Part& part) {
    typename P::Producer producer(peer);
    Body body = blank_body();
    unsigned level = 0;
    const auto send = [&](std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) {
        write_number(body, i);
        producer.enqueue(level, body);
        level = level + 1 == plan.levels ? 0 : level + 1;
      }
    };
    send(warm_up);
    part.begin();
    send(jobs);
    part.end();
  });
  stage.add(1, [&](Stage::Part& part) {
    typename P::Worker worker(peer);
    Body body{};
    const auto receive = [&](std::uint32_t count) {
      Tally tally;
      for (std::uint32_t i = 0; i < count; ++i) {
        take<P>(worker, body);
        worker.ack();
        tally.add(body);
      }
      tally.expect(count);
    };
    receive(warm_up);
    part.begin();
    receive(jobs);
    part.end();
  });
  time_stage(state, stage, jobs, cores_of<P>());
}

}  // namespace

void add_one_to_one() {
  for_each_peer([]<Peer P>() {
    add_benchmark(std::string("one_to_one/") + P::kName,
                  [](benchmark::State& state) { one_to_one<P>(state, Plan{}); });
  });
  const auto ours = [](const char* name, Plan plan) {
    add_benchmark(name, [plan](benchmark::State& state) { one_to_one<OjsShm>(state, plan); });
  };
  ours("one_to_one_bounded/ojs_shm", {.bounded = true});
  ours("one_to_one_256_levels/ojs_shm", {.levels = 256});
}

}  // namespace ojs_shm::bench
