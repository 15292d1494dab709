// SPDX-License-Identifier: Apache-2.0
// The least share of each queue of a pool.

#include "engine/pools/pools.hpp"
#include "tests/unit/engine/pools/pool_members.hpp"

namespace ojs_shm::test {
namespace {

TEST(Pools, FS_R003_FS_T13_FS_T15_FS_G3_every_queue_has_its_least_share_of_each_window) {
  QuietSegment s(few_slots(4096));
  for (const PoolStrategy strategy : {PoolStrategy::kStrict, PoolStrategy::kWeighted}) {
    PoolSettings settings = preventing(strategy, 0.10);
    if (strategy == PoolStrategy::kWeighted) settings.weights = {{"critical", 100}};
    ASSERT_TRUE(s.admin.set_pool("p", settings).ok());
    fill(s, settings.queues, 200);
    const Names got = next(s, 120);
    for (const std::size_t window : {10U, 25U, 60U})
      for (std::size_t begin = 0; begin + window <= got.size(); ++begin) {
        std::map<std::string, int> in =
            shares(Names(got.begin() + static_cast<long>(begin),
                         got.begin() + static_cast<long>(begin + window)));
        for (const std::string& queue : settings.queues)
          ASSERT_GE(in[queue], static_cast<int>(window / 10))
              << queue << " from " << begin << " of " << window;
      }
    EXPECT_GT(shares(got)["critical"], 90);
    s.drain();
    while (!next(s, {.queues = settings.queues}).empty()) {}
  }
}

TEST(Pools, FS_T13_a_queue_is_served_once_in_each_interval_however_few_the_dispatches) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", preventing(PoolStrategy::kStrict, 0.05)).ok());
  fill(s, {"critical", "low"}, 10);
  EXPECT_EQ(next(s), "critical");
  s.move_clock(29'000);
  EXPECT_EQ(next(s), "critical");
  s.move_clock(2'000);
  EXPECT_EQ(next(s), "low");
  EXPECT_EQ(next(s), "critical");
  s.move_clock(31'000);
  EXPECT_EQ(shares(next(s, 3)), (std::map<std::string, int>{{"critical", 2}, {"low", 1}}));
}

TEST(Pools, FS_T14_off_by_default_and_then_strict_is_absolute) {
  QuietSegment s;
  EXPECT_FALSE(parse_pool_settings(R"({"queues":["a"]})")->starvation_prevention.enabled);
  ASSERT_TRUE(s.admin.set_pool("p", pool_of({"critical", "low"}, PoolStrategy::kStrict)).ok());
  fill(s, {"critical", "low"}, 50);
  s.move_clock(kHour);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(next(s), "critical");
  EXPECT_EQ(next(s), "low");
}

/// A worker that fetches once and goes finds queues busy that are empty. One of them is overdue for
/// ever.
TEST(Pools, FS_T15_who_is_overdue_and_empty_takes_nobody_s_share) {
  engine::PoolPolicy policy;
  policy.strategy = engine::PoolStrategy::kStrict;
  policy.queues = 3;
  policy.prevents = true;
  for (policy.round = 3; policy.round <= 24; ++policy.round) {
    engine::PoolTurn turn(0, 0, 0);
    unsigned passed = 0;  // dispatches since the last queue had one
    for (int dispatch = 0; dispatch < 500; ++dispatch) {
      bool tried = false;  // the empty one
      for (;;) {
        const auto choice = policy.choose(
            turn, [&](unsigned place) { return place != 1 || !tried; },
            [](unsigned place) { return place == 1 ? 1ULL : 0ULL; }, [](unsigned) { return 1ULL; });
        turn = engine::PoolTurn(0, choice.done, choice.next);
        if (choice.place == 1) {
          ASSERT_FALSE(tried);
          tried = true;
          continue;
        }
        passed = choice.place == 2 ? 0 : passed + 1;
        break;
      }
      ASSERT_LT(passed, policy.round) << "dispatch " << dispatch;
    }
  }
}

TEST(Pools, FS_T14_without_a_least_share_each_interval_still_serves_everybody) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_pool("p", preventing(PoolStrategy::kStrict, 0)).ok());
  fill(s, {"critical", "low"}, 30);
  s.move_clock(1000);
  EXPECT_EQ(shares(next(s, 25)), (std::map<std::string, int>{{"critical", 25}}));
  s.move_clock(31'000);
  EXPECT_EQ(next(s, 2), (Names{"low", "critical"}));
}

}  // namespace
}  // namespace ojs_shm::test
