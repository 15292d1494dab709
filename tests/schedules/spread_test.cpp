// SPDX-License-Identifier: Apache-2.0
// A batch over two queues beside those that take from them and put into them, one of them killed.
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

const Part kSpread = [](World& w, std::uint32_t i) { w.put_spread(i, own(i)); };
const Part kPut = [](World& w, std::uint32_t i) { w.put(i, own(i), 1); };
const Part kTake = [](World& w, std::uint32_t i) { w.take(i), w.finish(i); };
const Part kTakeOther = [](World& w, std::uint32_t i) { w.take_from(i, "r"), w.finish(i); };

void two_of_the_first_wait(World& world) {
  world.put(World::kJanitor, 0, 1), world.put(World::kJanitor, 1, 2);
}

class SpreadSchedules : public Schedules {
 protected:
  void explore_all(const std::vector<Scenario>& scenarios) {
    Schedules::explore_all(scenarios, 1'500, 400'000);
  }
};

TEST_F(SpreadSchedules, FS_T01_FS_T02_both_jobs_come_or_none) {
  const auto nothing = [](World&) {};
  // alone, so that each of its writes comes about within a few runs
  explore({"spread: alone", nothing, {kSpread}}, {.preemptions = 0, .kills = 1});
  explore_all({{"spread: batch | take", nothing, {kSpread, kTake}},
               {"spread: batch | take the other", nothing, {kSpread, kTakeOther}},
               {"spread: batch | batch", nothing, {kSpread, kSpread}},
               {"spread: batch | put | take", nothing, {kSpread, kPut, kTake}}});
}

TEST_F(SpreadSchedules, BP_T20_a_full_queue_refuses_both_or_drops_for_both) {
  const auto room_for_one = [](World& world) {
    two_of_the_first_wait(world);
    world.bound(3);
  };
  const auto full = [](World& world) {
    two_of_the_first_wait(world);
    world.drop_at(2);
  };
  explore_all({{"spread, room for one: batch | put", room_for_one, {kSpread, kPut}},
               {"spread, room for one: batch | batch", room_for_one, {kSpread, kSpread}},
               {"spread, full: batch | take", full, {kSpread, kTake}},
               {"spread, full: batch | put", full, {kSpread, kPut}}});
}

}  // namespace
}  // namespace ojs_shm::test
