// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <random>

#include "engine/tables/make.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;

/// "from>to" of one job, in order.
std::vector<std::string> steps_of(const Observer& observer, const std::string& id) {
  std::vector<std::string> steps;
  for (const Transition& each : observer.recent())
    if (each.job == id) steps.push_back(each.from + ">" + each.to);
  return steps;
}

Job take(QuietSegment& s) {
  Job job;
  EXPECT_TRUE(s.worker.try_fetch(job));
  return job;
}

TEST(Recorder, tells_the_life_of_a_job_in_its_order) {
  QuietSegment s;
  const std::string id = s.producer.enqueue(spec_of()).value().str();
  Job job = take(s);
  ASSERT_TRUE(s.worker.nack(job, failure()));
  s.pass(kHour);
  job = take(s);
  ASSERT_TRUE(s.worker.ack(job));
  EXPECT_THAT(steps_of(s.observer, id),
              ElementsAre("new>available", "available>active", "active>retryable",
                          "waiting>available", "available>active", "active>completed"));
  const Transition last = s.observer.recent().back();
  EXPECT_EQ(last.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(last.queue, "default");
  EXPECT_LE(last.time_ms, s.now_ms());
}

TEST(Recorder, tells_what_is_scheduled_given_back_cancelled_expired_and_given_up) {
  QuietSegment s;
  JobSpec later = spec_of();
  later.scheduled_at_ms = s.now_ms() + kHour;
  const std::string scheduled = s.producer.enqueue(later).value().str();
  JobSpec short_lived = spec_of();
  short_lived.expires_at_ms = s.now_ms() + kMinute;
  const std::string cancelled = s.producer.enqueue(spec_of()).value().str();
  ASSERT_TRUE(s.producer.cancel(cancelled));
  const std::string expired = s.producer.enqueue(short_lived).value().str();
  s.pass(2 * kMinute);
  const std::string returned = s.producer.enqueue(spec_of()).value().str();
  Job job = take(s);
  ASSERT_TRUE(s.worker.requeue(job));
  job = take(s);
  ASSERT_TRUE(s.worker.nack(job, failure(false)));
  EXPECT_THAT(steps_of(s.observer, scheduled), ElementsAre("new>scheduled"));
  EXPECT_THAT(steps_of(s.observer, cancelled), ElementsAre("new>available", "waiting>cancelled"));
  EXPECT_THAT(steps_of(s.observer, expired), ElementsAre("new>available", "waiting>discarded"));
  EXPECT_THAT(steps_of(s.observer, returned),
              ElementsAre("new>available", "available>active", "active>available",
                          "available>active", "active>discarded"));
}

TEST(Recorder, keeps_the_newest_of_each_handle_and_goes_on_in_a_handle_that_is_used_again) {
  QuietSegment s;  // 512 slots: 16 records for each handle
  const std::uint32_t each = s.store().transitions_per_lane();
  ASSERT_EQ(each, 16U);
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(s.producer.enqueue(spec_of()).value().str());
  for (std::size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(steps_of(s.observer, ids[i]).size(), i < ids.size() - each ? 0U : 1U) << i;
  std::uint32_t handle = 0;
  {
    auto other = Producer::attach(s.segment).value();
    ASSERT_TRUE(other.enqueue(spec_of()));
    handle = s.observer.recent().back().handle;
  }
  EXPECT_EQ(s.observer.recent().back().pid, static_cast<std::uint32_t>(::getpid()))
      << "also after the end of the handle";
  auto again = Producer::attach(s.segment).value();
  s.pass(kSecond);
  ASSERT_TRUE(again.enqueue(spec_of()));
  std::vector<std::uint64_t> times;
  for (const Transition& seen : s.observer.recent())
    if (seen.handle == handle) times.push_back(seen.time_ms);
  EXPECT_EQ(times.size(), 2U) << "the earlier owner's record stays";
  EXPECT_EQ(s.observer.recent(1).size(), 1U);
}

TEST(Recorder, a_job_whose_slot_is_used_again_is_not_taken_for_another) {
  QuietSegment s(few_slots(64));
  const std::string first = s.producer.enqueue(spec_of()).value().str();
  Job job = take(s);
  ASSERT_TRUE(s.worker.ack(job));
  EXPECT_EQ(steps_of(s.observer, first).size(), 3U);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(s.producer.enqueue(spec_of()));
    job = take(s);
    ASSERT_TRUE(s.worker.ack(job));
  }
  for (const Transition& each : s.observer.recent()) EXPECT_NE(each.job, first);
}

TEST(Recorder, what_is_half_written_or_hostile_is_no_record) {
  QuietSegment s;
  const std::string id = s.producer.enqueue(spec_of()).value().str();
  ASSERT_EQ(steps_of(s.observer, id).size(), 1U);
  const std::uint32_t lane = s.observer.recent().back().handle;
  engine::TransitionRecord& record = s.store().transitions(lane)[0];
  const std::uint64_t what = record.what.get(), when = record.when.get();
  record.what.set(what + (1ULL << 40));  // as if its writer had died between the two stores
  EXPECT_TRUE(steps_of(s.observer, id).empty());
  record.what.set(what);
  record.when.set(when + (1ULL << 16));
  EXPECT_TRUE(steps_of(s.observer, id).empty());
  record.when.set(when);
  EXPECT_EQ(steps_of(s.observer, id).size(), 1U);

  std::mt19937_64 random(7);
  std::size_t records = 0;
  for (std::uint32_t each = 0; each < s.store().lanes(); ++each)
    for (std::uint32_t i = 0; i < s.store().transitions_per_lane(); ++i, ++records) {
      s.store().transitions(each)[i].what.set(random());
      s.store().transitions(each)[i].when.set(random());
    }
  EXPECT_LT(s.observer.recent(records).size(), 8U) << "one of 65,536 may fit by chance";
  // and a handle goes on writing
  const std::string next = s.producer.enqueue(spec_of()).value().str();
  EXPECT_EQ(steps_of(s.observer, next).size(), 1U);
}

TEST(Recorder, has_a_fixed_size_and_leaves_room_for_a_hundred_thousand_jobs) {
  const engine::Plan plan;
  const engine::Measured measured = engine::measure(plan);
  const shm::Geometry& g = measured.geometry;
  EXPECT_LE(shm::offsets_of(g).end, 64ULL << 20);
  EXPECT_GE(g.slots, 100'000U);
  EXPECT_LE(engine::recorder_bytes(g.lanes, g.slots), (1U << 20) + (1U << 14))
      << "ten bytes for each job";
}

}  // namespace
}  // namespace ojs_shm::test
