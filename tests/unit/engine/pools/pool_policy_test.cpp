// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/pools/pool.hpp"
#include "engine/rules/smooth.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

/// Thousands of random pools and arrivals against the policy alone: nobody that has jobs starves,
/// whoever comes and goes.
TEST(PoolPolicy, FS_T11_FS_T15_bounds_hold_over_random_traces) {
  Seeded random;
  const auto pick = [&](std::int64_t from, std::int64_t to) {
    return static_cast<std::uint64_t>(random.between(from, to));
  };
  for (int trace = 0; trace < 3000; ++trace) {
    engine::PoolPolicy policy;
    policy.strategy = static_cast<engine::PoolStrategy>(pick(0, 3));
    policy.queues = static_cast<unsigned>(pick(1, 8));
    std::vector<std::uint32_t> weights;
    for (unsigned i = 0; i < policy.queues; ++i)
      weights.push_back(policy.strategy == engine::PoolStrategy::kWeighted
                            ? static_cast<std::uint32_t>(pick(1, 6))
                            : 1);
    for (const std::uint16_t place : engine::smooth_schedule(weights))
      policy.cycle.push_back(static_cast<std::uint8_t>(place));
    policy.prevents = pick(0, 1) == 1;
    policy.round = static_cast<std::uint32_t>(pick(policy.queues, 40));
    std::vector<std::uint64_t> waiting(policy.queues, 0), passed(policy.queues, 0);
    engine::PoolTurn turn(0, 0, 0);
    for (int step = 0; step < 300; ++step) {
      for (std::uint64_t& jobs : waiting) jobs += pick(0, 7) == 0 ? pick(0, 5) : 0;
      const auto choice = policy.choose(
          turn, [&](unsigned place) { return waiting[place] > 0; }, [](unsigned) { return 0ULL; },
          [&](unsigned place) { return waiting[place]; });
      const bool any =
          std::any_of(waiting.begin(), waiting.end(), [](std::uint64_t jobs) { return jobs > 0; });
      ASSERT_EQ(choice.place != engine::PoolPolicy::kNoPlace, any)
          << "work conserving, trace " << trace;
      if (!any) continue;
      ASSERT_GT(waiting[choice.place], 0U) << "trace " << trace;
      turn = engine::PoolTurn(0, choice.done, choice.next);
      for (unsigned i = 0; i < policy.queues; ++i)
        passed[i] = waiting[i] > 0 && i != choice.place ? passed[i] + 1 : 0;
      --waiting[choice.place];
      for (unsigned i = 0; i < policy.queues; ++i) {
        if (policy.prevents) {
          ASSERT_LT(passed[i], policy.round) << "trace " << trace;
        }
        if (policy.prevents || policy.cycle.empty() ||
            policy.strategy == engine::PoolStrategy::kStrict ||
            policy.strategy == engine::PoolStrategy::kLeastLoaded)
          continue;
        const auto turns = std::count(policy.cycle.begin(), policy.cycle.end(), i);
        ASSERT_LE(passed[i], policy.cycle.size() - static_cast<std::size_t>(turns))
            << "trace " << trace;
      }
    }
  }
}

}  // namespace
}  // namespace ojs_shm::test
