// SPDX-License-Identifier: Apache-2.0
#include "engine/limits/permits.hpp"

#include <algorithm>
#include <bit>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

/// In which run a place lies, and where in it.
constexpr unsigned run_of(std::uint32_t place) {
  return place < kPermitsPerPage ? 0
                                 : static_cast<unsigned>(std::bit_width(place / kPermitsPerPage));
}
constexpr std::uint32_t first_of(unsigned run) {
  return run == 0 ? 0 : kPermitsPerPage << (run - 1);
}
static_assert(run_of(15) == 0 && run_of(16) == 1 && run_of(31) == 1 && run_of(32) == 2 &&
              first_of(2) == 32);
static_assert(first_of(kPermitRuns) == kMostPermits);

}  // namespace

Word& Permits::at(const PermitSet& set, std::uint32_t place) const {
  const unsigned run = std::min(run_of(place), kPermitRuns - 1);
  const std::uint32_t inside = place - first_of(run);
  const std::uint32_t page = set.run[run].load() - 1 + inside / kPermitsPerPage;  // PAIR permit-run
  return store_.permit_pages[page].permit[inside % kPermitsPerPage];
}

std::uint32_t Permits::high(const PermitSet& set) const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(set.high.load(), kMostPermits));
}

/// Held from the claim to the end of the settlement: a lane that does one of these has the job in
/// its hands.
bool Permits::holds(Permit permit) const {
  if (permit.free() || permit.slot() >= store_.slots()) return false;
  const JobRecord& job = store_.job(permit.slot());
  const unsigned state = Control(job.control.load_seq_cst()).state();
  return (job.generation.get() & Permit::GenerationBits::kMax) == permit.generation() &&
         (state == kSlotClaimed || state == kSlotActive || state == kSlotSettling);
}

/// Below which place permits may be taken: that place and all that is held above it make up the
/// limit at most. What is held above it only falls, for none is taken there, so that the sum never
/// passes the limit. What the taker's job has left in an earlier hold is not in its way: it would
/// go to the lot, see room from there, and come back for ever.
std::uint32_t Permits::room(const PermitSet& set, std::uint32_t limit, Permit taker) const {
  const auto one_of_others = [&](std::uint32_t place) {
    const Permit found(at(set, place).load());
    return holds(found) && !found.names(taker) ? 1U : 0U;
  };
  std::uint32_t at_work = 0;
  for (std::uint32_t i = high(set); i > limit; --i) at_work += one_of_others(i - 1);
  std::uint32_t below = std::min(limit, high(set));
  while (below > 0 && below + at_work > limit) at_work += one_of_others(--below);
  return below;
}

/// Takes a free place below `room`, else a place whose job is no longer held, or that the holder
/// left in an earlier hold. An adopter cannot tell the latter from what its job's worker has just
/// taken.
Word* Permits::place(PermitSet& set, std::uint32_t room, Permit holder, Permit& mine) const {
  for (const bool free_only : {true, false})
    for (std::uint32_t i = 0; i < room; ++i) {
      Word& word = at(set, (holder.slot() + i) % room);
      const Permit found(word.load());
      const bool left = found.names(holder) && !holder.is_adopted();
      if (free_only ? !found.free() : holds(found) && !left) continue;
      mine = found.taken_by(holder);
      if (word.cas_once(found.word, mine.word, Point::kPermitTaken)) return &word;
    }
  return nullptr;
}

/// 1. no limit; 2. one taken under the limit that still stands; 3. the limit has changed meanwhile:
///    give it back, and again
/// under the new one, so that no job begins under a limit that is gone; 4. none to be had. A job
/// has one: that of adopt() goes, when both have come.
bool Permits::take(PermitSet& set, Permit holder) const {
  for (;;) {
    const std::uint64_t before = set.limit.load_seq_cst();
    const std::uint32_t limit = PermitSet::limit_of(before);
    if (limit == PermitSet::kNone) return true;  // 1
    Permit mine(0);
    Word* taken = place(set, room(set, limit, holder), holder, mine);
    if (set.limit.load_seq_cst() == before) {  // 2, 4
      if (set.adopted.load_seq_cst() != 0) [[unlikely]]
        give(set, holder, true);
      return taken != nullptr;
    }
    // 3
    if (taken != nullptr) taken->cas_once(mine.word, mine.given_back().word, Point::kPermitGiven);
  }
}

bool Permits::has_room(const PermitSet& set) const {
  const std::uint32_t limit = PermitSet::limit_of(set.limit.load_seq_cst());
  if (limit == PermitSet::kNone) return true;
  const std::uint32_t below = room(set, limit, Permit(0));
  for (std::uint32_t i = 0; i < below; ++i)
    if (!holds(Permit(at(set, i).load_seq_cst()))) return true;
  return false;
}

/// All of them: after a death a job may have one of an earlier hold beside that of this one.
void Permits::give(PermitSet& set, Permit holder, bool adopted_only) const {
  for (std::uint32_t i = 0; i < high(set); ++i) {
    Word& word = at(set, i);
    const Permit found(word.load_seq_cst());
    if (found.names(holder) && (found.is_adopted() || !adopted_only))
      word.cas_once(found.word, found.given_back().word, Point::kPermitGiven);
  }
}

bool Permits::has(const PermitSet& set, Permit holder, bool adopted) const {
  for (std::uint32_t i = 0; i < high(set); ++i)
    if (const Permit found(at(set, i).load_seq_cst());
        found.names(holder) && found.is_adopted() == adopted)
      return true;
  return false;
}

std::uint32_t Permits::sweep(PermitSet& set) const {
  std::uint32_t freed = 0;
  for (std::uint32_t i = 0; i < high(set); ++i) {
    Word& word = at(set, i);
    const Permit found(word.load());
    if (!found.free() && !holds(found))
      freed += word.cas_once(found.word, found.given_back().word, Point::kPermitGiven) ? 1 : 0;
  }
  return freed;
}

std::uint32_t Permits::count(const PermitSet& set) const {
  std::uint32_t held = 0;
  for (std::uint32_t i = 0; i < high(set); ++i) held += holds(Permit(at(set, i).load())) ? 1 : 0;
  return held;
}

/// Finds or makes the runs below `limit`. A run is had by one cas on the word of its first page,
/// and the next, also after a death, finds it there under its owner's name: so none is
/// made twice, and none is lost.
bool Permits::grow(PermitSet& set, std::uint32_t owner, std::uint32_t limit) const {
  if (limit > kMostPermits) return false;
  for (unsigned run = 0; run < kPermitRuns && first_of(run) < limit; ++run) {
    if (set.run[run].load() != 0) continue;
    const PermitRun mine(owner, run);
    std::uint32_t first = kNoIndex;
    for (std::uint32_t i = 0;
         i + mine.pages() <= store_.permit_pages.size() && first == kNoIndex;) {
      std::uint64_t found = store_.permit_runs[i].load();
      const bool fits =
          found == 0 || (PermitRun(found).given_back() && PermitRun(found).pages() == mine.pages());
      if (fits && store_.permit_runs[i].cas(found, mine.word, Point::kPermitRunTaken))
        found = mine.word;
      if (found == mine.word) first = i;
      i += std::max(PermitRun(found).pages(), 1U);
    }
    if (first == kNoIndex) return false;
    set.run[run].store(first + 1, Point::kPermitRunNamed);  // PAIR permit-run
  }
  std::uint64_t known = set.high.load();
  while (known < limit && !set.high.cas(known, limit, Point::kSetChanged)) {}
  return true;
}

bool Permits::set_limit(PermitSet& set, std::uint32_t owner, std::uint32_t limit) const {
  if (limit != PermitSet::kNone && !grow(set, owner, limit)) return false;
  std::uint64_t found = set.limit.load();
  while (!set.limit.cas(found, ((found >> 32) + 1) << 32 | (limit + 1U), Point::kSetChanged)) {}
  return true;
}

/// 1. A job that is at work, and was all the time, gives back what it has when it ends. 2. A lane
///    that has just claimed it may
/// be taking one too, and one that ends it may be past giving it back: either we see its permit, or
/// it sees that it must look. After the death of another adopter the same is found. That of a job
/// whose worker is refused after our last look may stay: it is worth nothing while none holds the
/// job, and goes with its next hold or to the next that needs the place.
bool Permits::adopt(PermitSet& set, std::uint32_t owner, Permit holder) const {
  const Word& control = store_.job(holder.slot()).control;
  const std::uint64_t before = control.load();
  Permit mine(0);
  if (!has(set, holder, false) && !has(set, holder, true))
    while (place(set, high(set), holder.adopted(), mine) == nullptr)
      if (!grow(set, owner, high(set) + 1)) return false;
  if (Control(before).state() != kSlotActive || control.load_seq_cst() != before)  // 2
    set.adopted.exchange(1, Point::kSetChanged);
  const unsigned state = Control(control.load_seq_cst()).state();
  const bool begins = state == kSlotClaimed || state == kSlotActive;
  if (!begins || has(set, holder, false)) give(set, holder, true);
  return true;
}

void Permits::drop(PermitSet& set, std::uint32_t owner) const {
  // also above `high`: a log of a sliding window uses its pages whole
  for (unsigned run = 0; run < kPermitRuns; ++run)
    for (std::uint32_t i = first_of(run); set.run[run].load() != 0 && i < first_of(run + 1); ++i) {
      const Permit found(at(set, i).load());
      if (!found.free())
        at(set, i).cas_once(found.word, found.given_back().word, Point::kPermitGiven);
    }
  set.high.store(0, Point::kSetChanged);
  set.adopted.store(0, Point::kSetChanged);
  for (unsigned run = 0; run < kPermitRuns; ++run) {
    const std::uint32_t first = set.run[run].exchange(0, Point::kPermitRunNamed);
    if (first == 0) continue;
    const PermitRun mine(owner, run);
    store_.permit_runs[first - 1].cas_once(mine.word, mine.word & 0xFFFF'FF00,
                                           Point::kPermitRunTaken);
  }
}

}  // namespace ojs_shm::engine
