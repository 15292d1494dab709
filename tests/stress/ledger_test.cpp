// SPDX-License-Identifier: Apache-2.0
// Each kind of harm, done to the books by hand: a ledger that did not see it would make every storm
// green.
#include "tests/support/ledger.hpp"

#include <gtest/gtest.h>

namespace ojs_shm::test {
namespace {

constexpr PayloadKey kKey{0, 0};
constexpr std::string_view kId = "01890000-0000-7000-8000-000000000001";

class LedgerBooks : public testing::Test {
 protected:
  LedgerBooks() : ledger({.producers = 2, .lanes = 2, .jobs_per_producer = 64}) {
    first = {ledger.begin_life(0), 0};
    second = {ledger.begin_life(1), 0};
  }

  void accept(PayloadKey key = kKey, std::uint32_t marks = 0) {
    std::uint64_t sequence = 0;
    ASSERT_TRUE(ledger.take_sequences(key.producer, 1, sequence));
    ASSERT_EQ(sequence, key.sequence);
    ledger.enqueue_begins(key, marks);
    ledger.enqueue_returned(key, first.life, kId);
  }
  Dispatch dispatch(std::uint64_t fence, std::uint64_t lease_end_ms = UINT64_MAX) {
    return {fence, lease_end_ms, monotonic_ns(), static_cast<std::uint32_t>(fence), kId};
  }
  void finish(Holder holder, std::uint64_t fence) {
    const bool newest = ledger.released(kKey, holder, fence);
    ledger.ack_begins(kKey);
    ledger.ack_returned(kKey, holder, newest);
  }
  void kill(Holder holder) { ledger.life(holder.life).kill_sent_ns.store(monotonic_ns()); }
  void expect_only(Offence offence) {
    EXPECT_EQ(ledger.offences(offence), 1U) << offence_name(offence);
    EXPECT_EQ(ledger.offences(), 1U);
    ASSERT_EQ(ledger.notes().size(), 1U);
    EXPECT_EQ(ledger.notes().front()->offence.load(), static_cast<std::uint32_t>(offence) + 1);
  }

  Ledger ledger;
  Holder first, second;
};

TEST_F(LedgerBooks, a_quiet_life_is_no_offence) {
  accept();
  EXPECT_TRUE(ledger.dispatched(kKey, first, dispatch(1)));
  finish(first, 1);
  const LedgerVerdict verdict = ledger.judge({});
  EXPECT_EQ(verdict.completed, 1U);
  EXPECT_EQ(verdict.lost, 0U);
  EXPECT_EQ(ledger.offences(), 0U);
}

TEST_F(LedgerBooks, an_heir_of_a_killed_holder_is_no_offence_and_times_the_recovery) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  kill(first);
  EXPECT_TRUE(ledger.dispatched(kKey, second, dispatch(2)));
  finish(second, 2);
  ledger.judge({});
  EXPECT_EQ(ledger.offences(), 0U);
  EXPECT_EQ(ledger.recoveries().size(), 1U);
}

TEST_F(LedgerBooks, counts_a_job_that_may_be_dropped_and_does_not_wait_for_it) {
  accept(kKey, kMayDrop);
  EXPECT_EQ(ledger.backlog(), 0U);
  const LedgerVerdict verdict = ledger.judge({});
  EXPECT_EQ(verdict.dropped, 1U);
  EXPECT_EQ(verdict.maybe_dropped, 1U);
  EXPECT_EQ(verdict.lost, 0U);
  EXPECT_EQ(ledger.offences(), 0U);
}

TEST_F(LedgerBooks, counts_who_is_at_work_under_a_limit) {
  const auto hold = [&](std::uint32_t lane, Holder holder, PayloadKey key) {
    accept(key);
    InFlight& note = ledger.lane(lane).in_flight[0][0];
    note.key_plus_one.store(std::uint64_t{key.producer} << 40 | (key.sequence + 1));
    note.permits[0].store(std::uint64_t{7} << 40 | std::uint64_t{holder.life} << 20 | 1);
  };
  hold(0, first, kKey);
  EXPECT_EQ(ledger.at_work(7), 1U);
  hold(1, second, {1, 0});
  EXPECT_EQ(ledger.at_work(7), 2U);
  EXPECT_EQ(ledger.at_work(8), 0U);
  kill(first);
  EXPECT_EQ(ledger.at_work(7), 1U) << "the dead hold nothing";
  ledger.mark({1, 0}, kCancelAttempted);
  EXPECT_EQ(ledger.at_work(7), 0U) << "its permit may be another's by now";
}

TEST_F(LedgerBooks, sees_a_double_dispatch) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  ledger.dispatched(kKey, second, dispatch(2));
  expect_only(Offence::kDoubleDispatch);
}

TEST_F(LedgerBooks, sees_a_dispatch_before_the_holder_was_killed) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  const Dispatch too_early = dispatch(2);
  kill(first);
  ledger.dispatched(kKey, second, too_early);
  expect_only(Offence::kDoubleDispatch);
}

TEST_F(LedgerBooks, sees_a_double_dispatch_that_the_first_notes_late) {
  accept();
  ledger.dispatched(kKey, second, dispatch(2));
  EXPECT_FALSE(ledger.dispatched(kKey, first, dispatch(1)));
  expect_only(Offence::kDoubleDispatch);
}

TEST_F(LedgerBooks, a_dispatch_after_the_end_of_a_lease_is_no_offence) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1, wall_ms()));
  EXPECT_TRUE(ledger.dispatched(kKey, second, dispatch(2)));
  EXPECT_FALSE(ledger.released(kKey, first, 1));
  EXPECT_EQ(ledger.offences(), 0U);
  EXPECT_EQ(ledger.lane(1).takeovers.load(), 1U);
}

TEST_F(LedgerBooks, sees_one_attempt_given_to_two) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  kill(first);
  ledger.dispatched(kKey, second, dispatch(1));
  EXPECT_EQ(ledger.offences(Offence::kFenceNotGrowing), 1U);
}

TEST_F(LedgerBooks, sees_an_accepted_ack_of_an_old_attempt) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1, wall_ms()));
  ledger.dispatched(kKey, second, dispatch(2));
  finish(first, 1);
  expect_only(Offence::kStaleAckAccepted);
}

TEST_F(LedgerBooks, sees_a_dispatch_after_the_ack) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  finish(first, 1);
  ledger.dispatched(kKey, second, dispatch(2));
  expect_only(Offence::kDispatchedWhenDone);
}

TEST_F(LedgerBooks, sees_two_acks) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  finish(first, 1);
  ledger.ack_returned(kKey, first, true);
  expect_only(Offence::kCompletedTwice);
}

TEST_F(LedgerBooks, sees_a_holder_that_lost_its_job_for_no_reason) {
  accept();
  ledger.told_lost(kKey, first, UINT64_MAX, true);
  expect_only(Offence::kLostWithoutReason);
}

TEST_F(LedgerBooks, a_holder_may_lose_an_ended_lease_or_a_cancelled_job) {
  accept();
  ledger.told_lost(kKey, first, wall_ms(), true);
  ledger.mark(kKey, kCancelAttempted);
  ledger.told_lost(kKey, first, UINT64_MAX, true);
  EXPECT_EQ(ledger.offences(), 0U);
}

TEST_F(LedgerBooks, sees_an_attempt_that_was_not_counted) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  kill(first);
  Dispatch uncounted = dispatch(2);
  uncounted.attempt = 1;
  ledger.dispatched(kKey, second, uncounted);
  expect_only(Offence::kAttemptTooLow);
}

TEST_F(LedgerBooks, counts_the_attempts_of_a_dead_letter_anew) {
  accept(kKey, kMayDie);
  for (const std::uint64_t fence : {1, 2}) {
    EXPECT_TRUE(ledger.dispatched(kKey, first, dispatch(fence)));
    EXPECT_TRUE(ledger.released(kKey, first, fence));
  }
  ledger.revival_begins(kKey);
  Dispatch again = dispatch(3);
  again.attempt = 1;
  EXPECT_TRUE(ledger.dispatched(kKey, second, again));
  EXPECT_EQ(ledger.offences(), 0U);
  EXPECT_EQ(ledger.judge({}).lost, 1U) << "no process has finished or dropped it";
}

TEST_F(LedgerBooks, counts_a_dead_letter_that_was_dropped) {
  accept(kKey, kMayDie);
  ledger.dispatched(kKey, first, dispatch(1));
  EXPECT_TRUE(ledger.released(kKey, first, 1));
  ledger.mark(kKey, kBuryAttempted);
  ledger.mark(kKey, kBuryReturned);
  EXPECT_EQ(ledger.backlog(), 0U);
  const LedgerVerdict verdict = ledger.judge({});
  EXPECT_EQ(verdict.buried, 1U);
  EXPECT_EQ(ledger.offences(), 0U);
}

TEST_F(LedgerBooks, sees_a_dispatch_after_a_dead_letter_was_dropped) {
  accept(kKey, kMayDie);
  ledger.dispatched(kKey, first, dispatch(1));
  EXPECT_TRUE(ledger.released(kKey, first, 1));
  ledger.mark(kKey, kBuryAttempted | kBuryReturned);
  ledger.dispatched(kKey, second, dispatch(2));
  expect_only(Offence::kDispatchedWhenDone);
}

TEST_F(LedgerBooks, sees_an_ack_of_what_was_dropped) {
  accept(kKey, kMayDie);
  ledger.dispatched(kKey, first, dispatch(1));
  ledger.mark(kKey, kBuryAttempted | kBuryReturned);
  finish(first, 1);
  ledger.judge({});
  expect_only(Offence::kTwoEnds);
}

TEST_F(LedgerBooks, sees_one_job_under_two_ids) {
  accept();
  Dispatch other = dispatch(1);
  other.id = "01890000-0000-7000-8000-000000000002";
  ledger.dispatched(kKey, first, other);
  expect_only(Offence::kTwoCopies);
}

TEST_F(LedgerBooks, sees_a_lost_job) {
  accept();
  EXPECT_EQ(ledger.judge({}).lost, 1U);
  expect_only(Offence::kLost);
}

TEST_F(LedgerBooks, an_ack_answered_with_an_error_does_not_hide_a_loss) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  ledger.released(kKey, first, 1);
  ledger.ack_begins(kKey);
  ledger.ack_failed(kKey);
  EXPECT_EQ(ledger.judge({}).lost, 1U);
}

TEST_F(LedgerBooks, a_worker_killed_in_its_ack_leaves_a_finished_job) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  ledger.released(kKey, first, 1);
  ledger.ack_begins(kKey);
  EXPECT_EQ(ledger.judge({}).killed_in_ack, 1U);
  EXPECT_EQ(ledger.offences(), 0U);
}

TEST_F(LedgerBooks, a_job_that_is_still_there_is_not_lost_and_two_copies_of_it_show) {
  accept();
  EXPECT_EQ(ledger.judge({kKey}).lost, 0U);
  EXPECT_EQ(ledger.offences(), 0U);
  ledger.judge({kKey, kKey});
  expect_only(Offence::kTwoCopies);
}

TEST_F(LedgerBooks, an_enqueue_cut_off_may_have_happened_or_not) {
  std::uint64_t sequence = 0;
  ledger.take_sequences(0, 1, sequence);
  ledger.enqueue_begins(kKey, 0);
  EXPECT_EQ(ledger.judge({}).attempted_only, 1U);
  EXPECT_EQ(ledger.offences(), 0U);
}

TEST_F(LedgerBooks, sees_a_refused_job_that_came_out) {
  std::uint64_t sequence = 0;
  ledger.take_sequences(0, 1, sequence);
  ledger.enqueue_begins(kKey, 0);
  ledger.enqueue_refused(kKey);
  ledger.dispatched(kKey, first, dispatch(1));
  finish(first, 1);
  ledger.judge({});
  expect_only(Offence::kRefusedYetStored);
}

TEST_F(LedgerBooks, sees_half_a_batch) {
  std::uint64_t sequence = 0;
  ledger.take_sequences(0, 2, sequence);
  ledger.enqueue_begins({0, 0}, 0, 2, 0);
  ledger.enqueue_begins({0, 1}, 0, 2, 1);
  ledger.dispatched(kKey, first, dispatch(1));
  finish(first, 1);
  ledger.judge({});
  expect_only(Offence::kHalfBatch);
}

TEST_F(LedgerBooks, a_batch_whose_ids_were_noted_in_part_is_whole) {
  std::uint64_t sequence = 0;
  ledger.take_sequences(0, 2, sequence);
  ledger.enqueue_begins({0, 0}, 0, 2, 0);
  ledger.enqueue_begins({0, 1}, 0, 2, 1);
  ledger.enqueue_returned(kKey, first.life, kId);
  for (const PayloadKey key : {PayloadKey{0, 0}, PayloadKey{0, 1}}) {
    Dispatch given = dispatch(1);
    given.id = key.sequence == 0 ? kId : "01890000-0000-7000-8000-000000000002";
    ledger.dispatched(key, first, given);
    ledger.ack_begins(key);
    ledger.ack_returned(key, first, ledger.released(key, first, 1));
  }
  ledger.judge({});
  EXPECT_EQ(ledger.offences(), 0U);
}

TEST_F(LedgerBooks, sees_a_job_both_acked_and_cancelled) {
  accept();
  ledger.dispatched(kKey, first, dispatch(1));
  finish(first, 1);
  ledger.mark(kKey, kCancelAttempted | kCancelReturned);
  ledger.judge({});
  expect_only(Offence::kTwoEnds);
}

TEST_F(LedgerBooks, knows_nothing_of_the_jobs_of_another_round) {
  accept();
  ledger.begin_round();
  EXPECT_EQ(ledger.find(kKey), nullptr);
  accept({0, 1});
  EXPECT_EQ(ledger.find({0, 1})->dispatches.load(), 0U);
  EXPECT_EQ(ledger.find({0, 2}), nullptr);
  EXPECT_EQ(ledger.find({2, 0}), nullptr);
}

}  // namespace
}  // namespace ojs_shm::test
