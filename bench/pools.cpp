// SPDX-License-Identifier: Apache-2.0
//
// What a pool costs, in one thread, from one, eight and 64 loaded queues, by each strategy, beside
// a worker that takes from one queue and belongs to no pool: one in, one out above 4,096 waiting
// jobs; and a fetch with its ack alone.
#include <ojs_shm/worker_pool.hpp>

#include "bench/one_thread.hpp"
#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

constexpr std::size_t kWaiting = 4096;

/// Without a strategy: from its one queue, for no pool. `fetch_only`: what comes in is not timed.
void serve(benchmark::State& state, unsigned queues, std::optional<PoolStrategy> strategy,
           bool fetch_only) {
  const std::uint32_t jobs = fetch_only ? scaled(30'000) : jobs_per_run<OjsShm>() / 3;
  OjsShm peer(Plan{});
  Stage stage(cast_of<OjsShm>());
  stage.add(0, [&](Stage::Part& part) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < queues; ++i) names.push_back("q" + std::to_string(i));
    WorkerOptions options;
    options.queues = names;
    if (strategy) {
      auto admin = value_of(Admin::attach(peer.attached()), "attach");
      PoolSettings settings;
      settings.queues = names;
      settings.strategy = *strategy;
      for (unsigned i = 0; i < queues; ++i) settings.weights.emplace_back(names[i], i % 4 + 1);
      value_of(admin.set_pool("bench", settings), "set_pool");
      options.pool = "bench";
    }
    auto producer = value_of(Producer::attach(peer.attached()), "attach");
    auto worker = value_of(Worker::attach(peer.attached(), options), "attach");
    JobSpec spec;
    spec.type = "bench.job";
    Body body = blank_body();
    spec.args = {body.bytes, sizeof body};
    Job job;
    const auto enqueue = [&](std::size_t queue) {
      spec.queue = names[queue];
      value_of(producer.enqueue(spec), "enqueue");
    };
    const auto take = [&] {
      if (const Status got = worker.try_fetch(job); !got.ok()) throw_error("fetch", got.error());
      if (const Status done = worker.ack(job); !done.ok()) throw_error("ack", done.error());
    };
    // What goes out comes in again, so that every queue stays as full as it is.
    const auto lap = [&](std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) {
        take();
        enqueue(std::stoul(std::string(job.queue().substr(1))));
      }
    };
    for (std::size_t i = 0; i < (fetch_only ? jobs * 5 / 4 : kWaiting); ++i) enqueue(i % queues);
    if (!fetch_only) lap(jobs / 8);
    for (std::uint32_t i = 0; fetch_only && i < jobs / 8; ++i) take();
    part.begin();
    if (!fetch_only) lap(jobs);
    for (std::uint32_t i = 0; fetch_only && i < jobs; ++i) take();
    part.end();
  });
  time_stage(state, stage, jobs, cores_of<OjsShm>());
}

}  // namespace

void add_pools() {
  for (const bool fetch_only : {false, true}) {
    const std::string prefix = fetch_only ? "pools_fetch_" : "pools_";
    add_benchmark(prefix + "none_1/ojs_shm",
                  [=](benchmark::State& state) { serve(state, 1, std::nullopt, fetch_only); });
    for (const PoolStrategy strategy : {PoolStrategy::kStrict, PoolStrategy::kRoundRobin,
                                        PoolStrategy::kWeighted, PoolStrategy::kLeastLoaded})
      for (const unsigned queues : {1U, 8U, 64U})
        add_benchmark(prefix + std::string(pool_strategy_name(strategy)) + "_" +
                          std::to_string(queues) + "/ojs_shm",
                      [=](benchmark::State& state) { serve(state, queues, strategy, fetch_only); });
  }
}

}  // namespace ojs_shm::bench
