// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ojs_shm/producer.hpp>

#include "worker_api/roles/room_wait.hpp"

namespace ojs_shm {

namespace internal {

struct CompiledWorkflow;

inline JobIdText text_of(engine::JobId id) {
  JobIdText text;
  text.assign(id.hi, id.lo);
  return text;
}
inline std::vector<JobIdText> texts_of(std::span<const engine::JobId> ids) {
  std::vector<JobIdText> texts;
  texts.reserve(ids.size());
  for (const engine::JobId id : ids) texts.push_back(text_of(id));
  return texts;
}

/// A full segment may only wait for the repair of a dead process, and so may a drop.
inline bool may_be_the_dead(engine::Outcome outcome) {
  return (outcome >= engine::Outcome::kNoSlots && outcome <= engine::Outcome::kNoChunks) ||
         outcome == engine::Outcome::kNoTickets || outcome == engine::Outcome::kBusy;
}

}  // namespace internal

struct Producer::Impl {
  std::unique_ptr<internal::Handle> handle;
  /// of the last workflow, so that none needs memory of its own
  std::shared_ptr<internal::CompiledWorkflow> workflow;
  bool ignored = false;  ///< the last enqueue was of a job that was there already
  /// A unique job met another: an error, or the other's id if it is content with that.
  Result<JobIdText> clash(const JobSpec& spec);
  /// Whether a single job that met another takes that one's id instead.
  static bool is_content(std::span<const JobSpec> specs) {
    return specs.size() == 1 && specs.front().unique->on_conflict() == OnConflict::kIgnore;
  }
  std::array<engine::JobId, 1> in_the_way() {
    ignored = true;
    return {actor().conflicts().clash.id};
  }
  std::optional<QueuePressure> pressure();  ///< of the last enqueue
  bool deduplicated(std::size_t at) {
    const std::vector<bool>& there = actor().conflicts().ignored;
    return ignored || (at < there.size() && there[at]);
  }
  Error clash_error(std::span<const JobSpec> specs);
  Result<JobIdText> enqueue_unique(const JobSpec& spec);
  bool enqueue_under_bound(const JobSpec& spec, engine::JobId& id);
  Result<JobIdText> enqueue_with_options(const JobSpec& spec);
  bool enqueue_batch_plain(std::span<const JobSpec> specs, JobIdText* ids);
  Result<std::vector<JobIdText>> enqueue_batch_in_order(std::span<const JobSpec> given);
  Result<JobIdText> enqueue_patiently(const JobSpec& spec);
  Result<JobIdText> enqueue_again(const JobSpec& spec, std::uint32_t queue,
                                  engine::Outcome outcome);
  Result<std::vector<engine::NewJob>> read_batch(std::span<const JobSpec> specs);
  Status read_members(const WorkflowSpec& whole);
  /// `put`, and again while keys of limits are given up between the look at a job and its enqueue;
  /// `read` looks anew.
  template <class Read, class Put>
  engine::Outcome settled(const Read& read, const Put& put) {
    constexpr unsigned kMostReads = 32;
    engine::Outcome outcome = put();
    for (unsigned i = 0; outcome == engine::Outcome::kLimitsMoved && i < kMostReads; ++i) {
      handle->attachment().repair_the_dead();
      if (!read()) return engine::Outcome::kNoLimits;
      outcome = put();
    }
    return outcome;
  }
  /// The first of their ids that a job has, or that two of these have; "" when a process is in the
  /// middle of bringing it.
  std::string_view duplicate_of(std::span<const JobSpec> specs);
  /// `put`, and again when a dead process was in the way. An id may be that of a job that is just
  /// being brought, perhaps by one that died at it: it is a duplicate once it stands, and none
  /// when the repair takes it away.
  template <class Put>
  engine::Outcome patiently(std::span<const JobSpec> specs, const Put& put) {
    constexpr int kMostTurns = 100;
    engine::Outcome outcome = put();
    if (internal::may_be_the_dead(outcome) && handle->attachment().repair_the_dead() != 0)
      outcome = put();
    for (int i = 0;
         outcome == engine::Outcome::kDuplicate && i < kMostTurns && duplicate_of(specs).empty();
         ++i) {
      if (handle->attachment().repair_the_dead() == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      outcome = put();
    }
    return outcome;
  }
  /// In place, for a caller that waits with them.
  bool read_again(std::span<const JobSpec> specs, std::vector<engine::NewJob>& jobs);
  Status activate(std::string_view id, engine::Activation what, std::string_view wanted);
  /// The queue that the last enqueue of these met full, where that was it.
  std::uint32_t refusing(std::span<const engine::NewJob> jobs) {
    return jobs.size() > 1 ? actor().refusing() : jobs.front().queue;
  }
  /// What the last enqueue of these ended with, of a full queue with what it met.
  Error refusal(engine::Outcome outcome, std::uint32_t queue, std::string_view subject,
                std::span<const JobSpec> specs);
  engine::Actor& actor() { return handle->actor(); }
  engine::Store& store() { return handle->store(); }

  /// The error of an operation on one job.
  Error failed(engine::Outcome outcome, std::string_view id, engine::JobState found,
               std::string_view wanted) {
    if (outcome == engine::Outcome::kWrongState) return internal::wrong_state(id, found, wanted);
    return internal::error_of(outcome, store(), engine::kNoIndex, id);
  }
  Result<engine::JobId> parse(std::string_view id) const {
    if (handle->closed()) return internal::closed();
    if (const auto parsed = engine::parse_id(id)) return *parsed;
    return internal::not_an_id(id);
  }
};

}  // namespace ojs_shm
