// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/schedules/operations.hpp"

namespace ojs_shm::test {

/// Explores scenario after scenario, and says in the end how many schedules that were.
class Schedules : public testing::Test {
 protected:
  static bool long_form() { return std::getenv("OJS_SHM_SCHEDULES_LONG") != nullptr; }
  void explore(const Scenario& scenario, Limits limits) {
    if (const char* only = std::getenv("OJS_SHM_SCHEDULES_ONLY"); only != nullptr && scenario.name != only) return;
    const Explored explored = Explorer(world_).explore(scenario, limits);
    sum_.runs += explored.runs;
    sum_.kills += explored.kills;
    sum_.accesses += explored.accesses;
    incomplete_ += explored.complete ? 0 : 1;
    ++scenarios_;
    EXPECT_EQ(explored.failure, "");
  }
  void TearDown() override {
    std::cout << scenarios_ << " scenarios, " << sum_.runs << " schedules, " << sum_.kills << " kills, "
              << sum_.accesses << " shared accesses"
              << (incomplete_ != 0 ? ", " + std::to_string(incomplete_) + " cut short" : "") << '\n';
  }

 private:
  World world_;
  Explored sum_;
  std::uint64_t scenarios_ = 0, incomplete_ = 0;
};

}  // namespace ojs_shm::test
