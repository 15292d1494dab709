// SPDX-License-Identifier: Apache-2.0
// Unique jobs of one key: who brings one beside others that bring, work, end or replace one, and
// beside who repairs, in every order of their shared accesses, one of them killed.
#include "engine/unique/unique.hpp"
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

using engine::OnConflict;

class UniqueSchedules : public Schedules {
 protected:
  void explore_all(const std::vector<Scenario>& scenarios) {
    Schedules::explore_all(scenarios, 1'500, 700'000);
  }
};

const auto kNothing = [](World&) {};
const Part kPut = [](World& w, std::uint32_t i) {
  w.put_unique(i, own(i), 1, OnConflict::kReject);
};
const Part kReplace = [](World& w, std::uint32_t i) {
  w.put_unique(i, own(i), 1, OnConflict::kReplace);
};
const Part kTake = [](World& w, std::uint32_t i) { w.take(i), w.finish(i); };
const auto kThere = [](World& w) { w.put_unique(World::kJanitor, 0, 1, OnConflict::kReject); };

/// Their level exists, so they go straight (plain.cpp).
const auto kLevel = [](World& w) {
  w.put(World::kJanitor, 0, 1), w.take(World::kJanitor), w.finish(World::kJanitor);
};

TEST_F(UniqueSchedules, of_several_that_come_at_once_one_is_let_in_and_the_key_gets_free_again) {
  explore_all({{"unique: put | put", kNothing, {kPut, kPut}},
               {"unique: put | put | put", kNothing, {kPut, kPut, kPut}},
               {"unique: put | put, straight", kLevel, {kPut, kPut}},
               {"unique: put | put | put, straight", kLevel, {kPut, kPut, kPut}},
               {"unique: put | put | take", kNothing, {kPut, kPut, kTake}},
               {"unique: put | take, one is there", kThere, {kPut, kTake}},
               {"unique: put | put | take, one is there", kThere, {kPut, kPut, kTake}},
               {"unique: put | cancel", kThere, {kPut, named("cancel_0").part}},
               {"unique: put | move", kThere, {kPut, named("move_0_first").part}}});
}

TEST_F(UniqueSchedules, SUM_10_of_several_that_replace_each_other_one_stays) {
  explore_all(
      {{"unique: replace | replace", kNothing, {kReplace, kReplace}},
       {"unique: replace | replace, straight", kLevel, {kReplace, kReplace}},
       {"unique: replace | replace, one is there", kThere, {kReplace, kReplace}},
       {"unique: replace | replace | take, one is there", kThere, {kReplace, kReplace, kTake}},
       {"unique: replace | take", kThere, {kReplace, kTake}},
       {"unique: replace | cancel", kThere, {kReplace, named("cancel_0").part}},
       {"unique: replace | move", kThere, {kReplace, named("move_0_first").part}},
       {"unique: replace | put", kThere, {kReplace, kPut}}});
}

TEST_F(UniqueSchedules, one_that_comes_back_beside_newcomers_has_its_key_or_leaves_it_to_them) {
  const auto cancelled = [](World& w) { kThere(w), w.cancel(World::kJanitor, 0); };
  const Part kRevive = [](World& w, std::uint32_t i) { w.revive_unique(i, 0); };
  explore_all({{"unique: revive | put", cancelled, {kRevive, kPut}},
               {"unique: revive | put | put", cancelled, {kRevive, kPut, kPut}},
               {"unique: revive | replace", cancelled, {kRevive, kReplace}},
               {"unique: revive | put | take", cancelled, {kRevive, kPut, kTake}}});
}

TEST_F(UniqueSchedules, PRI_T27_of_several_that_raise_a_priority_the_best_stays) {
  const auto low = [](World& w) { w.put(World::kJanitor, 0, 3); };
  const auto raise_to = [](std::uint8_t rank) {
    return [rank](World& w, std::uint32_t i) { w.raise(i, 0, rank); };
  };
  explore_all({{"unique: raise | raise", low, {raise_to(1), raise_to(0)}},
               {"unique: raise | raise | raise", low, {raise_to(2), raise_to(1), raise_to(0)}}});
}

/// One died after any of its writes; who repairs is killed as well, while another comes.
TEST_F(UniqueSchedules, a_repairer_beside_one_who_comes_killed_too) {
  const auto at_work = [](World& w) { kThere(w), w.take(World::kJanitor); };
  for (const auto& [name, prepare, part] :
       std::vector<std::tuple<std::string, std::function<void(World&)>, Part>>{
           {"put", kNothing, kPut},
           {"replace", kThere, kReplace},
           {"replace of one at work", at_work, kReplace}}) {
    const std::vector<std::uint32_t> deaths = deaths_of(world(), prepare, part);
    for (std::size_t i = 0; i < deaths.size(); i += long_form() ? 1 : 4) {
      const auto died = [&prepare, &part, access = deaths[i]](World& w) {
        prepare(w);
        kill_alone(w, 2, part, access);
      };
      explore({"unique: " + name + " died before access " + std::to_string(deaths[i]) +
                   ": repair | " + (i % 2 == 0 ? "put" : "replace"),
               died,
               {[](World& w, std::uint32_t) { w.repair(); }, i % 2 == 0 ? kPut : kReplace}},
              {.preemptions = 1, .kills = 1, .most_runs = long_form() ? 20'000ULL : 120});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ojs_shm::test
