// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/moves.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ojs_shm::engine {
namespace {

using enum JobState;

constexpr std::array<std::string_view, kEvents> kNames = {"push",
                                                          "push_scheduled",
                                                          "push_pending",
                                                          "due",
                                                          "activate",
                                                          "fetch",
                                                          "ack",
                                                          "nack_retry",
                                                          "nack_discard",
                                                          "requeue",
                                                          "execution_timeout",
                                                          "execution_timeout_exhausted",
                                                          "lease_expiry",
                                                          "lease_expiry_exhausted",
                                                          "holder_death",
                                                          "holder_death_exhausted",
                                                          "beat",
                                                          "reprioritize",
                                                          "cancel",
                                                          "expire",
                                                          "queue_end",
                                                          "drop",
                                                          "limit_hold",
                                                          "limit_release",
                                                          "limit_delay",
                                                          "limit_drop",
                                                          "member_runs",
                                                          "revive",
                                                          "dead_letter_drop"};
std::string_view name_of(Event event) { return kNames[static_cast<std::size_t>(event)]; }

/// Where the event leads. A job that does not exist yet has no state to come from, and one that
/// goes has none to come to.
std::optional<JobState> next(std::optional<JobState> from, Event event) {
  const Move* move = move_of(event, from ? slot_state(*from) : unsigned{kSlotFree});
  return move == nullptr || move->to == kSlotFree ? std::nullopt
                                                  : std::optional(job_state(move->to));
}

constexpr JobState kStates[] = {kScheduled, kAvailable, kPending,   kActive,
                                kCompleted, kRetryable, kCancelled, kDiscarded};

std::vector<Event> all_events() {
  std::vector<Event> events;
  for (std::size_t i = 0; i < kEvents; ++i) events.push_back(static_cast<Event>(i));
  return events;
}

std::set<JobState> states_that_allow(Event event) {
  std::set<JobState> states;
  for (const JobState state : kStates)
    if (next(state, event)) states.insert(state);
  return states;
}

// The table of the requirements, written a second time and by hand in the other direction: by
// state, the events.
using Row = std::map<Event, JobState>;
const std::map<JobState, Row> kExpected = {
    {kScheduled,
     {{Event::kDue, kAvailable},
      {Event::kReprioritize, kScheduled},
      {Event::kCancel, kCancelled},
      {Event::kExpire, kDiscarded},
      {Event::kQueueEnd, kDiscarded}}},
    {kAvailable,
     {{Event::kFetch, kActive},
      {Event::kReprioritize, kAvailable},
      {Event::kCancel, kCancelled},
      {Event::kExpire, kDiscarded},
      {Event::kQueueEnd, kDiscarded},
      {Event::kDrop, kDiscarded},
      {Event::kLimitHold, kAvailable},
      {Event::kLimitRelease, kAvailable},
      {Event::kLimitDelay, kScheduled},
      {Event::kLimitDrop, kDiscarded}}},
    {kPending,
     {{Event::kActivate, kAvailable},
      {Event::kCancel, kCancelled},
      {Event::kExpire, kDiscarded},
      {Event::kQueueEnd, kDiscarded}}},
    {kActive,
     {{Event::kAck, kCompleted},
      {Event::kNackRetry, kRetryable},
      {Event::kNackDiscard, kDiscarded},
      {Event::kRequeue, kAvailable},
      {Event::kExecutionTimeout, kRetryable},
      {Event::kExecutionTimeoutExhausted, kDiscarded},
      {Event::kLeaseExpiry, kAvailable},
      {Event::kLeaseExpiryExhausted, kDiscarded},
      {Event::kHolderDeath, kAvailable},
      {Event::kHolderDeathExhausted, kDiscarded},
      {Event::kBeat, kActive},
      {Event::kCancel, kCancelled},
      {Event::kQueueEnd, kDiscarded}}},
    {kCompleted, {}},
    {kRetryable,
     {{Event::kDue, kAvailable},
      {Event::kCancel, kCancelled},
      {Event::kExpire, kDiscarded},
      {Event::kQueueEnd, kDiscarded}}},
    {kCancelled, {{Event::kRevive, kAvailable}}},
    {kDiscarded, {{Event::kRevive, kAvailable}}},
};

TEST(JobState, every_pair_of_state_and_event_leads_where_the_requirements_say) {
  int pairs = 0;
  for (const JobState state : kStates) {
    const Row& row = kExpected.at(state);
    for (const Event event : all_events()) {
      const auto expected = row.find(event);
      const auto reached = next(state, event);
      EXPECT_EQ(reached, expected == row.end() ? std::nullopt : std::optional(expected->second))
          << name_of(state) << " + " << name_of(event);
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 8 * 29);
}

TEST(JobState, a_job_begins_by_a_push_and_by_nothing_else) {
  const Row births = {{Event::kPush, kAvailable},
                      {Event::kPushScheduled, kScheduled},
                      {Event::kPushPending, kPending}};
  for (const Event event : all_events()) {
    const auto birth = births.find(event);
    EXPECT_EQ(next(std::nullopt, event),
              birth == births.end() ? std::nullopt : std::optional(birth->second))
        << name_of(event);
  }
}

TEST(JobState, PRI_T02_only_an_available_job_is_dispatched_and_no_push_touches_an_active_one) {
  EXPECT_EQ(states_that_allow(Event::kFetch), std::set{kAvailable});
  for (const Event push : {Event::kPush, Event::kPushScheduled, Event::kPushPending})
    EXPECT_TRUE(states_that_allow(push).empty()) << name_of(push);
}

TEST(JobState, PRI_T16_PRI_T17_a_priority_changes_in_available_and_scheduled_only) {
  EXPECT_EQ(states_that_allow(Event::kReprioritize), (std::set{kAvailable, kScheduled}));
}

TEST(JobState, what_needs_a_holder_happens_to_active_jobs_only) {
  for (const Event event :
       {Event::kAck, Event::kNackRetry, Event::kNackDiscard, Event::kRequeue, Event::kBeat,
        Event::kExecutionTimeout, Event::kLeaseExpiry, Event::kHolderDeath})
    EXPECT_EQ(states_that_allow(event), std::set{kActive}) << name_of(event);
}

TEST(JobState, a_finished_job_stays_unless_it_was_lost_and_is_wanted_again) {
  for (const JobState state : kStates) {
    if (!is_terminal(state)) {
      EXPECT_EQ(next(state, Event::kCancel), kCancelled) << name_of(state);
      continue;
    }
    for (const Event event : all_events()) {
      if (event == Event::kRevive || event == Event::kDeadLetterDrop) continue;
      EXPECT_EQ(next(state, event), std::nullopt) << name_of(state);
    }
  }
  EXPECT_EQ(states_that_allow(Event::kRevive), (std::set{kCancelled, kDiscarded}));
}

TEST(JobState, every_state_is_reached_from_a_push_and_every_open_one_can_end) {
  States reached = states(kSlotFree);
  for (States before; before.bits != reached.bits;) {
    before = reached;
    for (const Move& move : kMoves)
      if ((move.from.bits & reached.bits) != 0) reached.bits |= states(move.to).bits;
  }
  EXPECT_EQ(reached.bits, (1U << (kJobStates + 1)) - 1);
}

TEST(Moves, one_row_at_most_holds_for_an_event_and_a_state) {
  for (const Event event : all_events())
    for (unsigned state = 0; state <= kSlotDiscarded; ++state)
      EXPECT_LE(std::ranges::count_if(
                    kMoves,
                    [&](const Move& move) { return move.event == event && move.from.has(state); }),
                1)
          << name_of(event) << " in state " << state;
}

TEST(Moves, a_job_is_charged_by_whether_it_comes_to_wait_or_leaves) {
  const auto waits = [](unsigned state) {
    return holds_job(state) && counts_as_depth(job_state(state));
  };
  for (const Move& move : kMoves)
    for (unsigned from = 0; from <= kSlotDiscarded; ++from) {
      if (!move.from.has(from)) continue;
      const Depth expected = waits(from) == waits(move.to) ? Depth::kSame
                             : waits(from)                 ? Depth::kOut
                                                           : Depth::kIn;
      EXPECT_EQ(move.depth, expected) << name_of(move.event);
    }
}

TEST(Moves, what_is_done_under_an_intent_can_be_undone) {
  for (const Move& move : kMoves) EXPECT_EQ(move.op == Op::kNone, undo_of(move.op) == nullptr);
  for (const Undo& undo : kUndo)
    EXPECT_TRUE(undo_of(undo.op) == &undo) << "two rows of one operation";
}

/// A line of the table in docs/architecture.md.
std::string line_of(const Move& move) {
  constexpr std::string_view kSlotNames[] = {"-",         "scheduled", "available", "pending",
                                             "active",    "completed", "retryable", "cancelled",
                                             "discarded", "filling",   "claimed",   "settling",
                                             "moving",    "template",  "waiting"};
  constexpr std::string_view kDepths[] = {"", "in", "out"};
  constexpr std::string_view kPlaces[] = {"", "line", "front", "lot", "timer", "finished"};
  std::string from;
  for (unsigned state = 0; state <= kSlotWaiting; ++state)
    if (move.from.has(state)) from.append(from.empty() ? "" : ", ").append(kSlotNames[state]);
  std::string line;
  for (const std::string_view cell :
       {std::string_view(name_of(move.event)), std::string_view(from),
        move.held == kSlotFree ? std::string_view("one cas") : kSlotNames[move.held],
        kSlotNames[move.to], kDepths[static_cast<unsigned>(move.depth)],
        kPlaces[static_cast<unsigned>(move.where)]})
    line.append("| ").append(cell).append(cell.empty() ? "" : " ");
  return line + "|";
}

TEST(Moves, the_document_prints_the_table) {
  std::ifstream page(OJS_SHM_SOURCE_DIR "/docs/architecture.md");
  std::vector<std::string> printed, expected;
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| event ")) here = true;
    if (here && line.empty()) break;
    if (here) printed.push_back(line);
  }
  ASSERT_GT(printed.size(), 2U);
  printed.erase(printed.begin(), printed.begin() + 2);
  for (const Move& move : kMoves) expected.push_back(line_of(move));
  EXPECT_EQ(printed, expected);
}

TEST(JobState, a_state_is_terminal_or_counts_as_depth_or_is_active) {
  for (const JobState state : kStates)
    EXPECT_EQ(is_terminal(state) + counts_as_depth(state) + (state == kActive), 1)
        << name_of(state);
  EXPECT_TRUE(counts_as_depth(kPending)) << "else pending jobs were an unbounded back door";
}

TEST(JobState, names_are_those_of_the_specification_both_ways) {
  const std::map<JobState, std::string_view> names = {
      {kScheduled, "scheduled"}, {kAvailable, "available"}, {kPending, "pending"},
      {kActive, "active"},       {kCompleted, "completed"}, {kRetryable, "retryable"},
      {kCancelled, "cancelled"}, {kDiscarded, "discarded"}};
  for (const auto& [state, name] : names) {
    EXPECT_EQ(name_of(state), name);
    EXPECT_EQ(job_state_by_name(name), state);
  }
  EXPECT_EQ(job_state_by_name("Active"), std::nullopt);
  EXPECT_EQ(job_state_by_name("unknown"), std::nullopt);
}

TEST(JobState, a_byte_that_is_no_state_leads_nowhere) {
  for (int byte = kJobStates; byte < 256; ++byte) {
    const auto state = static_cast<JobState>(byte);
    EXPECT_EQ(name_of(state), "unknown");
    EXPECT_FALSE(is_terminal(state));
    EXPECT_FALSE(counts_as_depth(state));
  }
}

}  // namespace
}  // namespace ojs_shm::engine
