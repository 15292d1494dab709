// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/store.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/unique/unique.hpp"
#include "shm/blocks.hpp"

namespace ojs_shm::engine {

Store::Store(shm::Segment& segment)
    : segment_(segment),
      jobs_(reinterpret_cast<JobRecord*>(&segment.slot(0))),
      slots_(segment.geometry().slots),
      lanes_(segment.geometry().lanes) {
  const EngineHeader& h = header();
  // Counts that a stranger overwrote since the attach lead to smaller tables, never outside.
  std::uint64_t room =
      segment.geometry().area_bytes - kEngineHeaderBytes - kTypeDefaults * sizeof(TypeDefault);
  const auto cut = [&room](std::uint32_t wanted, std::uint64_t each) {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, room / each));
    room -= count * each;
    return count;
  };
  room -= std::min<std::uint64_t>(room, kTenantRules * sizeof(TenantRule) + sizeof(CronTable) +
                                            kPools * sizeof(PoolRecord) + sizeof(SampleTimes));
  const std::uint32_t tickets_there = std::max(cut(h.tickets, sizeof(RoomTicket)), 1U);
  transitions_per_lane_ = records_per_lane(slots_);
  const std::uint32_t workers_there =
      cut(workers_for(slots_), sizeof(WorkerRecord) + sizeof(WorkerMark));
  room -= std::min<std::uint64_t>(room, recorder_bytes(lanes_, slots_));
  max_queues_ = cut(std::min<std::uint32_t>(h.max_queues, 4095),
                    sizeof(QueueRecord) + std::uint64_t{lanes_} * sizeof(QueueTally) +
                        sizeof(Word) + sizeof(QueueSamples));
  room -= std::min<std::uint64_t>(room, busy_words(max_queues_) * sizeof(Word));
  const std::uint32_t flows_there = cut(h.flows, sizeof(FlowRecord)) & ~1U;
  const std::uint32_t parts_there = cut(spare_parts(max_queues_), sizeof(PartRings));
  const std::uint32_t keys_there =
      cut(std::min<std::uint32_t>(h.limit_keys, 0xFFFE), sizeof(LimitKey));
  const std::uint32_t lots_there = cut(std::min<std::uint32_t>(h.lots, 0xFFFE), sizeof(ParkingLot));
  const std::uint32_t permits_there = cut(h.permit_pages, sizeof(PermitPage) + sizeof(Word));
  const std::uint32_t accounts_there =
      std::max(cut(std::min(h.accounts, AccountMark::kMostAccounts),
                   sizeof(AccountRecord) + std::uint64_t{lanes_} * sizeof(AccountTally)),
               1U);
  const std::uint32_t waits_there = cut(h.wait_pages, sizeof(WaitPage));
  const std::uint32_t events_there = cut(h.event_pages, sizeof(EventPage) + sizeof(Word));
  max_body_ = std::min<std::uint32_t>(h.max_body_bytes, 0xFF'FFFF);
  default_lease_ = h.default_lease_ms == 0 ? 1'800'000 : h.default_lease_ms;
  convention_ = convention_of_byte(h.convention).value_or(Convention::kOjs);

  // In the order of the layout.
  Tables area(segment.area() + kEngineHeaderBytes);
  type_defaults = area.table<TypeDefault>(kTypeDefaults);
  flows = area.table<FlowRecord>(flows_there);
  queues_ = area.next<QueueRecord>(max_queues_);
  part_rings = area.table<PartRings>(parts_there);
  pools = area.table<PoolRecord>(kPools);
  accounts = area.table<AccountRecord>(accounts_there);
  limit_keys = area.table<LimitKey>(keys_there);
  lots = area.table<ParkingLot>(lots_there);
  permit_pages = area.table<PermitPage>(permits_there);
  wait_pages = area.table<WaitPage>(waits_there);
  event_pages = area.table<EventPage>(events_there);
  shared_turns = area.table<SharedTurn>(kSharedTurns);
  tallies_ = area.next<QueueTally>(std::uint64_t{max_queues_} * lanes_);
  tenant_rules = area.table<TenantRule>(kTenantRules);
  cron_table_ = area.next<CronTable>(1);
  crons = {cron_table_->record, kCrons};
  workers = area.table<WorkerRecord>(workers_there);
  tickets = area.table<RoomTicket>(tickets_there);
  account_tallies_ = area.next<AccountTally>(std::uint64_t{accounts_there} * lanes_);
  worker_marks = area.table<WorkerMark>(workers_there);
  event_controls = area.table<Word>(events_there);
  busy_ = area.next<Word>(busy_words(max_queues_));
  permit_runs = area.table<Word>(permits_there);
  backlogs = area.table<Word>(max_queues_);
  sample_times_ = area.next<SampleTimes>(1);
  samples = area.table<QueueSamples>(max_queues_);
  transitions_ = area.next<TransitionRecord>(0);
}

shm::RingSet& Store::rings_of_part(QueueRecord& queue, unsigned part) const {
  const std::uint32_t at = queue.part[part % kParts].load() - 1;  // PAIR part-name
  return at < part_rings.size() ? part_rings[at].rings : queue.rings;
}

std::uint64_t Store::hash_name(std::string_view name) {
  std::uint64_t h = 0xCBF29CE484222325ULL;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return h == 0 ? 1 : h;
}

std::uint32_t Store::queue_count() const {
  std::uint32_t n = 0;
  while (n < max_queues_ && queues_[n].name_hash.load() != 0) ++n;
  return n;
}

std::uint32_t Store::find_queue(std::string_view name) const {
  const std::uint64_t hash = hash_name(name);
  for (std::uint32_t i = 0; i < max_queues_; ++i) {
    const std::uint64_t found = queues_[i].name_hash.load();
    if (found == hash) return i;
    if (found == 0) break;
  }
  return kNoIndex;
}

std::string Store::queue_name(std::uint32_t i) const {
  const QueueRecord& record = queue(i);
  std::string name(std::min<std::uint64_t>(record.name_length.load(), sizeof record.name),
                   '\0');  // PAIR queue-name
  shm::copy_out(name.data(), record.name, name.size());
  return name;
}

std::uint64_t Store::depth_charge(std::uint32_t q) const {
  std::uint64_t out = 0;
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), lanes());
  for (std::uint32_t l = 0; l < high; ++l) out += tally(q, l).out.get_ordered();
  return charged_in(q) - out;
}

std::uint64_t Store::charged_in(std::uint32_t q) const {
  std::uint64_t in = 0;
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), lanes());
  for (std::uint32_t l = 0; l < high; ++l)
    in += tally(q, l).in.get_ordered() + tally(q, l).in_reserved.get_ordered();
  return in;
}

}  // namespace ojs_shm::engine
