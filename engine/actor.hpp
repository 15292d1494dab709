// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/fetched.hpp"
#include "engine/names.hpp"
#include "engine/new_job.hpp"
#include "engine/patience.hpp"
#include "engine/seat.hpp"
#include "engine/store.hpp"
#include "engine/straight_way.hpp"
#include "engine/type_ranks.hpp"

namespace ojs_shm::engine {

class Workflows;  // workflows.hpp
class Crons;      // crons.hpp

/// The operations of one handle on the engine. One thread at a time; each lane has one Actor. Every
/// operation leaves, wherever it is killed, a state that a Repairer brings to "happened" or "did not
/// happen".
class Actor : protected StraightWay {
 public:
  Actor(Store& store, std::uint32_t lane);
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor() override;

  // ---- putting in (enqueue.cpp, batch.cpp)
  Outcome enqueue(const NewJob& job, JobId& id);
  Outcome enqueue_short(const NewJob& job, JobId& id);  ///< of a plain() job, all in registers
  /// All or none, in order; all jobs go to the queue of the first.
  Outcome enqueue_batch(std::span<const NewJob> jobs, std::vector<JobId>& ids);
  Conflicts& conflicts() { return conflicts_; }  ///< of the last enqueue of unique jobs
  using Room::met;

  // ---- waiting for room
  using Room::attend, Room::await_room, Room::be_patient, Room::first_in_line, Room::leave_room,
      Room::rest_in_line, Room::take_places_for;

  using Filler::fill_aside, Filler::limits_held, Filler::restore;
  /// The queue of that name, if need be and wanted made; kNoIndex: none, or the table is full.
  std::uint32_t ensure_queue(std::string_view name, bool make = true);
  /// The queue this handle used last, if it has that name; else kNoIndex.
  std::uint32_t known_queue(std::string_view name) const {
    return same_name(name, last_queue_name_) ? last_queue_ : kNoIndex;
  }
  // ---- of straight() jobs and queues without options
  using StraightWay::end_run, StraightWay::enqueue_batch_plain, StraightWay::enqueue_plain,
      StraightWay::enqueue_unique, StraightWay::fetch_plain, StraightWay::fetch_plain_next,
      StraightWay::has_options;

  /// Whether this handle has just seen the type and found it well formed.
  bool known_type(std::string_view type) const {
    return !type.empty() && same_name(type, last_type_);
  }
  void know_type(std::string_view type) { last_type_ = type; }
  /// The rank of a job that names none: its type's, else the convention's.
  const Ranks& ranks() const { return ranks_; }  ///< of the segment's convention
  std::uint8_t default_rank(std::string_view type) const {
    if (store_.type_default(0).hash.load() != 0)
      if (const auto rank = type_rank(store_, type)) return *rank;
    return default_rank_;
  }

  // ---- taking out (fetch.cpp)
  Outcome fetch(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  /// From the queue of its pool whose turn it is.
  Outcome fetch_from_pool(std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  /// kLost: it is no longer as it was seen.
  Outcome fetch_seen(std::uint32_t queue, std::uint32_t slot, Control available,
                     std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  PoolWorker& pool_worker() { return pool_worker_; }  ///< for whom it takes
  using Search::has_waiting, Search::sees_work, Search::shut, StraightWay::found_nothing;

  // ---- ending (settle.cpp)
  using Changer::set_back, StraightWay::ack, StraightWay::ack_at;
  void drain();  ///< sets back all that it has at work, the longest waiting first

  // ---- keeping
  using Holder::heartbeat, Holder::hand_over, Holder::report;

  // ---- changing
  using Changer::activate, Changer::cancel, Changer::discard, Changer::drop, Changer::drop_dead,
      Changer::prune, Changer::reprioritize, Filler::retry_dead;
  using Room::set_backpressure, Room::set_bounds, Room::set_tenant_bounds;
  void set_paused(std::uint32_t queue, bool paused);

  using Search::gather_tenants, Search::order, Search::set_fairness;

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
  Outcome put_in(const NewJob& spec, JobId& id);
  Outcome fetch_in_order(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                         Fetched& job);
  Outcome enqueue_unique_batch(std::span<const NewJob> jobs, std::vector<JobId>& ids);
  Outcome refuse_batch(const NewJob& spec, std::vector<JobId>& ids);
  Outcome enqueue_batch_in_order(std::span<const NewJob> jobs, std::vector<JobId>& ids);

  void mark_member(const Membership& member, bool failed) final;
  void advance_workflow(const Membership& member) final;
  void drop_member(const Membership& member) final;
  friend class Workflows;

  Ranks ranks_;
  std::uint8_t default_rank_;
  std::unique_ptr<Workflows> workflows_;  ///< made when first needed
  std::unique_ptr<Crons> crons_;          ///< the same

  std::uint32_t last_queue_ = kNoIndex;
  std::string last_queue_name_, last_type_;
};

}  // namespace ojs_shm::engine
