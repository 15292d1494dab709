// SPDX-License-Identifier: Apache-2.0
#include "tests/support/self_judging_payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ojs_shm::test {
namespace {

std::string payload(PayloadKey key, std::string_view context, std::size_t bytes) {
  std::string body;
  write_payload(body, key, context, bytes);
  return body;
}

TEST(SelfJudgingPayload, tells_its_key) {
  for (const std::size_t bytes : {0U, 1U, 7U, 8U, 9U, 4096U}) {
    const PayloadKey key{7, 123'456'789'012};
    EXPECT_EQ(judge_payload(payload(key, "queue/type", bytes), "queue/type"), key) << bytes;
  }
}

TEST(SelfJudgingPayload, each_changed_byte_shows) {
  const std::string body = payload({1, 42}, "queue", 40);
  for (std::size_t i = 0; i < body.size(); ++i) {
    for (const int change : {1, 2, 64}) {
      std::string broken = body;
      broken[i] = static_cast<char>(broken[i] ^ change);
      EXPECT_EQ(judge_payload(broken, "queue"), std::nullopt) << "byte " << i << " of " << body;
    }
  }
}

TEST(SelfJudgingPayload, a_cut_or_lengthened_body_shows) {
  const std::string body = payload({1, 42}, "queue", 40);
  for (std::size_t length = 0; length < body.size(); ++length)
    EXPECT_EQ(judge_payload(std::string_view(body).substr(0, length), "queue"), std::nullopt)
        << length;
  std::string longer = body;
  longer.insert(longer.size() - 2, "a");
  EXPECT_EQ(judge_payload(longer, "queue"), std::nullopt);
}

TEST(SelfJudgingPayload, half_of_another_job_shows) {
  const std::string one = payload({1, 42}, "queue", 400), other = payload({1, 43}, "queue", 400);
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t seam = 64; seam < one.size() - 8; seam += 64) {
    std::string torn = one;
    std::copy(other.begin() + static_cast<std::ptrdiff_t>(seam), other.end(),
              torn.begin() + static_cast<std::ptrdiff_t>(seam));
    ASSERT_NE(torn, one);
    EXPECT_EQ(judge_payload(torn, "queue"), std::nullopt) << seam;
  }
}

TEST(SelfJudgingPayload, a_body_in_the_wrong_queue_shows) {
  EXPECT_EQ(judge_payload(payload({1, 42}, "left", 16), "right"), std::nullopt);
}

}  // namespace
}  // namespace ojs_shm::test
