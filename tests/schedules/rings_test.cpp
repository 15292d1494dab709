// SPDX-License-Identifier: Apache-2.0
// Rings that are packed and batches of finished slots that are used again, under every schedule
// within a bound, and what two sleepers, a beat and reports are promised.
#include <utility>
#include <vector>

#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

class RingSchedules : public Schedules {};

/// A level whose second chunk holds nothing but dead hints.
void dead_in_the_middle(World& world) {
  for (const unsigned job : {0U, 1U, 3U, 4U, 2U}) world.put(World::kJanitor, job, 1);
  for (const unsigned job : {3U, 4U}) world.cancel(World::kJanitor, job);
}

const Part take_three = [](World& w, std::uint32_t i) {
  for (int n = 0; n < 3; ++n) w.take(i), w.finish(i);
};
const Part put_two = [](World& w, std::uint32_t i) {
  w.put(i, own(i), 1), w.put(i, own(i) + 1, 1);
};
const Part put_three = [](World& w, std::uint32_t i) { put_two(w, i), w.put(i, own(i) + 2, 1); };
/// What it gives back to the ring's chunks is used at once.
const Part pack_and_put = [](World& w, std::uint32_t i) { w.pack(i), put_two(w, i); };

TEST_F(RingSchedules, FS_T01_packing_beside_a_head_that_moves) {
  explore({"pack, put | take three", dead_in_the_middle, {pack_and_put, take_three}},
          {.preemptions = 2});
}

/// The chunk that no lane may drop is still being linked, by one who is stopped, and others have
/// filled it and gone on.
TEST_F(RingSchedules, FS_T01_packing_beside_a_push_that_links) {
  const auto full_chunk = [](World& world) {
    for (const unsigned job : {0U, 1U}) world.put(World::kJanitor, job, 1);
  };
  const Part put = [](World& w, std::uint32_t i) { w.put(i, own(i), 1); };
  const Part fill_and_pack = [](World& w, std::uint32_t i) {
    put_two(w, i);
    w.cancel(i, own(1 - i)), w.cancel(i, own(i));
    w.pack(i);
  };
  explore({"put | put two, cancel, pack", full_chunk, {put, fill_and_pack}}, {.preemptions = 1});
}

TEST_F(RingSchedules, FS_T02_a_ring_outlives_who_packs_it) {
  explore({"pack, put | take three, one killed", dead_in_the_middle, {pack_and_put, take_three}},
          {.preemptions = 1, .kills = 1});
}

TEST_F(RingSchedules, FS_T01_a_chunk_is_left_by_one) {
  const auto three_of_one_level = [](World& world) {
    for (const unsigned job : {0U, 1U, 2U}) world.put(World::kJanitor, job, 1);
  };
  const Part turn_over = [](World& w, std::uint32_t i) {  // until both chunks have come again
    take_three(w, i), put_three(w, i), take_three(w, i);
    for (unsigned job = 3; job < 6; ++job) w.put(i, own(i) + job, 1);
  };
  explore({"take three | turn over", three_of_one_level, {take_three, turn_over}},
          {.preemptions = 1});
}

/// No slot was never used: each takes those of the longest finished, by batches.
TEST_F(RingSchedules, FS_T01_a_batch_of_finished_slots_is_taken_once) {
  const auto all_finished = [](World& world) {
    for (const unsigned job : {0U, 1U, 2U, 3U, 4U, 5U, 14U, 15U}) {
      world.put(World::kJanitor, job, 1);
      world.take(World::kJanitor), world.finish(World::kJanitor);
    }
  };
  explore({"put three | put three", all_finished, {put_three, put_three}}, {.preemptions = 1});
}

/// With a retention time a batch is published when its lane rests, and taken back to be filled
/// further, if no other has taken it; its first hint is still there.
TEST_F(RingSchedules,
       FS_T01_FS_T02_a_batch_is_filled_further_by_who_published_it_or_used_up_by_another) {
  const auto four_wait = [](World& world) {
    world.keep_results(3'600'000);
    for (const unsigned job : {0U, 1U, 2U, 3U}) world.put(World::kJanitor, job, 1);
  };
  const Part trickle = [](World& w, std::uint32_t i) {
    for (int n = 0; n < 2; ++n) w.take(i), w.finish(i), w.publish_finished(i);
  };
  const Part put_two_more = [](World& w, std::uint32_t i) {
    w.put(i, own(i), 1), w.put(i, own(i) + 1, 1);
  };
  const Part drop = [](World& w, std::uint32_t i) { w.drop_expired(i); };
  for (const unsigned kills : {0U, 1U})
    for (const auto& [name, parts] :
         {std::pair{"trickle | put two", std::vector{trickle, put_two_more}},
          {"trickle | trickle", {trickle, trickle}},
          {"trickle | drop expired", {trickle, drop}},
          {"trickle | put two | drop expired", {trickle, put_two_more, drop}}}) {
      explore(
          {name, four_wait, parts, World::kFewSlots},
          {.preemptions = 2 - kills, .kills = kills, .most_runs = long_form() ? 400'000ULL : 600});
      if (HasFailure()) return;
    }
}

TEST_F(RingSchedules, FS_T01_a_beat_that_was_granted_keeps_the_job) {
  const Part take_beat_finish = [](World& w, std::uint32_t i) {
    w.take(i), w.beat(i), w.finish(i);
  };
  const auto one_waits = [](World& world) { world.put(World::kJanitor, 0, 1); };
  const Part tend = [](World& w, std::uint32_t i) { w.tend(i); };
  explore({"take, beat, finish | tend", one_waits, {take_beat_finish, tend}}, {.preemptions = 3});
}

/// Several report of one job: what one leaves out stays as another has said it, and no text is left
/// over.
TEST_F(RingSchedules, FS_T01_FS_T02_a_report_keeps_what_came_while_it_was_made) {
  const auto one_runs = [](World& world) {
    world.put(World::kJanitor, 0, 1);
    world.take(2), world.say(2);
  };
  const Part say = [](World& w, std::uint32_t i) { w.say(i); };
  const Part keep = [](World& w, std::uint32_t i) { w.keep_checkpoint(i); };
  const Part keep_and_say = [](World& w, std::uint32_t i) { w.keep_checkpoint(i), w.say(i); };
  const Part keep_and_say_twice = [](World& w, std::uint32_t i) {
    w.keep_checkpoint(i), w.say(i), w.say(i);
  };
  for (const unsigned kills : {0U, 1U})
    for (const auto& [name, parts] :
         {std::pair{"reports: say | checkpoint", std::vector{say, keep}},
          {"reports: say | checkpoint, say", {say, keep_and_say}},
          {"reports: say | checkpoint, say twice", {say, keep_and_say_twice}}}) {
      explore({name, one_runs, parts}, {.preemptions = 2 - kills,
                                        .kills = kills,
                                        .most_runs = long_form() ? 400'000ULL : 3'000});
      if (HasFailure()) return;
    }
  // Blocks and turns come again, and who replaced unknown texts outlives it (report.cpp).
  const Part keep_and_say_on = [](World& w, std::uint32_t i) {
    w.keep_checkpoint(i);
    for (int n = 0; n < 3; ++n) w.say(i);
  };
  explore({"reports: say | checkpoint, say thrice", one_runs, {say, keep_and_say_on}},
          {.preemptions = 2, .most_runs = long_form() ? 400'000ULL : 3'000});
  // The other's text may stand with no job yet, and then be the job's (report.cpp).
  for (const unsigned kills : {0U, 1U})
    explore(
        {"reports: say | checkpoint, say, thrice switched", one_runs, {say, keep_and_say}},
        {.preemptions = 3 - kills, .kills = kills, .most_runs = long_form() ? 400'000ULL : 3'000});
}

TEST_F(RingSchedules, each_job_wakes_a_sleeper_of_its_own) {
  const auto two_sleep = [](World& world) {
    for (const std::uint32_t lane : {1U, 2U}) world.lie_down(lane);
  };
  explore({"put two, while two sleep", two_sleep, {put_two}}, {.preemptions = 1});
}

}  // namespace
}  // namespace ojs_shm::test
