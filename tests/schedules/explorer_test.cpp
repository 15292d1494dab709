// SPDX-License-Identifier: Apache-2.0
// That the explorer leaves out no schedule, and plays the same ones again.
#include <set>

#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

// NO CRASH POINT: these words are no part of a segment
constexpr shm::Point kNoPoint = shm::Point::kNone;

/// The scenarios write down what they see; what all schedules have seen together is what is looked
/// at.
class ExplorerTest : public testing::Test {
 protected:
  Explored explore(std::vector<Part> parts, const Limits& limits) {
    const auto anew = [this](World&) {
      a_.store(0, kNoPoint), b_.store(0, kNoPoint);
      if (!saw_.empty()) seen_.insert(saw_);
      saw_.clear();
    };
    const Explored explored = Explorer(world_).explore({"words", anew, std::move(parts)}, limits);
    seen_.insert(saw_);
    EXPECT_EQ(explored.failure, "");
    EXPECT_TRUE(explored.complete);
    return explored;
  }
  World world_;
  shm::Word a_, b_;
  std::string saw_;
  std::set<std::string> seen_;
};

/// That a is touched by both shows only in a schedule that comes out of a switch at b.
TEST_F(ExplorerTest,
       a_word_that_turns_out_to_be_contended_later_is_a_place_to_switch_all_the_same) {
  const Part writes = [this](World&, std::uint32_t) {
    b_.store(1, kNoPoint), a_.store(1, kNoPoint), b_.store(2, kNoPoint);
  };
  const Part reads = [this](World&, std::uint32_t) {
    saw_ = std::to_string(b_.load());
    if (saw_ == "1") saw_ += std::to_string(a_.load());
  };
  explore({writes, reads}, {.preemptions = 1});
  EXPECT_EQ(seen_, (std::set<std::string>{"0", "10", "11", "2"}));
}

TEST_F(ExplorerTest, whoever_is_left_goes_on_where_one_ends_or_is_killed) {
  const Part writes = [this](World&, std::uint32_t i) {
    a_.fetch_add(1, kNoPoint);
    saw_ += static_cast<char>('0' + i);
    b_.fetch_add(1, kNoPoint);
    saw_ += static_cast<char>('a' + i);
  };
  const Explored whole = explore({writes, writes, writes}, {.preemptions = 0});
  EXPECT_EQ(seen_,
            (std::set<std::string>{"0a1b2c", "0a2c1b", "1b0a2c", "1b2c0a", "2c0a1b", "2c1b0a"}));
  EXPECT_EQ(whole.runs, seen_.size());
  seen_.clear();
  explore({writes, writes, writes}, {.preemptions = 0, .kills = 1});
  for (const char* killed :
       {"01b2c", "02c1b", "10a2c", "12c0a", "20a1b", "21b0a", "0a12c", "0a21b", "1b02c", "2c01b"})
    EXPECT_TRUE(seen_.contains(killed)) << killed;
}

/// Among them an enqueue that is refused, which looks at the clock.
TEST(ExplorerWorld, a_scenario_that_is_explored_again_is_the_same_to_the_last_access) {
  const auto room_for_one = [](World& world) {
    three_wait(world);
    world.bound(5);
  };
  Scenario refused = scenario_of({&named("put_batch"), &named("put_again")});
  refused.prepare = room_for_one;
  for (const Scenario& scenario :
       {scenario_of({&named("put_batch"), &named("take_fail")}),
        scenario_of({&named("bring_beside"), &named("tend")}), refused}) {
    World one, other;
    const Limits limits{.preemptions = 1, .kills = 1};
    const Explored first = Explorer(one).explore(scenario, limits);
    EXPECT_EQ(first.failure, "");
    EXPECT_TRUE(first.complete);
    for (World* world : {&one, &other, &one, &other}) {
      const Explored again = Explorer(*world).explore(scenario, limits);
      EXPECT_EQ(again.runs, first.runs) << scenario.name;
      EXPECT_EQ(again.kills, first.kills) << scenario.name;
      EXPECT_EQ(again.accesses, first.accesses) << scenario.name;
    }
  }
}

}  // namespace
}  // namespace ojs_shm::test
