// SPDX-License-Identifier: Apache-2.0
#include "engine/state.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ojs_shm::engine {
namespace {

using enum JobState;

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
      {Event::kExpire, kDiscarded}}},
    {kAvailable,
     {{Event::kFetch, kActive},
      {Event::kReprioritize, kAvailable},
      {Event::kCancel, kCancelled},
      {Event::kExpire, kDiscarded}}},
    {kPending, {{Event::kActivate, kAvailable}, {Event::kCancel, kCancelled}}},
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
      {Event::kCancel, kCancelled}}},
    {kCompleted, {}},
    {kRetryable, {{Event::kDue, kAvailable}, {Event::kCancel, kCancelled}}},
    {kCancelled, {}},
    {kDiscarded, {{Event::kDeadLetterRetry, kAvailable}}},
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
  EXPECT_EQ(pairs, 8 * 21);
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

TEST(JobState, a_finished_job_stays_unless_it_is_a_dead_letter) {
  for (const JobState state : kStates) {
    if (!is_terminal(state)) {
      EXPECT_EQ(next(state, Event::kCancel), kCancelled) << name_of(state);
      continue;
    }
    for (const Event event : all_events()) {
      if (event == Event::kDeadLetterRetry) continue;
      EXPECT_EQ(next(state, event), std::nullopt) << name_of(state);
    }
  }
  EXPECT_EQ(states_that_allow(Event::kDeadLetterRetry), std::set{kDiscarded});
}

TEST(JobState, every_state_is_reached_from_a_push_and_every_open_one_can_end) {
  std::set<JobState> reached;
  for (const Transition& transition : kTransitions)
    if (!transition.from) reached.insert(transition.to);
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const Transition& transition : kTransitions)
      if (transition.from && reached.contains(*transition.from)) reached.insert(transition.to);
  }
  EXPECT_EQ(reached.size(), kJobStates);
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

TEST(JobState, every_event_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (const Event event : all_events()) names.insert(name_of(event));
  EXPECT_EQ(names.size(), kEvents);
  EXPECT_FALSE(names.contains(""));
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(JobState, a_byte_that_is_no_state_leads_nowhere) {
  for (int byte = kJobStates; byte < 256; ++byte) {
    const auto state = static_cast<JobState>(byte);
    EXPECT_EQ(name_of(state), "unknown");
    EXPECT_FALSE(is_terminal(state));
    EXPECT_FALSE(counts_as_depth(state));
    for (const Event event : all_events()) EXPECT_EQ(next(state, event), std::nullopt);
  }
  EXPECT_EQ(next(kActive, static_cast<Event>(kEvents)), std::nullopt);
  EXPECT_EQ(name_of(static_cast<Event>(kEvents)), "unknown");
}

}  // namespace
}  // namespace ojs_shm::engine
