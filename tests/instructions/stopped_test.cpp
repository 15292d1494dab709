// SPDX-License-Identifier: Apache-2.0
// Method: two children stand at the first instruction of their operations on one segment. One goes on to a change in
// its middle, chosen by lot, and is stopped there; the other goes on to a change of its own and is killed. Others work,
// the dead is repaired, and the audit must be content, but for what the stopped one is about to do. Then that goes on,
// and must come to its end; audit, work off, and count the jobs.

#include <gtest/gtest.h>

#include <iomanip>
#include <iostream>

#include "tests/crash/scene.hpp"
#include "tests/instructions/trace.hpp"
#include "tests/support/process.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

struct Pair {
  std::string killed, stopped;
};
std::ostream& operator<<(std::ostream& out, const Pair& pair) {
  return out << pair.killed << " beside " << pair.stopped;
}

/// What the audit says, but for what a stopped process may have done by half: it may have counted a job that it has not
/// moved yet (10), published one whose hint is still to come (3), or left a chunk that it has yet to give back (6).
std::string findings_while_stopped(const Segment& segment) {
  std::string text;
  for (const Violation& v : Observer::attach(segment).value().audit())
    if (v.invariant != 3 && v.invariant != 6 && v.invariant != 10)
      text += "I" + std::to_string(v.invariant) + " " + v.text + "\n";
  return text;
}

class BesideStopped : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    if (const std::string why = tracing_forbidden(); !why.empty()) GTEST_SKIP() << "NOT RUN: " << why;
  }
  const ScratchDirectory folder;
  const SegmentName where{"crash", folder.path()};
};

TEST_P(BesideStopped, G9_a_kill_beside_a_process_stopped_in_the_middle) {
  const Operation& killed = operation_named(GetParam().killed);
  const Operation& stopped = operation_named(GetParam().stopped);
  const Trace &kills = trace_of(killed.name, where), &stops = trace_of(stopped.name, where);
  const std::vector<std::size_t> kill_at = kills.after_changes(), stop_at = stops.after_changes();
  ASSERT_GE(stop_at.size(), 2U);
  Seeded seeded;
  const auto any = [&seeded](const std::vector<std::size_t>& moments, std::size_t but_last) {
    return moments[static_cast<std::size_t>(
        seeded.between(0, static_cast<std::int64_t>(moments.size() - but_last) - 1))];
  };
  const int draws = exhaustive() ? 300 : 5;
  int in_the_middle = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const std::size_t kill = any(kill_at, 0), stop = any(stop_at, 1);
    SCOPED_TRACE(killed.name + " killed after " + std::to_string(kill) + " instructions (" +
                 std::to_string(kills.changes(kill)) + " changes), " + stopped.name + " stopped after " +
                 std::to_string(stop) + " (" + std::to_string(stops.changes(stop)) + ")");
    {
      Quiet quiet(where);
      const auto rests = start(stopped, where), dies = start(killed, where);
      const Jobs before = jobs_in(quiet.segment);
      stops.repeat(*rests, stop);
      in_the_middle += rests->acting();
      kills.repeat(*dies, kill);
      dies->kill();
      others_work(quiet.segment, 20);
      EXPECT_GE(quiet.segment.attachment()->repair_the_dead(), 1U);
      EXPECT_EQ(findings_while_stopped(quiet.segment), "");
      others_work(quiet.segment, 20);
      EXPECT_EQ(rests->finish(), "") << "the stopped one";
      examine(killed.name + " beside " + stopped.name, quiet.segment);
      EXPECT_LE(lost(before, quiet.segment), 2U) << "an operation ends one job at most";
      if (HasFailure()) return;
    }
    ASSERT_TRUE(remove_segment(where, false).ok());
  }
  std::cout << std::setw(8) << draws << " kills in " << killed.name << " beside " << stopped.name << ", "
            << in_the_middle << " times in its middle" << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Each, BesideStopped,
                         testing::Values(Pair{"enqueue", "fetch"}, Pair{"fetch", "enqueue_second"},
                                         Pair{"fetch", "reprioritize"}, Pair{"reprioritize", "fetch"},
                                         Pair{"reprioritize", "reprioritize"},
                                         Pair{"enqueue_new_chunk", "fetch_leaves_chunk"},
                                         Pair{"fetch_leaves_chunk", "enqueue_new_chunk"},
                                         Pair{"enqueue_new_queue", "enqueue_new_queue"},
                                         Pair{"enqueue_batch", "enqueue_batch"}, Pair{"cancel_available", "fetch"},
                                         Pair{"fetch", "cancel_available"}, Pair{"ack_fills_batch", "enqueue_recycles"},
                                         Pair{"enqueue_recycles", "ack_fills_batch"}, Pair{"fetch", "pack_rings"},
                                         Pair{"nack", "requeue_fetch_front"}, Pair{"close_worker", "cancel_active"},
                                         Pair{"promote_due", "expire_due"}, Pair{"attach_process", "attach_and_close"}),
                         [](const auto& one) { return one.param.killed + "_beside_" + one.param.stopped; });

}  // namespace
}  // namespace ojs_shm::test
