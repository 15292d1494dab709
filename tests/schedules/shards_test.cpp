// SPDX-License-Identifier: Apache-2.0
// Sharded queues under every schedule within a bound. Fibers 0 and 2 and the first janitor are at
// home in line 0, fiber 1 and the second janitor in line 1.
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint32_t kFirst = World::kJanitor, kSecond = World::kSecondJanitor;

/// As three_wait(), and all of them in line 0: a lane that is at home in line 1 takes what is
/// another's.
void one_line_waits(World& world) {
  world.shard(kFirst, 2);
  three_wait(world);
}

/// As three_wait(); the job of rank 2 stands in line 1, and goes first for a lane that is at home
/// there.
void both_lines_wait(World& world) {
  world.shard(kFirst, 2);
  world.put(kFirst, 0, 1);
  world.put(kFirst, 5, 1);
  world.put(kFirst, 1, 1);
  world.put(kSecond, 2, 2);
  world.cancel(kFirst, 5);
  world.bring(17);
}

/// Nothing waits; levels of both lines were used and are still open.
void both_lines_open(World& world) {
  world.shard(kFirst, 2);
  for (unsigned job = 0; job < 6; ++job)
    world.put(job < 3 ? kFirst : kSecond, job, static_cast<std::uint8_t>(job % 3));
  for (unsigned job = 0; job < 6; ++job) world.take(kFirst), world.finish(kFirst);
}

void no_line_was_used(World& world) { world.shard(kFirst, 2); }

const Part kPut = [](World& w, std::uint32_t i) { w.put(i, own(i), 1); };
const Part kPutBatch = [](World& w, std::uint32_t i) { w.put_batch(i, own(i), 1); };
const Part kPutFirstPutLast = [](World& w, std::uint32_t i) {
  w.put(i, own(i), 0), w.put(i, own(i) + 1, 2);
};
const Part kTake = [](World& w, std::uint32_t i) { w.take(i), w.finish(i); };
const Part kTakeTwo = [](World& w, std::uint32_t i) {
  w.take(i), w.finish(i), w.take(i), w.finish(i);
};
const Part kGiveBack = [](World& w, std::uint32_t i) { w.take(i), w.give_back(i); };
const Part kMoreShards = [](World& w, std::uint32_t i) { w.shard(i, 2); };
const Part kFewerShards = [](World& w, std::uint32_t i) { w.shard(i, 1); };
const Part kRest = [](World&, std::uint32_t) {};

class ShardSchedules : public Schedules {
 protected:
  void explore_all(const std::vector<Scenario>& scenarios, std::uint64_t most_runs) {
    for (const Scenario& scenario : scenarios)
      for (const unsigned kills : {0U, 1U}) {
        const std::uint64_t all = scenario.parts.size() == 3 ? 400'000 : ~0ULL;
        explore(
            scenario,
            {.preemptions = 2 - kills, .kills = kills, .most_runs = long_form() ? all : most_runs});
        if (HasFailure()) return;
      }
  }
};

TEST_F(ShardSchedules, QO_07_QO_08_every_pair_of_operations_beside_each_other_and_killed) {
  for (const auto& [name, prepare] :
       {std::pair{"one line waits: ", &one_line_waits}, {"both wait: ", &both_lines_wait}})
    for (const Named& a : operations())
      for (const Named& b : operations()) {
        if (&b < &a) continue;
        Scenario scenario = scenario_of({&a, &b});
        scenario.name = name + scenario.name;
        scenario.prepare = prepare;
        explore_all({scenario}, 30);
        if (HasFailure()) return;
      }
}

/// A worker passes nothing in its own line, nor, when that is empty, in the next; nothing means
/// nothing in all of them.
TEST_F(ShardSchedules, QO_08_who_is_at_home_in_another_line_takes_only_what_is_left) {
  const auto one_waits_elsewhere = [](World& world) {
    both_lines_open(world);
    world.put(kSecond, 6, 1);
  };
  const Part put_cancel = [](World& w, std::uint32_t i) { w.put(i, own(i), 1), w.cancel(i, 6); };
  explore_all(
      {{"both wait: take two | take two", both_lines_wait, {kTakeTwo, kTakeTwo}},
       {"both wait: take two | take two | take", both_lines_wait, {kTakeTwo, kTakeTwo, kTake}},
       {"both wait: take two | put first, last", both_lines_wait, {kTakeTwo, kPutFirstPutLast}},
       {"both wait: put first, last | take two", both_lines_wait, {kPutFirstPutLast, kTakeTwo}},
       {"both open: put first, last | take two", both_lines_open, {kPutFirstPutLast, kTakeTwo}},
       {"both open: take two | put first, last", both_lines_open, {kTakeTwo, kPutFirstPutLast}},
       {"both open: put | put | take two", both_lines_open, {kPut, kPut, kTakeTwo}},
       {"both open: give back | put | take", both_lines_open, {kGiveBack, kPut, kTake}},
       {"new lines: put | put | take two", no_line_was_used, {kPut, kPut, kTakeTwo}},
       {"one waits elsewhere: take | nothing | put, cancel it",
        one_waits_elsewhere,
        {kTake, kRest, put_cancel}}},
      1'000);
}

TEST_F(ShardSchedules, QO_08_more_and_fewer_shards_lose_and_double_no_job) {
  explore_all({{"more | put", three_wait, {kMoreShards, kPut}},
               {"more | batch", three_wait, {kMoreShards, kPutBatch}},
               {"more | take two", three_wait, {kMoreShards, kTakeTwo}},
               {"more | put | take two", three_wait, {kMoreShards, kPut, kTakeTwo}},
               {"more, none waits | put first, last | take two",
                all_open,
                {kMoreShards, kPutFirstPutLast, kTakeTwo}},
               {"fewer | put", both_lines_wait, {kFewerShards, kPut}},
               {"fewer | batch", both_lines_wait, {kFewerShards, kPutBatch}},
               {"fewer | take two", both_lines_wait, {kFewerShards, kTakeTwo}},
               {"fewer | give back", both_lines_wait, {kFewerShards, kGiveBack}},
               {"fewer | put | take two", both_lines_wait, {kFewerShards, kPut, kTakeTwo}},
               {"fewer, none waits | put first, last | take two",
                both_lines_open,
                {kFewerShards, kPutFirstPutLast, kTakeTwo}}},
              1'000);
}

TEST_F(ShardSchedules, QO_08_two_changes_at_once_lose_and_double_no_job) {
  explore_all({{"more | fewer", three_wait, {kMoreShards, kFewerShards}},
               {"more | more", three_wait, {kMoreShards, kMoreShards}},
               {"fewer | more", both_lines_wait, {kFewerShards, kMoreShards}},
               {"more | fewer | put", three_wait, {kMoreShards, kFewerShards, kPut}},
               {"fewer | more | take two", both_lines_wait, {kFewerShards, kMoreShards, kTakeTwo}}},
              1'000);
}

TEST_F(ShardSchedules, FS_T16_tenants_share_a_queue_of_several_lines) {
  const auto shared = [](World& world) {
    world.shard(kFirst, 2);
    world.share(kFirst);
    for (const unsigned job : {0U, 1U, 2U})
      world.put_for(job < 2 ? kFirst : kSecond, job, 1, 1 + job / 2);
  };
  const Part put = [](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 2); };
  explore_all({{"tenants: take two | take two", shared, {kTakeTwo, kTakeTwo}},
               {"tenants: put | take two", shared, {put, kTakeTwo}},
               {"tenants: put | put | take", shared, {put, put, kTake}},
               {"tenants: give back | take two", shared, {kGiveBack, kTakeTwo}},
               {"tenants: fewer | take two", shared, {kFewerShards, kTakeTwo}}},
              500);
}

/// Both levels have jobs in both lines all the time, so the queue's turns are exact whichever lane
/// takes them from where.
TEST_F(ShardSchedules, SUM_04_levels_take_turns_in_all_lines_together) {
  const auto both_loaded = [](World& world) {
    world.shard(kFirst, 2);
    for (const unsigned job : {0U, 1U, 2U, 3U, 4U, 5U, 14U, 15U})
      world.put(job / 2 % 2 == 0 ? kFirst : kSecond, job, job % 2 == 0 ? 1 : 3);
    world.take_turns();
  };
  explore_all({{"turns: one | one", both_loaded, {kTake, kTake}},
               {"turns: two | two", both_loaded, {kTakeTwo, kTakeTwo}},
               {"turns: give back | one", both_loaded, {kGiveBack, kTake}},
               {"turns: fewer | two", both_loaded, {kFewerShards, kTakeTwo}}},
              500);
}

TEST_F(ShardSchedules, FS_T01_nobody_sleeps_beside_a_job_of_another_line) {
  const Part sleep = [](World& w, std::uint32_t i) { w.lie_down(i); };
  const std::pair<const char*, std::function<void(World&)>> starts[] = {{"open", both_lines_open},
                                                                        {"new", no_line_was_used}};
  for (const auto& [name, prepare] : starts) {
    const std::string at = name;
    const Limits limits{.preemptions = 3, .most_runs = long_form() ? ~0ULL : 1'000};
    explore({at + ": put | lie down", prepare, {kPut, sleep}}, limits);
    explore({at + ": lie down | put", prepare, {sleep, kPut}}, limits);
    explore({at + ": lie down | batch", prepare, {sleep, kPutBatch}}, limits);
    explore({at + ": fewer | put | lie down", prepare, {kFewerShards, kPut, sleep}}, limits);
  }
  explore({"more | put | lie down", all_open, {kMoreShards, kPut, sleep}},
          {.preemptions = 3, .most_runs = long_form() ? 400'000ULL : 1'000});
}

TEST_F(ShardSchedules, BP_001_the_bound_is_one_for_all_lines) {
  const auto room_for_one = [](World& world) {
    both_lines_wait(world);
    world.bound(5);
  };
  explore_all({{"room for one: put | put", room_for_one, {kPut, kPut}},
               {"room for one: put | batch", room_for_one, {kPut, kPutBatch}},
               {"room for one: take | batch", room_for_one, {kTake, kPutBatch}},
               {"room for one: give back | put", room_for_one, {kGiveBack, kPut}}},
              1'000);
}

TEST_F(ShardSchedules, PRI_T18_lines_that_age_keep_the_promise) {
  const auto ageing = [](World& world) {
    both_lines_wait(world);
    world.age();
  };
  std::vector<Scenario> scenarios;
  for (const char* a : {"put_first", "move_0_first", "cancel_0", "take_give_back", "close"})
    scenarios.push_back(
        {std::string("ageing: ") + a + " | take two", ageing, {named(a).part, kTakeTwo}});
  explore_all(scenarios, 500);
}

}  // namespace
}  // namespace ojs_shm::test
