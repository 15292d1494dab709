// SPDX-License-Identifier: Apache-2.0
// Method: each operation runs once in a child that is single-stepped, and after each instruction
// the parent looks whether the segment has changed. Then it runs once more for each kill, in a new
// child that goes as many instructions and gets a SIGKILL there. Each time others work before any
// repair; then repair, audit, and everything that waits is worked off. Between two changes all
// instructions leave the same segment behind, so one kill covers them all.
//
// A repairer is killed in the same way, after a process that died in the middle of an operation.
//
// The short form kills after at most kMostKills changes of each operation, chosen by lot; with
// OJS_SHM_INSTRUCTIONS=N it kills after every change and after every N-th instruction, so that 1
// means all. What runs is what ships: no hooks.

#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <set>

#include "tests/crash/scene.hpp"
#include "tests/instructions/trace.hpp"
#include "tests/support/process.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::size_t kMostKills = 12;
constexpr int kFewOthers = 20, kManyOthers = 1000;

struct Tally {
  std::size_t instructions = 0, covered = 0, kills = 0, elsewhere = 0;
} all;

class Instructions : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = tracing_forbidden(); !why.empty())
      GTEST_SKIP() << "NOT RUN: " << why;
  }
  static void TearDownTestSuite() {
    std::cout << all.covered << " instructions covered of " << all.instructions << ", by "
              << all.kills << " kills; " << all.elsewhere << " of them elsewhere than planned\n";
    all = {};
  }

  void kill_at_any(const Operation& operation, const Trace& trace,
                   const std::vector<std::size_t>& chosen);

  bool all_is_well_before = true;  ///< nothing has been left half done by others
  const ScratchDirectory folder;
  const SegmentName where{"crash", folder.path()};
};

/// After how many instructions to kill.
std::vector<std::size_t> moments(const Trace& trace) {
  std::vector<std::size_t> chosen = trace.after_changes();
  if (!exhaustive() && chosen.size() > kMostKills) {
    std::shuffle(chosen.begin(), chosen.end(), Seeded().numbers());
    chosen.resize(kMostKills);
  }
  chosen.push_back(1);  // for all those before the first change
  if (exhaustive()) {
    for (std::size_t n = stride(); n <= trace.instructions(); n += stride()) chosen.push_back(n);
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  }
  return chosen;
}

void Instructions::kill_at_any(const Operation& operation, const Trace& trace,
                               const std::vector<std::size_t>& chosen) {
  std::set<std::uint32_t> hit;
  std::size_t elsewhere = 0;
  for (const std::size_t& n : chosen) {
    SCOPED_TRACE("killed after " + std::to_string(n) + " of " +
                 std::to_string(trace.instructions()) + " instructions, and " +
                 std::to_string(trace.changes(n)) + " of " + std::to_string(trace.changes()) +
                 " changes");
    {
      Quiet quiet(where);
      const auto child = start(operation, where);
      const Jobs before = jobs_in(quiet.segment);
      if (trace.repeat(*child, n))
        hit.insert(trace.changes(n));
      else
        ++elsewhere;
      child->kill();
      others_work(quiet.segment, (&n - chosen.data()) % 100 == 0 ? kManyOthers : kFewOthers);
      quiet.segment.attachment()->repair_the_dead();
      EXPECT_EQ(all_is_well_before ? half_done(before, quiet.segment) : "", "");
      examine(operation.name, quiet.segment);
      EXPECT_LE(lost(before, quiet.segment), 1U) << "an operation ends one job at most";
      if (HasFailure()) return;
    }
    ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
  }
  std::size_t covered = 0;
  for (std::size_t n = 1; n <= trace.instructions(); ++n) covered += hit.contains(trace.changes(n));
  std::cout << std::setw(8) << trace.instructions() << " instructions, " << std::setw(6)
            << trace.own() << " our own, " << std::setw(4) << trace.changes() << " changes, "
            << std::setw(6) << chosen.size() << " kills: " << operation.name << std::endl;
  // One that waits by the clock never waits as long again: it was killed everywhere all the same.
  EXPECT_TRUE(covered == trace.instructions() || elsewhere * 4 <= chosen.size())
      << "the runs do not repeat the first one: " << elsewhere << " of " << chosen.size();
  all.instructions += trace.instructions();
  all.covered += covered;
  all.kills += chosen.size();
  all.elsewhere += elsewhere;
}

TEST_P(Instructions, FS_T02_killed_at_any_instruction) {
  const Trace& trace = trace_of(GetParam(), where);
  kill_at_any(operation_named(GetParam()), trace, moments(trace));
}

/// The long form doubts of every operation what no change is looked for after.
TEST(Traces, G8_no_change_is_overlooked) {
  if (const std::string why = tracing_forbidden(); !why.empty()) GTEST_SKIP() << "NOT RUN: " << why;
  const ScratchDirectory folder;
  const SegmentName where{"crash", folder.path()};
  for (const char* name : {"enqueue_batch", "nack", "end_run", "limit_fetch"})
    ASSERT_NO_THROW(Trace(operation_named(name), where, true));
}

/// The process to be repaired died after two thirds of its changes. A repair looks at every table,
/// some hundred thousand instructions without a change, so this belongs to the long form and kills
/// after each change alone.
using Repairs = Instructions;
TEST_P(Repairs, G8_a_repairer_killed_at_any_instruction) {
  const Operation& victim = operation_named(GetParam());
  const Trace& dies = trace_of(victim.name, where);
  const Operation repair{"repair after " + victim.name,
                         [&](Hands&) {
                           const auto child = start(victim, where);
                           dies.repeat(*child, dies.after_changes()[dies.changes() * 2 / 3]);
                           child->kill();
                         },
                         [](Hands& h) { h.segment.attachment()->repair_the_dead(); }};
  const Trace trace(repair, where);
  all_is_well_before = false;
  kill_at_any(repair, trace, trace.after_changes());
}

std::vector<std::string> victims() {
  if (!exhaustive()) return {};
  return {"retry_dead",         "nack",      "ack_result", "enqueue_batch", "cancel_active",
          "fetch_leaves_chunk", "pack_rings"};
}
const auto name_of = [](const auto& one) { return one.param; };
INSTANTIATE_TEST_SUITE_P(Each, Instructions, testing::ValuesIn(names_of_operations()), name_of);
INSTANTIATE_TEST_SUITE_P(After, Repairs, testing::ValuesIn(victims()), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Repairs);

}  // namespace
}  // namespace ojs_shm::test
