// SPDX-License-Identifier: Apache-2.0
// A cron whose time has come, fired by two processes that both hold themselves for the supervisor,
// beside others that set and remove it; one of them killed.
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

class CronSchedules : public Schedules {};

TEST_F(CronSchedules, each_time_comes_once) {
  const auto is_due = [](World& w) { w.set_cron(World::kJanitor, 4); };
  const auto two_wait = [](World& w) {
    for (const unsigned job : {0U, 1U}) w.put(World::kJanitor, job, 1);
    w.set_cron(World::kJanitor, 4);
  };
  const Part fire = [](World& w, std::uint32_t i) { w.fire_cron(i); };
  const Part replace = [](World& w, std::uint32_t i) { w.set_cron(i, own(i)); };
  const Part remove = [](World& w, std::uint32_t i) { w.remove_cron(i); };
  const Part take = [](World& w, std::uint32_t i) { w.take(i); };
  const std::vector<Scenario> scenarios = {
      {"crons: fire | fire", is_due, {fire, fire}},
      {"crons: fire | replace", is_due, {fire, replace}},
      {"crons: fire | remove", is_due, {fire, remove}},
      {"crons: replace | replace", is_due, {replace, replace}},
      {"crons: fire | take", two_wait, {fire, take}},
      {"crons: fire | fire | replace", is_due, {fire, fire, replace}}};
  for (const Scenario& scenario : scenarios)
    for (const unsigned kills : {0U, 1U}) {
      explore(scenario,
              {.preemptions = 2, .kills = kills, .most_runs = long_form() ? 300'000ULL : 800});
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace ojs_shm::test
