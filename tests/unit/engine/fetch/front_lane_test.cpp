// SPDX-License-Identifier: Apache-2.0
// Where a job stands that comes back. A holder's death, drain and requeue put it in front of its
// level, by the time at which it became available first; retry and lease expiry put it at the end.

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

/// A process that fetches `count` jobs and dies with them.
void take_and_die(QuietSegment& s, int count, bool lease_owned = false) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto segment = Segment::attach(s.where());
    if (!segment) ::_exit(2);
    auto worker =
        Worker::attach(segment.value(), {.queues = {"default"}, .lease_owned = lease_owned});
    Job job;
    for (int i = 0; i < count; ++i)
      if (!worker || !worker->try_fetch(job)) ::_exit(3);
    ::_exit(0);  // nothing is closed
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
}

JobSpec often(std::optional<std::int64_t> priority = {}) {
  JobSpec spec = spec_of(priority);
  spec.retry.max_attempts = 20;
  return spec;
}

TEST(FrontLane, requeued_jobs_come_back_in_their_old_order_before_the_rest_of_their_level) {
  QuietSegment s;
  Ids ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(s.put(2));
    s.move_clock(10);
  }
  Job a, b, c;
  ASSERT_TRUE(s.worker.try_fetch(a).ok() && s.worker.try_fetch(b).ok() &&
              s.worker.try_fetch(c).ok());
  // whatever the order of giving back
  for (Job* job : {&b, &c, &a}) ASSERT_TRUE(s.worker.requeue(*job).ok());
  EXPECT_EQ(s.drain(), ids);
}

/// A keeper is in the middle of a repair when a lane asks for one.
TEST(FrontLane, a_repair_that_is_under_way_is_waited_for) {
  QuietSegment s;
  const std::string id = s.put(often());
  take_and_die(s, 1);
  shm::LocalFlag begun, answered;
  std::thread keeper([&] {
    const AtAccess in_the_middle([&](shm::Access access, shm::Point, const void*) {
      if (access != shm::Access::kWritten || begun.get()) return;
      begun.set();
      // Who does not wait for us answers meanwhile.
      eventually([&] { return answered.get(); }, std::chrono::milliseconds(200));
    });
    s.segment.attachment()->repair_the_dead();
  });
  EXPECT_TRUE(eventually([&] { return begun.get(); }));
  EXPECT_TRUE(s.admin.repair().ok());
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  answered.set();
  keeper.join();
}

TEST(FrontLane, a_better_level_still_goes_before_what_came_back) {
  QuietSegment s;
  const std::string back = s.put(2);
  ASSERT_EQ(s.take(), back);
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  const std::string best = s.put(1), same = s.put(2);
  EXPECT_EQ(s.drain(), (Ids{best, back, same}));
}

TEST(FrontLane, PRI_T03_a_holders_death_keeps_the_place_and_a_lease_expiry_goes_to_the_end) {
  QuietSegment s;
  Ids ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(s.put(often(2)));
    s.move_clock(10);
  }
  take_and_die(s, 2);
  EXPECT_EQ(s.state_of(ids[0]), State::kActive);
  EXPECT_EQ(s.admin.repair().value(), 1U);
  EXPECT_EQ(s.state_of(ids[0]), State::kAvailable);
  ASSERT_EQ(s.get(ids[0]).errors.size(), 1U);
  EXPECT_EQ(s.get(ids[0]).errors[0].code, "holder_died");
  EXPECT_EQ(s.get(ids[0]).attempt, 1);
  Job held;
  ASSERT_TRUE(s.worker.try_fetch(held).ok());
  ASSERT_EQ(held.id(), ids[0]);
  EXPECT_EQ(held.attempt(), 2);
  s.pass(kHour);  // its lease of half an hour is over
  EXPECT_EQ(s.drain(), (Ids{ids[1], ids[2], ids[3], ids[0]}));
}

TEST(FrontLane, a_death_after_the_last_attempt_discards) {
  QuietSegment s;
  JobSpec once = spec_of(2);
  once.retry.max_attempts = 1;
  once.retry.dead_letter = true;
  const std::string id = s.put(once);
  take_and_die(s, 1);
  ASSERT_EQ(s.admin.repair().value(), 1U);
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
  EXPECT_TRUE(s.get(id).dead_letter);
}

TEST(FrontLane, a_closed_worker_gives_back_what_it_holds_uncounted) {
  QuietSegment s;
  Ids ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(s.put(2));
    s.move_clock(10);
  }
  {
    Worker leaving = Worker::attach(s.segment, {}).value();
    Job one, two;
    ASSERT_TRUE(leaving.try_fetch(one).ok() && leaving.try_fetch(two).ok());
  }
  EXPECT_EQ(s.get(ids[0]).attempt, 0);
  EXPECT_TRUE(s.get(ids[0]).errors.empty());
  EXPECT_EQ(s.drain(), ids);
}

TEST(FrontLane, a_job_owned_by_its_lease_survives_its_workers_process) {
  QuietSegment s;
  const std::string id = s.put(often(2)), next = s.put(2);
  take_and_die(s, 1, true);
  EXPECT_EQ(s.admin.repair().value(), 1U);
  EXPECT_EQ(s.state_of(id), State::kActive);
  s.pass(kHour);
  EXPECT_EQ(s.drain(), (Ids{next, id}));
}

TEST(FrontLane, a_due_retry_joins_the_end_of_its_level) {
  QuietSegment s;
  const std::string a = s.put(often(2)), b = s.put(2);
  ASSERT_EQ(s.take(), a);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(kHour);
  EXPECT_EQ(s.drain(), (Ids{b, a}));
}

TEST(FrontLane, what_came_back_can_be_reprioritised_and_cancelled) {
  QuietSegment s;
  const std::string a = s.put(2), b = s.put(2), c = s.put(2);
  Job one, two;
  ASSERT_TRUE(s.worker.try_fetch(one).ok() && s.worker.try_fetch(two).ok());
  ASSERT_TRUE(s.worker.requeue(one).ok() && s.worker.requeue(two).ok());
  ASSERT_EQ(s.producer.reprioritize(a, 9).value(), 2);
  ASSERT_TRUE(s.producer.cancel(b).ok());
  EXPECT_EQ(s.drain(), (Ids{c, a}));
}

}  // namespace
}  // namespace ojs_shm::test
