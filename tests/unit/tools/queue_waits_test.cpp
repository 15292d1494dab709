// SPDX-License-Identifier: Apache-2.0
#include "tools/metrics/queue_waits.hpp"

#include <gtest/gtest.h>

namespace ojs_shm::metrics {
namespace {

/// So many jobs up to 1, 10 and 100 ms, and so many beyond.
WaitHistogram waits(std::uint64_t one, std::uint64_t ten, std::uint64_t hundred,
                    std::uint64_t beyond) {
  return {.count = one + ten + hundred + beyond,
          .sum_ms = one + 10 * ten + 100 * hundred + 1000 * beyond,
          .up_to_ms = {{1, one}, {10, one + ten}, {100, one + ten + hundred}}};
}

TEST(QueueWaits, a_quantile_is_the_least_bound_that_so_many_do_not_exceed) {
  const WaitHistogram hundred = waits(50, 45, 4, 1);
  EXPECT_EQ(quantile_ms(hundred, 500), 1U);
  EXPECT_EQ(quantile_ms(hundred, 501), 10U);
  EXPECT_EQ(quantile_ms(hundred, 950), 10U);
  EXPECT_EQ(quantile_ms(hundred, 990), 100U);
  EXPECT_EQ(quantile_ms(hundred, 1000), 100U) << "what is beyond all bounds has the last one";
  EXPECT_EQ(quantile_ms(WaitHistogram(), 500), 0U);
}

TEST(QueueWaits, levels_of_a_queue_are_summed) {
  const auto queues = waits_by_queue({{"a", 0, waits(1, 0, 0, 0), waits(0, 1, 0, 0), {}},
                                      {"b", 0, waits(0, 0, 1, 0), {}, {}},
                                      {"a", 1, waits(0, 2, 0, 1), waits(3, 0, 0, 0), {}}});
  ASSERT_EQ(queues.size(), 2U);
  EXPECT_EQ(queues.at("a").from_enqueue.count, 4U);
  EXPECT_EQ(quantile_ms(queues.at("a").from_enqueue, 250), 1U);
  EXPECT_EQ(quantile_ms(queues.at("a").from_enqueue, 750), 10U);
  EXPECT_EQ(mean_ms(queues.at("a").from_available), (10U + 3U) / 4U);
  EXPECT_EQ(mean_ms(queues.at("b").runs), 0U);
}

}  // namespace
}  // namespace ojs_shm::metrics
