// SPDX-License-Identifier: Apache-2.0
// Unique jobs.

#include <stdexcept>

#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

JobSpec with(const JobUnique& unique, std::string_view args = "[1]") {
  JobSpec spec = spec_of(args);
  spec.unique = &unique;
  return spec;
}

JobUnique unique(std::string_view policy, std::string_view args = "[1]") {
  return must(JobUnique::of(spec_of(args), policy));
}

}  // namespace

std::vector<Operation> unique_operations() {
  static const std::string kLarge = "[\"" + std::string(3'000, 'b') + "\"]";
  static const JobUnique
      large = unique(R"({"keys":["args"]})", kLarge),
      reject = unique(R"({"keys":["args"]})"),
      raise = unique(R"({"keys":["args"],"raise_priority":true})"),
      ignore = unique(R"({"keys":["args"],"on_conflict":"ignore"})"),
      replace = unique(R"({"keys":["args"],"on_conflict":"replace"})"),
      other = unique(R"({"keys":["args"],"on_conflict":"replace"})", "[2]"),
      shift = unique(R"({"keys":["args"],"on_conflict":"replace_except_schedule"})"),
      at_work = unique(R"({"keys":["args"],"states":["active"]})"),
      long_lived =
          unique(R"({"keys":["args"],"states":["available","completed"],"period":"PT1H"})");
  const auto there = [](Hands& h) { h.put(with(replace)); };
  const auto dead = [](Hands& h) {
    JobSpec spec = with(reject);
    spec.retry.max_attempts = 1;
    spec.retry.dead_letter = true;
    h.id = h.put(spec);
    h.take(h.job);
    Failure failure;
    failure.code = "boom";
    must(h.worker->nack(h.job, failure));
  };
  const auto replacing = [](Hands& h) { h.put(with(replace)); };
  return {
      {"unique", [](Hands&) {}, [](Hands& h) { h.put(with(reject)); }},
      // its level is there, so it goes straight (plain.cpp)
      {"unique_beside", [](Hands& h) { h.put(spec_of()); }, [](Hands& h) { h.put(with(reject)); }},
      {"unique_duplicate_raises",
       [](Hands& h) {
         JobSpec spec = with(raise);
         spec.priority = 3;
         h.put(spec);
       },
       [](Hands& h) {
         JobSpec spec = with(raise);
         spec.priority = 1;
         if (h.producer->enqueue(spec).ok()) throw std::runtime_error("a duplicate was accepted");
       }},
      {"unique_duplicate_of_a_large_body", [](Hands& h) { h.put(with(large, kLarge)); },
       [](Hands& h) {
         if (h.producer->enqueue(with(large, kLarge)).ok())
           throw std::runtime_error("a duplicate was accepted");
       }},
      {"unique_replaces_available", there, replacing},
      {"unique_replaces_active",
       [there](Hands& h) {
         there(h);
         h.take(h.job);
       },
       replacing},
      {"unique_replaces_pending_elsewhere",
       [](Hands& h) {
         JobSpec spec = with(replace);
         spec.queue = "other";
         spec.pending = true;
         h.put(spec);
       },
       replacing},
      {"unique_replaces_scheduled",
       [](Hands& h) {
         JobSpec spec = with(shift);
         spec.scheduled_at_ms = h.handle->store().now_ms() + 3'600'000;
         h.put(spec);
       },
       [](Hands& h) { h.put(with(shift)); }},
      {"unique_batch_replaces",
       [there](Hands& h) {
         there(h);
         h.put(with(other, "[2]"));
       },
       [](Hands& h) {
         const JobSpec jobs[] = {with(other, "[2]"), spec_of(), with(replace)};
         must(h.producer->enqueue_batch(jobs));
       }},
      {"unique_batch_of_which_one_is_there", there,
       [](Hands& h) {
         const JobSpec jobs[] = {with(ignore), spec_of()};
         must(h.producer->enqueue_batch(jobs));
       }},
      {"unique_replaces_in_bounded_queue",
       [there](Hands& h) {
         must(h.admin->set_queue("default", {10, 4096, {}}));
         there(h);
       },
       replacing},
      {"unique_drops_one_of_its_key",
       [](Hands& h) {
         must(h.admin->set_queue("default",
                                 {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest}));
         h.put(with(at_work));
         h.put(spec_of());
       },
       [](Hands& h) { h.put(with(at_work)); }},
      {"unique_ack_of_one_that_is_minded",
       [](Hands& h) {
         h.put(with(long_lived));
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->ack(h.job)); }},
      {"unique_dead_letter_returns", dead, [](Hands& h) { must(h.admin->retry_dead(h.id)); }},
      {"unique_dead_letter_stays",
       [dead](Hands& h) {
         dead(h);
         const std::string id = h.id;
         h.put(with(reject));
         h.id = id;
       },
       [](Hands& h) {
         if (h.admin->retry_dead(h.id).code() != Code::kDuplicate)
           throw std::runtime_error("a second one came to life");
       }},
  };
}

}  // namespace ojs_shm::test
