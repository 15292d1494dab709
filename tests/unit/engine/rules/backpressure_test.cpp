// SPDX-License-Identifier: Apache-2.0
// What a full queue does: what a refusal says, and what is dropped for a newer job. No threads.

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "engine/rules/backpressure.hpp"
#include "engine/supervision/repairer.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/bounds/pressed.hpp"
#include "tests/unit/engine/doomed.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;

// ---- settings -----------------------------------------------------------------------------------

TEST_F(Pressed, BP_T15_BP_003_BP_H1_settings_have_defaults_are_checked_and_are_set_one_by_one) {
  s.put();
  EXPECT_EQ(s.queue().strategy, BackpressureStrategy::kReject);
  EXPECT_EQ(s.queue().warning_threshold, 0.8);
  EXPECT_EQ(s.queue().drop, DropOrder::kOldest);
  set({.strategy = BackpressureStrategy::kBlock});
  set({.warning_threshold = 0.25});
  set({.drop = DropOrder::kLowestPriority});
  set({.max_depth = 5});
  const QueueInfo queue = s.queue();
  EXPECT_EQ(queue.strategy, BackpressureStrategy::kBlock);
  EXPECT_EQ(queue.warning_threshold, 0.25);
  EXPECT_EQ(queue.drop, DropOrder::kLowestPriority);
  EXPECT_EQ(queue.max_depth, 5U);
  for (const double wrong : {-0.1, 1.1, 0.0 / 0.0}) {
    const Status refused = s.admin.set_queue("default", {.warning_threshold = wrong});
    ASSERT_EQ(refused.code(), Code::kInvalid);
    EXPECT_EQ(refused.error().subject, "warning_threshold");
  }
  const auto read = parse_queue_settings(
      R"({"backpressure":{"max_depth":7,"max_size_bytes":9,"strategy":"drop_oldest","warning_threshold":1,"drop":"oldest"}})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->strategy, BackpressureStrategy::kDropOldest);
  EXPECT_EQ(read->warning_threshold, 1.0);
  EXPECT_EQ(read->drop, DropOrder::kOldest);
  for (const char* wrong :
       {R"("strategy":"wait")", R"("strategy":1)", R"("warning_threshold":1.5)",
        R"("warning_threshold":"x")", R"("drop":"newest")", R"("max_depth":-1)", R"("dept":1)"}) {
    const auto refused = parse_queue_settings(std::string(R"({"backpressure":{)") + wrong + "}}");
    EXPECT_EQ(refused.code(), Code::kInvalid) << wrong;
  }
}

TEST_F(Pressed, BP_T15_printed_settings_are_read_back) {
  set({.max_depth = 9,
       .strategy = BackpressureStrategy::kDropOldest,
       .warning_threshold = 0.5,
       .drop = DropOrder::kLowestPriority});
  const auto read = parse_queue_settings(print_queue_policy(s.queue()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->max_depth, 9U);
  EXPECT_EQ(read->strategy, BackpressureStrategy::kDropOldest);
  EXPECT_EQ(read->warning_threshold, 0.5);
  EXPECT_EQ(read->drop, DropOrder::kLowestPriority);
}

// ---- reject -------------------------------------------------------------------------------------

TEST_F(Pressed, BP_H2_BP_H3_BP_005_a_refusal_says_all_that_a_client_needs) {
  set(bounds(2));
  put_all(2);
  const Error error = refused();
  EXPECT_EQ(error.message, "Queue 'default' has reached its depth bound (2)");
  EXPECT_EQ(error.subject, "default");
  EXPECT_EQ(error.depth, 2U);
  EXPECT_EQ(error.bound, 2U);
  EXPECT_EQ(error.unit, "jobs");
  EXPECT_EQ(error.strategy, "reject");
  EXPECT_EQ(error.retry_after_ms, 1000U);
  const std::uint64_t bytes = s.queue().size_bytes;
  set({.max_depth = 0, .max_size_bytes = bytes + 1});
  const Error by_bytes = refused();
  EXPECT_EQ(by_bytes.message,
            "Queue 'default' has reached its size bound (" + std::to_string(bytes + 1) + " bytes)");
  EXPECT_EQ(by_bytes.depth, bytes);
  EXPECT_EQ(by_bytes.unit, "bytes");
}

TEST_F(Pressed, BP_T14_a_batch_that_only_just_does_not_fit_by_bytes_is_refused_by_bytes) {
  s.put();
  const std::uint64_t each = s.queue().size_bytes;
  set({.max_depth = 100, .max_size_bytes = 3 * each});
  const std::vector<JobSpec> batch(3, spec_of());
  const auto put = s.producer.enqueue_batch(batch);
  ASSERT_EQ(put.code(), Code::kQueueFull);
  EXPECT_EQ(put.error().unit, "bytes");
  EXPECT_EQ(put.error().depth, each);
}

TEST_F(Pressed, BP_002_the_recommended_delay_follows_the_rate_at_which_jobs_leave) {
  s.stop_clock();
  set(bounds(10));
  put_all(10);
  EXPECT_EQ(refused().retry_after_ms, 1000U);  // nothing is known yet
  const auto after = [this](int leave, std::uint64_t in_ms) {
    for (int i = 0; i < leave; ++i) ASSERT_NE(s.take(), "");
    put_all(leave);
    s.move_clock(in_ms);
  };
  after(5, 10 * kSecond);  // one in two seconds: three jobs, from 11 to the threshold of 8
  EXPECT_EQ(refused().retry_after_ms, 6000U);
  EXPECT_EQ(refused().retry_after_ms, 6000U);  // the clock stands, the rate as well
  after(4, 10 * kSecond);
  EXPECT_EQ(refused().retry_after_ms, 7500U);
  after(8, 1000);
  EXPECT_EQ(refused().retry_after_ms, 1000U);  // 375 ms would do
  after(0, 10 * kSecond);                      // and now none at all
  EXPECT_EQ(refused().retry_after_ms, 30'000U);
  after(1, 20 * kSecond);  // 60 s
  EXPECT_EQ(refused().retry_after_ms, 30'000U);
  set({.warning_threshold = 0.5});
  after(5, 5 * kSecond);  // six jobs, one in a second
  EXPECT_EQ(refused().retry_after_ms, 6000U);
}

TEST_F(Pressed, BP_X1_refusals_are_counted_by_job) {
  set(bounds(2));
  put_all(2);
  refused();
  const std::vector<JobSpec> batch(3, spec_of());
  EXPECT_EQ(s.producer.enqueue_batch(batch).code(), Code::kQueueFull);
  EXPECT_EQ(s.queue().rejected_total, 4U);
}

TEST_F(Pressed, BP_E2_BP_004_each_refusal_is_an_event) {
  set(bounds(2));
  put_all(2);
  begin_telling();
  JobSpec spec = spec_of();
  spec.type = "a.type.that.is.longer.than.what.one.record.of.an.event.can.hold";
  refused();
  refused(spec);
  const std::vector<Event> events = told("backpressure.rejected");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].queue, "default");
  EXPECT_EQ(events[0].depth, 2U);
  EXPECT_EQ(events[0].bound, 2U);
  EXPECT_EQ(events[0].unit, "jobs");
  EXPECT_EQ(events[0].count, 1U);
  EXPECT_EQ(events[0].job_type, "unit.test");
  EXPECT_EQ(events[1].job_type, spec.type);
}

TEST_F(Pressed, BP_E2_a_flood_of_refusals_is_told_in_few_events_that_speak_for_all) {
  set(bounds(1));
  s.put();
  begin_telling();
  constexpr std::uint64_t kAll = 20'000;
  std::uint64_t count = 0, told_in = 0;
  const auto read = [&] {
    for (const Event& event : told("backpressure.rejected")) {
      ++told_in;
      count += event.count;
    }
  };
  for (std::uint64_t i = 0; i < kAll; ++i) {
    refused();
    if (i % 200 == 0) read();
  }
  s.move_clock(5 * kSecond);
  s.tick();  // what no lane told
  read();
  EXPECT_EQ(count, kAll);
  EXPECT_EQ(reader->lost(), 0U);
  EXPECT_EQ(s.queue().rejected_total, kAll);
}

TEST(Refusals, tell_each_of_a_thousand_in_a_second_and_then_one_in_ten_milliseconds) {
  engine::Refusals word(0);
  std::uint64_t events = 0, spoken_for = 0, tell = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {  // in one second
    word = word.after(1, 1'000'000 + i / 100, tell);
    events += tell != 0 ? 1 : 0;
    spoken_for += tell;
  }
  EXPECT_GE(events, 1000U);
  EXPECT_LE(events, 1100U);
  EXPECT_EQ(spoken_for + word.untold(), 100'000U);
  word = word.after(1, 1'001'500, tell);
  EXPECT_EQ(spoken_for + tell, 100'001U);
}

// ---- drop_oldest --------------------------------------------------------------------------------

class Dropping : public Pressed {
 protected:
  void drop_at(std::uint64_t jobs, DropOrder order = DropOrder::kOldest) {
    set({.max_depth = jobs, .strategy = BackpressureStrategy::kDropOldest, .drop = order});
  }
  std::vector<std::string> discarded(const std::vector<std::string>& ids) {
    std::vector<std::string> gone;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(gone),
                 [&](const std::string& id) { return s.state_of(id) == State::kDiscarded; });
    return gone;
  }
};

TEST_F(Dropping, BP_T10_BP_R003_the_new_job_goes_in_and_the_oldest_is_discarded) {
  drop_at(3);
  const auto ids = put_all(3);
  const std::string fresh = s.put();
  EXPECT_THAT(discarded(ids), ElementsAre(ids[0]));
  EXPECT_EQ(s.state_of(fresh), State::kAvailable);
  EXPECT_EQ(s.queue().depth, 3U);
  EXPECT_EQ(s.queue().dropped_total, 1U);
  EXPECT_EQ(s.queue().rejected_total, 0U);
  const JobInfo victim = s.get(ids[0]);
  EXPECT_FALSE(victim.dead_letter);
  EXPECT_EQ(victim.completed_at_ms, 0U);
  EXPECT_NE(victim.discarded_at_ms, 0U);
  EXPECT_THAT(s.drain(), ElementsAre(ids[1], ids[2], fresh));
}

TEST_F(Dropping, BP_T10_the_oldest_of_all_levels_goes_by_when_it_became_available) {
  drop_at(3);
  const std::string low = s.put(9);
  s.move_clock(kSecond);
  const std::string high = s.put(0);
  s.move_clock(kSecond);
  const std::string middle = s.put(4);
  s.move_clock(kSecond);
  const std::vector<std::string> all = {low, high, middle};
  s.put(5);
  EXPECT_THAT(discarded(all), ElementsAre(low));
  s.put(5);
  EXPECT_THAT(discarded(all), ElementsAre(low, high));
}

TEST_F(Dropping, BP_T10_a_job_of_a_part_of_the_queue_may_be_the_oldest) {
  ASSERT_TRUE(s.admin.set_queue("default", {.shards = 4}).ok());
  drop_at(8);
  std::vector<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(s.put());
    s.move_clock(10);
  }
  for (int i = 0; i < 5; ++i) s.put();
  EXPECT_THAT(discarded(ids), ElementsAre(ids[0], ids[1], ids[2], ids[3], ids[4]));
}

TEST_F(Dropping, BP_T10_the_lowest_priority_goes_first_if_so_configured) {
  drop_at(4, DropOrder::kLowestPriority);
  const std::string old_high = s.put(0);
  s.move_clock(kSecond);
  const std::string low = s.put(9);
  s.move_clock(kSecond);
  const std::string later_low = s.put(9), middle = s.put(5);
  const std::vector<std::string> all = {old_high, low, later_low, middle};
  s.put(1);
  EXPECT_THAT(discarded(all), ElementsAre(low));
  s.put(1);
  EXPECT_THAT(discarded(all), ElementsAre(low, later_low));
  s.put(1);
  EXPECT_THAT(discarded(all), ElementsAre(low, later_low, middle));
}

TEST_F(Dropping, BP_T11_nothing_but_available_jobs_is_ever_dropped) {
  drop_at(3);
  JobSpec scheduled = spec_of();
  scheduled.scheduled_at_ms = s.now_ms() + kHour;
  const std::string later = s.put(scheduled);
  JobSpec pending = spec_of();
  pending.pending = true;
  const std::string awaits = s.put(pending);
  const std::string failed = s.put();
  ASSERT_EQ(s.take(), failed);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  ASSERT_EQ(s.state_of(failed), State::kRetryable);
  EXPECT_EQ(refused().strategy, "drop_oldest");
  EXPECT_EQ(s.queue().dropped_total, 0U);
  drop_at(4);
  const std::string active = s.put();
  ASSERT_EQ(s.take(), active);
  const std::string victim = s.put(), fresh = s.put();
  EXPECT_EQ(s.state_of(victim), State::kDiscarded);
  EXPECT_EQ(s.state_of(active), State::kActive);
  EXPECT_EQ(s.state_of(later), State::kScheduled);
  EXPECT_EQ(s.state_of(awaits), State::kPending);
  EXPECT_EQ(s.state_of(fresh), State::kAvailable);
}

TEST_F(Dropping, BP_T12_BP_E3_BP_X2_each_drop_is_an_event_and_counted) {
  drop_at(2);
  const auto ids = put_all(2);
  begin_telling();
  s.put();
  s.put();
  const std::vector<Event> events = told("backpressure.dropped");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].job_id, ids[0]);
  EXPECT_EQ(events[1].job_id, ids[1]);
  EXPECT_EQ(events[0].job_type, "unit.test");
  EXPECT_EQ(events[0].queue, "default");
  EXPECT_EQ(s.queue().dropped_total, 2U);
}

TEST_F(Dropping, BP_T13_no_bounded_queue_drops_unless_it_was_told_to) {
  set({.max_depth = 1});
  drop_at(1);
  ASSERT_TRUE(s.admin.set_queue("other", {.max_depth = 1}).ok());
  s.put({}, "other");
  EXPECT_EQ(refused(spec_of({}, "other")).strategy, "reject");
  // says only whom
  ASSERT_TRUE(s.admin.set_queue("other", {.drop = DropOrder::kLowestPriority}).ok());
  EXPECT_EQ(refused(spec_of({}, "other")).strategy, "reject");
}

TEST_F(Dropping, BP_T22_a_batch_drops_as_many_as_it_needs) {
  drop_at(5);
  const auto ids = put_all(5);
  ASSERT_NE(s.take(), "");  // one place is free
  const std::vector<JobSpec> batch(3, spec_of());
  ASSERT_TRUE(s.producer.enqueue_batch(batch).ok());
  EXPECT_THAT(discarded(ids), ElementsAre(ids[1], ids[2]));
  EXPECT_EQ(s.queue().depth, 5U);
}

TEST_F(Dropping, BP_T22_who_takes_a_victim_from_under_our_hands_makes_the_room_himself) {
  drop_at(2);
  const auto ids = put_all(2);
  Job taken;
  unsigned claims = 0;
  const std::vector<JobSpec> batch(2, spec_of());
  {
    const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
      if (access == shm::Access::kRmw && point == shm::Point::kSlotMoving && ++claims == 2) {
        EXPECT_TRUE(s.worker.try_fetch(taken).ok());
      }
    });
    EXPECT_TRUE(s.producer.enqueue_batch(batch).ok());
  }
  EXPECT_EQ(taken.id(), ids[1]);
  EXPECT_THAT(discarded(ids), ElementsAre(ids[0]));
  EXPECT_EQ(s.queue().depth, 2U);
}

TEST_F(Dropping, BP_T22_sums_that_others_outran_drop_nothing) {
  drop_at(2);
  put_all(2);
  Producer other = Producer::attach(s.segment).value();
  const engine::QueueRecord& queue = s.store().queue(0);
  bool seated = false, looked = false, done = false;
  {
    const AtAccess between([&](shm::Access access, shm::Point point, const void* word) {
      seated = seated || (access == shm::Access::kWritten && point == shm::Point::kDropperSet);
      if (done || !seated || access != shm::Access::kLoad) return;
      if (word == &queue.reserved) {
        looked = true;
      } else if (looked) {
        done = true;
        s.drain();
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(other.enqueue(spec_of()).ok());
        s.drain();
        EXPECT_TRUE(other.enqueue(spec_of()).ok());
      }
    });
    EXPECT_TRUE(s.producer.enqueue(spec_of()).ok());
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(s.queue().depth, 2U);
}

TEST_F(Dropping, BP_T22_a_batch_for_which_dropping_is_not_enough_drops_nothing) {
  drop_at(4);
  JobSpec scheduled = spec_of();
  scheduled.scheduled_at_ms = s.now_ms() + kHour;
  s.put(scheduled);
  s.put(scheduled);
  const auto ids = put_all(2);
  const std::vector<JobSpec> batch(3, spec_of());
  EXPECT_EQ(s.producer.enqueue_batch(batch).code(), Code::kQueueFull);
  const std::vector<JobSpec> larger(5, spec_of());
  EXPECT_EQ(s.producer.enqueue_batch(larger).code(), Code::kQueueFull);
  EXPECT_EQ(s.queue().dropped_total, 0U);
  EXPECT_EQ(s.queue().depth, 4U);
  EXPECT_EQ(s.drain(), ids);
}

TEST_F(Dropping, BP_T22_a_batch_and_its_victims_are_one_wherever_it_is_killed) {
  struct Died {};
  bool finished = false, undone = false, done = false;
  for (unsigned kill_at = 1; !finished; ++kill_at) {
    QuietSegment each;
    ASSERT_TRUE(
        each.admin
            .set_queue("default", {.max_depth = 5, .strategy = BackpressureStrategy::kDropOldest})
            .ok());
    std::vector<std::string> ids;
    for (int i = 0; i < 5; ++i) ids.push_back(each.put(i % 2));
    internal::Handle* doomed = doomed_handle(each.segment);
    const std::string args(300, ' ');
    engine::NewJob job;
    job.type = "t";
    job.args = args;
    const std::vector<engine::NewJob> batch(3, job);
    std::vector<engine::JobId> fresh;
    try {
      unsigned writes = 0;
      const AtAccess killed([&](shm::Access access, shm::Point, const void*) {
        if (access == shm::Access::kWritten && ++writes == kill_at) throw Died{};
      });
      ASSERT_EQ(doomed->actor().enqueue_batch(batch, fresh), engine::Outcome::kOk);
      finished = true;
    } catch (const Died&) {}
    const std::uint32_t lane = doomed->lane();
    engine::Repairer::repair(each.store(), std::span(&lane, 1));
    each.segment.attachment()->give_lane(lane);
    const QueueInfo queue = each.queue();
    const std::uint64_t available = queue.by_state[static_cast<std::size_t>(State::kAvailable)];
    SCOPED_TRACE("killed after write " + std::to_string(kill_at));
    EXPECT_EQ(available, 5U);
    EXPECT_EQ(queue.depth, 5U);
    EXPECT_TRUE(queue.dropped_total == 0 || queue.dropped_total == 3) << queue.dropped_total;
    EXPECT_EQ(queue.by_state[static_cast<std::size_t>(State::kDiscarded)], queue.dropped_total);
    (queue.dropped_total == 0 ? undone : done) = true;
    if (HasFailure()) return;
    each.put();  // and the next one drops again, one
    EXPECT_EQ(each.queue().dropped_total, queue.dropped_total + 1);
  }
  EXPECT_TRUE(undone && done);
}

TEST_F(Dropping, BP_T10_a_bound_of_bytes_drops_until_it_fits) {
  const std::string args = "[\"" + std::string(300, 'x') + "\"]";
  JobSpec large = spec_of();
  large.args = args;
  const auto ids = put_all(4);
  set({.max_size_bytes = s.queue().size_bytes + 300,
       .strategy = BackpressureStrategy::kDropOldest});
  s.put();  // small enough
  EXPECT_EQ(s.queue().dropped_total, 0U);
  const std::uint64_t each = s.queue().size_bytes / 5;
  const std::uint64_t wanted =
      s.queue().size_bytes + large.type.size() + args.size() - s.queue().max_size_bytes;
  const std::uint64_t needed = (wanted + each - 1) / each;
  ASSERT_GT(needed, 1U);
  s.put(large);
  EXPECT_EQ(s.queue().dropped_total, needed);
  EXPECT_LE(s.queue().size_bytes, s.queue().max_size_bytes);
}

TEST_F(Dropping, BP_T10_a_paused_queue_and_one_whose_bound_was_lowered_drop_too) {
  drop_at(5);
  const auto ids = put_all(5);
  set({.paused = true});
  drop_at(3);
  EXPECT_EQ(s.queue().depth, 5U);  // lowering loses none
  s.put();
  EXPECT_THAT(discarded(ids), ElementsAre(ids[0], ids[1], ids[2]));
  EXPECT_EQ(s.queue().depth, 3U);
}

TEST_F(Dropping, BP_T10_whoever_waits_for_the_victim_s_end_is_told) {
  drop_at(1);
  const std::string victim = s.put();
  s.put();
  const auto end = s.producer.wait(victim, std::chrono::seconds(30));
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->state, State::kDiscarded);
}

}  // namespace
}  // namespace ojs_shm::test
