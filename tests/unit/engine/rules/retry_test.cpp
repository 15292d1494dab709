// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/retry.hpp"

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/seed.hpp"

namespace ojs_shm::engine {
namespace {

RetryPolicy without_jitter(Backoff backoff, std::uint32_t initial_ms, float coefficient) {
  return {
      .initial_ms = initial_ms, .coefficient = coefficient, .backoff = backoff, .jitter = false};
}

void expect_pauses(const RetryPolicy& policy, std::initializer_list<std::uint32_t> pauses) {
  std::uint32_t retry = 0;
  for (const std::uint32_t pause : pauses)
    EXPECT_EQ(retry_delay_ms(policy, ++retry, 0), pause) << "retry " << retry;
}

TEST(Retry, the_default_policy_is_that_of_the_specification) {
  const RetryPolicy policy;
  EXPECT_EQ(policy.max_attempts, 3);
  EXPECT_EQ(policy.initial_ms, 1'000u);
  EXPECT_EQ(policy.max_ms, 300'000u);
  EXPECT_EQ(policy.coefficient, 2.0F);
  EXPECT_EQ(policy.backoff, Backoff::kExponential);
  EXPECT_TRUE(policy.jitter);
  EXPECT_FALSE(policy.dead_letter);
  EXPECT_EQ(validate(policy), RetryFault::kNone);
}

TEST(Retry, exponential_pauses_double_up_to_the_cap) {
  expect_pauses(without_jitter(Backoff::kExponential, 1000, 2),
                {1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 300000, 300000});
}

TEST(Retry, linear_pauses_grow_by_the_initial_interval) {
  expect_pauses(without_jitter(Backoff::kLinear, 5000, 7), {5000, 10000, 15000, 20000});
}

TEST(Retry, constant_pauses_stay) {
  expect_pauses(without_jitter(Backoff::kConstant, 5000, 7), {5000, 5000, 5000});
}

TEST(Retry, polynomial_pauses_are_powers_of_the_retry_number) {
  expect_pauses(without_jitter(Backoff::kPolynomial, 1000, 4),
                {1000, 16000, 81000, 256000, 300000});
}

TEST(Retry, a_coefficient_of_one_is_constant) {
  expect_pauses(without_jitter(Backoff::kExponential, 1000, 1), {1000, 1000, 1000, 1000});
}

TEST(Retry, the_cap_also_holds_for_the_first_pause) {
  RetryPolicy policy = without_jitter(Backoff::kConstant, 10'000, 2);
  policy.max_ms = 7;
  expect_pauses(policy, {7, 7});
}

TEST(Retry, an_interval_of_zero_retries_at_once_however_late) {
  for (const Backoff backoff :
       {Backoff::kExponential, Backoff::kLinear, Backoff::kConstant, Backoff::kPolynomial}) {
    const RetryPolicy policy = without_jitter(backoff, 0, 10);
    EXPECT_EQ(retry_delay_ms(policy, std::numeric_limits<std::uint32_t>::max(), 0), 0u);
  }
}

TEST(Retry, jitter_spans_from_half_to_just_below_one_and_a_half) {
  const RetryPolicy policy{.initial_ms = 10'000, .backoff = Backoff::kConstant};
  EXPECT_EQ(retry_delay_ms(policy, 1, 0), 5'000u);
  EXPECT_EQ(retry_delay_ms(policy, 1, std::uint64_t{1} << 63), 10'000u);
  EXPECT_EQ(retry_delay_ms(policy, 1, std::numeric_limits<std::uint64_t>::max()), 14'999u);
}

TEST(Retry, the_cap_holds_again_after_jitter) {
  const RetryPolicy policy{.initial_ms = 10'000, .max_ms = 12'000, .backoff = Backoff::kConstant};
  EXPECT_EQ(retry_delay_ms(policy, 1, std::numeric_limits<std::uint64_t>::max()), 12'000u);
}

TEST(Retry, jitter_is_uniform_around_the_pause) {
  test::Seeded random;
  const RetryPolicy policy{.initial_ms = 10'000, .backoff = Backoff::kConstant};
  constexpr int kDraws = 20'000;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t pause = retry_delay_ms(policy, 1, random.bits());
    ASSERT_GE(pause, 5'000u);
    ASSERT_LT(pause, 15'000u);
    sum += pause;
  }
  // The mean of so many draws lies within 20.4 of 10,000 two times in three; 250 is twelve times
  // that.
  EXPECT_NEAR(sum / kDraws, 10'000, 250);
}

// A policy may come from a damaged segment: whatever its bits, the pause is a number within the
// cap.
TEST(Retry, any_bits_give_a_pause_within_the_cap) {
  test::Seeded random;
  constexpr float kOddities[] = {0.0F,
                                 -0.0F,
                                 -1.0F,
                                 1.0F,
                                 std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN(),
                                 std::numeric_limits<float>::max(),
                                 std::numeric_limits<float>::denorm_min()};
  for (int i = 0; i < 200'000; ++i) {
    RetryPolicy policy;
    policy.initial_ms = static_cast<std::uint32_t>(random.bits() >> random.between(32, 63));
    policy.max_ms = static_cast<std::uint32_t>(random.bits() >> random.between(32, 63));
    policy.coefficient = random.coin()
                             ? std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()))
                             : kOddities[random.between(0, std::ssize(kOddities) - 1)];
    policy.backoff = static_cast<Backoff>(random.between(0, 255));
    policy.jitter = random.coin();
    const auto retry = static_cast<std::uint32_t>(random.bits() >> random.between(32, 63));
    ASSERT_LE(retry_delay_ms(policy, retry, random.bits()), policy.max_ms);
  }
}

TEST(Retry, without_jitter_pauses_never_shrink) {
  test::Seeded random;
  for (int i = 0; i < 2'000; ++i) {
    RetryPolicy policy = without_jitter(static_cast<Backoff>(random.between(0, 3)),
                                        static_cast<std::uint32_t>(random.between(1, 100'000)),
                                        static_cast<float>(random.between(100, 1'000)) / 100.0F);
    policy.max_ms = static_cast<std::uint32_t>(random.between(1, 1'000'000));
    std::uint32_t before = 0;
    for (std::uint32_t retry = 1; retry < 60; ++retry) {
      const std::uint32_t pause = retry_delay_ms(policy, retry, random.bits());
      ASSERT_GE(pause, before) << "retry " << retry;
      before = pause;
    }
  }
}

TEST(Retry, validate_names_what_is_wrong) {
  for (const float wrong : {0.99F, 0.0F, -1.0F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(validate({.coefficient = wrong}), RetryFault::kCoefficient) << wrong;
  EXPECT_EQ(validate({.backoff = static_cast<Backoff>(4)}), RetryFault::kBackoff);
  EXPECT_EQ(validate({.max_attempts = 0, .initial_ms = 0, .max_ms = 0, .coefficient = 1.0F}),
            RetryFault::kNone);
}

TEST(Retry, error_types_match_exactly_or_by_a_prefix_before_the_star) {
  EXPECT_TRUE(matches_error_type("validation.payload_invalid", "validation.payload_invalid"));
  EXPECT_FALSE(matches_error_type("validation.payload_invalid", "validation.schema_error"));
  EXPECT_TRUE(matches_error_type("auth.*", "auth.token_expired"));
  EXPECT_TRUE(matches_error_type("auth.*", "auth.forbidden"));
  EXPECT_FALSE(matches_error_type("auth.*", "auth"));
  EXPECT_FALSE(matches_error_type("auth.*", "external.auth.failure"));
  EXPECT_FALSE(matches_error_type("auth.*", "authority.unknown"));
  EXPECT_FALSE(matches_error_type("", "auth"));
}

}  // namespace
}  // namespace ojs_shm::engine
