// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ojs_shm::test {

/// Random numbers for one test. The seed is printed, stands with every failure, and
/// OJS_SHM_TEST_SEED=N repeats it.
class Seeded {
 public:
  Seeded()
      : seed_(choose()),
        trace_(__FILE__, __LINE__, "OJS_SHM_TEST_SEED=" + std::to_string(seed_)),
        numbers_(seed_) {
    std::cout << "OJS_SHM_TEST_SEED=" << seed_ << '\n';
  }

  std::uint64_t bits() { return numbers_(); }

  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(numbers_);
  }

  bool coin() { return (bits() & 1) != 0; }

  std::mt19937_64& numbers() { return numbers_; }

 private:
  static std::uint64_t choose() {
    if (const char* fixed = std::getenv("OJS_SHM_TEST_SEED"))
      return std::strtoull(fixed, nullptr, 10);
    return std::random_device{}();
  }

  std::uint64_t seed_;
  testing::ScopedTrace trace_;
  std::mt19937_64 numbers_;
};

}  // namespace ojs_shm::test
