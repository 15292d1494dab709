// SPDX-License-Identifier: Apache-2.0
// Limits that an operator sets for a time.
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

struct LimitedTime : testing::Test {
  LimitedTime() { s.stop_clock(); }
  QuietSegment s;
  const RateLimit none{.concurrency = 0};

  LimitInfo limit(std::string_view key) { return s.observer.limit(key).value(); }
};

TEST_F(LimitedTime, is_taken_back_by_the_supervisor_at_the_next_whole_second) {
  const std::uint64_t end = s.now_ms() / 1000 * 1000 + kHour + 1;
  ASSERT_TRUE(s.admin.set_limit("queue:default", none, end).ok());
  EXPECT_EQ(limit("queue:default").expires_at_ms, end + 999);
  const std::string id = s.put();
  s.pass(end + 998 - s.now_ms());
  EXPECT_EQ(s.take(), "");
  EXPECT_TRUE(limit("queue:default").by_operator);
  s.pass(1);
  EXPECT_FALSE(limit("queue:default").by_operator);
  EXPECT_EQ(limit("queue:default").expires_at_ms, 0U);
  EXPECT_EQ(s.take(), id);
}

TEST_F(LimitedTime, each_key_has_its_own) {
  for (const auto& [key, hours] :
       {std::pair{"type:a", 3}, {"type:b", 1}, {"type:c", 2}, {"type:d", 0}})
    ASSERT_TRUE(s.admin
                    .set_limit(key, none,
                               hours == 0 ? 0 : s.now_ms() + static_cast<unsigned>(hours) * kHour)
                    .ok());
  const auto held = [&] {
    std::string keys;
    for (const LimitInfo& info : s.observer.limits())
      if (info.by_operator) keys += info.key.back();
    return keys;
  };
  s.tick();
  EXPECT_EQ(held(), "abcd");
  s.pass(kHour + kSecond);
  EXPECT_EQ(held(), "acd");
  s.pass(kHour);
  EXPECT_EQ(held(), "ad");
  s.pass(5 * kHour);
  EXPECT_EQ(held(), "d");
}

TEST_F(LimitedTime, a_later_word_of_the_operator_holds) {
  ASSERT_TRUE(s.admin.set_limit("type:a", none, s.now_ms() + kHour).ok());
  ASSERT_TRUE(s.admin.set_limit("type:a", none).ok());
  s.pass(2 * kHour);
  EXPECT_TRUE(limit("type:a").by_operator);
  ASSERT_TRUE(s.admin.set_limit("type:a", none, s.now_ms() + kHour).ok());
  ASSERT_TRUE(s.admin.clear_limit("type:a").ok());
  EXPECT_EQ(limit("type:a").expires_at_ms, 0U);
}

TEST_F(LimitedTime, a_time_that_is_past_or_too_far_is_refused) {
  for (const std::uint64_t wrong :
       {s.now_ms(), std::uint64_t{1}, std::uint64_t{0xFFFF'FFFF} * 1000 + 1})
    EXPECT_EQ(s.admin.set_limit("type:a", none, wrong).error().subject, "expires_at");
  EXPECT_TRUE(s.observer.limits().empty());
}

}  // namespace
}  // namespace ojs_shm::test
