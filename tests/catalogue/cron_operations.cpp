// SPDX-License-Identifier: Apache-2.0
// Crons. The description of a cron says how many times it must have had when
// all is repaired and its supervisor has looked: scene.cpp holds it to that.

#include "tests/catalogue/operations.hpp"
#include "worker_api/roles/cron_keeper.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kHour = 3'600'000;

CronSpec cron(std::string_view times = {}) {
  CronSpec spec;
  spec.name = "hourly";
  spec.expression = "@every 1h";
  spec.description = times;
  spec.job = spec_of();
  return spec;
}

void set(Hands& hands, const CronSpec& spec) {
  hands.stop_clock();
  (void)must(hands.admin->set_cron(spec));
}
void look(Hands& hands) {
  internal::CronKeeper(hands.handle->actor()).look(hands.handle->store().now_ms());
}
/// Set, and its time has come.
std::function<void(Hands&)> due(CronSpec spec) {
  return [spec](Hands& hands) {
    set(hands, spec);
    hands.move_clock(kHour);
  };
}
/// The same, and its last job is there: waiting, or at work.
std::function<void(Hands&)> due_again(CronSpec spec, bool at_work) {
  return [spec, at_work](Hands& hands) {
    set(hands, spec);
    must(hands.admin->trigger_cron("hourly"));
    if (at_work) hands.take(hands.job);
    hands.move_clock(kHour);
  };
}
void bound(Hands& hands, BackpressureStrategy strategy) {
  must(hands.admin->set_queue("default", {.max_depth = 1, .strategy = strategy}));
  hands.put();
}

CronSpec with(CronSpec spec, CronOverlap overlap, const JobUnique* unique = nullptr) {
  spec.overlap = overlap;
  spec.job.unique = unique;
  return spec;
}

}  // namespace

std::vector<Operation> cron_operations() {
  static const std::string large = "[\"" + std::string(600, 'b') + "\"]";
  static const JobUnique replaces = must(
      JobUnique::of(spec_of(), std::string_view(R"({"keys":["args"],"on_conflict":"replace"})")));
  CronSpec big = cron();
  big.job.args = large;
  return {
      {"cron_set", [](Hands&) {}, [big](Hands& h) { set(h, big); }},
      {"cron_set_one_by_one", [](Hands&) {},
       [](Hands& h) { set(h, with(cron(), CronOverlap::kEnqueue)); }},
      {"cron_replace", [big](Hands& h) { set(h, big); }, [](Hands& h) { set(h, cron()); }},
      {"cron_disable", [](Hands& h) { set(h, cron()); },
       [](Hands& h) { must(h.admin->enable_cron("hourly", false)); }},
      {"cron_remove", [big](Hands& h) { set(h, big); },
       [](Hands& h) { must(h.admin->remove_cron("hourly")); }},
      {"cron_trigger", [](Hands& h) { set(h, cron()); },
       [](Hands& h) {
         const std::string id = must(h.admin->trigger_cron("hourly")).str();
         if (h.accepted) h.accepted(id);
       }},
      {"cron_fire", due(cron("1")), look},
      {"cron_fire_large",
       [big](Hands& h) {
         CronSpec spec = big;
         spec.description = "1";
         due(spec)(h);
       },
       look},
      {"cron_fire_told",
       [](Hands& h) {
         must(h.admin->set_events(true));
         due(cron("1"))(h);
       },
       look},
      {"cron_fire_into_full_queue",
       [](Hands& h) {
         bound(h, BackpressureStrategy::kReject);
         due(cron("1"))(h);
       },
       look},
      {"cron_fire_drops",
       [](Hands& h) {
         bound(h, BackpressureStrategy::kDropOldest);
         due(cron("1"))(h);
       },
       look},
      {"cron_fire_overlaps", due_again(cron("2"), true), look},
      {"cron_fire_beside", due_again(with(cron("2"), CronOverlap::kAllow), false), look},
      {"cron_fire_one_by_one", due_again(with(cron("2"), CronOverlap::kEnqueue), true), look},
      {"cron_fire_cancels_waiting", due_again(with(cron("2"), CronOverlap::kCancelPrevious), false),
       look},
      {"cron_fire_cancels_active", due_again(with(cron("2"), CronOverlap::kCancelPrevious), true),
       look},
      {"cron_fire_replaces", due_again(with(cron("2"), CronOverlap::kAllow, &replaces), false),
       look},
  };
}

}  // namespace ojs_shm::test
