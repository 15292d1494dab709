// SPDX-License-Identifier: Apache-2.0
// What a queue is told of its bounds.

#include <gmock/gmock.h>

#include "engine/rules/backpressure.hpp"
#include "tests/unit/engine/bounds/pressed.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;

TEST_F(Pressed, BP_T15_BP_003_BP_H1_settings_have_defaults_are_checked_and_are_set_one_by_one) {
  s.put();
  EXPECT_EQ(s.queue().strategy, BackpressureStrategy::kReject);
  EXPECT_EQ(s.queue().warning_threshold, 0.8);
  EXPECT_EQ(s.queue().drop, DropOrder::kOldest);
  set({.strategy = BackpressureStrategy::kBlock});
  set({.warning_threshold = 0.25});
  set({.drop = DropOrder::kLowestPriority});
  set({.max_depth = 5});
  const QueueInfo queue = s.queue();
  EXPECT_EQ(queue.strategy, BackpressureStrategy::kBlock);
  EXPECT_EQ(queue.warning_threshold, 0.25);
  EXPECT_EQ(queue.drop, DropOrder::kLowestPriority);
  EXPECT_EQ(queue.max_depth, 5U);
  for (const double wrong : {-0.1, 1.1, 0.0 / 0.0}) {
    const Status refused = s.admin.set_queue("default", {.warning_threshold = wrong});
    ASSERT_EQ(refused.code(), Code::kInvalid);
    EXPECT_EQ(refused.error().subject, "warning_threshold");
  }
  const auto read = parse_queue_settings(
      R"({"backpressure":{"max_depth":7,"max_size_bytes":9,"strategy":"drop_oldest","warning_threshold":1,"drop":"oldest"}})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->strategy, BackpressureStrategy::kDropOldest);
  EXPECT_EQ(read->warning_threshold, 1.0);
  EXPECT_EQ(read->drop, DropOrder::kOldest);
  for (const char* wrong :
       {R"("strategy":"wait")", R"("strategy":1)", R"("warning_threshold":1.5)",
        R"("warning_threshold":"x")", R"("drop":"newest")", R"("max_depth":-1)", R"("dept":1)"}) {
    const auto refused = parse_queue_settings(std::string(R"({"backpressure":{)") + wrong + "}}");
    EXPECT_EQ(refused.code(), Code::kInvalid) << wrong;
  }
}

TEST_F(Pressed, BP_T15_printed_settings_are_read_back) {
  set({.max_depth = 9,
       .strategy = BackpressureStrategy::kDropOldest,
       .warning_threshold = 0.5,
       .drop = DropOrder::kLowestPriority});
  const auto read = parse_queue_settings(print_queue_policy(s.queue()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->max_depth, 9U);
  EXPECT_EQ(read->strategy, BackpressureStrategy::kDropOldest);
  EXPECT_EQ(read->warning_threshold, 0.5);
  EXPECT_EQ(read->drop, DropOrder::kLowestPriority);
}

}  // namespace
}  // namespace ojs_shm::test
