// SPDX-License-Identifier: Apache-2.0
// What lanes tell, and what a reader makes of it. No threads; several handles take turns, and a
// child process dies.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include <ojs_shm/proxy.hpp>

#include "engine/observing/events.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const EventOptions kAtOnce{.settle_ms = 0};
const EventOptions kAllAtOnce{.from_start = true, .settle_ms = 0};

std::vector<Event> all(EventReader& reader) {
  std::vector<Event> events;
  for (Event event; reader.next(event);) events.push_back(event);
  return events;
}
std::vector<std::string> types(EventReader& reader) {
  std::vector<std::string> names;
  for (const Event& event : all(reader)) names.push_back(event.type);
  return names;
}

class Events : public testing::Test {
 protected:
  Events() { EXPECT_TRUE(s.admin.set_events(true).ok()); }
  QuietSegment s;
  EventReader reader = s.observer.events(kAtOnce);
};

TEST_F(Events, of_a_job_s_life_in_order_over_several_handles) {
  const std::string id = s.put(3);
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.heartbeat(s.job, 5000).ok());
  ASSERT_TRUE(s.worker.progress(s.job, 0.25, "a quarter", "[25]").ok());
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  const std::vector<Event> events = all(reader);
  std::vector<std::string> names;
  std::set<std::string> ids;
  for (const Event& event : events) {
    names.push_back(event.type);
    ids.insert(event.id);
    EXPECT_EQ(event.job_id, id);
    EXPECT_EQ(event.job_type, "unit.test");
    EXPECT_EQ(event.queue, "default");
    EXPECT_EQ(event.priority, 3);
  }
  EXPECT_THAT(names, ElementsAre("job.enqueued", "job.started", "job.heartbeat", "job.progress",
                                 "job.completed"));
  EXPECT_EQ(ids.size(), events.size());
  EXPECT_NE(events[0].handle, events[1].handle);
  EXPECT_EQ(events[1].attempt, 1U);
  EXPECT_EQ(events[3].progress, 0.25);
  EXPECT_EQ(events[3].progress_message, "a quarter");
  EXPECT_EQ(events[3].progress_data, "[25]");
  EXPECT_EQ(reader.lost(), 0U);
}

TEST_F(Events, of_one_handle_and_of_one_job_come_in_their_order_within_a_millisecond) {
  for (int i = 0; i < 100; ++i) {
    const std::string first = s.put(1), id = s.put(2);
    ASSERT_EQ(s.take(), first);
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    ASSERT_EQ(s.take(), id);
    ASSERT_TRUE(s.worker.requeue(s.job).ok());
    ASSERT_TRUE(s.producer.reprioritize(id, 0).ok());
    ASSERT_TRUE(s.producer.cancel(s.put(3)).ok());
    std::map<std::uint32_t, std::vector<std::uint64_t>> told;
    std::vector<std::string> changes;
    for (const Event& event : all(reader)) {
      told[event.handle].push_back(event.sequence);
      if (event.job_id == id) changes.push_back(event.type);
    }
    EXPECT_THAT(changes,
                ElementsAre("job.enqueued", "job.started", "job.enqueued", "priority.changed"));
    for (const auto& [handle, sequences] : told)
      EXPECT_TRUE(std::ranges::is_sorted(sequences)) << "of " << handle;
    ASSERT_EQ(s.take(), id);
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    all(reader);
  }
}

TEST_F(Events, a_report_comes_behind_its_start_whichever_handle_tells_it) {
  s.stop_clock();
  Proxy earlier = Proxy::attach(s.segment).value(), later = Proxy::attach(s.segment).value();
  s.put(1);
  const JobInfo job = later.fetch({}).value().front();
  ASSERT_TRUE(earlier.heartbeat(job.id, job.fence, 60'000).ok());
  ASSERT_TRUE(earlier.progress(job.id, job.fence, 0.5).ok());
  EXPECT_THAT(types(reader),
              ElementsAre("job.enqueued", "job.started", "job.heartbeat", "job.progress"));
}

TEST_F(Events, of_failures_carry_the_error_and_the_next_attempt) {
  JobSpec spec = spec_of(2);
  spec.retry.max_attempts = 2;
  const std::string id = s.put(spec);
  s.take();
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  std::vector<Event> events = all(reader);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[2].type, "job.failed");
  ASSERT_TRUE(events[2].error.has_value());
  EXPECT_EQ(events[2].error->code, "boom");
  EXPECT_EQ(events[3].type, "job.retrying");
  EXPECT_EQ(events[3].at_ms, s.get(id).next_attempt_at_ms);
  EXPECT_EQ(events[3].max_attempts, 2U);
  s.pass(kHour);
  s.take();
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  events = all(reader);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].type, "job.enqueued");
  EXPECT_EQ(events[2].type, "job.failed");
  EXPECT_EQ(events[3].type, "job.discarded");
  EXPECT_EQ(events[3].attempt, 2U);
}

TEST_F(Events, of_scheduled_pending_expiring_and_cancelled_jobs) {
  JobSpec later = spec_of(2);
  later.scheduled_at_ms = s.now_ms() + kHour;
  s.put(later);
  JobSpec pending = spec_of(2);
  pending.pending = true;
  const std::string waiting = s.put(pending);
  JobSpec expiring = spec_of(2);
  expiring.expires_at_ms = s.now_ms() + kMinute;
  s.put(expiring);
  EXPECT_THAT(types(reader), ElementsAre("job.scheduled", "job.enqueued"));
  ASSERT_TRUE(s.producer.activate(waiting).ok());
  ASSERT_TRUE(s.producer.cancel(waiting).ok());
  EXPECT_THAT(types(reader), ElementsAre("job.enqueued", "job.cancelled"));
  s.pass(2 * kMinute);
  const std::vector<Event> expired = all(reader);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].type, "job.expired");
  EXPECT_NEAR(static_cast<double>(expired[0].ttl_ms), static_cast<double>(kMinute), 100);
  s.pass(kHour);
  EXPECT_THAT(types(reader), ElementsAre("job.enqueued"));
}

TEST_F(Events, of_batches_leases_requeues_dead_letters_and_pauses) {
  JobSpec spec = spec_of(2);
  spec.retry.max_attempts = 2;
  spec.retry.dead_letter = true;
  const std::vector<JobSpec> two(2, spec);
  ASSERT_TRUE(s.producer.enqueue_batch(two).ok());
  EXPECT_THAT(types(reader), ElementsAre("job.enqueued", "job.enqueued"));
  const std::string id = s.take();
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  EXPECT_THAT(types(reader), ElementsAre("job.started", "job.enqueued"));
  s.take();
  s.pass(2 * kHour);
  EXPECT_THAT(types(reader),
              ElementsAre("job.started", "job.stalled", "job.failed", "job.enqueued"));
  s.take();
  ASSERT_TRUE(s.producer.cancel(s.job.id()).ok());
  s.take();
  ASSERT_TRUE(s.worker.nack(s.job, failure(false)).ok());
  EXPECT_THAT(types(reader), ElementsAre("job.started", "job.cancelled", "job.started",
                                         "job.failed", "job.discarded"));
  ASSERT_TRUE(s.admin.retry_dead(id).ok());
  EXPECT_THAT(types(reader), ElementsAre("job.enqueued"));
  for (const bool paused : {true, true, false, false})
    ASSERT_TRUE(s.admin.set_queue("default", {{}, {}, paused}).ok());
  EXPECT_THAT(types(reader), ElementsAre("queue.paused", "queue.resumed"));
}

TEST_F(Events, PRI_E1_PRI_R004_one_for_each_effective_change_of_a_priority_and_none_for_others) {
  const std::string id = s.put(2);
  JobSpec later = spec_of(4);
  later.scheduled_at_ms = s.now_ms() + kHour;
  const std::string scheduled = s.put(later);
  all(reader);
  ASSERT_TRUE(s.producer.reprioritize(id, 0).ok());
  ASSERT_TRUE(s.producer.reprioritize(scheduled, 1).ok());
  std::vector<Event> events = all(reader);
  ASSERT_EQ(events.size(), 2U);
  for (const Event& event : events) EXPECT_EQ(event.type, "priority.changed");
  EXPECT_EQ(events[0].job_id, id);
  EXPECT_EQ(events[0].previous_priority, 2);
  EXPECT_EQ(events[0].priority, 0);
  EXPECT_EQ(events[1].job_id, scheduled);
  EXPECT_EQ(events[1].previous_priority, 4);
  EXPECT_EQ(events[1].priority, 1);

  ASSERT_TRUE(s.producer.reprioritize(id, 0).ok()) << "the same value";
  EXPECT_FALSE(s.producer.reprioritize(id, 256).ok());
  EXPECT_FALSE(s.producer.reprioritize("01961234-5678-7abc-8def-0123456789ab", 1).ok());
  EXPECT_THAT(types(reader), IsEmpty());
  ASSERT_EQ(s.take(), id);
  all(reader);
  EXPECT_FALSE(s.producer.reprioritize(id, 1).ok()) << "active";
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_FALSE(s.producer.reprioritize(id, 1).ok()) << "completed";
  EXPECT_THAT(types(reader), ElementsAre("job.completed"));
}

TEST_F(Events, PRI_E1_each_of_many_changes_of_one_job_is_told_once_in_its_order) {
  const std::string id = s.put(255);
  Admin other = Admin::attach(s.segment).value();
  all(reader);
  for (std::int64_t priority = 254; priority >= 0; --priority)
    ASSERT_TRUE(
        (priority % 2 == 0 ? s.producer : other.producer()).reprioritize(id, priority).ok());
  std::int64_t before = 255;
  for (const Event& event : all(reader)) {
    EXPECT_EQ(event.previous_priority, before);
    EXPECT_EQ(event.priority, before - 1);
    before = event.priority;
  }
  EXPECT_EQ(before, 0);
}

TEST_F(Events, are_told_only_while_somebody_wants_to_know) {
  ASSERT_TRUE(s.admin.set_events(false).ok());
  EXPECT_FALSE(s.observer.segment_info().events);
  s.put();
  EXPECT_THAT(types(reader), IsEmpty());
  ASSERT_TRUE(s.admin.set_events(true).ok());
  EXPECT_TRUE(s.observer.segment_info().events);
  s.take();
  EXPECT_THAT(types(reader), ElementsAre("job.started"));
}

TEST_F(Events, from_the_start_and_from_now_on) {
  s.put();
  EventReader late = s.observer.events(kAtOnce);
  EventReader from_start = s.observer.events(kAllAtOnce);
  s.take();
  EXPECT_THAT(types(late), ElementsAre("job.started"));
  EXPECT_THAT(types(from_start), ElementsAre("job.enqueued", "job.started"));
}

TEST_F(Events, that_were_overwritten_are_counted_to_the_last) {
  const std::uint64_t kept = std::uint64_t{s.store().event_pages.size()} * engine::kEventsPerPage;
  const std::string id = s.put(2);
  all(reader);
  const std::uint64_t told = kept * 3 + 7;
  for (std::uint64_t i = 0; i < told; ++i)
    ASSERT_TRUE(s.producer.reprioritize(id, static_cast<std::int64_t>(i % 2)).ok());
  const std::vector<Event> events = all(reader);
  EXPECT_EQ(events.size() + reader.lost(), told);
  EXPECT_GT(events.size(), kept / 2);
  EXPECT_GT(reader.lost(), kept);
  for (std::size_t i = 1; i < events.size(); ++i)
    ASSERT_EQ(events[i].sequence, events[i - 1].sequence + 1);
  const std::uint64_t lost = reader.lost();
  s.take();
  EXPECT_THAT(types(reader), ElementsAre("job.started"));
  EXPECT_EQ(reader.lost(), lost);
}

TEST_F(Events, of_a_quiet_handle_outlive_those_of_a_busy_one) {
  const std::string id = s.put(2);
  const std::uint64_t kept = std::uint64_t{s.store().event_pages.size()} * engine::kEventsPerPage;
  for (std::uint64_t i = 0; i < kept * 2; ++i)
    ASSERT_TRUE(s.admin.producer().reprioritize(id, static_cast<std::int64_t>(i % 2)).ok());
  const std::vector<Event> events = all(reader);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().type, "job.enqueued");
}

TEST_F(Events, of_handles_in_the_same_place_go_on_counting) {
  std::uint64_t last = 0;
  for (int i = 0; i < 40; ++i) {
    Producer one = Producer::attach(s.segment).value();
    ASSERT_TRUE(one.enqueue(spec_of(2)).ok());
  }
  const std::vector<Event> events = all(reader);
  ASSERT_EQ(events.size(), 40U);
  for (const Event& event : events) {
    EXPECT_EQ(event.handle, events[0].handle);
    EXPECT_EQ(event.sequence, ++last);
  }
}

TEST_F(Events, younger_than_the_time_to_settle_wait) {
  EventReader patient = s.observer.events({.settle_ms = 10 * kMinute});
  s.put();
  EXPECT_THAT(types(patient), IsEmpty());
  s.move_clock(5 * kMinute);
  s.put();
  EXPECT_THAT(types(patient), IsEmpty());
  s.move_clock(6 * kMinute);
  EXPECT_THAT(types(patient), ElementsAre("job.enqueued"));
  s.move_clock(6 * kMinute);
  EXPECT_THAT(types(patient), ElementsAre("job.enqueued"));
  EXPECT_EQ(patient.lost(), 0U);
}

TEST_F(Events, of_a_dead_process_stay_and_its_page_is_closed) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto segment = Segment::attach(s.where());
    auto producer = segment ? Producer::attach(*segment) : Result<Producer>(segment.error());
    ::_exit(producer && producer->enqueue(spec_of(2)) ? 0 : 1);  // nothing is closed
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(s.admin.repair().value(), 1U);
  EXPECT_EQ(s.findings(), "");
  EXPECT_THAT(types(reader), ElementsAre("job.enqueued", "process.repaired"));
  EXPECT_EQ(reader.lost(), 0U);
}

/// What a death in the middle of an event leaves, built by hand.
TEST_F(Events, half_written_are_none_and_their_number_is_given_again) {
  shm::Segment& raw = s.segment.attachment()->segment();
  engine::EventFacts facts;
  facts.kind = engine::EventKind::kQueuePaused;
  const std::uint32_t lane = raw.geometry().lanes - 1;
  {
    engine::EventLog log(s.store(), lane);
    log.write(facts);
    log.write(facts);  // its page stays open: no lane closes for the dead
  }
  shm::LaneWord& counted = raw.lane(lane).counters[engine::kEventsTold];
  ASSERT_EQ(counted.get(), 2U);
  counted.set(1, shm::Point::kNone);  // killed after the stamp
  EXPECT_EQ(types(reader).size(), 1U);
  engine::EventLog next(s.store(), lane);
  next.close_left();
  EXPECT_EQ(counted.get(), 2U);
  EXPECT_EQ(types(reader).size(), 1U);
  for (std::uint32_t page = 0; page < s.store().event_pages.size(); ++page)
    EXPECT_FALSE(engine::EventPageControl(s.store().event_controls[page].load()).open() &&
                 engine::EventPageControl(s.store().event_controls[page].load()).lane() == lane);
  next.write(facts);
  const std::vector<Event> events = all(reader);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].sequence, 3U);
  next.close();
  EXPECT_EQ(reader.lost(), 0U);
}

TEST_F(Events, a_lane_that_finds_no_page_says_that_one_is_missing) {
  for (std::uint32_t page = 0; page < s.store().event_pages.size(); ++page)
    s.store().event_controls[page].store(engine::EventPageControl::kOpen, shm::Point::kNone);
  s.put();
  EXPECT_THAT(types(reader), IsEmpty());
  EXPECT_EQ(reader.lost(), 1U);
  for (std::uint32_t page = 0; page < s.store().event_pages.size(); ++page)
    s.store().event_controls[page].store(0, shm::Point::kNone);
}

TEST_F(Events, a_damaged_table_is_read_without_harm) {
  for (int i = 0; i < 100; ++i) s.put();
  shm::Segment& raw = s.segment.attachment()->segment();
  std::uint64_t random = 88172645463325252ULL;
  auto next = [&random] {
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
  };
  std::map<std::uint32_t, std::uint64_t> before;
  for (int round = 0; round < 200; ++round) {
    const auto page = static_cast<std::uint32_t>(next() % s.store().event_pages.size());
    before.try_emplace(page, s.store().event_controls[page].load());
    s.store().event_controls[page].store(next() >> (next() % 64), shm::Point::kNone);
    engine::EventRecord& record =
        s.store().event_pages[page].event[next() % engine::kEventsPerPage];
    record.stamp.store(next() % 4 == 0
                           ? next()
                           : engine::EventPageControl(s.store().event_controls[page].load())
                                 .stamp(static_cast<unsigned>(next() % 16)),
                       shm::Point::kNone);
    record.sequence.set(next() >> (next() % 64));
    record.kind_rank_time.set(next());
    record.facts.set(next());
    raw.lane(static_cast<std::uint32_t>(next() % raw.geometry().lanes))
        .counters[engine::kEventsTold]
        .set(next() >> (next() % 64), shm::Point::kNone);
    EventReader again = s.observer.events(kAllAtOnce);
    (void)all(again);
    (void)all(reader);
  }
  for (const auto& [page, control] : before)
    s.store().event_controls[page].store(control, shm::Point::kNone);
}

}  // namespace
}  // namespace ojs_shm::test
