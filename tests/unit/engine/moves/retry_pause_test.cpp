// SPDX-License-Identifier: Apache-2.0
// The pause after a failed attempt, as the engine draws it. Source: ojs-retry 5.1.
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(RetryPause, is_spread_by_half_to_either_side) {
  QuietSegment s;
  unsigned shorter = 0, longer = 0;
  for (int i = 0; i < 200; ++i) {
    JobSpec spec = spec_of();
    spec.retry.initial_ms = 10'000;
    s.put(spec);
    ASSERT_NE(s.take(), "");
    const auto outcome = s.worker.nack(s.job, {});
    ASSERT_TRUE(outcome.ok());
    EXPECT_GE(outcome->retry_delay_ms, 5'000U);
    EXPECT_LT(outcome->retry_delay_ms, 15'000U);
    ++(outcome->retry_delay_ms < 10'000 ? shorter : longer);
  }
  EXPECT_GT(shorter, 0U);
  EXPECT_GT(longer, 0U);
}

}  // namespace
}  // namespace ojs_shm::test
