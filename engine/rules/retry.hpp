// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace ojs_shm::engine {

/// How the pause before retry n grows from the initial interval i by the coefficient c.
enum class Backoff : std::uint8_t {
  kExponential = 0,  ///< i * c^(n-1)
  kLinear = 1,       ///< i * n
  kConstant = 2,     ///< i
  kPolynomial = 3,   ///< i * n^c
};

/// What happens after a failure. Source: ojs-retry 2, 3, 8.
struct RetryPolicy {
  /// runs in all, the first included; 0 and 1 both mean that a failure is final
  std::uint16_t max_attempts = 3;
  std::uint32_t initial_ms = 1000;
  std::uint32_t max_ms = 300'000;
  float coefficient = 2.0F;
  Backoff backoff = Backoff::kExponential;
  bool jitter = true;
  bool dead_letter = false;  ///< what is exhausted is kept in the dead-letter list

  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

/// Milliseconds to wait before retry `retry_number` (1: the second attempt), never above max_ms.
/// `random` decides the jitter, uniformly in [0.5, 1.5) of the capped pause; the cap holds again
/// afterwards. Total: a policy that validate() refuses still gives a pause within the cap.
std::uint32_t retry_delay_ms(const RetryPolicy& policy, std::uint32_t retry_number,
                             std::uint64_t random) noexcept;

/// What is wrong with a policy, if anything.
enum class RetryFault : std::uint8_t {
  kNone,
  kCoefficient,  ///< below 1, infinite or not a number
  kBackoff,      ///< none of the four
};
RetryFault validate(const RetryPolicy& policy) noexcept;

/// Whether one entry of `non_retryable_errors` speaks of this error type: the same text, or a
/// prefix before ".*". Source: ojs-retry 6.2.
bool matches_error_type(std::string_view entry, std::string_view type) noexcept;

/// Whether what a client said of its job beyond the engine's own members (NewJob::extra) forbids a
/// retry after an error of this type. The engine keeps that text and does not read it.
using RetryRule = bool (*)(std::string_view extra, std::string_view error_type);

}  // namespace ojs_shm::engine
