// SPDX-License-Identifier: Apache-2.0
#include "tests/linearizability/exploration.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "tests/linearizability/monitor.hpp"
#include "tests/linearizability/search.hpp"
#include "tests/support/storm/dice.hpp"

namespace ojs_shm::test {
namespace {
constexpr unsigned kProcesses = 3;
}

std::string_view name_of(Theme theme) {
  constexpr std::string_view kNames[] = {"long_stepped",  "long_free",       "short_stepped",
                                         "short_free",    "crash_stepped",   "crash_free",
                                         "aging_stepped", "aging_free",      "weighted_stepped",
                                         "weighted_free", "sharded_stepped", "sharded_free"};
  return kNames[static_cast<std::size_t>(theme)];
}

std::optional<Finding> explore(Theme theme, std::uint64_t seed, unsigned histories, Tally& tally) {
  const bool aging = theme == Theme::kAgingStepped || theme == Theme::kAgingFree;
  const bool weighted = theme == Theme::kWeightedStepped || theme == Theme::kWeightedFree;
  const bool sharded = theme == Theme::kShardedStepped || theme == Theme::kShardedFree;
  const std::unique_ptr<Subject> subject = engine_subject(aging      ? Choice::kAging
                                                          : weighted ? Choice::kWeighted
                                                          : sharded  ? Choice::kSharded
                                                                     : Choice::kStrict);
  Recorder recorder(*subject, kProcesses);
  Dice dice(seed);
  Plan plan;
  plan.free_running = theme == Theme::kLongFree || theme == Theme::kShortFree ||
                      theme == Theme::kCrashFree || theme == Theme::kAgingFree ||
                      theme == Theme::kWeightedFree || theme == Theme::kShardedFree;
  plan.elders = aging || weighted ? 5 : 0;
  plan.everything = theme != Theme::kLongStepped && theme != Theme::kLongFree;
  const Strictness strictness{.details = std::getenv("OJS_SHM_LINEAR_DETAILS") != nullptr};
  auto wrong = [&plan, &strictness](const History& history) {
    if (!plan.everything) return monitor(history).has_value();
    const Verdict verdict = search(history, strictness);
    if (verdict == Verdict::kTooLarge) throw std::logic_error("a history too large for the search");
    return verdict == Verdict::kWrong;
  };
  for (unsigned i = 1; i <= histories; ++i) {
    plan.seed = dice.next();
    plan.crash =
        theme == Theme::kCrashStepped || theme == Theme::kCrashFree || (sharded && i % 4 == 0);
    plan.calls = plan.elders != 0  ? 3
                 : plan.everything ? 4
                                   : static_cast<unsigned>(dice.any_magnitude(3, 40));
    plan.levels = static_cast<unsigned>(dice.between(1, 4));
    const std::string where =
        fmt::format("history {} of theme {}, OJS_SHM_TEST_SEED={}", i, name_of(theme), seed);
    try {
      const History history = recorder.record(plan);
      ++tally.histories;
      tally.operations += history.operations.size();
      tally.empties += static_cast<std::uint64_t>(
          std::count_if(history.operations.begin(), history.operations.end(),
                        [](auto& o) { return o.answer == Answer::kEmpty; }));
      if (!recorder.strange().empty())
        return Finding{where + ": " + recorder.strange() + "\n" + print(history)};
      if (!wrong(history)) continue;
      // With one job less another may have been the next.
      const History less = history.rules.plain() ? shrink(history, wrong) : history;
      const auto reason =
          plan.everything
              ? std::optional<std::string>("no order of these calls explains the answers")
              : monitor(less);
      return Finding{fmt::format("{}: {}\n{} of {} calls:\n{}", where, *reason,
                                 less.operations.size(), history.operations.size(), print(less))};
    } catch (const std::exception& error) {
      return Finding{where + ": " + error.what()};
    }
  }
  tally.kills += recorder.kills();
  return std::nullopt;
}

}  // namespace ojs_shm::test
