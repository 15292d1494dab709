// SPDX-License-Identifier: Apache-2.0
// Limits under every schedule within a bound: permits, lots, and keys that are given up.
#include <gtest/gtest.h>

#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

/// One at a time of a key: no lane passes, and no lane that may begin is left in the lot.
TEST_F(Schedules, PRI_T22_a_limit_is_never_passed_and_nobody_is_left_behind_it) {
  // one at work, one that waits, and no other whose end would let it go
  constexpr unsigned kLast = 3;
  const auto waiting = [](unsigned held_back) {
    return [held_back](World& w) {
      w.limit(1);
      w.put_limited(World::kJanitor, 0, 1), w.put_limited(World::kJanitor, 1, 1);
      if (held_back != kLast) w.put_limited(World::kJanitor, 2, 2);
      if (held_back != 0) w.take(0);                                    // at work
      if (held_back == 2) w.take(World::kJanitor), w.forget_empties();  // the others go to the lot
    };
  };
  const Part take = named("take_finish").part, again = named("take_give_back").part,
             fail = named("take_fail").part;
  const Part end = [](World& w, std::uint32_t) { w.finish(0); };
  const Part put = [](World& w, std::uint32_t i) { w.put_limited(i, own(i), 0); };
  const Part cancel = [](World& w, std::uint32_t i) { w.cancel(i, 1); };
  const Part move = [](World& w, std::uint32_t i) { w.move(i, 2, 0); };
  const std::pair<std::string, std::pair<unsigned, std::vector<Part>>> scenarios[] = {
      {"take | take", {0, {take, take}}},
      {"take, give back | take", {0, {again, take}}},
      {"take, fail | take", {0, {fail, take}}},
      {"end | take", {1, {end, take}}},
      {"end | take the last", {kLast, {end, take}}},
      {"end | take, others in the lot", {2, {end, take}}},
      {"end | put into the lot", {2, {end, put}}},
      {"end | cancel in the lot", {2, {end, cancel}}},
      {"end | move in the lot", {2, {end, move}}},
      {"end | take | take", {1, {end, take, take}}},
      {"end | take | put", {2, {end, take, put}}}};
  for (const auto& [name, scenario] : scenarios) {
    const std::uint64_t all = scenario.second.size() == 3 ? 100'000 : ~0ULL;
    const Scenario each{"limited: " + name, waiting(scenario.first), scenario.second};
    explore(each, {.preemptions = 2, .kills = 0, .most_runs = long_form() ? all : 2'000});
    explore(each, {.preemptions = 1, .kills = 1, .most_runs = long_form() ? all : 2'000});
    if (HasFailure()) return;
  }
}

/// A setter of a limit counts what is at work, and a lane that claims a job then may count it
/// too.
TEST_F(Schedules, PRI_T22_a_job_that_is_claimed_while_its_key_gets_a_limit_has_one_permit) {
  const auto two_of_a_key = [](World& w) {
    w.name_limit();
    w.put_limited(World::kJanitor, 0, 1), w.put_limited(World::kJanitor, 1, 1);
  };
  const auto one_at_work = [two_of_a_key](World& w) { two_of_a_key(w), w.take(0); };
  const Part of_two = [](World& w, std::uint32_t i) { w.limit(2, i); };
  const Part of_one = [](World& w, std::uint32_t i) { w.limit(1, i), w.finish(0); };
  const Part take = named("take").part, finish = named("take_finish").part,
             again = named("take_give_back").part;
  const Scenario scenarios[] = {
      {"of two | take", two_of_a_key, {of_two, take}},
      {"of two | take, finish", two_of_a_key, {of_two, finish}},
      {"of two | take, give back", two_of_a_key, {of_two, again}},
      {"of two | take | take", two_of_a_key, {of_two, take, take}},
      {"of one, end | take, finish", one_at_work, {of_one, finish}},
      {"of one, end | take, give back", one_at_work, {of_one, again}},
      {"of one, end | take, finish | take, finish", one_at_work, {of_one, finish, finish}}};
  for (Scenario each : scenarios) {
    each.name = "set a limit " + each.name;
    const std::uint64_t most = long_form() ? 100'000 : 2'000;
    explore(each, {.preemptions = 2, .kills = 0, .most_runs = most});
    explore(each, {.preemptions = 1, .kills = 1, .most_runs = most});
    if (long_form()) explore(each, {.preemptions = 3, .kills = 0, .most_runs = 1'500'000});
    if (HasFailure()) return;
  }
  const Part set_alone = [](World& w, std::uint32_t i) { w.limit(1, i); };
  const Part cancel = [](World& w, std::uint32_t i) { w.take(i), w.cancel(i, 1), w.finish(i); };
  explore({"set a limit of one | take, cancel in the lot", one_at_work, {set_alone, cancel}},
          {.preemptions = 2, .kills = 0, .most_runs = long_form() ? ~0ULL : 2'000});
}

/// A key that no lane needs is given up while a job brings it: the job's key is there in the end,
/// whatever was killed.
TEST_F(Schedules, a_key_is_never_given_up_under_a_job_that_brings_it) {
  const auto nobody_needs_it = [](World& w) {
    w.put_brought(World::kJanitor, 0, 1);
    w.take(World::kJanitor), w.finish(World::kJanitor);
  };
  const Part put = [](World& w, std::uint32_t i) { w.put_brought(i, own(i), 1); };
  const Part give_up = [](World& w, std::uint32_t i) { w.give_keys_up(i); };
  const Part take = named("take_finish").part;
  const std::pair<const char*, std::vector<Part>> scenarios[] = {
      {"put | give up", {put, give_up}},
      {"give up | give up", {give_up, give_up}},
      {"put | give up | take", {put, give_up, take}}};
  for (const auto& [name, parts] : scenarios) {
    const Scenario each{std::string("keys: ") + name, nobody_needs_it, parts};
    explore(each, {.preemptions = 2, .kills = 0, .most_runs = long_form() ? ~0ULL : 3'000});
    explore(each, {.preemptions = 1, .kills = 1, .most_runs = long_form() ? ~0ULL : 3'000});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
