// SPDX-License-Identifier: Apache-2.0
// What goes by itself or with its queue.

#include <stdexcept>

#include "engine/supervision/dead_letters.hpp"
#include "engine/supervision/retention.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

void bury(Hands& hands, std::string_view args = "[1]") {
  JobSpec spec = spec_of(args);
  spec.retry.max_attempts = 1;
  spec.retry.dead_letter = true;
  hands.put(spec);
  hands.take(hands.job);
  must(hands.worker->nack(hands.job, {.code = "boom", .message = "it did not work"}));
}

/// Dead letters, one with texts of its own, and room for one.
void bury_three(Hands& hands) {
  static const std::string large = "[\"" + std::string(600, 'b') + "\"]";
  bury(hands, large);
  bury(hands);
  bury(hands);
  must(hands.admin->set_dead_retention({.max_count = 1}));
}

void prune(Hands& hands) {
  engine::DeadLetters dead(hands.handle->actor());
  const std::uint64_t now = hands.handle->store().now_ms();
  while (dead.look(now) == now) {}
}

void configure(Hands& hands) {
  must(hands.admin->set_queue("default", {.max_depth = 100,
                                          .paused = true,
                                          .level_weights = std::vector<LevelWeight>{{"0", 3}},
                                          .shards = 2,
                                          .strategy = BackpressureStrategy::kBlock,
                                          .tenant_max_depth = 9}));
  must(hands.admin->set_limit("queue:default", {.concurrency = 5}));
}

/// Jobs of each kind: at work, waiting, with a time to come, pending, dead.
void fill(Hands& hands) {
  bury(hands);
  hands.put();
  hands.take(hands.job);
  hands.put();
  JobSpec later = spec_of();
  later.scheduled_at_ms = hands.handle->store().now_ms() + 3'600'000;
  hands.put(later);
  JobSpec pending = spec_of();
  pending.pending = true;
  hands.put(pending);
}

}  // namespace

std::vector<Operation> removal_operations() {
  const auto many_over = [](Hands& h) {
    for (unsigned i = 0; i < 20; ++i) {
      h.put();
      h.take(h.job);
      must(h.worker->ack(h.job));
      h.ids[1000 + i] = h.id;
    }
  };
  return {
      {"drop_some_completed", many_over,
       [](Hands& h) {  // enough to look through the oldest batch
         for (unsigned i = 0; i < 7; ++i) must(h.admin->drop(h.ids[1000 + i]));
       }},
      {"prune", bury_three, prune},
      {"prune_told",
       [](Hands& h) {
         must(h.admin->set_events(true));
         bury_three(h);
       },
       prune},
      {"set_dead_retention", [](Hands&) {},
       [](Hands& h) { must(h.admin->set_dead_retention({.max_age_ms = 5, .max_count = 7})); }},
      {"drop_what_is_kept_no_longer",
       [many_over](Hands& h) {
         many_over(h);
         must(h.admin->set_queue("default", {.retention = {.completed_ms = 1000}}));
         h.move_clock(5000);
       },
       [](Hands& h) {
         engine::EndedJobs ended(h.handle->actor());
         const std::uint64_t now = h.handle->store().now_ms();
         while (ended.look(now) == now) {}
         if (h.producer->get(h.ids[1000])) throw std::runtime_error("a job is kept for too long");
       }},
      {"set_retention", [](Hands&) {},
       [](Hands& h) {
         must(h.admin->set_queue("default", {.retention = {.completed_ms = 5, .cancelled_ms = 7}}));
       }},
      {"delete_queue", configure, [](Hands& h) { must(h.admin->delete_queue("default")); }},
      {"delete_queue_discarding", fill,
       [](Hands& h) { must(h.admin->delete_queue("default", QueueDeletion::kDiscard)); }, "", true},
      {"delete_queue_told",
       [](Hands& h) {
         must(h.admin->set_events(true));
         must(h.admin->set_queue("default", {.max_depth = 3, .tenant_max_depth = 3}));
         h.put();
       },
       [](Hands& h) { must(h.admin->delete_queue("default", QueueDeletion::kDiscard)); }, "", true},
  };
}

}  // namespace ojs_shm::test
