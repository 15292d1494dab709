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

#include "engine/drop.hpp"
#include "engine/fetched.hpp"
#include "engine/job_look.hpp"
#include "engine/names.hpp"
#include "engine/new_job.hpp"
#include "engine/patience.hpp"
#include "engine/plain.hpp"
#include "engine/queue_order.hpp"
#include "engine/seat.hpp"
#include "engine/store.hpp"
#include "engine/type_ranks.hpp"
#include "engine/unique.hpp"
#include "engine/waits.hpp"

namespace ojs_shm::engine {

struct PastJob;   // restore.hpp
class Workflows;  // workflows.hpp
class Crons;      // crons.hpp

/// The operations of one handle on the engine. One thread at a time; each lane has one Actor. Every
/// operation leaves, wherever it is killed, a state that `repair` brings to "happened" or "did not
/// happen".
class Actor final : private Dropping {
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

  /// A job with a past (restore.cpp). Its queue's bound does not refuse it.
  Outcome restore(const PastJob& past);
  /// The queue of that name, if need be and wanted made; kNoIndex: none, or the table is full.
  std::uint32_t ensure_queue(std::string_view name, bool make = true);
  /// The queue this handle used last, if it has that name; else kNoIndex.
  std::uint32_t known_queue(std::string_view name) const {
    return same_name(name, last_queue_name_) ? last_queue_ : kNoIndex;
  }
  // ---- of straight() jobs and queues without options (plain.cpp, plain_batch.cpp)
  bool has_options(std::uint32_t queue) {
    return come_near(queue), any_option(near_.queue->flags.load());
  }
  Straight enqueue_plain(const PlainJob& job, const JobForm& form, JobId& id);
  OJS_SHM_INLINE Straight enqueue_plain(const NewJob& job, JobId& id) {
    return enqueue_plain(PlainJob::of(job), JobForm(job), id);
  }
  /// kDone with an outcome.
  Straight enqueue_unique(const NewJob& job, JobId& id, Outcome& outcome);
  Straight enqueue_batch_plain(std::span<const NewJob> jobs, std::span<JobId> ids);
  Straight enqueue_batch_plain(std::span<const FormedJob> jobs, std::span<JobId> ids);
  /// Of that kind, each with args and a rank of its own.
  Straight enqueue_batch_plain(const PlainJob& kind, const JobForm& form,
                               std::span<const ArgsAndRank> jobs, std::span<JobId> ids);
  Straight fetch_plain(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  /// The next of so many that one call takes, at that time; end_run() follows on the last.
  Straight fetch_plain_next(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                            std::uint64_t now, unsigned wanted, Fetched& job);
  void end_run();

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
  PoolWorker& pool_worker() { return pool_worker_; }  ///< for whom it takes
  using Search::has_waiting, Search::sees_work;

  // ---- ending (settle.cpp)
  Outcome ack(std::uint32_t slot, std::uint64_t& word, std::string_view result);
  Outcome ack_at(std::uint32_t slot, std::uint64_t& word, std::string_view result,
                 std::uint64_t now);
  Settled set_back(std::uint32_t slot, std::uint64_t word, Setback why, const ErrorEntry* error);
  void drain();  ///< sets back all that it has at work, the longest waiting first

  // ---- keeping
  using Holder::heartbeat, Holder::hand_over, Holder::report;

  // ---- changing (change.cpp)
  Outcome cancel(JobId id, JobState& found);
  Outcome reprioritize(JobId id, std::uint8_t rank, std::uint8_t& previous, JobState& found);
  Outcome activate(JobId id, Activation what, JobState& found);
  Outcome retry_dead(JobId id, JobState& found);
  Outcome drop_dead(JobId id, JobState& found);
  Outcome drop(JobId id, JobState& found);
  using Room::set_backpressure, Room::set_bounds, Room::set_tenant_bounds;
  void set_paused(std::uint32_t queue, bool paused);

  QueueOrder order() const { return {store_, lane_}; }  ///< within a queue
  using Search::gather_tenants, Search::set_fairness;

  using LimitGate::let_more_begin, LimitGate::tend_limits;

  // ---- time (due.cpp), called by the supervisor
  /// Sees to what is due in the slot; when something is due there next, 0 for never.
  std::uint64_t tend(std::uint32_t slot, std::uint32_t generation, std::uint64_t now);
  /// Ends leases and timeouts that are over in slots [begin, end). Returns the earliest deadline
  /// seen that lies ahead.
  std::uint64_t end_leases(std::uint32_t begin, std::uint32_t end, std::uint64_t now,
                           std::uint32_t& ended);

  using Room::watch_pressure;

  // ---- mending (repair.cpp)
  /// Settles everything that the lanes of the dead left. The caller holds the proof of death, and
  /// gives the lanes back afterwards. May be cut off anywhere and begun again. Returns slots
  /// mended.
  static std::uint32_t repair(Store& store, std::span<const std::uint32_t> dead_lanes);
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

 private:
  /// Has the queue in near_.
  OJS_SHM_INLINE void come_near(std::uint32_t q) {
    if (q == near_.number) [[likely]]
      return;
    near_ = {q, &store_.queue(q), &tally(q)};
    plain_look_.forget();
  }
  template <bool kPlain>
  Outcome put_in(const NewJob& spec, JobId& id);
  JobId next_id(std::uint64_t now, std::uint32_t slot, std::uint32_t generation);
  template <bool kPlain, class Spec>
  Outcome fill(const Spec& spec, const JobForm& form, std::uint32_t slot, JobRecord& job,
               std::uint64_t now, JobId& id);
  Outcome publish(std::uint64_t flags, shm::RingSet& rings, std::uint32_t slot, JobRecord& job,
                  Control filling, unsigned number, JobState state);
  Outcome remember(const PastJob& past, std::uint32_t slot, JobRecord& job);
  Outcome publish_past(const PastJob& past, shm::RingSet& rings, std::uint32_t slot, JobRecord& job,
                       Control filling);
  void publish_batch(std::span<const std::uint32_t> slots);
  std::uint32_t write_body(std::uint32_t slot, std::uint32_t generation, const NewJob& spec);
  void take(JobRecord& job, Control claimed, QueueTally& mine, std::uint32_t lease_ms,
            bool lease_owned, std::uint64_t now, Fetched& out);
  void read_blocks(std::uint32_t slot, const JobRecord& job, std::uint64_t size,
                   std::string& body) const;
  // plain.cpp
  template <bool kKeyed>
  Straight put_straight(const PlainJob& spec, const JobForm& form, const NewAnnex* annex, JobId& id,
                        Outcome& outcome);
  void tell_birth(std::uint32_t queue, std::uint8_t rank, const JobForm& form, JobId id,
                  Control filling);
  template <class Each>
  Straight put_batch_straight(std::uint32_t queue, std::size_t count, Each&& each,
                              std::span<JobId> ids);
  Straight replace_straight(const PlainJob& spec, const JobForm& form, const NewAnnex& annex,
                            JobId& id, Outcome& outcome);
  using PushRuns = std::array<shm::Rings::PushRun, 8>;  ///< by level
  void publish_straight(QueueRecord& queue, std::uint32_t slot, Control filling, std::uint64_t now,
                        shm::Rings::PushRun& run);
  Straight claim_straight(const NewAnnex& annex, std::uint8_t rank, std::uint32_t slot,
                          Control filling, std::uint64_t now, Outcome& outcome);
  bool hint_or_undo(QueueTally& mine, std::uint32_t ring, std::uint32_t slot, Control published,
                    std::uint64_t size);
  void settings_moved(QueueRecord& queue, std::uint64_t before, std::uint64_t now);
  template <bool kSeveral>
  Straight take_straight(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                         std::uint64_t now_ms, unsigned wanted, Fetched& out);
  Straight found_nothing(QueueRecord& queue, std::uint32_t q);
  void tidy_passed(QueueRecord& queue);
  Outcome end_of_claim(std::uint32_t q, std::uint32_t slot, Control claimed, std::uint64_t now);
  bool keep_result(std::uint32_t slot, std::uint64_t& word, std::string_view result);
  Outcome fetch_in_order(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                         Fetched& job);
  friend struct UniqueKeys;
  friend struct TenantFetch;
  void end_cancelled(std::uint32_t slot, Control held, unsigned before);
  void end_expired(std::uint32_t slot, JobRecord& job, Control held, std::uint64_t now);
  Outcome enqueue_batch_in_order(std::span<const NewJob> jobs, std::vector<JobId>& ids);
  void append_error(std::uint32_t slot, JobRecord& job, const ErrorEntry& error);
  Outcome seize(Event event, JobId id, std::uint32_t& slot, Control& held, JobState& found);
  Outcome seize_dead(Event event, JobId id, std::uint32_t& slot, Control& held, JobState& found);
  bool promote(std::uint32_t slot, JobRecord& job, Control before, std::uint64_t now);
  bool expire(std::uint32_t slot, JobRecord& job, Control before, std::uint64_t now);

  void tell_start(const Start& start, const JobRecord& job, Control active);
  void mark_member(const Membership& member, bool failed, std::uint64_t ran_ms) override;
  void advance_workflow(const Membership& member) override;
  void drop_member(const Membership& member) override;
  friend class Workflows;
  friend class Crons;
  friend class DeadLetters;
  friend class QueueEnd;

  std::uint32_t repair(const std::vector<std::pair<std::uint64_t, std::uint32_t>>& held);
  void repair_shared();
  void undo_tallies(Op op, std::uint32_t queue);
  std::uint32_t end_operation(std::uint32_t slot, Op op, std::uint64_t target);
  std::uint32_t let_go(std::uint32_t slot);
  void revive(std::uint32_t slot, JobRecord& job, Control held);
  std::uint32_t finish_batch(std::span<const std::pair<std::uint64_t, std::uint32_t>> held);

  struct Near {  ///< a queue, and this lane's tally of it
    std::uint32_t number = kNoIndex;
    QueueRecord* queue = nullptr;
    QueueTally* tally = nullptr;
  };
  Near near_;             ///< that of the last call
  PlainLook plain_look_;  ///< at that queue
  IdClock clock_;
  WaitMeter waits_;
  std::uint64_t random_;
  Ranks ranks_;
  std::uint8_t default_rank_;
  std::uint64_t taken_ = 0;               ///< jobs fetched by this handle
  std::unique_ptr<Workflows> workflows_;  ///< made when first needed
  std::unique_ptr<Crons> crons_;          ///< the same

  Conflicts conflicts_;
  std::uint32_t last_queue_ = kNoIndex;
  std::string last_queue_name_, last_type_;
};

}  // namespace ojs_shm::engine
