// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "tests/schedules/operations.hpp"

namespace ojs_shm::test {

/// Explores scenario after scenario, and says in the end how many schedules that were.
class Schedules : public testing::Test {
 protected:
  static bool long_form();
  void explore(const Scenario& scenario, Limits limits);
  /// Each with two preemptions, without a kill and with one, until one fails. So many schedules at
  /// the most, in the short form and in the long one.
  void explore_all(const std::vector<Scenario>& scenarios, std::uint64_t most_short,
                   std::uint64_t most_long);
  void TearDown() override;
  World& world(std::uint32_t slots = World::kSlots);

 private:
  std::map<std::uint32_t, std::unique_ptr<World>> worlds_;  ///< by slots
  Explored sum_;
  std::uint64_t scenarios_ = 0, incomplete_ = 0;
};

/// Runs a part alone and kills it before that access; its process is dead then.
void kill_alone(World& world, std::uint32_t lane, const Part& part, std::uint32_t access);
/// The accesses at which that makes a difference: those that follow a write.
std::vector<std::uint32_t> deaths_of(World& world, const std::function<void(World&)>& prepare,
                                     const Part& part);

}  // namespace ojs_shm::test
