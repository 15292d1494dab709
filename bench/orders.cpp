// SPDX-License-Identifier: Apache-2.0
//
// A fetch alone, from five levels that all hold jobs: strict, ageing, weighted.
#include "bench/one_thread.hpp"
#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

void fetch_only(benchmark::State& state, const Plan& plan) {
  const std::uint32_t jobs = scaled(60'000);
  OjsShm peer(plan);
  Stage stage(cast_of<OjsShm>());
  stage.add(0, [&](Stage::Part& part) {
    OjsShm::Producer producer(peer);
    OjsShm::Worker worker(peer);
    Body body = blank_body();
    Body got{};
    const std::vector<unsigned char> order = levels_scattered(5);
    const auto fill = [&](std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) producer.enqueue(order[i % order.size()], body);
    };
    fill(jobs / 8);
    for (std::uint32_t i = 0; i < jobs / 8; ++i) take<OjsShm>(worker, got), worker.ack();
    fill(jobs + jobs / 4);  // so that no level runs dry in any order
    part.begin();
    for (std::uint32_t i = 0; i < jobs / 2; ++i) take<OjsShm>(worker, got);
    part.end();
  });
  time_stage(state, stage, jobs / 2, cores_of<OjsShm>());
}

}  // namespace

void add_orders() {
  const auto add = [](const std::string& name, const std::string& settings) {
    add_benchmark("fetch_" + name + "/ojs_shm", [settings](benchmark::State& state) {
      fetch_only(state, Plan{.settings = settings});
    });
  };
  add("strict", "");
  add("aged", R"({"aging":{"interval":"PT1M"}})");
  add("weighted", R"({"level_weights":{"0":1,"1":1,"2":1,"3":1,"4":1}})");
}

}  // namespace ojs_shm::bench
