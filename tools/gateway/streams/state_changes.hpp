// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ojs_shm/observer.hpp>

#include "tools/gateway/streams/job_book.hpp"

namespace ojs_shm::gateway {

/// The data of a `job.state_changed`. Source: ojs-realtime 4.1.
struct StateChange {
  std::optional<State> from;  ///< nothing: the event that led there has been overwritten
  State to = State::kAvailable;
};

/// What an event says of its job's state, and that the book knows from then on. Nothing: the job is
/// new, or its state stays.
std::optional<StateChange> state_change(JobBook& book, const Observer& observer,
                                        const Event& event);
/// What the event means to the dead letters: "dead_letter.added" or "dead_letter.retried"; empty:
/// nothing. `change` is what state_change() said of it. Source: ojs-dead-letter 11.1.
std::string_view dead_letter_event(JobBook& book, const Observer& observer, const Event& event,
                                   const std::optional<StateChange>& change);
/// Whether it leads its job into a final state.
bool ends_job(const Event& event);
/// How a job got into its final state.
StateChange last_change(const JobInfo& job);
std::string print_state_change(const StateChange& change, const std::string& job,
                               const std::string& queue, const KnownJob& known,
                               std::uint64_t time_ms);

}  // namespace ojs_shm::gateway
