// SPDX-License-Identifier: Apache-2.0
// What a lane leaves that dies in the middle of an operation, and how its Repairer ends it.
#include "engine/supervision/repairer.hpp"

#include <array>

#include "engine/straight/fetch_batch.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::Outcome;
using shm::Point;

class Repairers : public testing::Test {
 protected:
  struct Died {};

  engine::NewJob plain() {
    engine::NewJob job;
    job.type = "unit.test";
    job.args = "[1]";
    job.queue = lane.actor().ensure_queue("default");
    job.retry.max_attempts = 20;
    return job;
  }
  /// Does it, and dies behind that write.
  template <class Operation>
  void die(Point at, const Operation& operation) {
    try {
      const AtAccess killed([at](shm::Access access, Point point, const void*) {
        if (access == shm::Access::kWritten && point == at) throw Died{};
      });
      operation();
      ADD_FAILURE() << "it did not die";
    } catch (const Died&) {}
  }
  std::uint32_t repair() {
    const std::uint32_t dead = lane.lane();
    return engine::Repairer::repair(s.store(), std::span(&dead, 1));
  }

  QuietSegment s;
  internal::Handle& lane = *doomed_handle(s.segment);
};

TEST_F(Repairers, an_enqueue_that_died_before_its_word_has_not_happened) {
  engine::NewJob job = plain();
  job.scheduled_at = s.now_ms() + kHour;  // off the straight way
  engine::JobId id;
  die(Point::kTallyIn, [&] { lane.actor().enqueue(job, id); });
  EXPECT_EQ(repair(), 1U);
  EXPECT_EQ(s.queue().depth, 0U);
  EXPECT_EQ(s.pool_use("slots"), 0U);
  EXPECT_EQ(repair(), 0U) << "a repair leaves nothing to the next";
}

TEST_F(Repairers, an_enqueue_that_died_behind_its_word_has_happened) {
  const engine::NewJob job = plain();
  engine::JobId id;
  die(Point::kSlotPublished, [&] { lane.actor().enqueue(job, id); });
  repair();
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(s.drain(), std::vector{engine::to_string(id)});
}

TEST_F(Repairers, a_batch_is_finished_behind_its_commit_and_undone_before) {
  const std::vector<engine::NewJob> jobs(3, plain());
  std::vector<engine::JobId> ids;
  die(Point::kTallyIn, [&] { lane.actor().enqueue_batch(jobs, ids); });
  repair();
  EXPECT_EQ(s.queue().depth, 0U);
  die(Point::kBatchCommitted, [&] { lane.actor().enqueue_batch(jobs, ids); });
  repair();
  std::vector<std::string> wanted;
  for (const engine::JobId& id : ids) wanted.push_back(engine::to_string(id));
  EXPECT_EQ(s.drain(), wanted);
}

/// Some jobs, and places for them in a batch.
struct Several {
  std::array<engine::Fetched, 3> jobs;
  std::array<std::string, 3> bodies;
  engine::Fetched& at(std::size_t i) { return jobs[i].body = &bodies[i], jobs[i]; }
  static void took(std::size_t, const engine::Fetched&) {}
  std::vector<engine::Ack> acks() const {
    std::vector<engine::Ack> all;
    for (const engine::Fetched& job : jobs) all.push_back({job.word, job.slot, false});
    return all;
  }
};

TEST_F(Repairers, several_fetches_that_died_before_their_commit_have_not_happened) {
  for (const Point before : {Point::kSlotClaimed, Point::kHeadMoved, Point::kTallyOut}) {
    QuietSegment fresh;
    internal::Handle& doomed = *doomed_handle(fresh.segment);
    const std::vector<std::string> ids = {fresh.put(0), fresh.put(1), fresh.put(2)};
    const std::uint32_t queue = doomed.actor().ensure_queue("default");
    Several all;
    die(before, [&] { doomed.actor().fetch_batch_plain(queue, 0, false, 3, all); });
    const std::uint32_t dead = doomed.lane();
    engine::Repairer::repair(fresh.store(), std::span(&dead, 1));
    EXPECT_EQ(fresh.queue().depth, 3U);
    EXPECT_EQ(fresh.queue().dispatched_total, 0U);
    for (const std::string& id : ids) EXPECT_EQ(fresh.get(id).attempt, 0) << id;
    EXPECT_EQ(fresh.drain(), ids);
  }
}

/// Each dies one write later than the one before it, and so does its repairer.
TEST_F(Repairers, several_fetches_and_acks_count_each_job_once_wherever_they_die) {
  bool whole = false;
  for (unsigned writes = 1; !whole; ++writes) {
    QuietSegment fresh;
    internal::Handle& doomed = *doomed_handle(fresh.segment);
    const std::vector<std::string> ids = {fresh.put(0), fresh.put(1), fresh.put(1)};
    const std::uint32_t queue = doomed.actor().ensure_queue("default");
    Several all;
    std::vector<engine::Ack> acks;
    unsigned seen = 0;
    const auto at_write = [&](shm::Access access, Point, const void*) {
      if (access == shm::Access::kWritten && ++seen == writes) throw Died{};
    };
    try {
      const AtAccess killed(at_write);
      ASSERT_EQ(doomed.actor().fetch_batch_plain(queue, 0, false, 3, all), 3U);
      acks = all.acks();
      doomed.actor().ack_batch(acks);
      whole = true;
    } catch (const Died&) {}
    const std::uint32_t dead = doomed.lane();
    for (unsigned limit = 1 + writes % 7;; limit += 7) {
      unsigned repaired = 0;
      try {
        const AtAccess killed([&](shm::Access access, Point, const void*) {
          if (access == shm::Access::kWritten && ++repaired == limit) throw Died{};
        });
        engine::Repairer::repair(fresh.store(), std::span(&dead, 1));
        break;
      } catch (const Died&) {}
    }
    unsigned completed = 0, waiting = 0;
    for (const std::string& id : ids) {
      const JobInfo job = fresh.get(id);
      completed += job.state == State::kCompleted ? 1 : 0;
      waiting += job.state == State::kAvailable ? 1 : 0;
      EXPECT_LE(job.attempt, 1) << id << ", write " << writes;
    }
    EXPECT_EQ(completed + waiting, 3U) << "write " << writes;
    EXPECT_TRUE(completed == 0 || waiting == 0) << "write " << writes;
    EXPECT_EQ(fresh.queue().depth, waiting) << "write " << writes;
    EXPECT_EQ(fresh.queue().completed_total, completed) << "write " << writes;
    EXPECT_EQ(fresh.drain().size(), waiting) << "write " << writes;
    EXPECT_EQ(fresh.findings(), "") << "write " << writes;
  }
}

/// Each repairer dies one write later than the one before it.
TEST_F(Repairers, a_repair_that_is_cut_off_anywhere_is_begun_again) {
  std::vector<std::string> ids;
  for (unsigned i = 0; i < 3; ++i) {
    ids.push_back(s.put());
    s.move_clock(10);
  }
  std::string body;
  engine::Fetched out;
  out.body = &body;
  const std::uint32_t queue = plain().queue;
  for (unsigned i = 0; i < 2; ++i)
    ASSERT_EQ(lane.actor().fetch(queue, 0, false, out), Outcome::kOk);
  die(Point::kSlotClaimed, [&] { lane.actor().fetch(queue, 0, false, out); });
  bool whole = false;
  for (unsigned writes = 1; !whole; ++writes) {
    unsigned seen = 0;
    try {
      const AtAccess killed([&](shm::Access access, Point, const void*) {
        if (access == shm::Access::kWritten && ++seen == writes) throw Died{};
      });
      repair();
      whole = true;
    } catch (const Died&) {}
  }
  EXPECT_EQ(s.queue().depth, 3U);
  EXPECT_EQ(s.get(ids[0]).attempt, 1) << "its death is counted once";
  EXPECT_EQ(s.get(ids[2]).attempt, 0) << "a fetch that did not return has not happened";
  EXPECT_EQ(s.drain(), ids);
}

TEST_F(Repairers, who_waits_for_an_end_looks_again) {
  std::vector<std::uint32_t> before;
  auto& bells = s.segment.attachment()->segment().header().completions;
  for (const shm::Half& bell : bells) before.push_back(bell.load());
  engine::JobId id;
  ASSERT_EQ(lane.actor().enqueue(plain(), id), engine::Outcome::kOk);
  repair();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NE(bells[i].load(), before[i]);
}

}  // namespace
}  // namespace ojs_shm::test
