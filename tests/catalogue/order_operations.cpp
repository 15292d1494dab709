// SPDX-License-Identifier: Apache-2.0
// What changes and follows the order in which jobs leave a queue.

#include <stdexcept>
#include <utility>

#include "engine/tenants/tenant_fetch.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

QueueSettings order(std::string_view json) { return must(parse_queue_settings(json)); }

void put_for(Hands& hands, const std::string& tenant, std::int64_t priority = 2) {
  const std::string extra = R"({"meta":{"tenant_id":")" + tenant + R"("}})";
  JobSpec spec = spec_of();
  spec.extra = extra;
  spec.priority = priority;
  hands.put(spec);
}

void put_one(Hands& hands) { hands.put(); }

}  // namespace

std::vector<Operation> order_operations() {
  return {
      {"set_aging", put_one,
       [](Hands& h) { must(h.admin->set_queue("default", order(R"({"aging":{"rate":2}})"))); }},
      {"set_default_aging", put_one, [](Hands& h) { must(h.admin->set_default_aging({})); }},
      {"set_level_weights", put_one,
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"level_weights":{"0":2,"2":1}})")));
         must(h.admin->set_queue("default", order(R"({"level_weights":{}})")));
       }},
      {"set_shards", put_one,
       [](Hands& h) { must(h.admin->set_queue("default", order(R"({"shards":3})"))); }},
      {"enqueue_with_rate", put_one,
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.priority_age_rate = 3;
         h.put(spec);
       }},
      {"enqueue_sharded",
       [](Hands& h) { must(h.admin->set_queue("default", order(R"({"shards":16})"))); },
       [](Hands& h) { h.put(); }},
      {"fetch_aged",
       [](Hands& h) {
         JobSpec spec = spec_of();
         for (const std::uint32_t rate : {1U, 5U}) {
           spec.priority_age_rate = rate;
           h.put(spec);
         }
         h.put(0);
         must(h.admin->set_queue("default", order(R"({"aging":{}})")));
         h.move_clock(120'000);
       },
       [](Hands& h) { h.take(h.job); }},
      {"fetch_weighted",
       [](Hands& h) {
         h.put(0);
         h.put(1);
         must(h.admin->set_queue("default", order(R"({"level_weights":{"0":1,"1":3}})")));
       },
       [](Hands& h) { h.take(h.job); }},
      {"enqueue_of_a_tenant",
       [](Hands& h) { must(h.admin->set_queue("default", order(R"({"tenant_fairness":{}})"))); },
       [](Hands& h) { put_for(h, "a"); }},
      {"enqueue_and_fetch_of_tenants",
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"tenant_fairness":{"weights":{"b":2}}})")));
         for (const char* tenant : {"a", "a", "b", "b", "b"}) put_for(h, tenant);
       },
       [](Hands& h) {
         put_for(h, "c");
         // to the end of the line, once more in a turn, and out of the line
         for (int i = 0; i < 6; ++i) {
           h.take(h.job);
           must(h.worker->ack(h.job));
         }
         put_for(h, "a");  // and in again
       }},
      {"fetch_of_one_tenant",
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"tenant_fairness":{}})")));
         for (const char* tenant : {"a", "b", "b"}) put_for(h, tenant);
       },
       [](Hands& h) {
         engine::Actor& actor = h.handle->actor();
         std::string body;
         engine::Fetched job;
         job.body = &body;
         const std::uint32_t queue = h.handle->store().find_queue("default");
         engine::TenantFetch fetch(actor, h.handle->store(), engine::hash_tenant("b"));
         if (fetch.fetch(queue, 0, false, job) != engine::Outcome::kOk)
           throw std::runtime_error("the tenant has jobs");
         actor.ack(job.slot, job.word, "");
       }},
      {"fetch_past_an_empty_flow",
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"tenant_fairness":{}})")));
         put_for(h, "a");
         must(h.producer->cancel(h.id));
         put_for(h, "b");
       },
       [](Hands& h) { h.take(h.job); }},
      {"share_what_waits",
       [](Hands& h) {
         for (const char* tenant : {"a", "a", "b"}) put_for(h, tenant);
       },
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"tenant_fairness":{"weights":{"a":3}}})")));
       }},
      {"enqueue_and_fetch_of_tenants_across_levels",
       [](Hands& h) {
         must(h.admin->set_queue(
             "default", order(R"({"tenant_fairness":{"scope":"across","weights":{"b":2}}})")));
         for (const char* tenant : {"a", "a", "b", "b"}) put_for(h, tenant, *tenant == 'a' ? 1 : 3);
       },
       [](Hands& h) {
         put_for(h, "c", 5);
         for (int i = 0; i < 5; ++i) {
           h.take(h.job);
           must(h.worker->ack(h.job));
         }
         put_for(h, "a");  // and in again
       }},
      {"share_across_levels",
       [](Hands& h) {
         for (const char* tenant : {"a", "a", "b"}) put_for(h, tenant);
       },
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"tenant_fairness":{"scope":"across"}})")));
       }},
      {"share_no_longer",
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"tenant_fairness":{}})")));
         for (const char* tenant : {"a", "a", "b"}) put_for(h, tenant);
       },
       [](Hands& h) {
         must(h.admin->set_queue("default", order(R"({"tenant_fairness":{"enabled":false}})")));
       }},
      {"reprioritize_in_a_part",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.priority_age_rate = 3;
         h.put(spec);
       },
       [](Hands& h) { must(h.producer->reprioritize(h.id, 7)); }},
  };
}

}  // namespace ojs_shm::test
