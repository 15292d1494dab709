// SPDX-License-Identifier: Apache-2.0
#include "engine/store.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/unique.hpp"
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

std::uint32_t Store::parts_in_use() const {
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < spare_parts_; ++i) n += part_rings_[i].owner.load() != 0 ? 1 : 0;
  return n;
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

std::uint32_t Store::find_pool(std::string_view name) const {
  const std::uint64_t hash = hash_name(name);
  for (std::uint32_t i = 0; i < kPools; ++i)
    if (pools_[i].name_hash.load() == hash)
      return PoolSetup(pools_[i].setup.load()).used() ? i : kNoIndex;
  return kNoIndex;
}

std::string Store::pool_name(std::uint32_t i) const {
  const PoolRecord& record = pool(i);
  std::string name(std::min<std::uint64_t>(record.name_length.load(), sizeof record.name),
                   '\0');  // PAIR pool-name
  shm::copy_out(name.data(), record.name, name.size());
  return name;
}

std::optional<Store::PoolPlan> Store::pool_plan(std::uint32_t i) const {
  const PoolRecord& record = pool(i);
  for (unsigned look = 0; look < 1024; ++look) {
    PoolPlan plan;
    plan.setup = PoolSetup(record.setup.load());
    if (!plan.setup.used()) return std::nullopt;
    const PoolBank& bank = record.bank[plan.setup.bank()];
    plan.concurrency = bank.concurrency.get();
    plan.interval_ms = bank.interval_ms.get();
    plan.ratio = std::bit_cast<double>(bank.ratio.get());
    for (unsigned place = 0; place < plan.setup.queues(); ++place)
      plan.queues.push_back(
          static_cast<std::uint16_t>(bank.queue[place / 4].get() >> (place % 4 * 16)));
    for (unsigned turn = 0; turn < plan.setup.turns(); ++turn)
      plan.cycle.push_back(static_cast<std::uint8_t>(bank.turn[turn / 8].get() >> (turn % 8 * 8)));
    if (record.setup.load() != plan.setup.word) continue;
    // What a stranger wrote leads to another queue, never outside.
    for (std::uint32_t& queue : plan.queues) queue = queue < max_queues_ ? queue : 0;
    for (std::uint8_t& place : plan.cycle) place = place < plan.queues.size() ? place : 0;
    if (plan.queues.empty()) plan.cycle.clear();
    return plan;
  }
  return std::nullopt;
}

std::optional<std::uint8_t> Store::type_rank(std::string_view type) const {
  const std::uint64_t hash = hash_name(type);
  for (std::uint32_t i = 0; i < kTypeDefaults; ++i) {
    const std::uint64_t found = types_[i].hash.load();
    if (found == 0) break;
    if (found != hash) continue;
    const std::uint64_t rank = types_[i].rank.load();
    return rank == 0 || rank > 256 ? std::nullopt
                                   : std::optional(static_cast<std::uint8_t>(rank - 1));
  }
  return std::nullopt;
}

shm::KeyIndex::Standing CarriesId::operator()(std::uint32_t slot) const {
  using Standing = shm::KeyIndex::Standing;
  if (slot >= store_.slots() || store_.job(slot).id() != id_) return Standing::kPasses;
  const unsigned state = Control(store_.job(slot).control.load()).state();
  if (state == kSlotFree) return Standing::kPasses;
  return state == kSlotFilling ? Standing::kComes : Standing::kKeepsOut;
}

bool CarriesId::plausible(std::uint32_t slot, std::uint64_t fingerprint) const {
  return store_.carries_any(slot, fingerprint);
}

bool Store::carries_any(std::uint32_t slot, std::uint64_t fingerprint) const {
  if (slot >= slots_ || Control(job(slot).control.load()).state() == kSlotFree) return false;
  const JobRecord& carrier = job(slot);
  return shm::KeyIndex::fingerprint(hash_id(carrier.id())) == fingerprint ||
         ((carrier.signals.load() & kUnique) != 0 &&
          shm::KeyIndex::fingerprint(carrier.annex().key_lo.get()) == fingerprint);
}

std::uint32_t Store::find_job(JobId id) const {
  const auto stands_in = [&](std::uint32_t slot) {
    const unsigned state = Control(job(slot).control.load()).state();
    return state != kSlotFree && state != kSlotFilling && state < kSlotTemplate &&
           job(slot).id() == id;
  };
  if (const auto made_here = parts(id, segment_.header().salt & ((1ULL << 56) - 1));
      made_here && made_here->slot < slots() && stands_in(made_here->slot))
    return made_here->slot;
  const std::uint32_t slot = shm::KeyIndex::find(segment_, hash_id(id), CarriesId(*this, id));
  return slot != kNoIndex && stands_in(slot) ? slot : kNoIndex;
}

bool Store::gave_away(JobId id) const {
  const auto made = parts(id, segment_.header().salt & ((1ULL << 56) - 1));
  if (!made || made->slot >= slots() || made->generation == 0) return false;
  const JobRecord& now = job(made->slot);
  const unsigned state = Control(now.control.load()).state();
  const std::uint32_t generation = now.generation.get();
  // A lane that takes the slot counts its lives up a moment later.
  return made->generation < generation || (made->generation == generation && state == kSlotFilling);
}

std::optional<Snapshot> Store::snapshot(std::uint32_t slot, bool texts, bool waiting) const {
  if (slot >= slots()) return std::nullopt;
  const JobRecord& r = job(slot);
  for (int attempt = 0; attempt < 64; ++attempt) {
    Snapshot s;
    s.slot = slot;
    s.control = Control(r.control.load());  // PAIR slot-settle
    if (s.control.state() == kSlotFree || s.control.state() == kSlotFilling) return std::nullopt;
    const Control seen = s.control;
    if (is_exclusive(seen.state())) {
      if (attempt < 32) {  // a lane holds it for a moment
        shm::pause_cpu();
        continue;
      }
      // Its holder was stopped or killed right there: the job is what it was before.
      const unsigned before = seen.state() == kSlotSettling ? kSlotActive : kSlotAvailable;
      s.control = Control(before, seen.ring(), 0, seen.tag());
    } else if (waiting && seen.state() == kSlotWaiting) {
      s.control = Control(kSlotAvailable, seen.ring(), 0, seen.tag());
      s.waits = true;
    } else if (!holds_job(seen.state())) {
      return std::nullopt;  // a stranger's state
    }
    s.id = r.id();
    s.queue = r.queue.get();
    s.generation = r.generation.get();
    s.limits = r.limits.get();
    s.worker = WorkerKey(r.pool_word.get());
    s.attempt = r.attempt.get();
    s.policy = r.flags();
    s.available_at = r.available_at.get();
    s.deadline = Deadline(r.deadline.load()).ms();
    s.due_at = r.due_at.get();
    s.signals = r.signals.load();
    s.expires_at = r.expires_at.get();
    s.created_at = r.created_at.get();
    s.started_at = r.started_at.get();
    s.finished_at = r.finished_at.get();
    s.scheduled_at = r.scheduled_at.get();
    s.timeout_ms = r.timeout_ms.get();
    s.lease_ms = r.lease_ms.get();
    s.retry_delay_ms = r.retry_delay_ms.get();
    s.retry = retry_of(r);
    if ((s.signals & kAnnexed) != 0) [[unlikely]]
      s.annex = read_annex(r.annex(), s.signals & kAnnexed);
    s.type_length = r.type_length();
    s.args_length = r.args_length();
    const std::uint64_t body = r.body_length();
    if (texts && body <= std::uint64_t{max_body_} + kInlineBytes) {
      if (r.body_block.get() == kNoIndex && body <= kInlineBytes) {
        s.body.resize(body);
        shm::copy_out(s.body.data(), r.inline_bytes, body);
      } else {
        shm::Blocks::read(segment_, r.body_block.get(), slot, s.generation, body, s.body);
      }
      shm::Blocks::read(segment_, r.result_block.get(), slot, s.generation, r.result_length.get(),
                        s.result);
      shm::Blocks::read(segment_, r.errors_block.get(), slot, s.generation, r.errors_length.get(),
                        s.errors);
    }
    if ((s.signals & kProgressMask) != 0) [[unlikely]]
      add_report(r, texts, s);
    // Type and args must lie within the body, whatever a stranger wrote.
    if (s.type_length + s.args_length > s.body.size()) {
      s.type_length =
          std::min<std::uint32_t>(s.type_length, static_cast<std::uint32_t>(s.body.size()));
      s.args_length = static_cast<std::uint32_t>(s.body.size()) - s.type_length;
    }
    if (Control(r.control.load()) == seen) return s;
  }
  return std::nullopt;
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

std::vector<std::uint32_t> Store::own_rings() const {
  std::vector<std::uint32_t> roots = {header().timers_ring, header().finished_ring};
  for (std::uint32_t q = 0; q < max_queues_ && queues_[q].name_hash.load() != 0; ++q)
    for (const Half* ring : {&queues_[q].room_ring, &queues_[q].tenants_ring})
      if (const std::uint32_t named = ring->load(); named != 0) roots.push_back(named - 1);
  return roots;
}

std::vector<std::uint32_t> Store::root_rings() const {
  std::vector<std::uint32_t> roots = own_rings();
  each_flow([&roots](std::uint32_t, std::uint32_t ring) { roots.push_back(ring); });
  return roots;
}

bool Store::ticket_lives(const shm::Segment& segment, shm::Hint hint) {
  const Store store(const_cast<shm::Segment&>(segment));  // reads
  return hint.index() < store.ticket_count_ &&
         TicketControl(store.ticket(hint.index()).control.load()).is(hint.tag());
}

std::vector<Store::Part> Store::all_parts() const {
  std::vector<Part> parts;
  for (std::uint32_t q = 0; q < max_queues_ && queues_[q].name_hash.load() != 0; ++q) {
    parts.push_back({q, 0, &queues_[q].rings});
    if ((queues_[q].flags.load() & kParted) == 0) continue;
    for (unsigned part = 1; part < kParts; ++part)
      if (shm::RingSet& rings = rings_of(q, part); &rings != &queues_[q].rings)
        parts.push_back({q, part, &rings});
  }
  for (std::uint32_t lot = 0; lot < lots_ && parking_[lot].owner.load() != 0; ++lot)
    parts.push_back({parking_[lot].queue(), kParts + lot, &parking_[lot].rings});
  return parts;
}

std::vector<shm::RingSet*> Store::ring_sets() const {
  std::vector<shm::RingSet*> sets;
  for (const Part& part : all_parts()) sets.push_back(part.rings);
  return sets;
}

bool Store::any_lives(const shm::Segment& segment, shm::Hint hint) {
  if (!hint.leads_to_line()) return hint_lives(segment, hint);
  const auto* header = reinterpret_cast<const EngineHeader*>(segment.area());
  const std::uint64_t room =
      segment.geometry().area_bytes - kEngineHeaderBytes - kTypeDefaults * sizeof(TypeDefault);
  if (hint.index() >= std::min<std::uint64_t>(header->flows, room / sizeof(FlowRecord)))
    return false;
  const auto* flows = reinterpret_cast<const FlowRecord*>(segment.area() + kEngineHeaderBytes +
                                                          kTypeDefaults * sizeof(TypeDefault));
  const FlowControl control(flows[hint.index()].control.load());
  // Stable: a flow's tag never goes back.
  if (control.in_line() && control.tag() == hint.tag()) return true;
  return hint.ahead() && control.next_tag() == hint.tag() &&
         control.state() != FlowControl::kEnding;
}

bool Store::hint_lives(const shm::Segment& segment, shm::Hint hint) {
  if (hint.index() >= segment.geometry().slots || hint.leads_to_line()) return false;
  const Control control(segment.slot(hint.index()).control.load());
  if (control.state() != kSlotAvailable) return false;
  return control.tag() == hint.tag() ||
         (hint.hint_first() && control.moved_to(0).tag() == hint.tag());
}

bool Store::timer_lives(const shm::Segment& segment, shm::Hint hint) {
  if (hint.index() >= segment.geometry().slots) return false;
  const auto& job = reinterpret_cast<const JobRecord&>(segment.slot(hint.index()));
  const unsigned state = Control(job.control.load()).state();
  return job.generation.get() == hint.tag() && state != kSlotFree &&
         (!is_finished(state) || is_minded(job, state));
}

bool Store::batch_lives(const shm::Segment& segment, shm::Hint hint) {
  const shm::ChunkControl control(segment.chunk(hint.index()).control.load());
  return control.state() == shm::ChunkState::kBatched && control.incarnation() == hint.tag();
}

RetryPolicy retry_of(const JobRecord& job) {
  const Policy policy = job.flags();
  return {policy.max_attempts(),
          job.initial_ms.get(),
          job.max_ms.get(),
          std::bit_cast<float>(job.coefficient.get()),
          policy.backoff(),
          policy.has(Policy::kJitter),
          policy.has(Policy::kDeadLetter)};
}

}  // namespace ojs_shm::engine
