// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

/// What an event says. Numbers are part of the format: new ones come at the end.
enum class EventKind : std::uint8_t {
  kNone,
  kJobEnqueued,   ///< became available
  kJobScheduled,  ///< value: due, Unix ms
  kJobStarted,    ///< value: the WorkerKey of its worker, 0: not a registered one
  kJobCompleted,  ///< value: how long it ran, ms
  /// value: how long it ran, ms; previous_rank: the SlotState that the job is in then, 0: not told
  kJobFailed,
  kJobRetrying,          ///< value: due, Unix ms
  kJobDiscarded,         ///<
  kJobCancelled,         ///<
  kJobExpired,           ///< value: created, Unix ms
  kJobHeartbeat,         ///< value: end of the lease, Unix ms
  kJobProgress,          ///< value: in 1/10,000
  kPriorityChanged,      ///<
  kQueuePaused,          ///<
  kQueueResumed,         ///<
  kRateLimitExceeded,    ///< value: as describe_rule() says of the limit
  kRateLimitReleased,    ///< the same
  kRateLimitDropped,     ///< the same
  kQueueStarved,         ///< tag: available jobs, value: since when none was handed out, in ms
  kPoolOverloaded,       ///< queue: the pool, tag: its active jobs, value: jobs that wait
  kPoolRebalanced,       ///< queue: the pool, ranks: its strategies
  kBackpressureWarning,  ///< tag: depth; value: bound, with kOfBytes
  kBackpressureCleared,  ///< the same
  /// the same; attempt, max_attempts: how many refusals; job: the first bytes of the type
  kBackpressureRejected,
  kBackpressureDropped,  ///<
  /// what had no room in the event before it, of the same lane: in job, tag and value
  kText,
  /// its first job begins. job: the workflow's id, attempt: its jobs, as in the next ones
  kWorkflowStarted,
  kWorkflowCompleted,  ///< value: for how long it ran, in ms
  kWorkflowFailed,     ///< the same; attempt: the member that it failed by
  kWorkflowCancelled,  ///< the same
  /// job: the new one; value: when it fires next; tag: the time that came, 0: it was triggered;
  /// attempt, max_attempts: how many times it ran; then the name
  kCronTriggered,
  kCronSkipped,       ///< the same; job: the last one; rank: CronSkip
  kDeadLetterPruned,  ///< value: how many
  kQueueDeleted,      ///< value: how many jobs were discarded
  /// ran too long. value: the limit in ms << 32 | how long it ran, in ms; previous_rank: as above
  kJobTimeout,
  kJobStalled,  ///< the same; the limit is its lease
  /// job: a dead process and its repairer; tag: dead of that repair; value: slots mended
  kProcessRepaired,
  kWorkerLost,     ///< tag: jobs that returned; value: how long it was silent, in ms; then its id
  kWorkerStarted,  ///< tag: how many jobs it takes at most; then its id, as in the next ones
  kWorkerQuiet,    ///< takes no more jobs; tag: those that it has
  kWorkerResumed,  ///< takes jobs again; tag: the same
  kWorkerStopped,  ///< rank: WorkerEnd; value: for how long it was registered, in ms
  /// a job of a workflow completed. attempt: its member; max_attempts: members that have not ended;
  /// value: how long it ran, in ms
  kWorkflowStepCompleted,
  /// a request about many jobs is over. tag: the jobs, value: those it was done to; rank 1: all or
  /// none
  kBulkEnqueue,
  kBulkCancel,
  kBulkRetry,
  kBulkDelete,
  /// a job's report closed its limit. value: the limit's key, tag: until, Unix ms
  kRateLimitAdjusted,
  /// its enqueue_ttl is over. value: the limit in s << 32 | how long since it was created, in s
  kJobTtlExpired,
  kJobTotalTimeout,    ///< the same of its total_timeout
  kDeadLetterDeleted,  ///< by a caller, for good
  kCount
};

constexpr bool about_a_worker(EventKind kind) {
  return kind >= EventKind::kWorkerLost && kind <= EventKind::kWorkerStopped;
}

constexpr bool about_a_workflow(EventKind kind) {
  return (kind >= EventKind::kWorkflowStarted && kind <= EventKind::kWorkflowCancelled) ||
         kind == EventKind::kWorkflowStepCompleted;
}
constexpr bool about_a_cron(EventKind kind) {
  return kind == EventKind::kCronTriggered || kind == EventKind::kCronSkipped;
}
constexpr bool about_many_jobs(EventKind kind) {
  return kind >= EventKind::kBulkEnqueue && kind <= EventKind::kBulkDelete;
}
constexpr bool about_a_queue(EventKind kind) {
  return kind == EventKind::kDeadLetterPruned || kind == EventKind::kQueueDeleted;
}
/// Whether `job` and `tag` are a job's, or a workflow's.
constexpr bool about_a_job(EventKind kind) {
  return kind < EventKind::kBackpressureWarning || kind == EventKind::kBackpressureDropped ||
         kind == EventKind::kJobTimeout || kind == EventKind::kJobStalled ||
         kind == EventKind::kRateLimitAdjusted || kind == EventKind::kJobTtlExpired ||
         kind == EventKind::kJobTotalTimeout || kind == EventKind::kDeadLetterDeleted ||
         about_a_workflow(kind);
}

/// In the value of an event of backpressure: depth and bound are bytes.
constexpr std::uint64_t kOfBytes = 1ULL << 63;

/// One event, as its writer knows it and its reader gets it.
struct EventFacts {
  EventKind kind = EventKind::kNone;
  std::uint8_t rank = 0, previous_rank = 0;
  std::uint16_t attempt = 0, max_attempts = 0;
  std::uint32_t queue = 0;
  JobId job;
  std::uint64_t tag = 0, value = 0;
  std::uint64_t time_ms = 0;  ///< 0: when it is written
  // Added by the log.
  std::uint32_t lane = 0;
  std::uint64_t sequence = 0;
};

// The words of an event, each as it is known.
OJS_SHM_INLINE void set_head(EventRecord& record, EventKind kind, std::uint8_t rank,
                             std::uint64_t time_ms) {
  record.kind_rank_time.set(std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 |
                            std::uint64_t{rank} << 48 | time_ms);
}
OJS_SHM_INLINE void set_job(EventRecord& record, JobId id) {
  record.id_hi.set(id.hi);
  record.id_lo.set(id.lo);
}
OJS_SHM_INLINE void set_facts(EventRecord& record, std::uint32_t queue, std::uint16_t attempt,
                              std::uint16_t max_attempts, std::uint8_t previous_rank = 0) {
  record.facts.set((queue & 0xFFFF) | std::uint64_t{attempt} << 16 |
                   std::uint64_t{max_attempts} << 32 | std::uint64_t{previous_rank} << 48);
}

/// Where one lane writes its events: in pages of sixteen, which it takes by turns with all other
/// lanes, so that a lane with much to tell gets much room. No other lane writes its open page. A
/// death leaves an open page, which its repair closes; an event without its stamp does not count.
class EventLog {
 public:
  EventLog(Store& store, std::uint32_t lane)
      : store_(store),
        told_(store.segment().lane(lane).counters[kEventsTold]),
        telling_(store.header().telling),
        lane_(lane) {}

  // relaxed: a switch
  OJS_SHM_INLINE bool is_wanted() const { return (telling_.load_relaxed() & kTells) != 0; }
  void write(const EventFacts& event);
  /// Whether the page is full: the caller turns it before the next event.
  OJS_SHM_INLINE bool needs_page() const { return next_ == end_; }
  void turn_page();
  /// Writes the event, where there is a place for it, by `describe(record)`: word after word, for a
  /// copy in between would take more registers than there are.
  template <class Describe>
  OJS_SHM_INLINE void put(const Describe& describe) {
    EventRecord& record = *next_;
    next_ = &record + 1;
    describe(record);
    shm::LaneWord& told = told_;
    const std::uint64_t sequence = told.get() + 1;
    record.sequence.set(sequence);
    record.stamp.store(stamp_++, shm::Point::kEventWritten);
    shm::prefetch_for_write(&record + 1);
    told.set_ordered(sequence, shm::Point::kEventCounted);  // PAIR event-told
    // A listener that goes to sleep just now looks again when that store has reached all
    // processors.
    if ((telling_.load_seq_cst() & kListened) != 0) [[unlikely]]
      wake_listeners();
  }
  /// Gives the page back, as is needed at the end of a lane.
  void close();
  /// Closes what an earlier owner of this lane left open when it died, and counts its last event if
  /// need be.
  void close_left();

 private:
  void wake_listeners() const;
  bool open();

  Store& store_;
  shm::LaneWord& told_;
  const Word& telling_;
  std::uint32_t lane_;
  std::uint32_t page_ = kNoIndex;
  EventPageControl opened_{0};                    ///< its control word
  EventRecord *next_ = nullptr, *end_ = nullptr;  ///< what is left of the page
  std::uint64_t stamp_ = 0;                       ///< of the next event
  EventRecord unread_{};                          ///< takes an event when no page is free
};

/// How many events all lanes have told; grows with each.
std::uint64_t events_told(const Store& store);

/// Reads what all lanes tell. Never writes; the segment may be mapped for reading, and may be
/// damaged.
class EventReader {
 public:
  /// From now on, or everything that is still kept.
  EventReader(const Store& store, bool from_start);

  /// Appends what has been told since the last call, by time, and for each job in the order of its
  /// changes. Events of the last `settle_ms` wait for the next call: another lane may be about to
  /// tell what led to them. Returns how many were overwritten before they could be read.
  std::uint64_t poll(std::vector<EventFacts>& events, std::uint64_t settle_ms);
  /// Whether the last call left events for the next one.
  bool left_some() const { return left_; }
  /// By lane: the sequence up to which everything has been given out or lost.
  const std::vector<std::uint64_t>& seen() const { return seen_; }

 private:
  struct Found {
    std::vector<EventFacts> events;  ///< of one lane
    std::uint64_t told = 0;          ///< sequence of its last event
  };
  void read_page(std::uint32_t page, std::vector<Found>& lanes);

  const Store& store_;
  std::vector<std::uint64_t> seen_;
  /// by page: its control word when nothing in it was left to be read
  std::vector<std::uint64_t> done_;
  bool left_ = false;
};

}  // namespace ojs_shm::engine
