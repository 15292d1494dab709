// SPDX-License-Identifier: Apache-2.0
// Registered workers: registering, signs of life, directives, the end.

#include <ojs_shm/proxy.hpp>

#include "engine/workers/registry.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

void report(Hands& hands, const WorkerReport& report) {
  must(must(Proxy::attach(hands.segment)).report(report));
}
/// A worker of that id that has a job; its time stands.
void at_work(Hands& hands) {
  hands.stop_clock();
  hands.put(), hands.put();
  report(hands, {.id = "w", .labels = "1"});
  must(must(Proxy::attach(hands.segment)).fetch({.worker = "w"}));
}
void look(Hands& hands) {
  std::vector<engine::LostWorker> lost;
  engine::Registry(hands.handle->actor()).look(hands.handle->store().now_ms(), lost);
}
engine::WorkerKey key(Hands& hands) { return engine::find_worker(hands.handle->store(), "w"); }

}  // namespace

std::vector<Operation> worker_operations() {
  return {
      {"worker_register", [](Hands&) {}, [](Hands& h) { report(h, {.id = "w", .labels = "1"}); }},
      {"worker_beat_with_news", at_work,
       [](Hands& h) {
         h.move_clock(1000);
         report(h, {.id = "w", .concurrency = 2, .labels = "2", .state = "drain"});
       }},
      {"worker_directed", at_work,
       [](Hands& h) { must(h.admin->direct_worker("w", WorkerDirective::kQuiet)); }},
      {"worker_fetch", [](Hands& h) { h.put(); },
       [](Hands& h) {
         Proxy proxy = must(Proxy::attach(h.segment));
         const std::vector<JobInfo> jobs = must(proxy.fetch({.worker = "w"}));
         if (!jobs.empty()) must(proxy.requeue(jobs.front().id, 0));
       }},
      {"fetch_for_client", [](Hands& h) { h.put(), h.put(); },
       [](Hands& h) {
         Proxy proxy = must(Proxy::attach(h.segment));
         for (const JobInfo& job : must(proxy.fetch({.count = 2, .held = true})))
           must(proxy.hand_over(job.id, job.fence));
       }},
      {"ack_for_client", [](Hands& h) { h.put(); },
       [](Hands& h) {
         // Another handle than the one that fetched, as after a gateway's end.
         Proxy first = must(Proxy::attach(h.segment)), second = must(Proxy::attach(h.segment));
         for (const JobInfo& job : must(first.fetch({})))
           must(second.ack(job.id, job.fence, "[1]"));
       }},
      {"nack_for_client", [](Hands& h) { h.put(); },
       [](Hands& h) {
         Proxy proxy = must(Proxy::attach(h.segment));
         for (const JobInfo& job : must(proxy.fetch({.held = true})))
           must(proxy.nack(job.id, job.fence, {.code = "c"}));
       }},
      {"beat_for_client", [](Hands& h) { h.put(); },
       [](Hands& h) {
         Proxy proxy = must(Proxy::attach(h.segment));
         for (const JobInfo& job : must(proxy.fetch({}))) {
           must(proxy.heartbeat(job.id, job.fence, 5'000));
           must(proxy.progress(job.id, job.fence, 0.5));
         }
       }},
      {"fetch_by_shares", [](Hands& h) { h.put(), h.put(2, "other"), h.put(2, "other"); },
       [](Hands& h) {
         for (const char* second : {"other", "none"}) {
           Proxy proxy = must(Proxy::attach(h.segment));
           for (int i = 0; i < 2; ++i)
             must(proxy.fetch({.queues = {"default", second}, .weights = {2, 1}}));
         }
       }},
      {"worker_silent",
       [](Hands& h) {
         at_work(h);
         h.move_clock(60'000);
       },
       look},
      {"worker_removed", at_work, [](Hands& h) { must(h.admin->remove_worker("w")); }},
      {"worker_comes_back",
       [](Hands& h) {
         at_work(h);
         h.move_clock(60'000);
         look(h);
       },
       [](Hands& h) { report(h, {.id = "w"}); }},
      {"worker_counted", at_work,
       [](Hands& h) { engine::Registry(h.handle->actor()).count(key(h), 1); }},
      {"native_worker",
       [](Hands& h) {
         h.put();
         h.worker.reset();
       },
       [](Hands& h) {
         Worker native = must(Worker::attach(h.segment, {.id = "w"}));
         must(native.try_fetch(h.job));
         must(native.requeue(h.job));
       }},
  };
}

}  // namespace ojs_shm::test
