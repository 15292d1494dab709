// SPDX-License-Identifier: Apache-2.0
// What a full queue drops for a newer job. No threads.

#include <gmock/gmock.h>

#include <vector>

#include "engine/supervision/repairer.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/bounds/pressed.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;

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

TEST_F(Dropping, BP_T22_SUM_10_what_is_replaced_makes_its_room_before_another_drops) {
  drop_at(2);
  const UniqueSpec unique = unique_job(OnConflict::kReplace);
  s.put(unique.spec);
  const std::string plain = s.put(), none = s.put();  // the second one drops the unique job
  const std::string replaced = s.put(unique.spec);
  EXPECT_THAT(discarded({plain, none}), ElementsAre(plain));
  Producer other = Producer::attach(s.segment).value();
  bool seated = false, left = false;
  {
    const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
      if (left || access != shm::Access::kWritten || point != shm::Point::kDropperSet) return;
      left = seated;
      seated = true;
      const bool enqueued = !left || other.enqueue(spec_of()).ok();
      EXPECT_TRUE(enqueued);
    });
    EXPECT_TRUE(s.producer.enqueue(unique.spec).ok());
  }
  EXPECT_TRUE(left);
  EXPECT_EQ(s.state_of(replaced), State::kCancelled);
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
