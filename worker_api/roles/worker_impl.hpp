// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/worker.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/fetch/turns.hpp"
#include "engine/pools/pool_look.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/event_bell.hpp"
#include "worker_api/roles/registered_workers.hpp"

namespace ojs_shm {

struct Worker::Impl {
  ~Impl() {
    bell.reset();  // whose thread looks at the rest
    if (registration && !handle->closed()) registration->leave(handle->actor());
  }

  std::unique_ptr<internal::Handle> handle;
  WorkerOptions options;
  std::vector<std::uint32_t> queues;
  std::vector<std::string> names;              ///< of the queues, by their number, for Job::queue()
  std::array<std::int16_t, 256> priorities{};  ///< by rank
  std::optional<engine::Turns> turns;          ///< of the weighted strategy
  static constexpr std::uint32_t kInterrupted = 1, kQuiet = 2;
  shm::LocalFlags held_up;  ///< why a fetch brings nothing
  shm::LocalFlag full;      ///< as many jobs are in hand as may be
  std::uint32_t pool = engine::kNoIndex;
  bool incomplete = false;  ///< some of options.queues do not exist yet: their first job makes them
  bool has_options = true;  ///< a fetch does more than look into the queues from left to right
  std::vector<std::pair<std::uint32_t, std::uint64_t>>
      in_hand;  ///< slot and word of jobs, when there is a limit to them
  std::unique_ptr<internal::EventBell> bell;
  std::unique_ptr<internal::Registration> registration;  ///< of a handle with an id
  std::chrono::microseconds spin{0};
  std::chrono::steady_clock::time_point looked_for_dead{};

  engine::Actor& actor() { return handle->actor(); }

  engine::Outcome fetch_from(std::uint32_t queue, engine::Fetched& out) {
    return actor().fetch(queue, options.lease_ms, options.lease_owned, out);
  }
  void hand_over(const engine::Fetched& got, Job& job);
  void hand_over(Job& job, std::uint32_t queue, std::uint8_t rank);
  bool fetched_here(const Job& job) const { return job.segment_.get() == &handle->attachment(); }
  /// Whether it is a job of this segment, which this handle may end or report of.
  Status may_end(const Job& job) { return fetched_here(job) ? Status() : may_end_foreign(job); }
  Status may_end_foreign(const Job& job);
  Status try_each(Job& job, std::size_t begin);
  struct Places;
  struct Receiver;
  std::size_t fetch_plain_batch(std::span<Job> into);
  Status try_with_options(Job& job);
  /// Sets has_options.
  void note_options();
  Status try_in_turns(Job& job);
  Status try_in_pool(Job& job);
  /// Looks again for queues that did not exist.
  void look_for_queues();
  /// Whether as many jobs are in hand as may be; the pool is told.
  bool at_limit() { return options.concurrency != 0 && count_in_hand(); }
  /// Whether its owner and an operator let it.
  bool takes_jobs() const {
    return !held_up.any() &&
           (!registration || registration->directive(handle->store()) == WorkerDirective::kRunning);
  }
  /// Of its owner's or an operator's will. Any thread.
  bool is_quiet() const {
    return held_up.has(kQuiet) ||
           (registration && registration->directive(handle->store()) == WorkerDirective::kQuiet);
  }
  void hold_up(std::uint32_t reason) noexcept;
  /// What a fetch answers while it is held up.
  Status why_held_up();
  Status report(std::uint32_t slot, std::uint64_t word, const engine::Report& report,
                std::uint64_t& lease_until);
  std::vector<std::string> queue_names() const;
  /// What its descriptor tells of, beside the queues that it has already.
  internal::EventBell::Wanted awaited() const {
    internal::EventBell::Wanted awaited;
    if (incomplete) awaited.queues = options.queues;
    if (pool != engine::kNoIndex) awaited.pools = {engine::pool_name(handle->store(), pool)};
    return awaited;
  }
  /// Looks at what became of them.
  bool count_in_hand();
  Status take_queues(const std::vector<std::string>& wanted);
  Status join_pool();
  void follow_pool();
};

/// The places of a Job, by the names that they have in engine::Fetched.
struct Worker::Impl::Places {
  struct Id {
    JobIdText& text;
    OJS_SHM_INLINE void operator=(engine::JobId from) const { text.assign(from.hi, from.lo); }
    operator engine::JobId() const { return {text.hi, text.lo}; }
  };
  OJS_SHM_INLINE explicit Places(Job& job)
      : word(job.word_),
        created_at(job.created_at_ms_),
        available_at(job.enqueued_at_ms_),
        started_at(job.started_at_ms_),
        deadline(job.deadline_ms_),
        slot(job.slot_),
        type_length(job.type_length_),
        args_length(job.args_length_),
        timeout_ms(job.timeout_ms_),
        attempt(job.attempt_),
        max_attempts(job.max_attempts_),
        id{job.id_},
        body(&job.body_) {}
  std::uint64_t &word, &created_at, &available_at, &started_at, &deadline;
  std::uint32_t &slot, &type_length, &args_length, &timeout_ms;
  std::uint16_t &attempt, &max_attempts;
  Id id;
  std::string* body;
  std::uint32_t queue = 0;
  std::uint8_t rank = 0;
};

/// The rest of a job whose places have been filled.
OJS_SHM_INLINE void Worker::Impl::hand_over(Job& job, std::uint32_t queue, std::uint8_t rank) {
  if (job.segment_.get() != &handle->attachment()) [[unlikely]]
    job.segment_ = handle->segment().attachment();
  job.fence_ = engine::Control(job.word_).tag();
  job.queue_ = names[queue];
  job.priority_ = priorities[rank];
  if (options.concurrency != 0) [[unlikely]] {
    in_hand.emplace_back(job.slot_, job.word_);
    (void)at_limit();
  }
}

}  // namespace ojs_shm
