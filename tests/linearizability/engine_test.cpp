// SPDX-License-Identifier: Apache-2.0
// Method: processes work on one segment and note when they call and what they are answered; before
// a shared access they may be made to wait. In the stepped themes one process runs at a time and
// the seed chooses every switch, so that it repeats a finding; in the free ones they run at once.
// Long histories go to the monitor, short ones with every kind of call to the search.
// OJS_SHM_LINEAR_SECONDS=N goes on for so long instead of a few segments.

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/linearizability/exploration.hpp"

namespace ojs_shm::test {
namespace {

constexpr unsigned kHistories = 64;  ///< of one segment

class EngineHistories : public testing::TestWithParam<Theme> {};

TEST_P(EngineHistories, have_an_order) {
  const char* bound = std::getenv("OJS_SHM_LINEAR_SECONDS");
  const char* fixed = std::getenv("OJS_SHM_TEST_SEED");
  // The first segment has the seed that was given, so that the one of a finding repeats it.
  std::uint64_t seed =
      fixed != nullptr ? std::strtoull(fixed, nullptr, 10) : std::random_device{}();
  const bool crash = GetParam() == Theme::kCrashStepped || GetParam() == Theme::kCrashFree;
  const bool kills =
      crash || GetParam() == Theme::kShardedStepped || GetParam() == Theme::kShardedFree;
  const unsigned segments = bound != nullptr ? 1 : crash ? 2 : 8;
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(bound == nullptr ? 0 : static_cast<long>(std::atof(bound) * 1000));
  Tally tally;
  for (unsigned i = 0; i < segments || std::chrono::steady_clock::now() < end; ++i, ++seed) {
    const auto found = explore(GetParam(), seed, kHistories, tally);
    if (!found) continue;
    ADD_FAILURE() << found->text;
    if (std::getenv("OJS_SHM_LINEAR_GO_ON") == nullptr) break;
  }
  std::cout << fmt::format(
      "{}: {} histories, {} calls, {} of them empty fetches, {} kills, seeds before {}\n",
      name_of(GetParam()), tally.histories, tally.operations, tally.empties, tally.kills, seed);
  if (HasFailure()) return;  // what it found is in no tally
  EXPECT_EQ(tally.kills > 0, kills)
      << tally.kills << " kills: a theme with deaths in which no process dies shows nothing";
}

INSTANTIATE_TEST_SUITE_P(Themes, EngineHistories,
                         testing::Values(Theme::kLongStepped, Theme::kLongFree,
                                         Theme::kShortStepped, Theme::kShortFree,
                                         Theme::kCrashStepped, Theme::kCrashFree,
                                         Theme::kAgingStepped, Theme::kAgingFree,
                                         Theme::kWeightedStepped, Theme::kWeightedFree,
                                         Theme::kShardedStepped, Theme::kShardedFree),
                         [](const auto& theme) { return std::string(name_of(theme.param)); });

}  // namespace
}  // namespace ojs_shm::test
