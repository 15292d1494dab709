// SPDX-License-Identifier: Apache-2.0
//
// The life of a job in one thread without any other: what the instructions cost, without the
// other core.
#pragma once

#include <vector>

#include "bench/measure.hpp"

namespace ojs_shm::bench {

/// The levels of consecutive jobs: in turn, or in an order without a pattern that a predictor could
/// learn.
inline std::vector<unsigned char> levels_in_turn(unsigned levels) {
  std::vector<unsigned char> order(4096);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<unsigned char>(i % levels);
  return order;
}

inline std::vector<unsigned char> levels_scattered(unsigned levels) {
  std::vector<unsigned char> order(4096);
  std::uint32_t x = 12345;
  for (unsigned char& level : order) {
    x = x * 1664525 + 1013904223;
    level = static_cast<unsigned char>((x >> 16) % levels);
  }
  return order;
}

/// One in, one out, over and over, above `plan.waiting` jobs that wait all the time.
template <Peer P>
void in_and_out(benchmark::State& state, const Plan& plan,
                const std::vector<unsigned char>& order) {
  const std::uint32_t jobs = jobs_per_run<P>() / 3;
  P peer(plan);
  Stage stage(cast_of<P>());
  stage.add(0, [&](Stage::Part& part) {
    typename P::Producer producer(peer);
    typename P::Worker worker(peer);
    Body body = blank_body();
    Body got{};
    const auto pairs = [&](std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) {
        write_number(body, i);
        producer.enqueue(order[i % order.size()], body);
        take<P>(worker, got);
        worker.ack();
        benchmark::DoNotOptimize(got);
      }
    };
    for (std::size_t i = 0; i < plan.waiting; ++i) producer.enqueue(order[i % order.size()], body);
    pairs(jobs / 8);
    part.begin();
    pairs(jobs);
    part.end();
  });
  time_stage(state, stage, jobs, cores_of<P>());
}

/// `plan.waiting` in, then all of them out, over and over.
template <Peer P>
void in_then_out(benchmark::State& state, const Plan& plan,
                 const std::vector<unsigned char>& order) {
  const auto batch = static_cast<std::uint32_t>(plan.waiting);
  const std::uint32_t laps = jobs_per_run<P>() / 3 / batch + 1;
  P peer(plan);
  Stage stage(cast_of<P>());
  stage.add(0, [&](Stage::Part& part) {
    typename P::Producer producer(peer);
    typename P::Worker worker(peer);
    Body body = blank_body();
    Body got{};
    const auto lap = [&] {
      Tally tally;
      for (std::uint32_t i = 0; i < batch; ++i) {
        write_number(body, i);
        producer.enqueue(order[i % order.size()], body);
      }
      for (std::uint32_t i = 0; i < batch; ++i) {
        take<P>(worker, got);
        worker.ack();
        tally.add(got);
      }
      tally.expect(batch);
    };
    for (std::uint32_t i = 0; i < laps / 8 + 1; ++i) lap();
    part.begin();
    for (std::uint32_t i = 0; i < laps; ++i) lap();
    part.end();
  });
  time_stage(state, stage, std::uint64_t{laps} * batch, cores_of<P>());
}

}  // namespace ojs_shm::bench
