// SPDX-License-Identifier: Apache-2.0
// Drops and waiting producers under every schedule within a bound, killed after each of their
// writes.
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

void two_wait(World& world) {
  world.put(World::kJanitor, 0, 1);
  world.put(World::kJanitor, 1, 2);
  world.older(1, 1000);  // the worse one goes first when room is made
}

class BackpressureSchedules : public Schedules {
 protected:
  void explore(const Scenario& scenario, unsigned preemptions, unsigned kills,
               std::uint64_t most_runs) {
    Schedules::explore(
        scenario,
        {.preemptions = preemptions,
         .kills = kills,
         .most_runs = long_form() ? (scenario.parts.size() == 3 ? 400'000 : ~0ULL) : most_runs});
  }
  void explore_all(const std::vector<Scenario>& scenarios) {
    for (const Scenario& scenario : scenarios)
      for (const unsigned kills : {0U, 1U}) {
        explore(scenario, 2 - kills, kills, 1'200);
        if (HasFailure()) return;
      }
  }
};

const Part put = [](World& w, std::uint32_t i) { w.put(i, own(i), 1); };
const Part put_two = [](World& w, std::uint32_t i) {
  w.put(i, own(i), 1), w.put(i, own(i) + 1, 3);
};
const Part put_batch = [](World& w, std::uint32_t i) { w.put_batch(i, own(i), 1); };
const Part take = [](World& w, std::uint32_t i) { w.take(i), w.finish(i); };
const Part take_two = [](World& w, std::uint32_t i) {
  w.take(i), w.finish(i), w.take(i), w.finish(i);
};
const Part give_back = [](World& w, std::uint32_t i) { w.take(i), w.give_back(i); };
const Part wait = [](World& w, std::uint32_t i) { w.put_patiently(i, own(i), 1); };
const Part wait_and_give_up = [](World& w, std::uint32_t i) {
  w.put_patiently(i, own(i), 1), w.give_up(i);
};

TEST_F(BackpressureSchedules, BP_T10_BP_T22_as_many_are_dropped_as_the_bound_asks_for) {
  const auto full = [](World& world) {
    two_wait(world);
    world.drop_at(2);
  };
  const auto room_for_one = [](World& world) {
    two_wait(world);
    world.drop_at(3);
  };
  const auto the_better_is_older = [full](World& world) {
    full(world);
    world.older(0, 2000);
  };
  explore_all({{"full, the better is older: batch | take", the_better_is_older, {put_batch, take}},
               {"full, the better is older: put two | take", the_better_is_older, {put_two, take}},
               {"full: put | put", full, {put, put}},
               {"full: put two | put", full, {put_two, put}},
               {"full: batch | put", full, {put_batch, put}},
               {"full: batch | batch", full, {put_batch, put_batch}},
               {"full: put | take", full, {put, take}},
               {"full: batch | take", full, {put_batch, take}},
               {"full: put | give back", full, {put, give_back}},
               {"room for one: put | put", room_for_one, {put, put}},
               {"room for one: batch | put", room_for_one, {put_batch, put}},
               {"room for one: batch | take", room_for_one, {put_batch, take}}});
  explore({"full: put | put | take", full, {put, put, take}}, 2, 0, 4'000);
}

TEST_F(BackpressureSchedules, BP_T05_BP_T09_who_waits_is_called_and_passed_by_nobody) {
  const auto full = [](World& world) {
    two_wait(world);
    world.block_at(2);
  };
  const auto one_waits = [](World& world) {
    two_wait(world);
    world.block_at(2);
    world.put_patiently(World::kJanitor, 2, 1);
  };
  const auto one_rests = [one_waits](World& world) {
    one_waits(world);
    world.rest(World::kJanitor);
  };
  explore_all({{"full: wait | take", full, {wait, take}},
               {"full: wait | wait", full, {wait, wait}},
               {"full: wait | give up", full, {wait, wait_and_give_up}},
               {"one waits: wait | take", one_waits, {wait, take}},
               {"one waits: put | take", one_waits, {put, take}},
               {"one waits: give up | take", one_waits, {wait_and_give_up, take}},
               {"one rests: take | take", one_rests, {take, take}},
               {"one rests: wait | take two", one_rests, {wait, take_two}}});
  explore({"full: wait | wait | take", full, {wait, wait, take}}, 2, 0, 4'000);
  explore({"full: wait | give up | take", full, {wait, wait_and_give_up, take}}, 2, 1, 4'000);
  explore({"full: wait | put | take", full, {wait, put, take}}, 2, 0, 4'000);
}

// Tenant 1 is at its bound. An account that is given back may be given to another tenant at once.
TEST_F(BackpressureSchedules, BP_T19_tenants_are_bounded_each_and_keep_their_accounts) {
  const auto one_full = [](World& world) {
    world.bound_tenants(World::kJanitor, 1);
    world.put_for(World::kJanitor, 0, 1, 1);
  };
  unsigned next = 0;
  const auto no_account_left = [&](World& world) {
    world.bound_tenants(World::kJanitor, 1);
    world.give_all_accounts();
    one_full(world);
    next = world.next_to(1);
  };
  const auto unbounded = [](World& world) {
    world.put_for(World::kJanitor, 0, 1, 1);
    world.put_for(World::kJanitor, 1, 1, 1);
  };
  const Part put_1 = [](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 1); };
  const Part put_2 = [](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 2); };
  const Part put_next = [&](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, next); };
  const Part switch_on = [](World& w, std::uint32_t i) { w.bound_tenants(i, 2); };
  explore_all(
      {{"tenants: put | take", one_full, {put_1, take}},
       {"tenants: put | put", one_full, {put_2, put_2}},
       {"tenants: put | give back", one_full, {put_1, give_back}},
       {"tenants, no account left: put another's | take", no_account_left, {put_next, take}},
       {"tenants, no account left: put another's | put another's",
        no_account_left,
        {put_next, put_next}},
       {"tenants are bounded | take", unbounded, {switch_on, take}},
       {"tenants are bounded | put", unbounded, {switch_on, put_1}},
       {"tenants are bounded | give back", unbounded, {switch_on, give_back}}});
  // What comes back meanwhile brings a charge of its own, and is taken again.
  const Part take_anew = [](World& w, std::uint32_t i) {
    if (w.take(i)) w.give_back(i), w.take(i);
  };
  explore({"tenants are bounded | give back and take again", unbounded, {switch_on, take_anew}}, 1,
          1, 4'000);
  explore({"tenants, no account left: put another's | take | put",
           no_account_left,
           {put_next, take, put_1}},
          2, 1, 4'000);
}

TEST_F(BackpressureSchedules, BP_T19_who_repairs_accounts_of_tenants_is_killed_too) {
  unsigned next = 0;
  const Part put_1 = [](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 1); };
  const Part put_next = [&](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, next); };
  const std::pair<const char*, Part> doomed[] = {
      {"take", take}, {"give back", give_back}, {"put another's", put_next}};
  const auto no_account_left = [&](World& world) {
    world.bound_tenants(World::kJanitor, 1);
    world.give_all_accounts();
    world.put_for(World::kJanitor, 0, 1, 1);
    next = world.next_to(1);
  };
  for (const auto& [name, part] : doomed) {
    const std::vector<std::uint32_t> deaths = deaths_of(world(), no_account_left, part);
    // beside one or the other, in turn
    for (std::size_t i = 0; i < deaths.size(); i += long_form() ? 1 : 3) {
      const auto died = [&part, &no_account_left, access = deaths[i]](World& world) {
        no_account_left(world);
        kill_alone(world, 2, part, access);
      };
      const Scenario scenario{
          std::string(name) + " died before access " + std::to_string(deaths[i]) +
              ": repair | put" + (i % 2 == 0 ? " another's" : ""),
          died,
          {[](World& w, std::uint32_t) { w.repair(); }, i % 2 == 0 ? put_next : put_1}};
      Schedules::explore(
          scenario, {.preemptions = 1, .kills = 1, .most_runs = long_form() ? 20'000ULL : 120});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ojs_shm::test
