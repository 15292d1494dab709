// SPDX-License-Identifier: Apache-2.0
// The real code, compiled with chunks of two cells, under every schedule within a bound: operations
// in pairs and in chosen triples, killed after each of their writes, and repairs that run beside
// living operations and are killed too.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Schedules, tags_wrap_in_the_life_of_a_job) {
  World world;
  world.begin_anew();
  const auto tag = [&world] { return shm::Control(world.store().job(0).control.load()).tag(); };
  const std::uint64_t before = tag();
  world.put(World::kJanitor, 0, 1);
  world.take(World::kJanitor);
  const std::uint64_t active = tag();
  world.finish(World::kJanitor);
  EXPECT_GT(active, before);
  EXPECT_LT(tag(), before);
}

TEST_F(Schedules, FS_T01_every_pair_of_operations_up_to_two_preemptions) {
  for (const Named& a : operations())
    for (const Named& b : operations()) {
      if (&b < &a) continue;
      explore(scenario_of({&a, &b}), {.preemptions = 2, .most_runs = long_form() ? ~0ULL : 2'000});
      if (HasFailure()) return;
    }
}

TEST_F(Schedules, FS_T02_every_pair_with_one_killed_after_each_write) {
  for (const Named& a : operations())
    for (const Named& b : operations()) {
      if (&b < &a) continue;
      explore(scenario_of({&a, &b}), {.preemptions = long_form() ? 2U : 1U,
                                      .kills = 1,
                                      .most_runs = long_form() ? ~0ULL : 1'500});
      if (HasFailure()) return;
    }
}

TEST_F(Schedules, FS_T02_both_killed) {
  for (const char* a : {"put_beside", "take_finish", "move_0_first", "cancel_0"})
    for (const char* b : {"take_finish", "put_first", "take_give_back"}) {
      explore(scenario_of({&named(a), &named(b)}),
              {.preemptions = 1, .kills = 2, .most_runs = long_form() ? ~0ULL : 1'500});
      if (HasFailure()) return;
    }
}

TEST_F(Schedules, chosen_triples) {
  const std::initializer_list<const char*> triples[] = {
      {"put_first", "take_finish", "take_finish"}, {"put_beside", "take_finish", "move_0_first"},
      {"move_0_first", "move_0_last", "take"},     {"cancel_0", "take", "move_0_last"},
      {"pack", "take_finish", "put_beside"},       {"take_give_back", "take", "put_first"},
      {"put_batch", "take_finish", "put_beside"}};
  for (const auto& names : triples) {
    const auto* name = names.begin();
    explore(scenario_of({&named(name[0]), &named(name[1]), &named(name[2])}),
            {.preemptions = 2, .most_runs = long_form() ? 400'000ULL : 1'500});
    if (HasFailure()) return;
  }
}

/// The best level first, then a worse one: who looked at the best too early must not come back with
/// the worse.
TEST_F(Schedules, FS_T01_no_fetch_misses_what_came_before_what_it_returns) {
  Scenario scenario{"put_first_put_last | take", all_open, {}};
  scenario.parts = {[](World& w, std::uint32_t i) { w.put(i, own(i), 0), w.put(i, own(i) + 1, 3); },
                    named("take").part};
  explore(scenario, {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 3'000});
}

/// What the look for one job has proved is no proof any more for the next when a better one came.
TEST_F(Schedules, FS_T01_a_batch_of_fetches_misses_no_better_job) {
  const auto one_waits = [](World& world) {
    all_open(world);
    world.put(World::kJanitor, 4, 2);
    world.forget_fetches();
  };
  Scenario scenario{"put_first, put beside | take_finish_twice", one_waits, {}};
  scenario.parts = {[](World& w, std::uint32_t i) { w.put(i, own(i), 0), w.put(i, own(i) + 1, 2); },
                    named("take_finish_twice").part};
  explore(scenario, {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 4'000});
}

/// It is in one level or the other at every instant; also one that came back and stands in the
/// front lane.
TEST_F(Schedules, PRI_R001_a_job_that_moves_is_never_out_of_sight) {
  for (const bool came_back : {false, true})
    for (const std::uint8_t rank : {std::uint8_t{0}, std::uint8_t{3}}) {
      const auto one_waits = [came_back](World& world) {
        all_open(world);
        world.put(World::kJanitor, 4, 2);
        if (came_back) world.take(World::kJanitor), world.give_back(World::kJanitor);
        world.forget_fetches();
      };
      Scenario scenario{
          std::string(came_back ? "returned, " : "") + "move to rank " + std::to_string(rank) +
              " | take",
          one_waits,
          {[rank](World& w, std::uint32_t i) { w.move(i, 4, rank); }, named("take").part}};
      explore(scenario, {.preemptions = 3, .kills = 0, .most_runs = long_form() ? ~0ULL : 4'000});
      explore(scenario, {.preemptions = 1, .kills = 1, .most_runs = long_form() ? ~0ULL : 4'000});
    }
}

/// The place that it has left is passed by another fetch, and then says nothing of it any more.
TEST_F(Schedules, PRI_R001_a_place_that_was_left_and_passed_hides_no_job) {
  const auto one_waits = [](World& world) {
    all_open(world);
    world.put(World::kJanitor, 4, 2);
    world.forget_fetches();
  };
  const Part move_and_pass = [](World& w, std::uint32_t i) { w.move(i, 4, 0), w.pass_dead(i); };
  explore({"move to rank 0, pass | take", one_waits, {move_and_pass, named("take").part}},
          {.preemptions = 3, .kills = 0, .most_runs = long_form() ? ~0ULL : 4'000});
}

/// One that loses against a move which took its place in line before is not undone by it.
TEST_F(Schedules, PRI_R001_a_move_that_says_done_was_done) {
  const auto two_wait = [](World& world) {
    all_open(world);
    world.put(World::kJanitor, 4, 2), world.put(World::kJanitor, 5, 0);
  };
  const Part move = [](World& w, std::uint32_t i) { w.move(i, 4, 1); };
  for (const std::uint8_t rank : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{3}}) {
    const Part others = [rank](World& w, std::uint32_t i) { w.move(i, 5, 1), w.move(i, 4, rank); };
    const std::string name = "move | move another, move to rank " + std::to_string(rank);
    explore({name, two_wait, {move, others}},
            {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 4'000});
    explore({name + " | take", two_wait, {move, others, named("take_finish").part}},
            {.preemptions = 2, .most_runs = long_form() ? ~0ULL : 4'000});
  }
}

TEST_F(Schedules, FS_T01_closing_a_level_hides_nothing) {
  const Part put = [](World& w, std::uint32_t i) { w.put(i, own(i), 1); };
  const Part put_twice = [](World& w, std::uint32_t i) {
    w.put(i, own(i), 1), w.put(i, own(i) + 1, 1);
  };
  const Part close = named("close").part, take = named("take_finish").part;
  for (const auto& [name, prepare] :
       {std::pair{"open", &all_open}, std::pair{"end of chunk", &all_at_the_end_of_a_chunk}}) {
    const std::string at = name;
    explore({at + ": close | put", prepare, {close, put}},
            {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 4'000});
    explore({at + ": close | put twice", prepare, {close, put_twice}},
            {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 4'000});
    explore({at + ": close | close | put", prepare, {close, close, put}},
            {.preemptions = 3, .most_runs = long_form() ? 200'000ULL : 4'000});
    explore({at + ": close | put | take", prepare, {close, put, take}},
            {.preemptions = 3, .most_runs = long_form() ? 200'000ULL : 4'000});
    explore({at + ": close | put, killed", prepare, {close, put}},
            {.preemptions = 2, .kills = 1, .most_runs = long_form() ? ~0ULL : 4'000});
    if (HasFailure()) return;
  }
}

TEST_F(Schedules, BP_001_a_bound_is_exact_and_gives_its_room_back) {
  const auto room_for_one = [](World& world) {
    three_wait(world);
    world.bound(5);
  };
  for (const char* a :
       {"put_first", "put_batch", "put_again", "take_finish", "take_give_back", "cancel_0"})
    for (const char* b : {"put_beside", "put_batch", "put_again"})
      for (const unsigned kills : {0U, 1U}) {
        Scenario scenario{std::string("room for one: ") + a + " | " + b,
                          room_for_one,
                          {named(a).part, named(b).part}};
        explore(scenario,
                {.preemptions = 2, .kills = kills, .most_runs = long_form() ? ~0ULL : 1'000});
        if (HasFailure()) return;
      }
}

/// So that enqueues go straight (plain.cpp) but for the last.
TEST_F(Schedules, BP_001_a_bound_that_is_far_is_as_exact) {
  for (const std::uint64_t bound : {3U, 4U}) {
    const auto known = [bound](World& world) { all_open(world), world.bound_known(bound); };
    for (const char* a : {"put_first", "take_finish", "put_batch"})
      for (const unsigned kills : {0U, 1U}) {
        explore({"room for " + std::to_string(bound - 2) + ": " + a + " | put_beside",
                 known,
                 {named(a).part, named("put_beside").part}},
                {.preemptions = 2, .kills = kills, .most_runs = long_form() ? ~0ULL : 1'000});
        if (HasFailure()) return;
      }
  }
}

/// A kill may lose a wake: sleepers look again by themselves after a tenth of a second.
TEST_F(Schedules, nobody_sleeps_beside_a_job) {
  const Part sleep = [](World& w, std::uint32_t i) { w.lie_down(i); };
  for (const char* name : {"put_first", "put_batch", "move_0_first", "take_give_back"}) {
    Scenario scenario{std::string(name) + " | lie_down",
                      name[0] == 'p' ? all_open : three_wait,
                      {named(name).part, sleep}};
    if (name[0] == 't') scenario.parts.push_back(named("take_finish").part);
    explore(scenario, {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 4'000});
  }
}

/// No lane has waited for an interval, so the promise is that of the strict order, by the other way
/// of looking.
TEST_F(Schedules, PRI_T18_a_queue_that_ages_keeps_the_promise) {
  const auto ageing = [](World& world) {
    three_wait(world);
    world.age();
  };
  const auto open_and_ageing = [](World& world) {
    all_open(world);
    world.age();
  };
  const Part first_then_last = [](World& w, std::uint32_t i) {
    w.put(i, own(i), 0), w.put(i, own(i) + 1, 3);
  };
  explore({"ageing: put first, put last | take",
           open_and_ageing,
           {first_then_last, named("take").part}},
          {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 3'000});
  for (const char* a : {"put_first", "put_beside", "move_0_first", "move_0_last", "cancel_0",
                        "take_give_back", "close"})
    for (const char* b : {"take_finish", "take_give_back"})
      for (const unsigned kills : {0U, 1U}) {
        Scenario scenario{
            std::string("ageing: ") + a + " | " + b, ageing, {named(a).part, named(b).part}};
        explore(
            scenario,
            {.preemptions = 2 - kills, .kills = kills, .most_runs = long_form() ? ~0ULL : 1'500});
        if (HasFailure()) return;
      }
}

/// Jobs of a rate of their own stand in a part, which the first of them makes.
TEST_F(Schedules, QO_14_the_parts_of_a_queue_are_one_queue) {
  const Part put_rated = [](World& w, std::uint32_t i) { w.put_rated(i, own(i), 2); };
  const Part move_rated = [](World& w, std::uint32_t i) {
    w.put_rated(i, own(i), 2), w.move(i, own(i), 0);
  };
  const auto one_is_rated = [](World& world) {
    three_wait(world);
    world.put_rated(World::kJanitor, 3, 2);
  };
  for (const char* beside :
       {"put_first", "take_finish", "take_give_back", "move_0_last", "close", "tend"})
    for (const unsigned kills : {0U, 1U}) {
      const Limits limits{
          .preemptions = 2 - kills, .kills = kills, .most_runs = long_form() ? ~0ULL : 1'500};
      explore({std::string("put_rated | ") + beside, three_wait, {put_rated, named(beside).part}},
              limits);
      explore(
          {std::string("move_rated | ") + beside, one_is_rated, {move_rated, named(beside).part}},
          limits);
      if (HasFailure()) return;
    }
  explore({"put_rated | put_rated | take", three_wait, {put_rated, put_rated, named("take").part}},
          {.preemptions = 2, .kills = 1, .most_runs = long_form() ? 400'000ULL : 4'000});
}

/// Two rates at once: neither waits for the part of the other, also when who begins it dies before
/// it has a name. Who finds nothing, or a worse job, has looked at the part that came in between.
TEST_F(Schedules, QO_14_a_part_that_is_half_made_hides_no_other) {
  const Part rate_of_its_own = [](World& w, std::uint32_t i) { w.put_rated(i, own(i), 2, i + 1); };
  const Part take = named("take").part,
             take_two = [](World&w, std::uint32_t i) { w.take(i), w.take(i); };
  const auto one_is_rated = [](World& world) {
    all_open(world);
    world.put_rated(World::kJanitor, 4, 1, 9);
  };
  for (const unsigned kills : {0U, 1U}) {
    const Limits limits{
        .preemptions = 2 - kills, .kills = kills, .most_runs = long_form() ? ~0ULL : 4'000};
    explore({"rate 1 | rate 2", all_open, {rate_of_its_own, rate_of_its_own}}, limits);
    explore({"rate 1 | rate 2 | take", all_open, {rate_of_its_own, rate_of_its_own, take}}, limits);
    explore({"rate 1 | take, take", one_is_rated, {rate_of_its_own, take_two}}, limits);
    if (HasFailure()) return;
  }
  const auto one_was_rated = [](World& world) {
    all_open(world);
    world.put_rated(World::kJanitor, 4, 1, 9);
    world.take(World::kJanitor);
  };
  const Part better_then_worse = [](World& w, std::uint32_t i) {
    w.put_rated(i, own(i), 2, i + 1), w.put(i, own(i) + 1, 4);
  };
  explore({"rate 1, then worse | take", one_was_rated, {better_then_worse, take}},
          {.preemptions = 2, .kills = 0});
}

TEST_F(Schedules, SUM_04_turns_are_exact_whoever_takes_them) {
  const auto both_loaded = [](World& world) {
    for (unsigned job = 0; job < 6; ++job) world.put(World::kJanitor, job, job % 2 == 0 ? 1 : 3);
    world.take_turns();
  };
  const Part take_two = [](World& w, std::uint32_t i) {
    w.take(i), w.finish(i), w.take(i), w.finish(i);
  };
  const Part take_one = named("take_finish").part;
  explore({"one | one", both_loaded, {take_one, take_one}}, {.preemptions = 2});
  explore({"two | two", both_loaded, {take_two, take_two}},
          {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 4'000});
  explore({"one | one, killed", both_loaded, {take_one, take_one}},
          {.preemptions = 2, .kills = 1, .most_runs = long_form() ? ~0ULL : 4'000});
}

/// A queue that a fetch of a pool finds empty becomes quiet, and is passed over from then on. What
/// was put in before a fetch began is found by it all the same.
TEST_F(Schedules, FS_T04_a_queue_that_is_said_to_be_quiet_hides_nothing) {
  const auto pooled = [](World& world) {
    all_open(world);
    world.serve_a_pool(1);
  };
  const auto quiet = [pooled](World& world) {
    pooled(world);
    world.take(World::kJanitor);
    world.take(World::kJanitor);
  };
  const Part put = named("put_beside").part, take = named("take").part;
  const Part settle = [](World& w, std::uint32_t i) { w.settle(i); };
  const Part put_take = [](World& w, std::uint32_t i) { w.put(i, own(i), 1), w.take(i); };
  const Part put_give_back = [](World& w, std::uint32_t i) {
    w.put(i, own(i), 1), w.take(i), w.give_back(i);
  };
  for (const unsigned kills : {0U, 1U}) {
    const Limits limits{
        .preemptions = 3 - kills, .kills = kills, .most_runs = long_form() ? ~0ULL : 1'500};
    for (const auto& [name, prepare] :
         {std::pair<const char*, std::function<void(World&)>>{"busy", pooled},
          std::pair<const char*, std::function<void(World&)>>{"quiet", quiet}}) {
      const std::string at = std::string(name) + (kills != 0 ? ", killed" : "");
      explore({at + ": settle | put, take", prepare, {settle, put_take}}, limits);
      explore({at + ": take | put, take", prepare, {take, put_take}}, limits);
      explore({at + ": settle | settle | put", prepare, {settle, settle, put}}, limits);
      explore({at + ": settle | put, give back | take", prepare, {settle, put_give_back, take}},
              limits);
      if (HasFailure()) return;
    }
  }
}

TEST_F(Schedules, FS_T01_FS_T10_every_operation_beside_a_fetch_for_a_pool) {
  const auto pooled = [](World& world) {
    three_wait(world);
    world.serve_a_pool(1);
  };
  for (const char* a : {"put_first", "put_batch", "put_again", "take_finish", "take_give_back",
                        "take_fail", "cancel_0", "move_0_last", "tend"})
    for (const unsigned kills : {0U, 1U}) {
      explore({std::string("pool: ") + a + " | take_finish" + (kills != 0 ? ", killed" : ""),
               pooled,
               {named(a).part, named("take_finish").part}},
              {.preemptions = 2 - kills, .kills = kills, .most_runs = long_form() ? ~0ULL : 1'500});
      if (HasFailure()) return;
    }
}

TEST_F(Schedules, FS_T10_turns_of_a_pool_are_exact_whoever_takes_them) {
  const auto both_loaded = [](World& world) {
    world.serve_a_pool(2);
    for (unsigned job = 0; job < 6; ++job) world.put(World::kJanitor, job, job % 2 == 0 ? 1 : 3);
  };
  const Part take_two = [](World& w, std::uint32_t i) {
    w.take(i), w.finish(i), w.take(i), w.finish(i);
  };
  const Part take_one = named("take_finish").part;
  explore({"pool: one | one", both_loaded, {take_one, take_one}}, {.preemptions = 2});
  explore({"pool: two | two", both_loaded, {take_two, take_two}},
          {.preemptions = 3, .most_runs = long_form() ? ~0ULL : 4'000});
  explore({"pool: one | one, killed", both_loaded, {take_one, take_one}},
          {.preemptions = 2, .kills = 1, .most_runs = long_form() ? ~0ULL : 4'000});
}

/// One works so much off and puts so much in that the chunk at head comes again at the end of the
/// same ring.
TEST_F(Schedules, FS_T01_a_chunk_that_comes_again_keeps_its_order) {
  const Part turn_over = [](World& w, std::uint32_t i) {
    for (unsigned job = 0; job < 4; ++job) {
      if (job < 2) w.take(i), w.finish(i);
      w.put(i, own(i) + job, 1);
    }
  };
  for (const char* beside : {"take_finish", "put_beside", "move_0_first", "close"})
    explore({std::string("turn_over | ") + beside, three_wait, {turn_over, named(beside).part}},
            {.preemptions = 2, .most_runs = long_form() ? ~0ULL : 4'000});
}

/// Who has filled the last cell of a chunk moves tail on when that chunk has come again at the end
/// of the same ring.
TEST_F(Schedules, FS_T01_a_chunk_that_comes_again_under_a_push_keeps_its_ring) {
  const Part work_on = [](World& w, std::uint32_t i) {
    for (unsigned job = 0; job < 3; ++job) w.take(i), w.finish(i), w.put(i, own(i) + job, 1);
  };
  const Part put_two = [](World& w, std::uint32_t i) {
    w.put(i, own(i), 1), w.put(i, own(i) + 1, 1);
  };
  explore({"put_two | work_on", all_open, {put_two, work_on}}, {.preemptions = 1});
}

/// All slots are taken, so that what comes next stands in the one that was finished just before,
/// a lane that still knows it.
TEST_F(Schedules, FS_T01_a_slot_that_is_used_again_is_another_job_to_whoever_knew_it) {
  const Part take_finish_put = [](World& w, std::uint32_t i) {
    w.take(i), w.finish(i), w.put(i, own(i), 1);
  };
  for (const Named& beside : operations())
    for (const unsigned kills : {0U, 1U}) {
      Scenario scenario{std::string("four slots: take, finish, put | ") + beside.name,
                        three_wait,
                        {take_finish_put, beside.part},
                        World::kFewSlots};
      explore(scenario,
              {.preemptions = 2 - kills, .kills = kills, .most_runs = long_form() ? ~0ULL : 300});
      if (HasFailure()) return;
    }
}

/// Who repairs is killed as well, after each of its writes, while another works, one of three in
/// turn. Whom it repairs died after any of his writes.
TEST_F(Schedules, FS_T02_a_repairer_beside_a_living_operation_killed_too) {
  for (const char* dead :
       {"put_beside", "put_batch", "take_finish", "take_give_back", "move_0_first", "cancel_0"}) {
    const Part& part = named(dead).part;
    const std::vector<std::uint32_t> deaths = deaths_of(world(), three_wait, part);
    const char* const others[] = {"put_first", "take_finish", "move_0_last"};
    for (std::size_t i = 0; i < deaths.size(); i += long_form() ? 1 : 4) {
      const auto died = [&part, access = deaths[i]](World& world) {
        three_wait(world);
        kill_alone(world, 2, part, access);
      };
      const char* beside = others[i % 3];
      explore({std::string(dead) + " died before access " + std::to_string(deaths[i]) +
                   ": repair | " + beside,
               died,
               {[](World& w, std::uint32_t) { w.repair(); }, named(beside).part}},
              {.preemptions = 1, .kills = 1, .most_runs = long_form() ? 20'000ULL : 120});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ojs_shm::test
