// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/spread.hpp"

#include <gtest/gtest.h>

namespace ojs_shm::engine {
namespace {

TEST(Spread, quantiles_are_exact_for_short_times) {
  Spread spread;
  EXPECT_EQ(spread.quantile(50), 0U) << "of nothing";
  for (std::uint64_t ms = 1; ms <= 20; ++ms) spread.add(ms);
  EXPECT_EQ(spread.quantile(50), 10U);
  EXPECT_EQ(spread.quantile(99), 20U);
  EXPECT_EQ(spread.count(), 20U);
}

TEST(Spread, a_quantile_is_off_by_a_sixteenth_at_most) {
  for (std::uint64_t ms = 1; ms < (1ULL << 34); ms = ms * 9 / 8 + 1) {
    Spread spread;
    spread.add(ms);
    EXPECT_GE(spread.quantile(50), ms);
    EXPECT_LE(spread.quantile(50), ms + ms / 16);
  }
}

TEST(Spread, buckets_follow_each_other_without_a_gap) {
  for (std::uint64_t ms = 0; ms < 100'000; ++ms) {
    const std::size_t bucket = Spread::bucket_of(ms);
    EXPECT_LE(ms, Spread::greatest_of(bucket));
    if (bucket != 0) {
      EXPECT_GT(ms, Spread::greatest_of(bucket - 1));
    }
  }
}

}  // namespace
}  // namespace ojs_shm::engine
