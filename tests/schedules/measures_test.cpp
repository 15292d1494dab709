// SPDX-License-Identifier: Apache-2.0
// Rates, events and weights of tenants under every schedule within a bound.
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

const Part kTake = named("take_finish").part, kGiveBack = named("take_give_back").part;
const Part kTakeTwo = [](World& w, std::uint32_t i) {
  w.take(i), w.finish(i), w.take(i), w.finish(i);
};

class MeasuresSchedules : public Schedules {
 protected:
  /// Each place for one switch, and a kill at each; more only in the long form, where these
  /// scenarios are long.
  void explore_both(const Scenario& scenario) {
    for (const unsigned kills : {0U, 1U}) {
      if (long_form())
        explore(scenario, {.preemptions = 2, .kills = kills, .most_runs = 400'000});
      else
        explore(scenario,
                {.preemptions = 1, .kills = kills, .most_runs = kills == 0 ? ~0ULL : 1'000});
      if (HasFailure()) return;
    }
  }
};

TEST_F(MeasuresSchedules, PRI_T22_no_more_begin_in_a_period_than_its_rate) {
  const std::pair<const char*, World::Rate> kinds[] = {{"fixed", World::Rate::kFixed},
                                                       {"sliding", World::Rate::kSliding},
                                                       {"throttle", World::Rate::kThrottle},
                                                       {"puts off", World::Rate::kPutsOff}};
  for (const auto& [name, kind] : kinds) {
    const auto at_rate = [kind = kind](std::uint32_t most) {
      return [kind, most](World& w) {
        w.rate(kind, most);
        for (const unsigned job : {0U, 1U, 2U}) w.put_limited(World::kJanitor, job, 1);
        w.put(World::kJanitor, 3, 2);
      };
    };
    const std::string at = std::string("rate, ") + name;
    explore_both({at + ": take | take, one may", at_rate(1), {kTake, kTake}});
    explore_both({at + ": take two | take two, two may", at_rate(2), {kTakeTwo, kTakeTwo}});
    explore_both({at + ": give back | take two, two may", at_rate(2), {kGiveBack, kTakeTwo}});
    explore_both({at + ": take | take | take, two may", at_rate(2), {kTake, kTake, kTake}});
    if (HasFailure()) return;
  }
}

TEST_F(MeasuresSchedules, all_that_is_told_is_told_once_and_in_its_order) {
  const auto telling = [](World& w) {
    three_wait(w);
    w.tell();
  };
  for (const Named& one : operations())
    for (const char* other : {"take_give_back", "put_beside", "take_finish"})
      if (long_form() || other == std::string_view("take_give_back"))
        explore_both({std::string("told: ") + one.name + " | " + other,
                      telling,
                      {one.part, named(other).part}});
}

TEST_F(MeasuresSchedules, FS_T17_a_heavy_tenant_hides_no_job) {
  const auto two_of_two = [](World& w) {
    w.share(World::kJanitor, true, 2);
    for (const unsigned job : {0U, 1U, 2U, 3U}) w.put_for(World::kJanitor, job, 1, 1 + job / 2);
  };
  const Part put = [](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 1); };
  explore_both({"weights: take two | take two", two_of_two, {kTakeTwo, kTakeTwo}});
  explore_both({"weights: put | take two", two_of_two, {put, kTakeTwo}});
  explore_both({"weights: give back | take two", two_of_two, {kGiveBack, kTakeTwo}});
}

}  // namespace
}  // namespace ojs_shm::test
