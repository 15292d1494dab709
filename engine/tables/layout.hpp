// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/bounds/accounts.hpp"
#include "engine/crons/cron.hpp"
#include "engine/limits/limit_key.hpp"
#include "engine/moves/state.hpp"
#include "engine/observing/recorder.hpp"
#include "engine/pools/pool.hpp"
#include "engine/pools/samples.hpp"
#include "engine/rules/backpressure.hpp"
#include "engine/rules/retry.hpp"
#include "engine/rules/uuid.hpp"
#include "engine/supervision/maintenance_record.hpp"
#include "engine/tables/annex.hpp"
#include "engine/tables/busy_word.hpp"
#include "engine/tables/deadline.hpp"
#include "engine/tables/pages.hpp"
#include "engine/tenants/flow.hpp"
#include "engine/workers/worker_record.hpp"
#include "shm/control.hpp"
#include "shm/layout.hpp"

// What the engine keeps in a segment: a record in each slot, and an area with its own header, the
// types' default priorities and the queues. Offsets only, no behaviour.
//
//   area: EngineHeader | TypeDefault[kTypeDefaults] | FlowRecord[flows] | QueueRecord[max_queues]
//         | PartRings[spare_parts] | PoolRecord[kPools] | AccountRecord[accounts] |
//         LimitKey[limit_keys] | ParkingLot[lots] | PermitPage[permit_pages] | WaitPage[wait_pages]
//         | EventPage[event_pages] | SharedTurn[kSharedTurns] | QueueTally[max_queues][lanes] |
//         TenantRule[kTenantRules] | CronTable | WorkerRecord[workers] | RoomTicket[tickets]
//         | AccountTally[lanes][accounts] | words: WorkerMark[workers], control of the events,
//         which queues are busy, runs of permits, backlogs | SampleTimes | QueueSamples[max_queues]
//         | TransitionRecord[lanes][records_per_lane + 1]
//
// The wider an element's alignment, the nearer to the front: each table begins where the one before
// it ends.

namespace ojs_shm::engine {

using shm::Control;
using shm::Half;
using shm::LaneWord;
using shm::Plain;
using shm::Word;

/// The state field of a slot's control word: free, a job's state plus one, or one of four in which
/// exactly one lane holds the slot and no other lane may touch it until that lane is done or dead.
enum SlotState : unsigned {
  kSlotFree = 0,
  kSlotScheduled = 1,
  kSlotAvailable = 2,
  kSlotPending = 3,
  kSlotActive = 4,
  kSlotCompleted = 5,
  kSlotRetryable = 6,
  kSlotCancelled = 7,
  kSlotDiscarded = 8,
  kSlotFilling = 9,   ///< an enqueue writes it; a death frees it
  kSlotClaimed = 10,  ///< a fetch writes it; a death gives it back, as if it had not been fetched
  /// ack, nack, requeue, lease expiry or cancel of an active job; a death counts as its holder's
  kSlotSettling = 11,
  kSlotMoving = 12,    ///< cancel, promotion, expiry of a waiting job; a death undoes it
  kSlotTemplate = 13,  ///< what a cron's jobs are made from
  kSlotWaiting = 14,   ///< a member of a workflow that waits for other members
  kSlotHead = 15,      ///< a workflow; its ring number is its WorkflowState
};
constexpr unsigned slot_state(JobState state) { return static_cast<unsigned>(state) + 1; }
constexpr bool holds_job(unsigned slot_state) { return slot_state >= 1 && slot_state <= 8; }
constexpr JobState job_state(unsigned slot_state) { return static_cast<JobState>(slot_state - 1); }
constexpr bool is_exclusive(unsigned slot_state) {
  return slot_state >= kSlotFilling && slot_state <= kSlotMoving;
}
constexpr bool is_finished(unsigned s) {
  return s == kSlotCompleted || s == kSlotCancelled || s == kSlotDiscarded;
}
/// Whether a slot that is listed to be used again may be: a finished job, or an ended workflow.
constexpr bool is_spent(Control control) {
  return is_finished(control.state()) || (control.state() == kSlotHead && control.ring() != 0);
}

/// Ring number of a rank: even for what was given back and goes first, odd for the rest.
constexpr unsigned front_ring(unsigned rank) { return rank * 2; }
constexpr unsigned normal_ring(unsigned rank) { return rank * 2 + 1; }
constexpr std::uint8_t rank_of_ring(unsigned ring) { return static_cast<std::uint8_t>(ring / 2); }

/// 15..0 max attempts  17..16 backoff  18 jitter  19 dead letter on exhaustion
/// 23..20 previous state + 1 (of a cancelled job; of an expired one TimeUp)
/// 24 the client brought the id  25 expired  26 stands in the dead letters  27 enqueued as pending
/// 31..28 part of its queue
struct Policy {
  std::uint32_t word = 0;
  static constexpr std::uint32_t kJitter = 1U << 18, kDeadLetter = 1U << 19, kForeignId = 1U << 24,
                                 kExpired = 1U << 25, kDead = 1U << 26, kBornPending = 1U << 27,
                                 kEndMarks = kExpired | kDead;
  constexpr std::uint16_t max_attempts() const { return static_cast<std::uint16_t>(word); }
  constexpr Backoff backoff() const { return static_cast<Backoff>(word >> 16 & 3); }
  constexpr bool has(std::uint32_t bit) const { return (word & bit) != 0; }
  constexpr unsigned previous() const { return word >> 20 & 15; }
  constexpr unsigned part() const { return word >> 28; }
  static constexpr std::uint32_t in_part(unsigned part) { return part << 28; }
  constexpr Policy with_previous(unsigned slot) const {
    return {(word & ~(15U << 20)) | slot << 20};
  }
};

/// Lanes that no handle gets, for a supervisor or a mender. A repair uses the lanes of the dead.
constexpr std::uint32_t kServiceLanes = 8;

/// signals: 14..0 progress in 1/10,000 plus one (0: none)  15 has times of its own
/// 16 a process waits for its end  19..17, 21..20 annex.hpp  31..22, 63..32 ReportWord
constexpr std::uint64_t kProgressMask = 0x7FFF, kWaited = 1ULL << 16;
constexpr std::uint64_t kMostBlocks = (1ULL << 26) - 1;  ///< as a report's word can name
/// The place in its batch, kept in the unused half of `signals` until the job is published.
constexpr unsigned kPlaceShift = 32;
constexpr std::uint64_t place_in_batch(std::uint64_t place) { return place << kPlaceShift; }

// 0 control  8 deadline  16 signals  24 generation, queue, attempt  32 started  40 finished
// 48 lease in force, pool  56 available
// | 64 id  80 expires  88 created  96 timeout, lease  104 lengths  112 body block, policy
// 120 limits, account
// | 128 tenant  136 inline bytes  272 due  280 scheduled  288 initial, max  296 coefficient, delay
// 304 result, errors blocks  312 result, errors lengths
/// A job. Everything but control, deadline and signals is written only by the holder of the slot
/// exclusively. What a worker writes lies in the first line; what it reads of a short job, in the
/// three behind it.
// NO CRASH POINT: the slot is held exclusively; the record is judged by the control word
struct JobRecord {
  Word control;
  Word deadline;  ///< end of the lease, extended by heartbeats. PAIR lease
  Word signals;
  Plain<std::uint32_t> generation;  ///< counts the jobs that lived in this slot
  Plain<std::uint16_t> queue, attempt;
  Plain<std::uint64_t> started_at, finished_at;  ///< ms, 0: none
  Plain<std::uint32_t> lease_in_force_ms;
  Plain<std::uint32_t> pool_word;     ///< WorkerKey and pool + 1 of its holder, or its last one
  Plain<std::uint64_t> available_at;  ///< ms; when it last became available, or was accepted

  Plain<std::uint64_t> id_hi, id_lo;
  Plain<std::uint64_t> expires_at, created_at;  ///< ms, 0: none
  Plain<std::uint32_t> timeout_ms, lease_ms;
  Plain<std::uint32_t> type_args;  ///< 31..24 length of type  23..0 length of args
  Plain<std::uint32_t> extra_length;
  Plain<std::uint32_t> body_block;  ///< kNoIndex: none; the body is then inline
  Plain<std::uint32_t> policy;      ///< Policy
  Plain<std::uint32_t> limits;      ///< own_limit(), second_limit()
  Half account;                     ///< AccountMark. Changed by cas while the job waits

  Plain<std::uint64_t> tenant;  ///< hash of its name; 0: none
  std::uint64_t inline_bytes[kInlineBytes / 8];

  Plain<std::uint64_t> due_at;  ///< ms; of a scheduled or retryable job
  Plain<std::uint64_t> scheduled_at;
  Plain<std::uint32_t> initial_ms, max_ms;
  Plain<std::uint32_t> coefficient;  ///< a float's bits
  Plain<std::uint32_t> retry_delay_ms;
  Plain<std::uint32_t> result_block, errors_block;  ///< kNoIndex: none
  Plain<std::uint32_t> result_length, errors_length;

  std::uint32_t type_length() const { return type_args.get() >> 24; }
  std::uint32_t args_length() const { return type_args.get() & 0xFF'FFFF; }
  std::uint64_t body_length() const {
    return std::uint64_t{type_length()} + args_length() + extra_length.get();
  }
  bool has_texts() const {
    return (body_block.get() & result_block.get() & errors_block.get()) != shm::kNoIndex;
  }
  Policy flags() const { return {policy.get()}; }
  /// Means something only with the bits of `signals`.
  Annex& annex() { return *reinterpret_cast<Annex*>(inline_bytes + kInlineBeside / 8); }
  const Annex& annex() const {
    return *reinterpret_cast<const Annex*>(inline_bytes + kInlineBeside / 8);
  }
  bool timed() const { return (signals.load() & kOwnTimes) != 0; }
  OwnTimes& own_times() {
    return *reinterpret_cast<OwnTimes*>(inline_bytes + engine::inline_room(kOwnTimes) / 8);
  }
  const OwnTimes& own_times() const {
    return *reinterpret_cast<const OwnTimes*>(inline_bytes + engine::inline_room(kOwnTimes) / 8);
  }
  /// Bytes of a body that may stand in the record itself.
  std::size_t inline_room() const { return engine::inline_room(signals.load()); }
  /// The state in which it is published once it is filled.
  JobState birth_state() const {
    return engine::birth_state(flags().has(Policy::kBornPending), due_at.get(), created_at.get());
  }
  /// Of a slot that a lane holds: charged as one of a batch over several queues (spread.cpp).
  bool unborn() const { return flags().previous() == kSlotFilling; }
  JobId id() const { return {id_hi.get(), id_lo.get()}; }
};
static_assert(sizeof(JobRecord) == shm::kSlotBytes && offsetof(JobRecord, id_hi) == 64 &&
              offsetof(JobRecord, tenant) == 128 && offsetof(JobRecord, due_at) == 272);
static_assert(offsetof(JobRecord, lease_in_force_ms) == 48 &&
                  offsetof(JobRecord, timeout_ms) == 96 && offsetof(JobRecord, body_block) == 112 &&
                  offsetof(JobRecord, initial_ms) == 288,
              "those that set_both() sets begin at multiples of eight");

/// What one lane has done in one queue. Written by that lane alone, so no read-modify-write; after
/// its death its repairer puts back what an unfinished operation had moved (the lane's intent holds
/// the values before). depth = sum(in + in_reserved) - sum(out), over all lanes.
struct alignas(64) QueueTally {
  /// charges put in while the queue had no bound
  LaneWord in;
  /// charges put in through QueueRecord::reserved
  LaneWord in_reserved;
  /// charges taken out, by whatever transition
  LaneWord out;
  LaneWord enqueued, dispatched, completed, reprioritized;  ///< jobs
  /// jobs that this lane dropped for newer ones
  LaneWord dropped;
};

/// flags: 0 paused  1 bounded  2 ages  3 weighted levels  4 sharded  5 has more parts than one
/// 6 isolated: only for workers of one pool  7 counted: its backlog is kept
/// 8 fair: its tenants share  9 its rings may hold hints to flows  10 a limit stands on it
/// 11 its tenants are bounded  12 its tenants share across its levels  13 in maintenance, as all
/// 63..16 epoch: moves with every change of the settings, and whenever a cached sum of `in` may
/// have become too small.
constexpr std::uint64_t kPaused = 1, kBounded = 2, kAges = 4, kWeighted = 8, kSharded = 16,
                        kParted = 32, kIsolated = 64, kCounted = 128, kFair = 256, kFlows = 512,
                        kLimited = 1024, kTenants = 2048, kAcross = 4096, kMaintained = 8192,
                        kFlagsEpoch = 1ULL << 16;
constexpr std::uint64_t kShut = kPaused | kMaintained;  ///< it hands out no job
/// Whether anything is set for the queue at all: the one test of a plain operation (plain.cpp).
constexpr bool any_option(std::uint64_t flags) { return (flags & (kFlagsEpoch - 1)) != 0; }
/// Any that the straight way does not know.
constexpr bool any_but_bound(std::uint64_t flags) { return any_option(flags & ~kBounded); }
/// Whether a fetch finds its job by the strict order over a single set of rings.
constexpr bool is_plain(std::uint64_t flags) {
  return (flags & (kAges | kWeighted | kSharded | kParted | kFlows)) == 0;
}

/// A queue has one set of rings, and further ones, its parts, when jobs of one level must not stand
/// in one line: each rate of ageing has a part, or each shard. A job stays in its part for life.
constexpr unsigned kParts = 16;
constexpr unsigned kAgeClasses = 9;  ///< eight rates that jobs brought, and the queue's own
constexpr std::uint64_t kClassOfShard = 1 << 16;
constexpr bool is_age_class(std::uint64_t word) { return word != 0 && word <= 256; }

/// Turns of weighted levels, all in one word so that they change at once.
///   63 on  62 bank  61..48 turns of a cycle  47..16 version  15..0 the next turn
struct Turn {
  std::uint64_t word = 0;
  using On = shm::Field<63, 1>;
  using Bank = shm::Field<62, 1>;
  using Length = shm::Field<48, 14>;
  using Version = shm::Field<16, 32>;
  using Next = shm::Field<0, 16>;
  static constexpr unsigned kMostTurns = 256;
  /// a turn of all levels that have no weight of their own
  static constexpr std::uint16_t kOthers = 256;

  constexpr explicit Turn(std::uint64_t w) : word(w) {}
  constexpr unsigned length() const {
    const auto length = static_cast<unsigned>(Length::get(word));
    return On::get(word) == 0 ? 0 : length < kMostTurns ? length : kMostTurns;
  }
  constexpr unsigned bank() const { return static_cast<unsigned>(Bank::get(word)); }
  constexpr unsigned next() const {
    return length() == 0 ? 0 : static_cast<unsigned>(Next::get(word)) % length();
  }
  /// After the turn `taken` of the cycle.
  constexpr Turn after(unsigned taken) const {
    return Turn(Next::with(Version::with(word, Version::get(word) + 1), (taken + 1) % length()));
  }
};

/// A queue. All zero is a valid, empty queue that has no name yet, so making one is a single cas on
/// name_hash.
struct alignas(128) QueueRecord {
  Word name_hash;  ///< 0: this and all later records are unused
  Word flags;
  Word max_depth, max_bytes;  ///< 0: unbounded
  Word name_length;           ///< 0 until `name` stands there. PAIR queue-name
  /// Refill: deaths after which `reserved` may be too high
  Word refill;
  /// Attention: a lane that takes a job out reads it, and has something to do if it is not 0
  Word attention;
  Word backpressure;  ///< Backpressure
  alignas(64) std::uint64_t name[16];
  Word written_off;  ///< charges in `reserved` that the dead took with them
  Word limit;        ///< key of the limit on the queue + 1, 0: none
  /// ring of the tickets of producers that wait for room + 1; 0: none ever did. PAIR ring-name
  Half room_ring;
  Half dropper;   ///< lane + 1 of the lane that drops jobs for new ones
  Word refusals;  ///< Refusals
  Drain drain;
  /// charges admitted while bounded; only grows: producers' one contended word
  alignas(128) Word reserved;
  Word cancelled, discarded, retried, returned, rejected, expired;  ///< rare, so shared
  /// pool + 1 whose workers alone get its jobs
  Word isolated;
  Word fairness;   ///< Fairness
  Word served_at;  ///< ms; when a pool that prevents starvation last handed out one of its jobs
  Word conflicts;  ///< new jobs that another of their unique key was in the way of, or gave way to
  Word pruned;     ///< dead letters that were too old, or too many
  Word emptied;    ///< jobs discarded because the queue was deleted
  /// what has come into it when it was deleted, as Store::deleted() compares it; 0: it never was
  Word deleted;
  Word created;  ///< ms; when it was first named; 0: in a segment that did not note it
  alignas(128) Word waiters[shm::kMaxLanes / 64];  ///< lanes that sleep for this queue. PAIR idle
  shm::RingSet rings;                              ///< part 0
  alignas(128) Word aging;                         ///< Aging
  Word turn;                                       ///< Turn
  Word shards;                                     ///< parts that enqueue uses; 0: one
  Word settler;                                    ///< lane + 1 of the writer of `turns`
  /// of the part with that number: its rate + 1, or kClassOfShard. PAIR age-class
  Word age_class[kAgeClasses];
  Half part[kParts];  ///< set of the part + 1; [0] is unused. PAIR part-name
  /// of each tenant that has no bounds of its own; 0: unbounded
  Word tenant_max_depth, tenant_max_bytes;
  /// the line of its tenants + 1; 0: they never shared across levels
  Half tenants_ring;  // PAIR ring-name
  // NO CRASH POINT: a bank means nothing before `turn` names it
  /// ranks in 16 bits each; the bank in use stands
  alignas(64) Plain<std::uint64_t> turns[2][Turn::kMostTurns / 4];
  /// ms for which jobs are kept after such an end; 0: as the segment keeps them
  Word kept_completed, kept_discarded, kept_cancelled;

  /// The rank whose turn it is, or kOthers.
  std::uint16_t turn_of(Turn cycle, unsigned at) const {
    const auto rank =
        static_cast<std::uint16_t>(turns[cycle.bank()][at / 4].get() >> (at % 4 * 16));
    return rank < Turn::kOthers ? rank : Turn::kOthers;
  }
  /// The parts that have rings, a bit for each. There may be gaps: the lane that makes one may be
  /// slow, or dead.
  std::uint32_t parts(std::uint64_t with_flags) const {
    std::uint32_t parts = 1;
    for (unsigned number = 1; (with_flags & kParted) != 0 && number < kParts; ++number)
      if (part[number].load() != 0) parts |= 1U << number;
    return parts;
  }
};
static_assert(sizeof(QueueRecord) == 256 + 128 + 128 + sizeof(shm::RingSet) + 256 + 1024);

/// The rings of a part that is not the first. Given to one part of one queue for ever.
struct alignas(128) PartRings {
  Word owner;  ///< queue * kParts + part, plus one; 0: free
  shm::RingSet rings;
};

struct TypeDefault {
  Word hash;  ///< of the type's name; 0: unused
  Word rank;  ///< plus one; 0: none
};
constexpr std::uint32_t kTypeDefaults = 256;

/// EngineHeader::telling
constexpr std::uint64_t kTells = 1,  ///< lanes tell what happens
    kListened = 2;                   ///< a lane may sleep until one does: the teller wakes it

/// Written when the segment is made; only the last words change later.
struct EngineHeader {
  std::uint8_t convention;
  std::uint8_t pad[3];
  std::uint32_t max_queues;
  std::uint32_t max_body_bytes;
  std::uint32_t default_lease_ms;
  std::uint64_t retention_ms;
  char version[24];
  std::uint32_t timers_ring;    ///< hints (slot, generation) of jobs that will be due
  std::uint32_t finished_ring;  ///< batches of finished slots, oldest first
  /// counts timer hints that found no room: the supervisor walks all slots then
  Word timers_lost;
  Word aging;  ///< Aging of queues that have none of their own
  std::uint32_t wait_pages, event_pages, flows, permit_pages, limit_keys, lots;
  /// 63..32 key + 1 that is being set  31..0 lane + 1 of the lane that makes or sets a limit
  Word limit_settler;
  std::uint32_t accounts;
  Half account_seat;         ///< lane + 1 of the lane that gives accounts to tenants
  Word marking;              ///< Marking, of the lane in that seat
  std::uint32_t tickets;     ///< places for enqueues that wait for room
  alignas(64) Word telling;  ///< kTells, kListened
  Word limiting;             ///< kinds of limits that there are; only grows
  Word strict_envelopes;     ///< 1: readers of envelopes refuse members without a meaning
  /// may a priority change after enqueue: 1 yes, 2 no, 0 as the convention has it
  Word priority_changes;
  Word retentions;              ///< how often a queue's own retention was set
  alignas(64) Word event_turn;  ///< pages of events handed out
  Word waits_unmeasured;        ///< dispatches for which there was no page
  Word pools_settler;           ///< lane + 1 of the lane that changes pools
  /// odd while keys of limits are given up, moves on with each time. PAIR limit-turn
  Word limit_turn;
  Word dead_max_age_ms, dead_max_count;  ///< of dead letters; 0: without limit
  Word workers_lost;                     ///< registered workers that were ended for their silence
  Word maintenance;                      ///< MaintenanceWord. PAIR maintenance
  Word maintainer;                       ///< lane + 1 of the lane that changes it
  // NO CRASH POINT: a bank means nothing before `maintenance` names it
  Plain<std::uint64_t> maintenance_since[2];
  std::uint64_t maintenance_reason[2][kReasonBytes / 8];
  Plain<std::uint64_t> maintenance_end[2];  // NO CRASH POINT: as above. ms, 0: nothing was said
  Word limits_end;  ///< when the first limit ends that an operator set for a time, ms; 0: none
  /// lanes that sleep until an event is told or a job ends that is waited for. PAIR listen
  alignas(64) Word listeners[shm::kMaxLanes / 64];
};

constexpr std::uint64_t engine_fingerprint() {
  return kMostBlocks + sizeof(JobRecord) * 31 + sizeof(QueueRecord) * 37 + sizeof(QueueTally) * 41 +
         sizeof(EngineHeader) * 43 + offsetof(JobRecord, policy) * 47 +
         offsetof(QueueRecord, reserved) * 53 + offsetof(QueueRecord, written_off) * 59 +
         offsetof(QueueRecord, turns) * 61 + sizeof(PartRings) * 67 + sizeof(WaitPage) * 71 +
         sizeof(EventPage) * 73 + sizeof(PoolRecord) * 79 + sizeof(FlowRecord) * 83 +
         sizeof(PermitSet) * 89 + sizeof(LimitKey) * 97 + sizeof(ParkingLot) * 101 +
         sizeof(QueueSamples) * 103 + sizeof(RoomTicket) * 107 + sizeof(AccountRecord) * 127 +
         sizeof(AccountTally) * 131 + offsetof(QueueRecord, backpressure) * 109 +
         offsetof(QueueRecord, room_ring) * 113 + sizeof(TransitionRecord) * 137 +
         records_per_lane(1U << 20) * 139 + sizeof(Annex) * 149 + sizeof(CronTable) * 151 +
         offsetof(QueueRecord, deleted) * 157 + offsetof(EngineHeader, dead_max_age_ms) * 163 +
         offsetof(EngineHeader, maintenance) * 193 + offsetof(EngineHeader, tickets) * 197 +
         offsetof(CronTable, due) * 167 + sizeof(WorkerRecord) * 173 + sizeof(WorkerMark) * 179 +
         offsetof(WorkerRecord, details) * 181 + kSharedTurns * sizeof(SharedTurn) * 191;
}

constexpr std::uint64_t kEngineHeaderBytes = 1024;
constexpr std::uint32_t spare_parts(std::uint32_t max_queues) { return max_queues < 32 ? 32 : 64; }
constexpr std::uint64_t area_bytes(std::uint32_t max_queues, std::uint32_t lanes,
                                   std::uint32_t wait_pages, std::uint32_t event_pages,
                                   std::uint32_t flows, std::uint32_t permit_pages,
                                   std::uint32_t limit_keys, std::uint32_t lots,
                                   std::uint32_t accounts, std::uint32_t tickets,
                                   std::uint32_t slots) {
  return std::uint64_t{flows} * sizeof(FlowRecord) + kTenantRules * sizeof(TenantRule) +
         kSharedTurns * sizeof(SharedTurn) + sizeof(CronTable) +
         workers_for(slots) * (sizeof(WorkerRecord) + sizeof(WorkerMark)) +
         std::uint64_t{accounts} *
             (sizeof(AccountRecord) + std::uint64_t{lanes} * sizeof(AccountTally)) +
         page_bytes(wait_pages, event_pages) + permit_pages * (sizeof(PermitPage) + sizeof(Word)) +
         limit_keys * sizeof(LimitKey) + lots * sizeof(ParkingLot) +
         std::uint64_t{tickets} * sizeof(RoomTicket) + kEngineHeaderBytes +
         kTypeDefaults * sizeof(TypeDefault) +
         std::uint64_t{max_queues} *
             (sizeof(QueueRecord) + std::uint64_t{lanes} * sizeof(QueueTally)) +
         std::uint64_t{spare_parts(max_queues)} * sizeof(PartRings) + kPools * sizeof(PoolRecord) +
         (busy_words(max_queues) + std::uint64_t{max_queues}) * sizeof(Word) + sizeof(SampleTimes) +
         std::uint64_t{max_queues} * sizeof(QueueSamples) + recorder_bytes(lanes, slots);
}
/// Flows come in pairs, so that what follows them stays aligned.
constexpr std::uint32_t flows_for(std::uint32_t wanted) { return (wanted + 1) & ~1U; }
static_assert(sizeof(EngineHeader) <= kEngineHeaderBytes &&
              (kTypeDefaults * sizeof(TypeDefault)) % 128 == 0);
static_assert(alignof(QueueRecord) <= 128 && alignof(PartRings) <= 128 &&
              alignof(PoolRecord) <= 128 && alignof(WaitPage) <= 128 && alignof(EventPage) <= 128 &&
              alignof(QueueTally) <= 64);

}  // namespace ojs_shm::engine
