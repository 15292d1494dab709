// SPDX-License-Identifier: Apache-2.0
// Settings, imports and events.

#include "tests/catalogue/operations.hpp"

#include <ojs_shm/transfer.hpp>

namespace ojs_shm::test {
namespace {

void nothing(Hands&) {}
void put_one(Hands& hands) { hands.put(); }
void tell(Hands& hands) { must(hands.admin->set_events(true)); }

/// A job with everything that a past can have, in that state.
std::string past(const std::string& state, const std::string& args = "[1]") {
  return R"({"job":{"id":"01961234-5678-7abc-8def-0123456789ab","type":"crash.test","state":")" +
         state + R"(","priority":1,"attempt":2,"fence":1000,"args":)" + args +
         R"(,"retry":{"max_attempts":20,"on_exhaustion":"dead_letter"},"dead_letter":)" +
         (state == "discarded" ? "true" : "false") +
         R"(,"created_at":"2026-01-01T00:00:00Z","scheduled_at":"2100-01-01T00:00:00Z",)"
         R"("next_attempt_at":"2100-01-01T00:00:00Z","completed_at":"2026-01-02T00:00:00Z","result":)" +
         args + R"(,"errors":[{"attempt":1,"code":"boom","message":"it did not work"}]}})";
}

void import(Hands& hands, const std::string& line) {
  Import import = must(Import::attach(hands.segment));
  must(import.take(R"({"ojs_shm_export":1,"convention":"ojs"})"));
  must(import.take(line));
}

}  // namespace

std::vector<Operation> upkeep_operations() {
  return {
      {"set_queue", nothing,
       [](Hands& h) {
         must(h.admin->set_queue("default", {5, 6, true}));
       }},
      {"set_default_priority", nothing,
       [](Hands& h) { must(h.admin->set_default_priority("crash.test", 1)); }},
      {"import_available", nothing, [](Hands& h) { import(h, past("available")); }},
      {"import_large", nothing, [](Hands& h) { import(h, past("available", big_args(3000))); }},
      {"import_scheduled", nothing, [](Hands& h) { import(h, past("scheduled")); }},
      {"import_pending", nothing, [](Hands& h) { import(h, past("pending")); }},
      {"import_retryable", nothing, [](Hands& h) { import(h, past("retryable")); }},
      {"import_completed", nothing, [](Hands& h) { import(h, past("completed")); }},
      {"import_dead_letter", nothing, [](Hands& h) { import(h, past("discarded")); }},
      {"import_bounded",
       [](Hands& h) {
         must(h.admin->set_queue("default", {1, {}, {}}));
         h.put();
       },
       [](Hands& h) { import(h, past("available")); }},
      {"import_existing", [](Hands& h) { import(h, past("available")); },
       [](Hands& h) { import(h, past("available")); }},
      {"import_settings", nothing,
       [](Hands& h) {
         import(h, R"({"queue":{"name":"other","settings":{"paused":true,"shards":2}}})");
         import(h, R"({"aging":{"rate":2}})");
         import(h, R"({"default_priority":{"type_hash":"00000000000000ff","priority":"high"}})");
       }},
      {"set_strict_envelopes", nothing,
       [](Hands& h) { must(h.admin->set_strict_envelopes(true)); }},
      {"set_immutable_priorities", nothing,
       [](Hands& h) { must(h.admin->set_immutable_priorities(true)); }},
      {"set_maintenance", put_one,
       [](Hands& h) { must(h.admin->set_maintenance(true, "moving")); }},
      {"end_maintenance",
       [](Hands& h) {
         put_one(h);
         must(h.admin->set_maintenance(true));
       },
       [](Hands& h) { must(h.admin->set_maintenance(false)); }},
      {"set_events", nothing, [](Hands& h) { must(h.admin->set_events(true)); }},
      {"tell_of_a_life", tell,
       [](Hands& h) {
         h.put();
         h.take(h.job);
         must(h.worker->heartbeat(h.job));
         must(h.worker->ack(h.job));
       }},
      {"tell_on_a_new_page",
       [](Hands& h) {
         tell(h);
         for (int i = 0; i < 16; ++i) h.put();
       },
       [](Hands& h) { h.put(); }},
      {"tell_of_a_failure",
       [](Hands& h) {
         tell(h);
         h.put();
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->nack(h.job, failure())); }},
      {"tell_of_changes",
       [](Hands& h) {
         tell(h);
         h.put();
       },
       [](Hands& h) {
         must(h.producer->reprioritize(h.id, 0));
         must(h.producer->cancel(h.id));
         must(h.admin->set_queue("default", {{}, {}, true}));
       }},
      {"tell_of_a_batch", tell,
       [](Hands& h) {
         const std::vector<JobSpec> specs(3, spec_of());
         must(h.producer->enqueue_batch(specs));
       }},
      {"tell_and_close", tell,
       [](Hands& h) {
         Producer producer = must(Producer::attach(h.segment));
         must(producer.enqueue(spec_of()));
       }},
  };
}

}  // namespace ojs_shm::test
