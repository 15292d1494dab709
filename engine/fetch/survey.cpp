// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <bitset>
#include <tuple>

#include "engine/fetch/look.hpp"
#include "engine/tenants/tenant_turns.hpp"

// A look at a queue whose order is not the plain one: it ages, its levels have weights, or its jobs
// stand in several parts. The proof is that of a plain look: what was found empty is looked at
// again after the choice, and a job that comes behind the head of its ring is never better than
// that head. Where age counts this does not hold of what was re-prioritised or given back: there
// all heads that were compared are looked at again.

namespace ojs_shm::engine {
namespace {

/// The place of a job in the order: the smallest goes first.
using Precedence = std::tuple<std::int64_t, std::uint64_t, std::int64_t>;

}  // namespace

bool Search::unchanged_parts(const QueueRecord& queue, const Look& look) const {
  if (queue.flags.load() != look.flags || queue.parts(look.flags) != look.all_parts) return false;
  for (unsigned p = 0; p < look.parts; ++p)
    if (!look.part[p].unchanged()) return false;
  return look.witnesses_stand() && look.compared_stand();
}

/// Begins with the next part, the one where this lane is at home first. False when all have been
/// seen.
bool Search::see_part(QueueRecord& queue, Look& look, unsigned at) {
  if (at < look.parts) return true;
  if (at == 0) look.all_parts = look.unseen = queue.parts(look.flags);
  if (look.unseen == 0) return false;
  const std::uint64_t shards =
      (look.flags & kSharded) != 0 ? std::min<std::uint64_t>(queue.shards.load(), kParts) : 0;
  const unsigned home = shards > 1 ? lane_ % static_cast<unsigned>(shards) : 0;
  const std::uint32_t from_home = look.unseen & ~0U << home;
  Look::Seen& seen = look.part[look.parts++];
  seen.number = static_cast<unsigned>(std::countr_zero(from_home != 0 ? from_home : look.unseen));
  look.unseen &= ~(1U << seen.number);
  seen.rings = seen.number == 0 ? &queue.rings : &store_.rings_of_part(queue, seen.number);
  seen.words = 0;
  seen.last = shut(queue, look.flags) ? 0 : shm::kIndexWords;
  return true;
}

[[gnu::noinline]] bool Search::look_along(shm::RingSet& rings, unsigned number, Look& look,
                                          std::uint32_t& left, Live& live) {
  return first_live<false>(rings, number, look, left, live);
}

/// The best job of all parts, or of the first shard that has one. An ageing queue compares the
/// heads of all its rings, each at the same time; else a part's first job is its best.
bool Search::survey_levels(QueueRecord& queue, Look& look, std::uint32_t& left, Live& best) {
  const bool ages = (look.flags & kAges) != 0;
  const Aging aging = store_.aging(queue);
  const std::uint64_t now = look.now = ages ? store_.now_ms() : 0;
  bool found = false;
  Precedence standing;
  Live other;
  Live *next = &other, *kept = &best;
  for (unsigned p = 0; !(found && (look.flags & kSharded) != 0) && see_part(queue, look, p); ++p) {
    Look::Seen& seen = look.part[p];
    const std::uint8_t rate =
        Store::age_rate(queue, (look.flags & kSharded) != 0 ? 0 : seen.number, aging);
    seen.any_open([&](unsigned number) {
      Live& live = *next;
      live.flow = kNoIndex;
      std::uint64_t tail = 0;
      if (number % 2 == 0) [[unlikely]]
        tail = segment_.ring(shm::Rings::find(*seen.rings, number)).tail.load();
      if (!see_head(*seen.rings, number, look, left, live)) return false;
      if (ages) look.compare(live, tail);
      const std::uint64_t age = now > live.available_at ? now - live.available_at : 0;
      const Precedence here = ages ? Precedence(aging.effective(rank_of_ring(number), age, rate),
                                                live.available_at, number)
                                   : Precedence(number, live.available_at, 0);
      if (!found || here < standing) found = true, standing = here, std::swap(next, kept);
      return !ages;
    });
  }
  if (kept != &best) best = *kept;
  return found;
}

/// The first job of the level whose turn it is; a level that has none gives its turn away. Levels
/// without a weight share the turns of kOthers, in strict order.
bool Search::survey_turns(QueueRecord& queue, Look& look, std::uint32_t& left, Live& best) {
  const Turn cycle(queue.turn.load());
  const unsigned length = cycle.length();
  std::bitset<Turn::kOthers + 1> listed, tried;
  for (unsigned at = 0; at < length; ++at) listed.set(queue.turn_of(cycle, at));
  auto has_job = [&](std::uint16_t level) {
    tried.set(level);
    bool found = false;
    Precedence standing;
    for (unsigned p = 0; !(found && (look.flags & kSharded) != 0) && see_part(queue, look, p); ++p)
      look.part[p].any_open([&](unsigned number) {
        const std::uint16_t rank = rank_of_ring(number);
        if (level == Turn::kOthers ? listed.test(rank) : rank != level) return false;
        Live live;
        if (!see_head(*look.part[p].rings, number, look, left, live)) return false;
        const Precedence here(number, live.available_at, 0);
        if (!found || here < standing) found = true, standing = here, best = live;
        return true;
      });
    if (found) look.level = level;
    return found;
  };
  if (look.holds_turn && has_job(look.level)) return true;
  look.holds_turn = false;
  for (unsigned i = 0; i < length; ++i) {
    const unsigned at = (cycle.next() + i) % length;
    const std::uint16_t level = queue.turn_of(cycle, at);
    if (tried.test(level) || !has_job(level)) continue;
    look.turn = cycle.word;
    look.taken = at;
    return true;
  }
  return !tried.test(Turn::kOthers) && has_job(Turn::kOthers);
}

[[gnu::noinline]] bool Search::survey(QueueRecord& queue, Look& look, std::uint32_t left) {
  while (left > 0) {
    Live best;
    const bool found =
        (look.flags & kWeighted) != 0 ? survey_turns(queue, look, left, best)
        : (look.flags & kAcross) != 0 && TenantTurns{*this, store_}.look(queue, look, left, best)
            ? true
            : survey_levels(queue, look, left, best);
    if (unchanged_parts(queue, look)) {
      if (found) choose(look, best);
      return found;
    }
    look.begin(queue.flags.load());
  }
  return false;
}

/// Takes the turn that the look found, before the job: workers that look at once get turns of their
/// own. A lane that dies right after it has spent a turn of its level, and nothing else.
[[gnu::noinline]] bool Search::take_turn(QueueRecord& queue, Look& look) {
  look.holds_turn = queue.turn.cas_once(look.turn, Turn(look.turn).after(look.taken).word,
                                        shm::Point::kTurnTaken);
  return look.holds_turn;
}

}  // namespace ojs_shm::engine
