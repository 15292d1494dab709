// SPDX-License-Identifier: Apache-2.0
// Method: two children stand at the first instruction of their operations on one segment. One goes
// on to an instruction in its middle, chosen by lot, every other time one that follows a change,
// and is stopped there; the other goes on to a change of its own and is killed. Others work, the
// dead is repaired, and the audit must be content, but for what the stopped one is about to do.
// Then that goes on, and must come to its end, or be refused, as what it needs may be gone; audit,
// work off, and count the jobs.
//
// The short form looks by lot for two others that stood in their middle beside each operation; the
// long form takes all, so that every pair of operations is seen, at one moment each.

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

/// What the audit says, but for what a stopped process may have done by half.
std::string findings_while_stopped(const Segment& segment) {
  const std::set<int> half = {3,  // published a job whose hint is still to come
                              6,  // left a chunk that it has yet to give back
                              8,  // written the texts of a report that its job has yet to name
                              // counted a job that it has not moved yet, or reserved room for one
                              10, 11, 23,
                              // set a limit, and not yet given a permit to those who work
                              18,
                              // put a job into a lot, and not yet looked whether there is room
                              // again
                              19, 22,  // taken a pool away, and not yet let go of its queues
                              27,      // ended a member, and not yet told its workflow
                              28,      // filled a template, and not yet given it to its cron
                              30};     // set maintenance, and not yet told all queues
  std::string text;
  for (const Violation& v : Observer::attach(segment).value().audit())
    if (!half.contains(v.invariant))
      text += "I" + std::to_string(v.invariant) + " " + v.text + "\n";
  return text;
}

/// How many jobs of others an operation may end: what it ends when it is alone, and one that its
/// death ends.
std::size_t most(const Trace& trace) { return trace.ends() + 1; }

class BesideStopped : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = tracing_forbidden(); !why.empty())
      GTEST_SKIP() << "NOT RUN: " << why;
  }
  void kill_beside(const Operation& killed, const Operation& stopped, Seeded& seeded);

  int pairs = 0, in_the_middle = 0, refused = 0;
  std::string alone;  ///< what cannot be prepared in one segment with the other
  const ScratchDirectory folder;
  const SegmentName where{"crash", folder.path()};
};

void BesideStopped::kill_beside(const Operation& killed, const Operation& stopped, Seeded& seeded) {
  const Trace &kills = trace_of(killed.name, where), &stops = trace_of(stopped.name, where);
  const auto draw = [&seeded](std::size_t first, std::size_t last) {
    return static_cast<std::size_t>(
        seeded.between(static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)));
  };
  const auto some_change = [&draw](const Trace& trace) {
    const std::vector<std::size_t> moments = trace.after_changes();
    return moments[draw(0, moments.size() - 1)];
  };
  const std::size_t kill = some_change(kills);
  const std::size_t stop = seeded.coin() ? some_change(stops) : draw(1, stops.instructions() - 1);
  SCOPED_TRACE(killed.name + " killed after " + std::to_string(kill) + " instructions (" +
               std::to_string(kills.changes(kill)) + " changes), " + stopped.name +
               " stopped after " + std::to_string(stop) + " (" +
               std::to_string(stops.changes(stop)) + ")");
  {
    Quiet quiet(where);
    std::unique_ptr<Stepped> rests, dies;
    try {
      rests = start(stopped, where, false), dies = start(killed, where, false);
    } catch (const NotPrepared&) {
      alone += ' ' + stopped.name;
    }
    if (dies) {
      const Jobs before = jobs_in(quiet.segment);
      stops.repeat(*rests, stop);
      ++pairs, in_the_middle += rests->acting();
      kills.repeat(*dies, kill);
      dies->kill();
      others_work(quiet.segment, 20);
      quiet.segment.attachment()->repair_the_dead();
      EXPECT_EQ(findings_while_stopped(quiet.segment), "");
      others_work(quiet.segment, 20);
      const std::string end = rests->finish();
      EXPECT_TRUE(end.empty() || rests->threw()) << "the stopped one " << end;
      refused += rests->threw();
      examine(killed.name + " beside " + stopped.name, quiet.segment, Others::kWork);
      if (!kills.ends_any_number() && !stops.ends_any_number()) {
        EXPECT_LE(lost(before, quiet.segment), most(kills) + most(stops))
            << "who ended the others?";
      }
    }
  }
  const Status removed = remove_segment(where, Removal::kWithJobs);
  ASSERT_TRUE(removed.ok()) << removed.error().message;
}

TEST_P(BesideStopped, G9_a_kill_beside_a_process_stopped_in_the_middle) {
  constexpr int kFew = 2;
  Seeded seeded;
  std::vector<const Operation*> others;
  for (const Operation& operation : operations()) others.push_back(&operation);
  std::shuffle(others.begin(), others.end(), seeded.numbers());
  for (const Operation* stopped : others) {
    if (in_the_middle >= kFew && !exhaustive()) break;
    kill_beside(operation_named(GetParam()), *stopped, seeded);
    if (HasFailure()) return;
  }
  EXPECT_GE(in_the_middle, kFew);
  std::cout << std::setw(4) << pairs << " kills in " << GetParam() << ", " << in_the_middle
            << " beside one in its middle, " << refused << " of which were refused then"
            << (alone.empty() ? "" : ", none beside" + alone) << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Each, BesideStopped, testing::ValuesIn(names_of_operations()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace ojs_shm::test
