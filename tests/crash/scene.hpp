// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "tests/catalogue/operations.hpp"

// What stands around every kill: a segment that no lane repairs before the test says so, the others
// who work on, and the look at what is left.

namespace ojs_shm::test {

/// A segment whose supervisor's seat this test keeps empty, so that no lane repairs before it says
/// so.
struct Quiet {
  explicit Quiet(const SegmentName& where);
  shm::LockFile seat;
  Segment segment;
};

/// Other processes go on before any repair: `count` jobs through a queue of their own. How many
/// came through; fewer are right when an operation fills the segment.
int others_work(const Segment& segment, int count);
/// One of them comes into the queue of the operations: enqueues, fetches, sets back and cancels. It
/// may be refused, but waits for no lane.
void others_come_by(const Segment& segment);

/// What the audit says; empty when all is well.
std::string findings(const Observer& observer);

/// Every job that the segment knows, by its id.
using Jobs = std::map<std::string, JobInfo>;
Jobs jobs_in(const Segment& segment);

/// How many jobs that had not ended have ended since; those are among them that the segment does
/// not know any more.
std::size_t ended(const Jobs& before, const Segment& segment);
/// How many of those the segment does not know any more.
std::size_t lost(const Jobs& before, const Segment& segment);

/// How many jobs have come that have not ended, but for those that others_work() puts in.
std::size_t put_in(const Jobs& before, const Segment& segment);

/// What has changed of jobs that stand where they stood before: an operation that did not happen
/// leaves nothing. A job with one more error, or with a failure and its holder's death, has been
/// held by the dead meanwhile, so more than its place may be new.
std::string half_done(const Jobs& before, const Segment& segment);

/// Whether others have worked since the operation, and may have ended what it brought.
enum class Others : bool { kRested, kWork };
/// Repairs, audits, works off what waits, each job once, and audits again.
void examine(const std::string& name, const Segment& segment, Others others = Others::kRested);

}  // namespace ojs_shm::test
