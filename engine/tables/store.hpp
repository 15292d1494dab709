// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rules/aging.hpp"
#include "engine/rules/convention.hpp"
#include "engine/tables/layout.hpp"
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
  bool parked(const JobRecord& job) const { return second_limit(job.limits.get()) < lots_; }
  /// Where a waiting job stands: in its part of its queue, or in a lot.
  shm::RingSet& rings_of(const JobRecord& job) const {
    if (parked(job)) [[unlikely]]
      return parking_[second_limit(job.limits.get())].rings;
    return rings_of(job.queue.get(), job.flags().part());
  }
  std::uint32_t spare_parts() const { return spare_parts_; }
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
  std::uint32_t accounts() const { return account_count_; }
  AccountRecord& account(std::uint32_t i) const { return accounts_[i < account_count_ ? i : 0]; }
  AccountTally& account_tally(std::uint32_t account, std::uint32_t lane) const {
    return account_tallies_[std::size_t{lane < lanes_ ? lane : 0} * account_count_ +
                            (account < account_count_ ? account : 0)];
  }
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

 private:
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

}  // namespace ojs_shm::engine
