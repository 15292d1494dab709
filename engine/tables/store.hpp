// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rules/aging.hpp"
#include "engine/rules/convention.hpp"
#include "engine/tables/layout.hpp"
#include "engine/tables/table.hpp"
#include "shm/ring.hpp"
#include "shm/segment.hpp"

namespace ojs_shm::engine {

constexpr std::uint32_t kNoIndex = shm::kNoIndex;

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
  bool parked(const JobRecord& job) const { return second_limit(job.limits.get()) < lots.size(); }
  /// Where a waiting job stands: in its part of its queue, or in a lot.
  shm::RingSet& rings_of(const JobRecord& job) const {
    if (parked(job)) [[unlikely]]
      return lots[second_limit(job.limits.get())].rings;
    return rings_of(job.queue.get(), job.flags().part());
  }
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
  CronTable& cron_table() const { return *cron_table_; }
  AccountTally& account_tally(std::uint32_t account, std::uint32_t lane) const {
    return account_tallies_[std::size_t{lane < lanes_ ? lane : 0} * accounts.size() +
                            (account < accounts.size() ? account : 0)];
  }
  Word& busy_word(std::uint32_t queue) const {
    return busy_[(queue < max_queues_ ? queue : 0) / BusyWord::kQueues];
  }
  SampleTimes& sample_times() const { return *sample_times_; }
  /// The ring of a lane in the flight recorder.
  TransitionRecord* transitions(std::uint32_t lane) const {
    return transitions_ + std::size_t{lane < lanes_ ? lane : 0} * (transitions_per_lane_ + 1);
  }
  std::uint32_t transitions_per_lane() const { return transitions_per_lane_; }
  std::uint32_t number_of(const QueueRecord& queue) const {
    return static_cast<std::uint32_t>(&queue - queues_);
  }

  std::uint32_t queue_count() const;
  std::uint32_t find_queue(std::string_view name) const;
  std::string queue_name(std::uint32_t queue) const;
  static std::uint64_t hash_name(std::string_view name);

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

  // The tables that options and services look at.
  Table<TypeDefault> type_defaults;
  Table<PartRings> part_rings;
  Table<PoolRecord> pools;
  Table<SharedTurn> shared_turns;
  Table<FlowRecord> flows;
  Table<TenantRule> tenant_rules;
  Table<AccountRecord> accounts;
  Table<RoomTicket> tickets;  ///< for enqueues that wait for room
  Table<LimitKey> limit_keys;
  Table<ParkingLot> lots;
  Table<PermitPage> permit_pages;
  Table<Word> permit_runs;  ///< of each permit page
  Table<CronRecord> crons;
  Table<WorkerRecord> workers;
  Table<WorkerMark> worker_marks;  ///< of each worker
  Table<WaitPage> wait_pages;
  Table<EventPage> event_pages;
  Table<Word> event_controls;  ///< of each event page
  /// Available jobs of each queue, nearly: what a choice among queues goes by. Kept while it is
  /// counted; side by side, for they are read together.
  Table<Word> backlogs;
  Table<QueueSamples> samples;  ///< of each queue

 private:
  shm::Segment& segment_;
  JobRecord* jobs_;
  std::uint32_t slots_, lanes_;
  QueueRecord* queues_;
  QueueTally* tallies_;
  CronTable* cron_table_;
  AccountTally* account_tallies_;
  Word* busy_;
  SampleTimes* sample_times_;
  TransitionRecord* transitions_;
  std::uint32_t transitions_per_lane_;
  Convention convention_;
  std::uint32_t max_queues_, max_body_, default_lease_;
};

}  // namespace ojs_shm::engine
