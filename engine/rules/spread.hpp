// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ojs_shm::engine {

/// How times are spread: a histogram whose buckets are a sixteenth of a power of two wide, so a
/// quantile is off by no more than 1/16 of itself, and exact below 32 ms. Pure numbers.
class Spread {
 public:
  void add(std::uint64_t ms) {
    ++counts_[bucket_of(ms)];
    ++total_;
  }
  std::uint64_t count() const { return total_; }
  /// The least time that `percent` of the times do not exceed; 0 when there are none.
  std::uint64_t quantile(unsigned percent) const {
    std::uint64_t left = (total_ * percent + 99) / 100;
    for (std::size_t bucket = 0; bucket < counts_.size() && total_ != 0; ++bucket) {
      if (counts_[bucket] >= left) return greatest_of(bucket);
      left -= counts_[bucket];
    }
    return 0;
  }

  static constexpr std::size_t bucket_of(std::uint64_t ms) {
    if (ms < 2 * kSteps) return ms;
    const auto power = static_cast<unsigned>(std::bit_width(ms)) - 1;
    const std::size_t bucket =
        std::size_t{power - kStepBits} * kSteps + (ms >> (power - kStepBits));
    return std::min(bucket, kBuckets - 1);
  }
  /// The greatest time of a bucket.
  static constexpr std::uint64_t greatest_of(std::size_t bucket) {
    if (bucket < 2 * kSteps) return bucket;
    const std::size_t shift = bucket / kSteps - 1;
    return ((bucket % kSteps + kSteps + 1) << shift) - 1;
  }

 private:
  static constexpr unsigned kStepBits = 4;
  static constexpr std::size_t kSteps = 1U << kStepBits, kBuckets = 512;  // up to 2^35 ms
  std::array<std::uint32_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
};
static_assert(Spread::bucket_of(31) == 31 && Spread::bucket_of(32) == 32 &&
              Spread::bucket_of(33) == 32 && Spread::greatest_of(32) == 33);

}  // namespace ojs_shm::engine
