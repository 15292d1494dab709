// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/schedules.hpp"

#include <cstdlib>
#include <iostream>

namespace ojs_shm::test {
namespace {

/// Of each exploration that has one preemption more than usual.
constexpr std::uint64_t kDeepRuns = 50'000;

/// Of all tests of this process; told at its end.
class AllScenarios : public testing::Environment {
 public:
  void note(const Scenario& scenario, const Limits& limits, const Explored& explored) {
    runs_ += explored.runs;
    if (explored.complete) {
      ++complete_;
      return;
    }
    cut_short_.push_back(scenario.name + " (" + std::to_string(limits.preemptions) +
                         " preemptions, " + std::to_string(limits.kills) +
                         " kills): " + std::to_string(explored.runs) + " schedules");
  }
  void TearDown() override {
    if (std::getenv("OJS_SHM_SCHEDULES_LONG") != nullptr)
      for (const std::string& name : cut_short_) std::cout << "cut short: " << name << '\n';
    std::cout << complete_ + cut_short_.size() << " explorations: " << complete_ << " complete, "
              << cut_short_.size() << " cut short; " << runs_ << " schedules\n";
  }

 private:
  std::uint64_t complete_ = 0, runs_ = 0;
  std::vector<std::string> cut_short_;
};

AllScenarios& all_scenarios() {
  // of the test program from its beginning on, which deletes it
  static auto* const all = new AllScenarios;
  return *all;
}
const testing::Environment* const kAllScenarios =
    testing::AddGlobalTestEnvironment(&all_scenarios());

}  // namespace

bool Schedules::long_form() { return std::getenv("OJS_SHM_SCHEDULES_LONG") != nullptr; }

World& Schedules::world(std::uint32_t slots) {
  std::unique_ptr<World>& world = worlds_[slots];
  if (world == nullptr) world = std::make_unique<World>(true, slots);
  return *world;
}

void Schedules::explore(const Scenario& scenario, Limits limits) {
  if (const char* only = std::getenv("OJS_SHM_SCHEDULES_ONLY");
      only != nullptr && scenario.name != only)
    return;
  if (std::getenv("OJS_SHM_SCHEDULES_DEEP") != nullptr)
    limits.preemptions += 1, limits.most_runs = kDeepRuns;
  const Explored explored = Explorer(world(scenario.slots)).explore(scenario, limits);
  sum_.runs += explored.runs;
  sum_.kills += explored.kills;
  sum_.accesses += explored.accesses;
  incomplete_ += explored.complete ? 0 : 1;
  ++scenarios_;
  all_scenarios().note(scenario, limits, explored);
  EXPECT_EQ(explored.failure, "");
}

void Schedules::explore_all(const std::vector<Scenario>& scenarios, std::uint64_t most_short,
                            std::uint64_t most_long) {
  const std::uint64_t most = long_form() ? most_long : most_short;
  for (const Scenario& scenario : scenarios)
    for (const unsigned kills : {0U, 1U}) {
      explore(scenario, {.preemptions = 2, .kills = kills, .most_runs = most});
      if (HasFailure()) return;
    }
}

void Schedules::TearDown() {
  std::cout << scenarios_ << " scenarios, " << sum_.runs << " schedules, " << sum_.kills
            << " kills, " << sum_.accesses << " shared accesses"
            << (incomplete_ != 0 ? ", " + std::to_string(incomplete_) + " cut short" : "") << '\n';
}

void kill_alone(World& world, std::uint32_t lane, const Part& part, std::uint32_t access) {
  Fibers fibers({[&] { part(world, lane); }, [] {}});
  fibers.run(0, {{access, 1, Switch::Why::kKilled}});
  world.died(lane);
}

std::vector<std::uint32_t> deaths_of(World& world, const std::function<void(World&)>& prepare,
                                     const Part& part) {
  world.begin_anew();
  prepare(world);
  Fibers fibers({[&] { part(world, 2); }});
  fibers.run(0, {});
  std::vector<std::uint32_t> deaths;
  for (std::uint32_t i = 0; i + 1 < fibers.steps().size(); ++i)
    if (fibers.steps()[i].writes) deaths.push_back(i + 2);
  return deaths;
}

}  // namespace ojs_shm::test
