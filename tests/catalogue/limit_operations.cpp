// SPDX-License-Identifier: Apache-2.0
// What limits do to jobs.

#include <stdexcept>

#include "engine/limits/rates.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

JobLimit limit(std::string_view json) { return must(parse_limit(json)); }

void put(Hands& hands, const JobLimit& limit, std::string_view tenant = {},
         std::int64_t priority = 2) {
  JobSpec spec = spec_of();
  spec.priority = priority;
  spec.limit = &limit;
  spec.tenant = tenant;
  hands.put(spec);
}

void take_nothing(Hands& hands) {
  Job job;
  if (hands.worker->try_fetch(job)) throw std::runtime_error("a limit was passed");
}

/// One of those that a limit of one in a second holds back, while the clock stands.
void take_one_in_a_second(Hands& hands) {
  hands.take(hands.job);
  take_nothing(hands);
}

/// Jobs of new keys come and go, until there is none left for `name`; the first has held one back,
/// and one has a window.
void use_up_the_keys(Hands& hands, std::string_view name) {
  const engine::Store& store = hands.handle->store();
  const std::uint64_t hash = engine::Store::hash_name(name);
  const auto room = [&] {
    for (std::uint32_t i = 0; i < store.limit_keys.size() * 7 / 8; ++i)
      if (store.limit_keys[static_cast<std::uint32_t>((hash + i) % store.limit_keys.size())]
              .name_hash.load() == 0)
        return true;
    return false;
  };
  const auto come_and_go = [&](const JobLimit& key, int jobs) {
    for (int i = 0; i < jobs; ++i) put(hands, key);
    hands.take(hands.job);
    if (jobs > 1) take_nothing(hands);
    must(hands.worker->ack(hands.job));
    for (int i = 1; i < jobs; ++i) {
      hands.take(hands.job);
      must(hands.worker->ack(hands.job));
    }
  };
  come_and_go(limit(R"({"key":"held","concurrency":1})"), 2);
  come_and_go(limit(R"({"key":"paced","rate":{"limit":3,"period":"PT1S","window":"sliding"}})"), 1);
  for (int i = 0; room() && i < 100; ++i)
    come_and_go(limit(R"({"key":"k)" + std::to_string(i) + R"(","concurrency":1})"), 1);
  if (room()) throw std::runtime_error("there is room for ever");
  hands.move_clock(5000);
}

void tick(Hands& hands) { hands.tick(); }

}  // namespace

std::vector<Operation> limit_operations() {
  static const JobLimit one = limit(R"({"key":"k","concurrency":1})");
  static const JobLimit two = limit(R"({"key":"two","concurrency":1})");
  // One of the key at work, and so many waiting in its queue or, once a lane has looked, in its
  // lot.
  const auto at_work = [](int waiting, bool looked = true) {
    return [=](Hands& h) {
      put(h, one);
      h.take(h.job);
      for (int i = 0; i < waiting; ++i) put(h, one);
      if (waiting != 0 && looked) take_nothing(h);
    };
  };
  const auto nothing = [](Hands&) {};
  const auto paced = [](std::string_view json) {
    return [=](Hands& h) {
      h.stop_clock();
      const JobLimit pace = limit(json);
      put(h, pace), put(h, pace);
    };
  };
  return {
      {"limit_first_brought", nothing, [](Hands& h) { put(h, one); }},
      {"limit_keys_given_up", [](Hands& h) { use_up_the_keys(h, "fresh"); },
       [](Hands& h) {
         put(h, limit(R"({"key":"fresh","concurrency":1})"));
         if (h.handle->store().header().limit_turn.load() == 0)
           throw std::runtime_error("no key was given up");
       }},
      {"limit_changed_by_a_job", at_work(2),
       [](Hands& h) { put(h, limit(R"({"key":"k","concurrency":3})")); }},
      {"limit_born_into_its_lot", at_work(2), [](Hands& h) { put(h, one); }},
      {"limit_with_a_tenant",
       [](Hands& h) {
         must(h.admin->set_limit("tenant:t", limit(R"({"key":"t","concurrency":1})").limit));
       },
       [](Hands& h) {
         put(h, one, "t");
         put(h, two, "t");
       }},
      {"limit_fetch", [](Hands& h) { put(h, one); }, [](Hands& h) { h.take(h.job); }},
      {"limit_fetch_holds_back", at_work(3, false), take_nothing},
      {"limit_fetch_passes_the_held_back",
       [=](Hands& h) {
         at_work(2, false)(h);
         h.put(9);
       },
       [](Hands& h) { h.take(h.job); }},
      {"limit_ack_lets_go", at_work(2), [](Hands& h) { must(h.worker->ack(h.job)); }},
      {"limit_ack_and_fetch", at_work(2),
       [](Hands& h) {
         must(h.worker->ack(h.job));
         h.take(h.job);
       }},
      {"limit_nack_lets_go", at_work(2),
       [](Hands& h) {
         Failure failed;
         failed.code = "boom";
         must(h.worker->nack(h.job, failed));
       }},
      {"limit_closed_by_a_nack", at_work(2),
       [](Hands& h) {
         Failure failed;
         failed.code = "too_many";
         failed.rate_limit_until_ms = h.handle->store().now_ms() + 60'000;
         must(h.worker->nack(h.job, failed));
       }},
      {"limit_requeue_lets_go", at_work(2), [](Hands& h) { must(h.worker->requeue(h.job)); }},
      {"limit_cancel_active", at_work(2), [](Hands& h) { must(h.producer->cancel(h.job.id())); }},
      {"limit_cancel_held_back", at_work(2), [](Hands& h) { must(h.producer->cancel(h.id)); }},
      {"limit_cancel_let_go",
       [=](Hands& h) {
         at_work(2)(h);
         must(h.worker->ack(h.job));
         JobFilter waiting;
         waiting.state = State::kAvailable;
         h.id = h.first(waiting);
       },
       [](Hands& h) { must(h.producer->cancel(h.id)); }},
      {"limit_reprioritize_held_back", at_work(2),
       [](Hands& h) { must(h.producer->reprioritize(h.id, 0)); }},
      {"limit_lease_ends",
       [=](Hands& h) {
         at_work(2)(h);
         must(h.worker->heartbeat(h.job, 100));
         h.move_clock(5000);
       },
       tick},
      {"limit_two_and_the_second_refuses",
       [](Hands& h) {
         must(h.admin->set_limit("type:crash.test", limit(R"({"key":"t","concurrency":2})").limit));
         put(h, one);
         h.take(h.job);
         put(h, one), put(h, two);
       },
       [](Hands& h) { h.take(h.job); }},
      {"limit_on_a_queue",
       [](Hands& h) {
         must(h.admin->set_limit("queue:default", limit(R"({"key":"q","concurrency":1})").limit));
         h.put(), h.put();
       },
       [](Hands& h) {
         h.take(h.job);
         take_nothing(h);
         must(h.worker->ack(h.job));
       }},
      {"limit_set_over_jobs_at_work",
       [](Hands& h) {
         h.put(), h.put();
         h.take(h.job);
       },
       [](Hands& h) {
         must(
             h.admin->set_limit("type:crash.test", limit(R"({"key":"t","concurrency":20})").limit));
         must(
             h.admin->set_limit("type:crash.test", limit(R"({"key":"t","concurrency":40})").limit));
       }},
      {"limit_raised", at_work(4),
       [](Hands& h) {
         must(h.admin->set_limit("k", limit(R"({"key":"k","concurrency":3})").limit));
       }},
      {"limit_cleared", at_work(4), [](Hands& h) { must(h.admin->clear_limit("k")); }},
      {"limit_fixed_window", paced(R"({"key":"w","rate":{"limit":1,"period":"PT1S"}})"),
       take_one_in_a_second},
      {"limit_sliding_window",
       paced(R"({"key":"w","rate":{"limit":1,"period":"PT1S","window":"sliding"}})"),
       take_one_in_a_second},
      {"limit_throttle", paced(R"({"key":"w","throttle":{"limit":1,"period":"PT1S"}})"),
       take_one_in_a_second},
      {"limit_window_refuses_after_the_throttle",
       paced(
           R"({"key":"w","rate":{"limit":1,"period":"PT1H"},"throttle":{"limit":1000,"period":"PT1S","burst":9}})"),
       [](Hands& h) {
         h.take(h.job);
         engine::LimitKey& key =
             h.handle->store().limit_keys[engine::find_limit(h.handle->store(), "w")];
         if (engine::Rates(h.handle->store()).take(key, h.handle->store().now_ms()))
           throw std::runtime_error("the window was passed");
       }},
      {"limit_is_due",
       [=](Hands& h) {
         paced(R"({"key":"w","throttle":{"limit":1,"period":"PT1S"}})")(h);
         h.take(h.job);
         take_nothing(h);
         h.move_clock(2000);
       },
       tick},
      {"limit_reschedules",
       [](Hands& h) {
         const JobLimit later = limit(R"({"key":"k","concurrency":1,"on_limit":"reschedule"})");
         put(h, later);
         h.take(h.job);
         put(h, later);
       },
       take_nothing},
      {"limit_drops",
       [](Hands& h) {
         const JobLimit drop = limit(R"({"key":"k","concurrency":1,"on_limit":"drop"})");
         put(h, drop);
         h.take(h.job);
         put(h, drop);
       },
       take_nothing},
      {"limit_told",
       [=](Hands& h) {
         must(h.admin->set_events(true));
         at_work(2, false)(h);
       },
       [](Hands& h) {
         take_nothing(h);
         must(h.worker->ack(h.job));
       }},
  };
}

}  // namespace ojs_shm::test
