// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/retry.hpp"

#include <cmath>

namespace ojs_shm::engine {
namespace {

// A product of finite positive numbers, at worst infinity: never NaN, because no factor is zero.
double raw_pause_ms(const RetryPolicy& policy, double n) noexcept {
  const double initial = policy.initial_ms;
  const double coefficient = policy.coefficient >= 1.0F ? policy.coefficient : 1.0;
  switch (policy.backoff) {
    case Backoff::kExponential: return initial * std::pow(coefficient, n - 1);
    case Backoff::kLinear: return initial * n;
    case Backoff::kConstant: return initial;
    case Backoff::kPolynomial: return initial * std::pow(n, coefficient);
  }
  return initial;
}

// 52 random bits: the largest factor, 1.5 - 2^-52, is still exact in a double. One bit more would
// round up to 1.5.
double jitter_factor(std::uint64_t random) noexcept {
  return 0.5 + static_cast<double>(random >> 12) * 0x1p-52;
}

}  // namespace

std::uint32_t retry_delay_ms(const RetryPolicy& policy, std::uint32_t retry_number,
                             std::uint64_t random) noexcept {
  // nothing grows from nothing, and 0 * infinity is not a number
  if (policy.initial_ms == 0) return 0;
  const double cap = policy.max_ms;
  double pause = std::fmin(raw_pause_ms(policy, retry_number == 0 ? 1.0 : retry_number), cap);
  if (policy.jitter) pause = std::fmin(pause * jitter_factor(random), cap);
  return static_cast<std::uint32_t>(pause);
}

RetryFault validate(const RetryPolicy& policy) noexcept {
  if (!std::isfinite(policy.coefficient) || policy.coefficient < 1.0F)
    return RetryFault::kCoefficient;
  if (policy.backoff > Backoff::kPolynomial) return RetryFault::kBackoff;
  return RetryFault::kNone;
}

bool matches_error_type(std::string_view entry, std::string_view type) noexcept {
  if (entry.ends_with(".*")) return type.starts_with(entry.substr(0, entry.size() - 1));
  return entry == type;
}

}  // namespace ojs_shm::engine
