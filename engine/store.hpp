// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/aging.hpp"
#include "engine/convention.hpp"
#include "engine/layout.hpp"
#include "engine/report.hpp"
#include "shm/key_index.hpp"
#include "shm/ring.hpp"
#include "shm/segment.hpp"

namespace ojs_shm::engine {

constexpr std::uint32_t kNoIndex = shm::kNoIndex;

/// A recorded failure: a header and four texts after it.
struct ErrorEntry {
  std::uint64_t at_ms = 0;
  std::uint16_t attempt = 0;
  bool retryable = true;
  std::string_view code, type, message, details;
};
RetryPolicy retry_of(const JobRecord& job);
/// What the engine itself says of an attempt.
constexpr ErrorEntry own_error(std::uint64_t at_ms, std::uint16_t attempt, bool retryable,
                               std::string_view code, std::string_view message) {
  return {at_ms, attempt, retryable, code, code, message, {}};
}

/// A copy of one job, taken while its control word stood still.
struct Snapshot {
  std::uint32_t slot = 0;
  Control control;
  JobId id;
  std::uint32_t queue = 0, generation = 0;
  std::uint32_t limits = 0;
  WorkerKey worker;  ///< that has it, or had it last; none: it is not registered
  std::uint16_t attempt = 0;
  Policy policy;
  std::uint64_t available_at = 0, deadline = 0, due_at = 0, signals = 0, expires_at = 0,
                created_at = 0, started_at = 0, finished_at = 0, scheduled_at = 0;
  std::uint32_t timeout_ms = 0, lease_ms = 0, retry_delay_ms = 0;
  RetryPolicy retry;
  std::uint32_t type_length = 0, args_length = 0;
  NewAnnex annex;    ///< as far as its bits say
  std::string body;  ///< type, args, extra
  std::string result;
  std::string errors;  ///< for decode_errors()
  /// what was reported of how far this attempt, or the last one, is
  std::optional<double> fraction;
  ReportTexts report;
  bool waits = false;  ///< for others of its workflow; it is told as if it were available
  JobState state() const { return job_state(control.state()); }
};

std::vector<ErrorEntry> decode_errors(std::string_view bytes);
std::string encode_error(const ErrorEntry& entry);

/// The engine's tables in a mapped segment, for reading. Writing goes through an Actor.
/// Thread-safe.
class Store {
 public:
  explicit Store(shm::Segment& segment);

  shm::Segment& segment() const { return segment_; }
  EngineHeader& header() const { return *reinterpret_cast<EngineHeader*>(segment_.area()); }
  Convention convention() const { return convention_; }
  /// Whether a job keeps the priority that it was enqueued with.
  bool immutable_priorities() const {
    const std::uint64_t set = header().priority_changes.load();
    return set == 0 ? info(convention_).immutable : set == 2;
  }
  std::uint32_t max_queues() const { return max_queues_; }
  std::uint32_t lanes() const { return lanes_; }
  std::uint32_t slots() const { return slots_; }
  std::uint32_t max_body() const { return max_body_; }
  std::uint32_t default_lease_ms() const { return default_lease_; }
  std::uint64_t now_ms() const { return shm::now_ms(segment_); }

  JobRecord& job(std::uint32_t slot) const { return jobs_[slot < slots_ ? slot : 0]; }
  QueueRecord& queue(std::uint32_t i) const { return queues_[i < max_queues_ ? i : 0]; }
  QueueTally& tally(std::uint32_t queue, std::uint32_t lane) const {
    return tallies_[std::size_t{queue < max_queues_ ? queue : 0} * lanes_ +
                    (lane < lanes_ ? lane : 0)];
  }
  /// The rings in which a part's jobs stand.
  shm::RingSet& rings_of(std::uint32_t q, unsigned part) const {
    QueueRecord& record = queue(q);
    return part == 0 ? record.rings : rings_of_part(record, part);
  }
  shm::RingSet& rings_of_part(QueueRecord& queue, unsigned part) const;
  /// Whether a waiting job stands in a lot.
  bool parked(const JobRecord& job) const { return second_limit(job.limits.get()) < lots_; }
  /// Where a waiting job stands: in its part of its queue, or in a lot.
  shm::RingSet& rings_of(const JobRecord& job) const {
    if (parked(job)) [[unlikely]]
      return parking_[second_limit(job.limits.get())].rings;
    return rings_of(job.queue.get(), job.flags().part());
  }
  std::uint32_t spare_parts() const { return spare_parts_; }
  std::uint32_t parts_in_use() const;
  PartRings& part_rings(std::uint32_t i) const { return part_rings_[i < spare_parts_ ? i : 0]; }
  Aging aging(const QueueRecord& queue) const {
    const Aging own(queue.aging.load());
    return own.set() ? own : Aging(header().aging.load());
  }
  /// The rate at which jobs of a part age.
  static std::uint8_t age_rate(const QueueRecord& queue, unsigned part, Aging aging) {
    const std::uint64_t own =
        part == 0 || part >= kAgeClasses ? 0 : queue.age_class[part].load();  // PAIR age-class
    return is_age_class(own) ? static_cast<std::uint8_t>(own - 1) : aging.rate();
  }
  std::uint32_t wait_pages() const { return wait_pages_; }
  std::uint32_t event_pages() const { return event_pages_; }
  WaitPage& wait_page(std::uint32_t i) const { return waits_[i < wait_pages_ ? i : 0]; }
  EventPage& event_page(std::uint32_t i) const { return events_[i < event_pages_ ? i : 0]; }
  Word& event_control(std::uint32_t i) const { return event_controls_[i < event_pages_ ? i : 0]; }
  std::uint32_t limit_keys() const { return limit_keys_; }
  LimitKey& limit_key(std::uint32_t i) const { return keys_[i < limit_keys_ ? i : 0]; }
  std::uint32_t lots() const { return lots_; }
  ParkingLot& lot(std::uint32_t i) const { return parking_[i < lots_ ? i : 0]; }
  std::uint32_t permit_pages() const { return permit_pages_; }
  PermitPage& permit_page(std::uint32_t i) const { return permits_[i < permit_pages_ ? i : 0]; }
  Word& permit_run(std::uint32_t i) const { return permit_runs_[i < permit_pages_ ? i : 0]; }
  /// Places for enqueues that wait for room.
  std::uint32_t tickets() const { return ticket_count_; }
  RoomTicket& ticket(std::uint32_t i) const { return tickets_[i < ticket_count_ ? i : 0]; }
  TypeDefault& type_default(std::uint32_t i) const { return types_[i % kTypeDefaults]; }
  std::uint32_t flows() const { return flow_count_; }
  FlowRecord& flow(std::uint32_t i) const { return flows_[i < flow_count_ ? i : 0]; }
  TenantRule& tenant_rule(std::uint32_t i) const { return tenant_rules_[i % kTenantRules]; }
  CronTable& cron_table() const { return *cron_table_; }
  CronRecord& cron(std::uint32_t i) const { return cron_table_->record[i % kCrons]; }
  std::uint32_t workers() const { return worker_count_; }
  WorkerRecord& worker(std::uint32_t i) const { return workers_[i < worker_count_ ? i : 0]; }
  WorkerMark& worker_mark(std::uint32_t i) const {
    return worker_marks_[i < worker_count_ ? i : 0];
  }
  /// Whether an entry of the index with that fingerprint is the slot's: its id's or its unique key's.
  bool carries_any(std::uint32_t slot, std::uint64_t fingerprint) const;
  static std::uint64_t hash_tenant(std::string_view tenant) {
    return tenant.empty() ? 0 : mix_key(hash_name(tenant), 0);
  }
  /// What the tenant of that key (mix_key of queue and tenant) has of its own; nothing when none
  /// has named it.
  const TenantRule* find_rule(std::uint64_t key) const;
  Bounds tenant_bounds(const QueueRecord& queue, std::uint64_t key) const;
  std::uint32_t accounts() const { return account_count_; }
  AccountRecord& account(std::uint32_t i) const { return accounts_[i < account_count_ ? i : 0]; }
  AccountTally& account_tally(std::uint32_t account, std::uint32_t lane) const {
    return account_tallies_[std::size_t{lane < lanes_ ? lane : 0} * account_count_ +
                            (account < account_count_ ? account : 0)];
  }
  /// The account of that key; kNoIndex when it has none.
  std::uint32_t find_account(std::uint64_t key) const;
  /// Places at which an account of the key may stand, the first one first.
  std::uint32_t account_places() const { return std::min<std::uint32_t>(account_count_, 64); }
  std::uint32_t account_place(std::uint64_t key, std::uint32_t i) const {
    return static_cast<std::uint32_t>((key + i) % account_count_);
  }
  /// What an account holds, as far as it does not stand in `reserved`: a number below zero, modulo
  /// 2^63.
  std::uint64_t account_beside(std::uint32_t account) const;
  /// What has left the account.
  std::uint64_t account_out(std::uint32_t account) const;
  std::uint64_t account_charge(std::uint32_t at) const {
    return (account(at).reserved.load() + account_beside(at)) & kAccountMask;
  }
  /// Turns that a tenant's flow has before the next one.
  std::uint64_t weight_of(const QueueRecord& queue, std::uint64_t tenant) const;
  PoolRecord& pool(std::uint32_t i) const { return pools_[i % kPools]; }
  Word& busy_word(std::uint32_t queue) const {
    return busy_[(queue < max_queues_ ? queue : 0) / BusyWord::kQueues];
  }
  /// Available jobs of the queue, nearly: what a choice among queues goes by. Kept while it is
  /// counted; close to those of the others, for they are read together.
  Word& backlog(std::uint32_t queue) const { return backlogs_[queue < max_queues_ ? queue : 0]; }
  SampleTimes& sample_times() const { return *sample_times_; }
  SharedTurn& shared_turn(std::uint32_t i) const { return shared_turns_[i % kSharedTurns]; }
  /// The ring of a lane in the flight recorder.
  TransitionRecord* transitions(std::uint32_t lane) const {
    return transitions_ + std::size_t{lane < lanes_ ? lane : 0} * (transitions_per_lane_ + 1);
  }
  std::uint32_t transitions_per_lane() const { return transitions_per_lane_; }
  QueueSamples& samples(std::uint32_t queue) const {
    return samples_[queue < max_queues_ ? queue : 0];
  }
  std::uint32_t number_of(const QueueRecord& queue) const {
    return static_cast<std::uint32_t>(&queue - queues_);
  }

  std::uint32_t queue_count() const;
  std::uint32_t find_queue(std::string_view name) const;
  /// The pool of that name, kNoIndex when there is none.
  std::uint32_t find_pool(std::string_view name) const;
  std::string pool_name(std::uint32_t pool) const;
  /// What a pool has been told, and under which setup; nothing when it was never made.
  struct PoolPlan {
    PoolSetup setup{0};
    std::uint64_t concurrency = 0, interval_ms = 0;
    double ratio = 0;
    std::vector<std::uint32_t> queues;
    std::vector<std::uint8_t> cycle;  ///< places in `queues`
  };
  std::optional<PoolPlan> pool_plan(std::uint32_t pool) const;
  /// Who sits in a pool, as each of them said.
  struct PoolCrew {
    std::uint32_t workers = 0;
    std::uint64_t concurrency = 0;           ///< of those that have declared any
    bool all_declared = true, laden = true;  ///< all of them
  };
  PoolCrew pool_crew(std::uint32_t pool) const;
  /// By a walk over all slots.
  struct PoolLoad {
    std::uint64_t active = 0, waiting = 0;
  };
  PoolLoad pool_load(std::uint32_t pool, const PoolPlan& plan) const;
  std::string queue_name(std::uint32_t queue) const;
  std::optional<std::uint8_t> type_rank(std::string_view type) const;
  static std::uint64_t hash_name(std::string_view name);

  /// The slot that carries the id now, or kNoIndex.
  std::uint32_t find_job(JobId id) const;
  /// Whether the id was made in this segment and its slot has been given away since: the job is
  /// gone. What an id that a client brought was, or never was, a slot does not remember.
  bool gave_away(JobId id) const;
  static std::uint64_t hash_id(JobId id) {
    std::uint64_t hash = id.hi ^ (id.lo * 0x9E3779B97F4A7C15ULL);
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93ULL;
    // the low bits choose the place, and a product carries nothing down into them
    return hash ^ hash >> 32;
  }
  /// A job's copy, or nothing when the slot holds none or would not stand still. Without `texts`,
  /// no body and no errors.
  std::optional<Snapshot> snapshot(std::uint32_t slot, bool texts = true,
                                   bool waiting = false) const;

  /// Sum over all lanes; exact when no operation is under way.
  std::uint64_t depth_charge(std::uint32_t queue) const;
  /// Everything that ever came into the queue, also again.
  std::uint64_t charged_in(std::uint32_t queue) const;
  /// Whether it was deleted and nothing has come into it since: it is as if there were none.
  bool deleted(std::uint32_t q) const {
    const std::uint64_t mark = queue(q).deleted.load();
    return mark != 0 && mark == deletion_mark(charged_in(q));
  }
  static constexpr std::uint64_t deletion_mark(std::uint64_t charged) { return charged << 1 | 1; }
  /// All sets of rings of all queues; lots are numbered from kParts.
  struct Part {
    std::uint32_t queue = 0;
    unsigned number = 0;
    shm::RingSet* rings = nullptr;
  };
  std::vector<Part> all_parts() const;
  std::vector<shm::RingSet*> ring_sets() const;
  /// The rings of timers, of finished batches, and of those who wait for room.
  std::vector<std::uint32_t> own_rings() const;
  /// All rings that stand in no set: these, and those of flows.
  std::vector<std::uint32_t> root_rings() const;
  /// Calls `visit(flow, ring)` for each flow that has a ring.
  template <class Visit>
  void each_flow(const Visit& visit) const {
    for (std::uint32_t i = 0; i < flow_count_; ++i)
      if (const std::uint32_t ring = flows_[i].ring.load(); ring != 0) visit(i, ring - 1);
  }
  /// Whether a hint of a queue's ring can still lead to a job, or to a flow.
  static bool any_lives(const shm::Segment& segment, shm::Hint hint);
  /// Whether it can still lead to its job.
  static bool hint_lives(const shm::Segment& segment, shm::Hint hint);
  static bool timer_lives(const shm::Segment& segment, shm::Hint hint);
  static bool batch_lives(const shm::Segment& segment, shm::Hint hint);
  static bool ticket_lives(const shm::Segment& segment, shm::Hint hint);

 private:
  void add_report(const JobRecord& job, bool texts, Snapshot& s) const;

  shm::Segment& segment_;
  JobRecord* jobs_;
  std::uint32_t slots_, lanes_;
  TypeDefault* types_;
  QueueRecord* queues_;
  QueueTally* tallies_;
  PartRings* part_rings_;
  WaitPage* waits_;
  EventPage* events_;
  RoomTicket* tickets_;
  std::uint32_t ticket_count_;
  Word* event_controls_;
  FlowRecord* flows_;
  TenantRule* tenant_rules_;
  CronTable* cron_table_;
  WorkerRecord* workers_;
  WorkerMark* worker_marks_;
  std::uint32_t worker_count_;
  AccountRecord* accounts_;
  AccountTally* account_tallies_;
  std::uint32_t account_count_;
  std::uint32_t flow_count_;
  PoolRecord* pools_;
  Word* busy_;
  LimitKey* keys_;
  ParkingLot* parking_;
  PermitPage* permits_;
  Word* permit_runs_;
  Word* backlogs_;
  SampleTimes* sample_times_;
  SharedTurn* shared_turns_;
  QueueSamples* samples_;
  TransitionRecord* transitions_;
  std::uint32_t transitions_per_lane_;
  std::uint32_t wait_pages_, event_pages_, permit_pages_, limit_keys_, lots_;
  Convention convention_;
  std::uint32_t max_queues_, max_body_, default_lease_, spare_parts_;
};

/// For the index of ids that clients brought.
class CarriesId final : public shm::KeyIndex::Carries {
 public:
  CarriesId(const Store& store, JobId id) : store_(store), id_(id) {}
  shm::KeyIndex::Standing operator()(std::uint32_t slot) const override;
  bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const override;
  unsigned patience() const override { return 64; }  // then its caller looks whether it has died

 private:
  const Store& store_;
  JobId id_;
};

}  // namespace ojs_shm::engine
