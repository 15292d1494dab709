// SPDX-License-Identifier: Apache-2.0
//
// What fairness costs a fetch and its ack, in one thread, beside plain FIFO: among one, a hundred
// and a hundred thousand tenants; and in front of none, a thousand and a million jobs that a limit
// holds back.
#include <ojs_shm/limit.hpp>

#include "bench/one_thread.hpp"
#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

/// Fetches and acks half of what `fill` puts in.
template <class Fill>
void fetch_half(benchmark::State& state, const Plan& plan, std::uint32_t jobs, const Fill& fill) {
  OjsShm peer(plan);
  Stage stage(cast_of<OjsShm>());
  stage.add(0, [&](Stage::Part& part) {
    auto producer = value_of(Producer::attach(peer.attached()), "attach");
    const WorkerOptions options;
    auto worker = value_of(Worker::attach(peer.attached(), options), "attach");
    Job job;
    fill(peer, producer, worker);
    const auto take = [&](std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) {
        if (const Status got = worker.try_fetch(job); !got.ok()) throw_error("fetch", got.error());
        if (const Status done = worker.ack(job); !done.ok()) throw_error("ack", done.error());
      }
    };
    take(jobs / 8);
    part.begin();
    take(jobs / 2);
    part.end();
  });
  time_stage(state, stage, jobs / 2, cores_of<OjsShm>());
}

JobSpec plain_spec(const Body& body) {
  JobSpec spec;
  spec.type = "bench.job";
  spec.args = {body.bytes, sizeof body};
  return spec;
}

void among_tenants(benchmark::State& state, std::uint32_t tenants, bool fair) {
  const std::uint32_t jobs = scaled(150'000);
  Plan plan{.waiting = jobs, .tenants = tenants};
  if (fair) plan.settings = R"({"tenant_fairness":{"enabled":true}})";
  fetch_half(state, plan, jobs, [&](OjsShm&, Producer& producer, Worker&) {
    const Body body = blank_body();
    JobSpec spec = plain_spec(body);
    for (std::uint32_t i = 0; i < jobs; ++i) {
      const std::string tenant = "tenant-" + std::to_string(i % tenants);
      spec.tenant = tenant;
      value_of(producer.enqueue(spec), "enqueue");
    }
  });
}

/// `limited`: some key has a limit, and so many jobs wait for it.
void before_held_back(benchmark::State& state, bool limited, std::uint32_t held_back) {
  const std::uint32_t jobs = scaled(100'000), all = scaled(1'000'000);
  const std::uint32_t held = held_back <= 1000 ? held_back : scaled(held_back);
  fetch_half(state, Plan{.waiting = all + jobs}, jobs,
             [&](OjsShm& peer, Producer& producer, Worker& worker) {
               const Body body = blank_body();
               JobSpec spec = plain_spec(body);
               const JobLimit key{"held-back", {.concurrency = 0}};
               if (limited) {
                 auto admin = value_of(Admin::attach(peer.attached()), "attach");
                 if (const Status set = admin.set_limit(key.key, key.limit); !set.ok())
                   throw_error("set_limit", set.error());
               }
               spec.limit = &key;
               Job job;
               for (std::uint32_t i = 0; i < held; ++i) {
                 value_of(producer.enqueue(spec), "enqueue");
                 // The first one leaves its level as a worker looks; all later ones are put behind
                 // it.
                 if (i == 0 && worker.try_fetch(job).code() != Code::kEmpty)
                   throw std::runtime_error("a limit was passed");
               }
               spec.limit = nullptr;
               for (std::uint32_t i = 0; i < jobs; ++i) value_of(producer.enqueue(spec), "enqueue");
             });
}

}  // namespace

void add_fairness() {
  add_benchmark("tenants_fifo_100000/ojs_shm",
                [](benchmark::State& state) { among_tenants(state, 100'000, false); });
  for (const std::uint32_t tenants : {1U, 100U, 100'000U})
    add_benchmark("tenants_fair_" + std::to_string(tenants) + "/ojs_shm",
                  [=](benchmark::State& state) { among_tenants(state, tenants, true); });
  add_benchmark("held_back_fifo/ojs_shm",
                [](benchmark::State& state) { before_held_back(state, false, 0); });
  for (const std::uint32_t held : {0U, 1000U, 1'000'000U})
    add_benchmark("held_back_" + std::to_string(held) + "/ojs_shm",
                  [=](benchmark::State& state) { before_held_back(state, true, held); });
}

}  // namespace ojs_shm::bench
