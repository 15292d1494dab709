// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <boost/atomic/ipc_atomic.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/self_judging_payload.hpp"

// What really happened, written down outside of what is tested: an anonymous shared file of its own
// that every child of a storm maps. A process notes what it is about to do, does it, and notes what
// it was told. The notes of a process killed half-way stay, so afterwards each job is either
// finished, or a process owes it an explanation.

namespace ojs_shm::test {

template <class T>
using LedgerWord = boost::ipc_atomic<T>;

std::uint64_t monotonic_ns();
std::uint64_t wall_ms();

/// What must never happen. Each is an entry of its own in the report.
enum class Offence : std::uint32_t {
  kDoubleDispatch,      ///< given to a second process while the first lived and its lease ran
  kDispatchedWhenDone,  ///< given out after an ack, or a cancel, had returned
  kCompletedTwice,      ///< two acks returned
  kStaleAckAccepted,    ///< an ack succeeded although a newer attempt had begun
  kLostWithoutReason,   ///< a holder was told kLost while its lease ran and none had cancelled
  kFenceNotGrowing,
  kAttemptTooLow,     ///< fewer attempts than dispatches seen
  kCorruptPayload,    ///< a body that does not match its own hash, queue or type
  kUnknownJob,        ///< a key that no process enqueued
  kTwoCopies,         ///< one key under two ids
  kRefusedYetStored,  ///< enqueue said no, and the job came out all the same
  kHalfBatch,         ///< a batch came out in part
  kVanished,          ///< a job was not to be found right after its holder was killed
  kTwoEnds,           ///< acked and cancelled
  kLost,              ///< accepted, never finished, gone
  kStuck,             ///< accepted, not finished, still there when nothing was left to do
  kEndNotKept,        ///< an acked job that is not `completed` in the segment
  kDiedByItself,      ///< a process crashed, or left, and no process had asked it to
  kWedged,            ///< no progress although there was work and a process to do it
  kUnexpectedAnswer,  ///< a call gave an error that nothing explains
  kAuditFinding,
  kLeak,       ///< a pool did not come back to where it was
  kOverLimit,  ///< more jobs at work at one instant than a limit allows
  kBadEvent,   ///< told twice, out of order, or missing without being counted as lost
  kBadCopy,    ///< a job that an export and an import changed or left out
  kCount
};
std::string_view offence_name(Offence offence);

struct OffenceNote {
  LedgerWord<std::uint32_t> offence, life;
  std::uint64_t at_ns;
  PayloadKey key;
  char text[216];
};

/// One process from its fork to its end. A killer writes `kill_sent_ns` before it calls kill().
struct Life {
  LedgerWord<std::uint32_t> pid, lane;
  LedgerWord<std::uint64_t> born_ns, kill_sent_ns;
};

/// Who dispatches: a life and a thread in it.
struct Holder {
  std::uint32_t life = 0, thread = 0;
  std::uint32_t token() const { return life << 4 | thread; }
};

enum class EnqueueMark : std::uint32_t { kNone, kAttempted, kReturned, kRefused };

/// What else may rightly become of a job, and what was said about it.
enum JobMark : std::uint32_t {
  /// few attempts: a death, a failure or a timeout may use them up; or a limit may drop it
  kMayDiscard = 1,
  kMayExpire = 2,
  kCancelAttempted = 4,
  kCancelReturned = 8,
  kDiscardReturned = 16,  ///< a nack said `discarded`
  kMayDrop = 32,          ///< its queue drops jobs to make room
  kMayDie = 64,           ///< a failure may make it a dead letter
  kBuryAttempted = 128,
  kBuryReturned = 256,
};

/// The passport of one job.
struct JobRecord {
  /// [63:40] token of the holder, 0 when no process; [39:0] fence of the last dispatch
  LedgerWord<std::uint64_t> holding;
  LedgerWord<std::uint64_t> id_hash;  ///< by the first who learnt its id
  LedgerWord<std::uint64_t> lease_end_ms, enqueued_ns;
  LedgerWord<std::uint32_t> enqueue;  ///< EnqueueMark
  LedgerWord<std::uint32_t> dispatches, requeues;
  LedgerWord<std::uint32_t> acks;  ///< begun and not answered with an error
  LedgerWord<std::uint32_t> completions;
  LedgerWord<std::uint32_t> marks;  ///< JobMark
  LedgerWord<std::uint32_t> batch;  ///< [31:16] size, [15:0] place; 0 for a single one
  LedgerWord<std::uint32_t> reserved;
};
static_assert(sizeof(JobRecord) == 64);

/// What a worker thread holds right now, with the id, so that it can be looked up after the
/// worker's death.
struct InFlight {
  LedgerWord<std::uint64_t> key_plus_one;  ///< [63:40] producer, [39:0] sequence + 1; 0: nothing
  char id[40];
  /// what it counts against: [63:40] limit, [39:20] life, [19:0] which time
  LedgerWord<std::uint64_t> permits[2];
  PayloadKey key() const {
    const std::uint64_t word = key_plus_one.load();
    return {static_cast<std::uint32_t>(word >> 40), (word & ((std::uint64_t{1} << 40) - 1)) - 1};
  }
};

inline constexpr std::uint32_t kThreadsPerLane = 4, kHeldPerThread = 8;

/// Counts of one lane over all its lives. A line pair of its own.
struct alignas(128) LaneBook {
  LedgerWord<std::uint64_t> steps;  ///< anything that came to an end; the watch for wedges reads it
  LedgerWord<std::uint64_t> returned, refused, dispatched, completed, retried, requeued, takeovers,
      lost, cancelled, discarded, dead, revived, buried, unseen_attempts, private_kib, events,
      events_lost, copies, copied_jobs;
  LedgerWord<std::uint32_t> quit;  ///< asked to leave politely
  InFlight in_flight[kThreadsPerLane][kHeldPerThread];
};

struct alignas(128) ProducerBook {
  /// `first`: where this round of the ledger begins
  LedgerWord<std::uint64_t> next_sequence, first_sequence;
};

/// 0: go on. Rising, and never back but for a new round.
enum class Phase : std::uint32_t { kRun, kProducersStop, kWorkersStop, kEverybodyStops };

struct LedgerShape {
  std::uint32_t producers = 4, lanes = 16;
  std::uint64_t jobs_per_producer = 1 << 20;
};

/// What a worker learnt by fetching.
struct Dispatch {
  std::uint64_t fence = 0, lease_end_ms = 0, fetched_ns = 0;
  std::uint32_t attempt = 0;
  std::string_view id;
};

/// How the books stand at the end.
struct LedgerVerdict {
  std::uint64_t attempted_only = 0, returned = 0, refused = 0;
  std::uint64_t completed = 0, killed_in_ack = 0, cancelled = 0, discarded = 0, lost = 0;
  std::uint64_t buried = 0;  ///< dropped as dead letters
  std::uint64_t unseen_attempts = 0;
  std::uint64_t dropped = 0, maybe_dropped = 0;  ///< for room; `maybe`: or as something above says
};

/// Every member may be called by every process and thread, but for those that say otherwise.
class Ledger {
 public:
  explicit Ledger(const LedgerShape& shape);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  const LedgerShape& shape() const { return shape_; }
  Phase phase() const;
  void set_phase(Phase phase);
  LaneBook& lane(std::uint32_t lane) const { return lanes_[lane]; }
  Life& life(std::uint32_t life) const { return lives_[life]; }
  /// The next life number; 0 is no process. The storm only.
  std::uint32_t begin_life(std::uint32_t lane);

  /// `count` sequences in a row, or nothing (0 is a sequence) when the round's pages are full.
  bool take_sequences(std::uint32_t producer, std::uint32_t count, std::uint64_t& first);
  /// Null when no process can have enqueued such a job.
  JobRecord* find(PayloadKey key) const;

  void enqueue_begins(PayloadKey key, std::uint32_t marks, std::uint32_t batch_size = 1,
                      std::uint32_t place = 0);
  void enqueue_returned(PayloadKey key, std::uint32_t life, std::string_view id);
  void enqueue_refused(PayloadKey key);

  /// False: a process holds a newer attempt, rightly; whatever the caller does with the job must
  /// answer kLost.
  bool dispatched(PayloadKey key, Holder holder, const Dispatch& dispatch);
  void lease_extended(PayloadKey key, std::uint64_t lease_end_ms);
  /// Before ack, nack or requeue: the caller no longer holds. False as in dispatched().
  bool released(PayloadKey key, Holder holder, std::uint64_t fence);
  void ack_begins(PayloadKey key);
  void ack_returned(PayloadKey key, Holder holder, bool was_newest);
  void ack_failed(PayloadKey key);
  /// The holder was told that it does not hold. `lease_end_ms` as it knew it.
  void told_lost(PayloadKey key, Holder holder, std::uint64_t lease_end_ms, bool was_newest);
  void requeue_begins(PayloadKey key);
  /// Before a dead letter is sent out again: its attempts count anew.
  void revival_begins(PayloadKey key);
  void mark(PayloadKey key, std::uint32_t marks);
  /// How many living holders note a permit of that limit at one instant, but for those whose job
  /// a process has begun to cancel. A holder notes it after it has got it, and no more before it
  /// gives it back.
  std::uint32_t at_work(std::uint32_t limit) const;

  void accuse(Offence offence, std::uint32_t life, PayloadKey key, std::string_view text);
  std::uint64_t offences(Offence offence) const;
  std::uint64_t offences() const;
  std::vector<const OffenceNote*> notes() const;

  /// Microseconds from a kill to the next dispatch of what the victim held, sorted.
  std::vector<std::uint32_t> recoveries() const;
  std::uint64_t sum(LedgerWord<std::uint64_t> LaneBook::*counter) const;
  /// Accepted and not yet finished, roughly; jobs that may be dropped apart, for none learns of
  /// their end.
  std::uint64_t backlog() const;

  /// When no process works any more: judges each job of the round and accuses. `present` lists the
  /// unfinished jobs that are still there, accused already. The storm only.
  LedgerVerdict judge(const std::vector<PayloadKey>& present);
  /// Forgets the judged jobs. When no process works; the storm only.
  void begin_round();

 private:
  struct Head;
  std::size_t bytes_ = 0;
  LedgerShape shape_;
  Head* head_ = nullptr;
  LaneBook* lanes_ = nullptr;
  ProducerBook* producers_ = nullptr;
  Life* lives_ = nullptr;
  JobRecord* jobs_ = nullptr;
};

}  // namespace ojs_shm::test
