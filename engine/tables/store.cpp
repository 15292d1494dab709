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
  ticket_count_ = std::max(cut(h.tickets, sizeof(RoomTicket)), 1U);
  transitions_per_lane_ = records_per_lane(slots_);
  worker_count_ = cut(workers_for(slots_), sizeof(WorkerRecord) + sizeof(WorkerMark));
  room -= std::min<std::uint64_t>(room, recorder_bytes(lanes_, slots_));
  max_queues_ = cut(std::min<std::uint32_t>(h.max_queues, 4095),
                    sizeof(QueueRecord) + std::uint64_t{lanes_} * sizeof(QueueTally) +
                        sizeof(Word) + sizeof(QueueSamples));
  room -= std::min<std::uint64_t>(room, busy_words(max_queues_) * sizeof(Word));
  flow_count_ = cut(h.flows, sizeof(FlowRecord)) & ~1U;
  spare_parts_ = cut(engine::spare_parts(max_queues_), sizeof(PartRings));
  limit_keys_ = cut(std::min<std::uint32_t>(h.limit_keys, 0xFFFE), sizeof(LimitKey));
  lots_ = cut(std::min<std::uint32_t>(h.lots, 0xFFFE), sizeof(ParkingLot));
  permit_pages_ = cut(h.permit_pages, sizeof(PermitPage) + sizeof(Word));
  account_count_ =
      std::max(cut(std::min(h.accounts, AccountMark::kMostAccounts),
                   sizeof(AccountRecord) + std::uint64_t{lanes_} * sizeof(AccountTally)),
               1U);
  wait_pages_ = cut(h.wait_pages, sizeof(WaitPage));
  event_pages_ = cut(h.event_pages, sizeof(EventPage) + sizeof(Word));
  max_body_ = std::min<std::uint32_t>(h.max_body_bytes, 0xFF'FFFF);
  default_lease_ = h.default_lease_ms == 0 ? 1'800'000 : h.default_lease_ms;
  convention_ = convention_of_byte(h.convention).value_or(Convention::kOjs);
  std::byte* at = segment.area() + kEngineHeaderBytes;
  types_ = reinterpret_cast<TypeDefault*>(at);
  at += kTypeDefaults * sizeof(TypeDefault);
  flows_ = reinterpret_cast<FlowRecord*>(at);
  at += std::uint64_t{flow_count_} * sizeof(FlowRecord);
  queues_ = reinterpret_cast<QueueRecord*>(at);
  at += std::uint64_t{max_queues_} * sizeof(QueueRecord);
  part_rings_ = reinterpret_cast<PartRings*>(at);
  at += std::uint64_t{spare_parts_} * sizeof(PartRings);
  pools_ = reinterpret_cast<PoolRecord*>(at);
  at += kPools * sizeof(PoolRecord);
  accounts_ = reinterpret_cast<AccountRecord*>(at);
  at += std::uint64_t{account_count_} * sizeof(AccountRecord);
  keys_ = reinterpret_cast<LimitKey*>(at);
  at += std::uint64_t{limit_keys_} * sizeof(LimitKey);
  parking_ = reinterpret_cast<ParkingLot*>(at);
  at += std::uint64_t{lots_} * sizeof(ParkingLot);
  permits_ = reinterpret_cast<PermitPage*>(at);
  at += std::uint64_t{permit_pages_} * sizeof(PermitPage);
  waits_ = reinterpret_cast<WaitPage*>(at);
  at += std::uint64_t{wait_pages_} * sizeof(WaitPage);
  events_ = reinterpret_cast<EventPage*>(at);
  at += std::uint64_t{event_pages_} * sizeof(EventPage);
  shared_turns_ = reinterpret_cast<SharedTurn*>(at);
  at += kSharedTurns * sizeof(SharedTurn);
  tallies_ = reinterpret_cast<QueueTally*>(at);
  at += std::uint64_t{max_queues_} * lanes_ * sizeof(QueueTally);
  tenant_rules_ = reinterpret_cast<TenantRule*>(at);
  at += kTenantRules * sizeof(TenantRule);
  cron_table_ = reinterpret_cast<CronTable*>(at);
  at += sizeof(CronTable);
  workers_ = reinterpret_cast<WorkerRecord*>(at);
  at += std::uint64_t{worker_count_} * sizeof(WorkerRecord);
  tickets_ = reinterpret_cast<RoomTicket*>(at);
  at += std::uint64_t{ticket_count_} * sizeof(RoomTicket);
  account_tallies_ = reinterpret_cast<AccountTally*>(at);
  at += std::uint64_t{account_count_} * lanes_ * sizeof(AccountTally);
  worker_marks_ = reinterpret_cast<WorkerMark*>(at);
  at += std::uint64_t{worker_count_} * sizeof(WorkerMark);
  event_controls_ = reinterpret_cast<Word*>(at);
  at += std::uint64_t{event_pages_} * sizeof(Word);
  busy_ = reinterpret_cast<Word*>(at);
  at += std::uint64_t{busy_words(max_queues_)} * sizeof(Word);
  permit_runs_ = reinterpret_cast<Word*>(at);
  at += std::uint64_t{permit_pages_} * sizeof(Word);
  backlogs_ = reinterpret_cast<Word*>(at);
  at += std::uint64_t{max_queues_} * sizeof(Word);
  sample_times_ = reinterpret_cast<SampleTimes*>(at);
  at += sizeof(SampleTimes);
  samples_ = reinterpret_cast<QueueSamples*>(at);
  at += std::uint64_t{max_queues_} * sizeof(QueueSamples);
  transitions_ = reinterpret_cast<TransitionRecord*>(at);
}

shm::RingSet& Store::rings_of_part(QueueRecord& queue, unsigned part) const {
  const std::uint32_t at = queue.part[part % kParts].load() - 1;  // PAIR part-name
  return at < spare_parts_ ? part_rings_[at].rings : queue.rings;
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
