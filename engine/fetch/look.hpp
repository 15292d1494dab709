// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "engine/fetch/search.hpp"
#include "engine/tables/few.hpp"

namespace ojs_shm::engine {

/// A hint that leads to an available job.
struct Search::Live {
  shm::Peeked head;     ///< where it stands; in a front ring not always at its head
  std::uint64_t first;  ///< what stands at the head
  std::uint64_t available_at;
  JobRecord* job;
  unsigned number;
  std::uint32_t flow = kNoIndex;  ///< whose job it is, and in whose ring `head` stands
  OJS_SHM_INLINE Control expected() const { return {kSlotAvailable, number, 0, head.hint().tag()}; }
};

/// What one look at a queue has found: the best job, and what proves that there is no better one.
struct Search::Look {
  struct Witness {
    const Word* cell;
    std::uint64_t empty;
    unsigned number;
    shm::RingSet* rings;
  };
  /// The index of a part, as far as it was read.
  struct Seen {
    shm::RingSet* rings = nullptr;
    unsigned number = 0, words = 0, last = 0;  ///< words read, and to be read: all or none
    std::uint32_t open = 0;                    ///< words with a bit set
    std::array<std::uint64_t, shm::kIndexWords> index{};

    /// Calls `visit` with each open ring's number, in the strict order, until it returns true.
    template <class Visit>
    OJS_SHM_INLINE bool any_open(const Visit& visit) {
      if (words < last) read();
      for (std::uint32_t left = open; left != 0; left &= left - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(left));
        for (auto bits = static_cast<std::uint32_t>(index[i]); bits != 0; bits &= bits - 1)
          if (visit(i * 32 + static_cast<unsigned>(std::countr_zero(bits)))) return true;
      }
      return false;
    }
    void read() {
      const shm::RingSet& set = *rings;
      open = 0;
      words = last;
      if (words == 0) return;
      // behind the first word, where nothing is unless there are many levels
      std::uint64_t any = 0;
#pragma GCC unroll 16
      for (unsigned i = 0; i < shm::kIndexWords; ++i) {
        index[i] = set.index[i].load();  // PAIR ring-index
        if (i != 0) any |= index[i];
      }
      const unsigned end = static_cast<std::uint32_t>(any) == 0 ? 1 : shm::kIndexWords;
      for (unsigned i = 0; i < end; ++i)
        open |= static_cast<std::uint32_t>(static_cast<std::uint32_t>(index[i]) != 0) << i;
    }
    bool unchanged() const {
      std::uint64_t difference = 0;
      if (words == 0) return true;
#pragma GCC unroll 16
      for (unsigned i = 0; i < shm::kIndexWords; ++i)
        difference |= rings->index[i].load() ^ index[i];
      return difference == 0;
    }
  };

  void begin(std::uint64_t with_flags) {
    flags = with_flags;
    witnesses.clear();
    compared.clear();
    words = 0;
    parts = 0;
    turn = 0;
    tenant_turn = kNoIndex;
    now = 0;
  }
  void add(const shm::Peeked& empty, shm::RingSet& rings, unsigned at_number) {
    Witness& witness = witnesses.add();
    witness.cell = empty.cell;
    witness.empty = empty.value;
    witness.number = at_number;
    witness.rings = &rings;
  }
  /// What made the job the first of its lane must stand until the choice is made. A head passes
  /// only what is dead, so as long as the job's word is the same nothing before it has come or
  /// gone. In a front lane, where the oldest is looked for, nothing may have come behind it either.
  OJS_SHM_INLINE void compare(const Live& live, std::uint64_t tail) {
    compared.add() = {&live.job->control, live.expected().word};
    if (live.number % 2 == 0) [[unlikely]]
      compared.add() = {&live.head.ends->tail, tail};
  }
  bool compared_stand() const {
    return compared.all_of([](const Compared& each) { return each.word->load() == each.found; });
  }
  bool witnesses_stand() const {
    return witnesses.all_of(
        [](const Witness& witness) { return witness.cell->load() == witness.empty; });
  }

  const QueueRecord* queue = nullptr;
  std::uint64_t flags = 0;
  std::array<std::uint64_t, shm::kIndexWords> index{};
  unsigned words = 0;
  Few<Witness, 24> witnesses;  ///< rings that were found open and empty

  std::uint32_t slot = 0;
  JobRecord* job = nullptr;
  unsigned number = 0;
  shm::Peeked found;
  bool leads = false;  ///< it stands at the head of its ring
  Control expected;

  // Of a queue that is not plain.
  struct Compared {
    const Word* word;
    std::uint64_t found;
  };
  std::uint64_t now = 0;  ///< ms; by which ages were compared, 0: none were
  Few<Compared, 48> compared;
  std::uint32_t flow = kNoIndex;         ///< of the job found
  std::uint32_t tenant_turn = kNoIndex;  ///< and the flow by which its tenant has this turn
  std::array<Seen, kParts> part;
  unsigned parts = 0;           ///< seen
  std::uint32_t all_parts = 0;  ///< that have rings, a bit for each
  std::uint32_t unseen = 0;     ///< of these
  /// the word of the cycle in which the job has a turn that is still to be taken
  std::uint64_t turn = 0;
  unsigned taken = 0;                   ///< which turn
  std::uint16_t level = Turn::kOthers;  ///< whose it is
  bool holds_turn = false;              ///< `level` has been given its turn, and no job yet
};

/// The first hint of a ring that leads to an available job, and goes into `live`. Dead ones are
/// retired, moves that were begun are finished; the cell that proves the ring empty joins the
/// witnesses. With `kTrusting` a hint is believed where a claim will tell.
template <bool kTrusting>
OJS_SHM_INLINE bool Search::first_live(shm::RingSet& rings, unsigned number, Look& look,
                                       std::uint32_t& left, Live& live) {
  const std::uint32_t ring = shm::Rings::find(rings, number);  // PAIR ring-name
  if (ring == kNoIndex) return false;
  for (; left > 0; --left) {
    const shm::Peeked head = rings_.peek(ring);
    if (head.empty()) {
      look.add(head, rings, number);
      return false;
    }
    const shm::Hint hint = head.hint();
    if (hint.leads_to_line()) [[unlikely]] {
      if (first_of_flow(rings, number, store_.number_of(*look.queue), head, left, live))
        return true;
      continue;
    }
    const Control expected(kSlotAvailable, number, 0, hint.tag());
    if (hint.index() >= store_.slots()) {
      shm::Rings::retire(head);
      continue;
    }
    JobRecord& job = store_.job(hint.index());
    // A state-first hint was published when the slot was already available: a claim that succeeds
    // later proves that it was so all along, and need not look first. A moved hint may come to life
    // after our second look.
    const bool trusted = kTrusting && !hint.hint_first() && number % 2 == 1;
    if (trusted) {
      prefetch<kLinesTaken>(job);
    } else {
      const Control found(job.control.load());
      if (hint.hint_first() && found.state() == kSlotAvailable &&
          found.moved_to(number).tag() == hint.tag()) {
        // Finish a move that was begun.
        job.control.cas_once(found.word, expected.word, shm::Point::kMoveHelped);
        continue;
      }
      live.available_at = job.available_at.get();
      if (found != expected || job.control.load() != expected.word) {
        shm::Rings::retire(head);
        continue;
      }
    }
    if (!kTrusting && (look.flags & kFair) != 0 && number % 2 == 1 &&
        join_flow(rings, ring, hint.index(), expected))
        [[unlikely]] {  // it came before its queue was fair
      shm::Rings::retire(head);
      continue;
    }
    live.head = head;
    live.job = &job;
    live.number = number;
    live.first = head.value;
    if (number % 2 == 0) {
      live.head = oldest_in_front(ring, number, head);
      live.job = &store_.job(live.head.hint().index());
      live.available_at = live.job->available_at.get();
    }
    return true;
  }
  return false;
}

/// first_live() of a look that compares heads. The short way is for when nothing is to be done
/// before: an available job stands at the head of the ring, or the ring is empty.
OJS_SHM_INLINE bool Search::see_head(shm::RingSet& rings, unsigned number, Look& look,
                                     std::uint32_t& left, Live& live) {
  const std::uint32_t ring = shm::Rings::find(rings, number);  // PAIR ring-name
  if (ring == kNoIndex) return false;
  const shm::Peeked head = rings_.peek(ring);
  const shm::Hint hint = head.hint();
  JobRecord& job = store_.job(hint.index());
  const bool ordinary =
      hint.plain() && number % 2 == 1 && hint.index() < store_.slots() && (look.flags & kFair) == 0;
  const std::uint64_t expected = Control(kSlotAvailable, number, 0, hint.tag()).word;
  if (head.empty() || !ordinary || job.control.load() != expected) [[unlikely]]
    return look_along(rings, number, look, left, live);
  live.available_at = job.available_at.get();
  if (job.control.load() != expected) [[unlikely]]
    return look_along(rings, number, look, left, live);
  // word by word: what is copied as a whole is read before it is written
  live.head.head = head.head;
  live.head.value = head.value;
  live.head.cell = head.cell;
  live.head.ends = head.ends;
  live.first = head.value;
  live.job = &job;
  live.number = number;
  return true;
}

/// Of the job two places behind the one at the head of a ring, if there is one.
OJS_SHM_INLINE void Search::prefetch_behind(const shm::Peeked& head) const {
  constexpr unsigned kBehind = 2;
  if (shm::Place(head.head).cell() + kBehind >= shm::kCellsPerChunk) return;
  const std::uint64_t value = head.cell[kBehind].load_relaxed();  // relaxed: for prefetching only
  if (!shm::is_empty(value)) prefetch<kLinesTaken>(store_.job(shm::Hint(value).index()));
}

/// Clears the bit of one of so many rings that were open but empty: at once when there were many,
/// else after some passes.
OJS_SHM_INLINE void Search::tidy_ring(shm::RingSet& rings, unsigned number, const Word& cell,
                                      std::uint64_t empty, unsigned of) {
  std::uint8_t& passed = passed_empty_[number % passed_empty_.size()];
  if (of <= 4 && ++passed < 8) [[likely]]
    return;
  passed = 0;
  shm::Rings::close(rings, number, cell, empty);
}

OJS_SHM_INLINE void Search::choose(Look& look, const Live& live) {
  look.number = live.number;
  look.found = live.head;
  look.leads = live.head.value == live.first;
  look.slot = live.head.hint().index();
  look.job = live.job;
  look.flow = live.flow;
  look.expected = live.expected();
  found_in(live.number);
}

}  // namespace ojs_shm::engine
