// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/enqueue/known_names.hpp"

namespace ojs_shm::engine {

class Workflows;         // workflows.hpp
class WorkflowProgress;  // workflow_progress.hpp
class Crons;             // crons.hpp

/// The operations of one handle on the engine. One thread at a time; each lane has one Actor. Every
/// operation leaves, wherever it is killed, a state that a Repairer brings to "happened" or "did
/// not happen".
class Actor : protected KnownNames {
 public:
  Actor(Store& store, std::uint32_t lane);
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor() override;

  // ---- putting in (enqueue.cpp, batch.cpp)
  Outcome enqueue(const NewJob& job, JobId& id);
  Outcome enqueue_short(const NewJob& job, JobId& id);  ///< of a plain() job, all in registers
  /// All or none; those of one queue in order.
  Outcome enqueue_batch(std::span<const NewJob> jobs, std::vector<JobId>& ids);
  std::uint32_t refusing() const { return refusing_; }  ///< the queue that the last batch met full
  Conflicts& conflicts() { return conflicts_; }         ///< of the last enqueue of unique jobs
  using Room::met;

  // ---- waiting for room
  using Room::attend, Room::await_room, Room::be_patient, Room::first_in_line, Room::leave_room,
      Room::rest_in_line, Room::take_places_for;

  // ---- what comes before
  using Filler::fill_aside, Filler::limits_held, Filler::restore;
  using KnownNames::default_rank, KnownNames::ensure_queue, KnownNames::know_type,
      KnownNames::known_queue, KnownNames::known_type, KnownNames::ranks;

  // ---- of straight() jobs and queues without options
  using StraightEnqueue::enqueue_batch_plain, StraightEnqueue::enqueue_plain,
      StraightEnqueue::enqueue_unique, StraightEnqueue::enqueue_under_bound,
      StraightFetch::fetch_plain, StraightFetch::fetch_batch_plain, StraightEnqueue::has_options,
      StraightEnqueue::has_bound_alone;

  // ---- taking out
  using Fetcher::fetch, Fetcher::fetch_from_pool, Fetcher::fetch_seen, Fetcher::pool_worker;
  using Search::has_waiting, Search::look_for_pools, Search::sees_work, Search::shut,
      StraightFetch::found_nothing;

  // ---- ending (settle.cpp)
  using Changer::set_back, StraightAck::ack, StraightAck::ack_batch;
  void drain();  ///< sets back all that it has at work, the longest waiting first

  // ---- keeping
  using Holder::heartbeat, Holder::hand_over, Holder::report;

  // ---- changing
  using Changer::activate, Changer::cancel, Changer::discard, Changer::drop, Changer::drop_dead,
      Changer::prune, Changer::reprioritize, Filler::retry;
  using Room::set_backpressure, Room::set_bounds, Room::set_tenant_bounds;
  void set_paused(std::uint32_t queue, bool paused);

  using Flows::gather_tenants, Search::order, Flows::set_fairness;

  using LimitGate::let_more_begin, LimitGate::tend_limits;

  // ---- time, called by the supervisor
  using Changer::end_leases, Changer::tend, Room::watch_pressure;

  // ---- mending (mend.cpp)
  /// Available jobs without a live hint, seen so twice, and timers of the waiting.
  std::uint32_t mend_hints();
  using Mover::collect_leaks;
  /// Gives hints and leaked chunks back; for a quiet segment. Returns how many things were mended.
  std::uint32_t mend();

  /// Gives everything back; the Actor is done.
  void retire();
  Store& store() { return store_; }
  shm::Rings& rings() { return rings_; }
  const Bell& bell() const { return bell_; }
  Tellings& tellings() { return tellings_; }
  SlotPool& slots() { return slots_; }
  Recorder& recorder() { return recorder_; }
  Workflows& workflows();
  Crons& crons();
  std::uint32_t lane() const { return lane_; }
  using Mover::tally;

 protected:
  void publish_batch(std::span<const std::uint32_t> slots);
  void repair_shared();

 private:
  template <bool kPlain>
  class Entry;  // enqueue.cpp
  class Share;  // these four: batches.hpp
  class Batch;
  class Spread;
  class UniqueBatch;

  Outcome enter_batch(std::span<const NewJob> jobs, std::vector<JobId>& ids);
  void mark_member(const Membership& member, bool failed, std::uint64_t ran_ms) final;
  void advance_workflow(const Membership& member) final;
  void drop_member(const Membership& member) final;
  void workflow_begins(const Membership& member) final;
  friend class Workflows;
  friend class WorkflowProgress;

  std::uint32_t refusing_ = 0;
  std::unique_ptr<Workflows> workflows_;  ///< made when first needed
  std::unique_ptr<Crons> crons_;          ///< the same
};

}  // namespace ojs_shm::engine
