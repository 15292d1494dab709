// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace ojs_shm::test {

/// A seeded generator (splitmix64): small enough for each life of each process to have its own.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }
  /// Each order of magnitude is as likely as the next.
  std::uint64_t any_magnitude(std::uint64_t low, std::uint64_t high) {
    const double exponent = static_cast<double>(next() >> 11) * 0x1p-53;
    const double ratio = static_cast<double>(high) / static_cast<double>(low);
    return static_cast<std::uint64_t>(static_cast<double>(low) * std::pow(ratio, exponent));
  }

 private:
  std::uint64_t state_;
};

}  // namespace ojs_shm::test
