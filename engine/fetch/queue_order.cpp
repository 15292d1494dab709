// SPDX-License-Identifier: Apache-2.0
#include "engine/fetch/queue_order.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/rules/smooth.hpp"
#include "engine/tables/new_job.hpp"
#include "engine/tables/queue_flags.hpp"
#include "engine/tables/seat.hpp"

// Each setting is one word, or is
// published by one, so a death leaves the old one or the new one, and the next fetch follows it
// over the whole backlog.

namespace ojs_shm::engine {

using shm::Point;

// ---- ageing -------------------------------------------------------------------------------------

/// Makes the queue's flag say what its ageing says.
void QueueOrder::follow_aging(QueueRecord& queue) {
  for (;;) {
    const Aging aging = store_.aging(queue);
    if (aging.enabled() != ((queue.flags.load() & kAges) != 0))
      set_flags(queue, kAges, aging.enabled() ? kAges : 0);
    if (store_.aging(queue).word == aging.word) return;
  }
}

void QueueOrder::set_aging(std::uint32_t q, Aging aging) {
  store_.queue(q).aging.exchange(aging.word, Point::kSetChanged);
  follow_aging(store_.queue(q));
}

void QueueOrder::set_default_aging(Aging aging) {
  // before the look at the queues: a new one reads it
  store_.header().aging.exchange(aging.word, Point::kSetChanged);
  for (std::uint32_t q = 0; q < store_.queue_count(); ++q) follow_aging(store_.queue(q));
}

// ---- parts --------------------------------------------------------------------------------------

/// Sets are never given up, and each lane takes the first free one: so a part that is being made by
/// two, or was half made by a dead lane, gets one set only.
std::uint32_t QueueOrder::ensure_part(std::uint32_t q, unsigned part) {
  Half& name = store_.queue(q).part[part % kParts];
  if (part == 0 || name.load() != 0) return 0;
  const std::uint64_t mine = std::uint64_t{q} * kParts + part + 1;
  for (std::uint32_t i = 0; i < store_.part_rings.size(); ++i) {
    std::uint64_t found = store_.part_rings[i].owner.load();
    if (found == 0 && store_.part_rings[i].owner.cas(found, mine, Point::kPartTaken)) found = mine;
    if (found != mine) continue;
    name.store(i + 1, Point::kPartNamed);  // PAIR part-name
    return i;
  }
  return kNoIndex;
}

bool QueueOrder::has_sets_for(std::uint32_t q, unsigned end) const {
  const std::uint64_t first = std::uint64_t{q} * kParts + 2;  // the owner's word of part 1
  unsigned found = 1;                                         // part 0 needs none
  for (std::uint32_t i = 0; i < store_.part_rings.size(); ++i)
    if (const std::uint64_t owner = store_.part_rings[i].owner.load();
        owner == 0 || (owner >= first && owner < first + end - 1))
      ++found;
  return found >= end;
}

/// Makes the part ready for its first job: its rings, and the flag by which fetches look at more
/// than one part.
Outcome QueueOrder::open_part(std::uint32_t q, unsigned part) {
  if (part == 0) return Outcome::kOk;
  if (ensure_part(q, part) == kNoIndex) return Outcome::kNoParts;
  QueueRecord& queue = store_.queue(q);
  if ((queue.flags.load() & kParted) == 0) set_flags(queue, 0, kParted);
  return Outcome::kOk;
}

[[gnu::noinline]] Outcome QueueOrder::choose_part(const NewJob& spec, QueueRecord& queue,
                                                  unsigned& part) {
  part = 0;
  if ((queue.flags.load() & kSharded) != 0) {
    if (spec.age_rate) return Outcome::kRateOfShard;
    const auto shards =
        static_cast<unsigned>(std::clamp<std::uint64_t>(queue.shards.load(), 1, kParts));
    part = lane_ % shards;
    return open_part(spec.queue, part);
  }
  if (!spec.age_rate) return Outcome::kOk;
  const std::uint64_t wanted = std::uint64_t{*spec.age_rate} + 1;
  for (part = 1; part < kAgeClasses; ++part) {
    std::uint64_t found = queue.age_class[part].load();
    if (found == 0 && queue.age_class[part].cas(found, wanted, Point::kAgeClassTaken))
      found = wanted;  // PAIR age-class
    if (found == wanted) return open_part(spec.queue, part);
  }
  return Outcome::kTooManyRates;
}

Outcome QueueOrder::set_shards(std::uint32_t q, std::uint32_t shards) {
  QueueRecord& queue = store_.queue(q);
  if (shards > 1)
    for (unsigned part = 1; part < kAgeClasses; ++part)
      if (is_age_class(queue.age_class[part].load())) return Outcome::kRateOfShard;
  const unsigned end = std::min<std::uint32_t>(shards, kParts);
  if (!has_sets_for(q, end)) return Outcome::kNoParts;
  for (unsigned part = 1; part < end; ++part) {
    // A part that was a shard never gets a rate: its jobs may outlive the setting.
    if (part < kAgeClasses &&
        !queue.age_class[part].cas_once(0, kClassOfShard, Point::kAgeClassTaken) &&
        is_age_class(queue.age_class[part].load()))
      return Outcome::kRateOfShard;
    if (const Outcome opened = open_part(q, part); opened != Outcome::kOk) return opened;
  }
  queue.shards.store(shards, Point::kSetChanged);
  set_flags(queue, kSharded, shards > 1 ? kSharded : 0);
  return Outcome::kOk;
}

// ---- weights of levels --------------------------------------------------------------------------

Outcome QueueOrder::set_level_weights(std::uint32_t q, std::span<const LevelWeight> weights) {
  QueueRecord& queue = store_.queue(q);
  std::vector<std::uint32_t> amounts;
  for (const LevelWeight& each : weights) amounts.push_back(each.weight);
  std::uint32_t divisor = 0;
  std::uint64_t sum = 0;
  for (const std::uint32_t amount : amounts) divisor = std::gcd(divisor, amount), sum += amount;
  if (divisor != 0 && sum / divisor > Turn::kMostTurns) return Outcome::kTooLarge;
  const std::vector<std::uint16_t> cycle = smooth_schedule(amounts);

  const Seat<Word> seat = settler(queue.settler, lane_);
  if (!seat.take()) return Outcome::kBusy;
  const Turn before(queue.turn.load());
  const unsigned bank = 1 - before.bank();  // this one is not read
  for (std::size_t i = 0; i < cycle.size(); i += 4) {
    std::uint64_t four = 0;
    for (std::size_t k = 0; k < 4 && i + k < cycle.size(); ++k)
      four |= std::uint64_t{weights[cycle[i + k]].level} << (k * 16);
    queue.turns[bank][i / 4].set(four);
  }
  std::uint64_t found = before.word;
  std::uint64_t next = 0;
  do
    next = Turn::On::put(cycle.empty() ? 0 : 1) | Turn::Bank::put(bank) |
           Turn::Length::put(cycle.size()) | Turn::Version::put(Turn::Version::get(found) + 1);
  while (!queue.turn.cas(found, next, Point::kTurnTaken));
  set_flags(queue, kWeighted, cycle.empty() ? 0 : kWeighted);
  seat.leave();
  return Outcome::kOk;
}

}  // namespace ojs_shm::engine
