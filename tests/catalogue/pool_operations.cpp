// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <utility>

#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

PoolSettings pool(std::string_view json) { return must(parse_pool_settings(json)); }
constexpr std::string_view kTwoQueues = R"({"queues":["default","other"]})";
constexpr std::string_view kPrevents =
    R"({"queues":["default","other"],"strategy":"strict","starvation_prevention":{"enabled":true}})";
constexpr std::string_view kDeepest = R"({"queues":["default","other"],"strategy":"least-loaded"})";

/// A pool, and the worker of this process in it.
void join(Hands& hands, std::string_view settings) {
  must(hands.admin->set_pool("p", pool(settings)));
  WorkerOptions options;
  options.pool = std::string("p");
  hands.worker.emplace(must(Worker::attach(hands.segment, options)));
}

void one_waits(Hands& hands) { hands.put(); }

}  // namespace

std::vector<Operation> pool_operations() {
  return {
      {"set_pool", one_waits,
       [](Hands& h) {
         must(h.admin->set_pool(
             "p",
             pool(
                 R"({"queues":["default","other"],"strategy":"weighted","weights":{"other":2}})")));
       }},
      {"change_pool",
       [](Hands& h) {
         h.put();
         must(h.admin->set_pool("p", pool(kDeepest)));
       },
       [](Hands& h) {
         must(h.admin->set_pool(
             "p",
             pool(
                 R"({"queues":["other"],"isolated":true,"starvation_prevention":{"enabled":true}})")));
       }},
      {"remove_pool",
       [](Hands& h) {
         h.put();
         must(h.admin->set_pool("p", pool(R"({"queues":["default"],"isolated":true})")));
       },
       [](Hands& h) {
         must(h.admin->remove_pool("p"));
         must(h.admin->set_pool("q", pool(kTwoQueues)));  // in its place
       }},
      {"pool_limited_over_jobs_at_work",
       [](Hands& h) {
         h.put(), h.put();
         join(h, kTwoQueues);
         h.take(h.job);
       },
       [](Hands& h) {
         must(h.admin->set_pool("p", pool(R"({"queues":["default","other"],"concurrency":20})")));
       }},
      {"fetch_for_pool",
       [](Hands& h) {
         h.put();
         h.put(2, "other");
         join(h, kTwoQueues);
       },
       [](Hands& h) { h.take(h.job); }},
      {"fetch_for_pool_that_prevents",
       [](Hands& h) {
         h.put();
         h.put(2, "other");
         join(h, kPrevents);
         h.move_clock(60'000);
       },
       [](Hands& h) { h.take(h.job); }},
      {"fetch_the_deepest",
       [](Hands& h) {
         join(h, kDeepest);
         h.put();
         h.put(2, "other");
       },
       [](Hands& h) { h.take(h.job); }},
      {"enqueue_counted", [](Hands& h) { join(h, kDeepest); },
       [](Hands& h) {
         h.put(2, "other");
         must(h.producer->cancel(h.id));
       }},
      {"find_a_queue_quiet",
       [](Hands& h) {
         h.put();
         h.take(h.job);
         must(h.worker->ack(h.job));
         join(h, kTwoQueues);
       },
       [](Hands& h) { (void)h.worker->try_fetch(h.job); }},
      {"enqueue_into_a_quiet_queue",
       [](Hands& h) {
         join(h, kTwoQueues);
         (void)h.worker->try_fetch(h.job);
       },
       [](Hands& h) {
         h.put();
         h.take(h.job);
         must(h.worker->requeue(h.job));
       }},
      {"tell_who_starves",
       [](Hands& h) {
         must(h.admin->set_events(true));
         join(h, R"({"queues":["default"],"concurrency":1})");
         h.put();
         h.take(h.job);
         h.put();
         h.tick();
         h.move_clock(60'000);
       },
       [](Hands& h) { h.tick(); }},
  };
}

}  // namespace ojs_shm::test
