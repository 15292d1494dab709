// SPDX-License-Identifier: Apache-2.0
// One segment mapped twice in one process, at different addresses: nothing in it may be an address.

#include <thread>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(TwoMappings, one_puts_in_what_the_other_takes_out) {
  QuietSegment s;
  const Segment again = Segment::attach(s.where()).value();
  ASSERT_NE(static_cast<const void*>(&again.attachment()->segment().header()),
            static_cast<const void*>(&s.segment.attachment()->segment().header()));
  Producer producer = Producer::attach(again).value();
  Worker worker = Worker::attach(again, {}).value();
  const std::string args = "[\"" + std::string(5000, 'x') + "\"]";
  for (int i = 0; i < 200; ++i) {
    JobSpec spec = spec_of(i % 5);
    if (i % 2 == 0) spec.args = args;
    const std::string here = s.put(spec), there = producer.enqueue(spec).value().str();
    ASSERT_EQ(s.take(), here);
    ASSERT_EQ(s.job.args(), spec.args);
    Job job;
    ASSERT_TRUE(worker.try_fetch(job).ok());
    ASSERT_EQ(job.id(), there);
    ASSERT_TRUE(worker.ack(job, args).ok());
    ASSERT_TRUE(s.worker.requeue(s.job).ok());
    ASSERT_TRUE(worker.try_fetch(job).ok());
    ASSERT_EQ(job.id(), here);
    ASSERT_TRUE(worker.ack(job, "1").ok());
    EXPECT_EQ(s.get(there).result, args);
    EXPECT_EQ(producer.get(here)->result, "1");
  }
}

TEST(TwoMappings, a_job_of_another_segment_is_refused_and_neither_segment_changes) {
  QuietSegment s, other;
  const std::string here = s.put(), there = other.put();
  ASSERT_EQ(s.take(), here);
  ASSERT_EQ(other.take(), there);
  Worker again = Worker::attach(Segment::attach(s.where()).value(), {}).value();
  for (Worker* worker : {&s.worker, &again}) {
    Job& foreign = other.job;
    EXPECT_EQ(worker->nack(foreign, failure(true)).code(), Code::kInvalid);
    EXPECT_EQ(worker->requeue(foreign).code(), Code::kInvalid);
    EXPECT_EQ(worker->heartbeat(foreign).code(), Code::kInvalid);
    EXPECT_EQ(worker->progress(foreign, 0.5).code(), Code::kInvalid);
    EXPECT_EQ(worker->progress(foreign, 0.5, "half", "1").code(), Code::kInvalid);
    EXPECT_EQ(worker->checkpoint(foreign, "1").code(), Code::kInvalid);
    std::vector<Job> both = {s.job, foreign};
    EXPECT_EQ(worker->ack_batch(both).code(), Code::kInvalid);
    const Status acked = worker->ack(foreign);
    ASSERT_EQ(acked.code(), Code::kInvalid);
    EXPECT_EQ(acked.error().subject, "job");
  }
  EXPECT_EQ(s.state_of(here), State::kActive);
  EXPECT_EQ(other.state_of(there), State::kActive);
  EXPECT_TRUE(again.ack(s.job).ok());
  EXPECT_TRUE(other.worker.ack(other.job).ok());
}

TEST(TwoMappings, a_job_that_was_moved_away_has_no_texts) {
  QuietSegment s;
  s.put();
  ASSERT_NE(s.take(), "");
  Job moved = std::move(s.job);
  EXPECT_EQ(s.job.type(), "");
  EXPECT_EQ(s.job.args(), "");
  EXPECT_EQ(s.job.extra(), "");
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kEmpty);
  EXPECT_TRUE(s.worker.ack(moved).ok());
}

TEST(TwoMappings, a_sleeper_of_one_is_woken_by_the_other) {
  QuietSegment s;
  const Segment again = Segment::attach(s.where()).value();
  std::thread producing([&again] {
    Producer producer = Producer::attach(again).value();
    EXPECT_TRUE(producer.enqueue(spec_of(1)).ok());
  });
  EXPECT_TRUE(s.worker.fetch(s.job, std::chrono::seconds(30)).ok());
  producing.join();
}

TEST(TwoMappings, a_read_only_one_sees_everything_and_makes_no_handle) {
  QuietSegment s;
  const std::string id = s.put(3);
  const Observer observer = Observer::attach(s.where()).value();
  EXPECT_EQ(observer.get(id)->priority, 3);
  EXPECT_TRUE(observer.audit().empty());
  EXPECT_EQ(Producer::attach(observer.segment()).code(), Code::kPermission);
}

}  // namespace
}  // namespace ojs_shm::test
