// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "engine/tables/prefetch.hpp"
#include "engine/tables/store.hpp"
#include "shm/ring.hpp"

namespace ojs_shm::engine {

/// How a plain operation (plain.cpp) ended.
enum class Straight : std::uint8_t {
  kDone,
  kEmpty,  ///< nothing to fetch
  kAside,  ///< nothing has happened: the general operation does it, or knows the error
};

/// Looks at a queue that is changed again and again, before the general way takes over.
constexpr unsigned kPlainLooks = 64;
/// Fetches between two tidyings of a few rings that are open but empty.
constexpr unsigned kTidyEach = 64, kFewPassed = 4;
/// Jobs of a plain batch; a longer one takes the general way.
constexpr unsigned kPlainBatch = 64;

/// Hints that stood there together at one time, best first, each with the word that its slot has
/// while the hint is alive.
struct Picked {
  struct One {
    std::uint64_t word;
    JobRecord* job;
    std::uint32_t slot;
  };
  std::array<One, kPlainBatch> all;
  unsigned count;
};

/// The open rings of a plain queue, best first, as a lane saw them last, and what that proves:
/// those before `at` were empty. An empty cell's word never comes again, and neither do the words
/// of the index and the flags; so what is as it was has been so all the while, and a fetch reads
/// each of them once, after it has seen its hint.
struct PlainLook {
  /// rings that are passed as empty; behind more of them, the general way
  static constexpr unsigned kMost = 8;
  struct Known {
    shm::Peeked head;
    unsigned number;
    bool served;               ///< had a job for this lane since the last tidying
    unsigned picked = 0;       ///< hints from the head on that the present batch takes
    std::uint64_t behind = 0;  ///< what stands behind them
  };
  enum class Sight : std::uint8_t { kHint, kNothing, kTooMany };

  std::uint64_t flags = ~0ULL;                        ///< of the queue; all ones: nothing is known
  std::array<std::uint64_t, shm::kIndexWords> index;  ///< the first `words` are known
  std::array<Known, kMost + 1> rings;                 ///< the first `count`
  unsigned words = 0, count = 0, at = 0;
  unsigned fetches = 0;  ///< since the last tidying

  OJS_SHM_INLINE void forget(std::uint64_t with_flags = ~0ULL) {
    flags = with_flags;
    words = count = at = 0;
  }
  /// 1. Goes on to the first ring with a hint.
  OJS_SHM_INLINE Sight find(const QueueRecord& queue, shm::Rings& all) {
    for (;; ++at) {
      if (at == count) [[unlikely]]
        if (const Sight end = list(queue, all); end != Sight::kHint) return end;
      shm::Peeked& head = rings[at].head;
      all.peek_again(head);
      if (!head.empty()) return Sight::kHint;
    }
  }
  /// 2. Whether all that was passed is as it was. If not, it is to be passed again.
  OJS_SHM_INLINE bool stands(const QueueRecord& queue, Sight sight) {
    std::uint64_t filled = 0;
    const Known* const end = rings.data() + at;
    for (const Known* passed = rings.data(); passed != end; ++passed)
      filled |= passed->head.cell->load() ^ passed->head.value;
    return stands(queue, sight, filled);
  }

  // ---- the same of a batch, which takes what was best at one time
  /// 1. Up to `most` hints, in the order of the rings. What ends those of a ring proves that there
  /// were no more; it is passed like one that was empty.
  Sight sweep(const QueueRecord& queue, shm::Rings& all, const Store& store, unsigned most,
              Picked& picked) {
    picked.count = 0;
    for (at = 0;; ++at) {
      if (at == count) [[unlikely]]
        if (const Sight end = list(queue, all); end != Sight::kHint) {
          if (end == Sight::kTooMany && picked.count != 0) return --at, Sight::kHint;
          return end;
        }
      Known& ring = rings[at];
      all.peek_again(ring.head);
      const unsigned in_chunk = shm::kCellsPerChunk - shm::Place(ring.head.head).cell();
      const unsigned allowed = ring.number % 2 == 0 ? 0 : std::min(in_chunk, most - picked.count);
      const Control none(kSlotAvailable, ring.number, 0, 0);
      const shm::Word* const cells = ring.head.cell;
      Picked::One* to = picked.all.data() + picked.count;
      std::uint64_t value = ring.head.value;
      unsigned taken = 0;
      bool whole = true;
      while (!shm::is_empty(value)) {
        const shm::Hint hint(value);
        const std::uint32_t slot = hint.index();
        whole = taken < allowed && hint.plain() && slot < store.slots();
        if (!whole) break;
        JobRecord& job = store.job(slot);
        prefetch<kLinesTaken>(job);
        *to++ = {none.word | hint.tag(), &job, slot};
        whole = ++taken < in_chunk;  // behind its last cell nothing is known yet
        if (!whole) break;
        value = cells[taken].load();  // PAIR cell-publish
      }
      ring.picked = taken, ring.behind = value;
      picked.count += taken;
      if (!whole) return Sight::kHint;
    }
  }
  /// 2. Whether all that was passed is as it was, and the chunks of what was picked have been in
  /// their rings all along.
  bool still_stands(const QueueRecord& queue, Sight sight) {
    std::uint64_t changed = 0;
    for (unsigned i = 0; i < at; ++i)
      changed |= rings[i].head.cell[rings[i].picked].load() ^ rings[i].behind;
    for (unsigned i = 0; i < swept(sight); ++i)
      if (rings[i].picked != 0)
        changed |= shm::Place(rings[i].head.ends->head.load()).chunk_word() ^
                   shm::Place(rings[i].head.head).chunk_word();
    return stands(queue, sight, changed);
  }
  /// 3. Passes what was picked. Returns how many rings were open but empty.
  unsigned pass_picked(Sight sight) {
    unsigned empty = 0;
    for (unsigned i = 0; i < swept(sight); ++i) {
      Known& ring = rings[i];
      if (ring.picked == 0) {
        empty += i < at ? 1 : 0;
        continue;
      }
      shm::Rings::retire(ring.head, ring.picked);
      shm::Rings::step(ring.head, ring.picked);
      ring.head.value = ring.behind;
      ring.served = true;
    }
    return empty;
  }

 private:
  unsigned swept(Sight sight) const { return sight == Sight::kHint ? at + 1 : at; }
  OJS_SHM_INLINE bool stands(const QueueRecord& queue, Sight sight, std::uint64_t filled) {
    const unsigned last = sight == Sight::kHint ? rings[at].number / 32 : shm::kIndexWords - 1;
    std::uint64_t moved = queue.flags.load() ^ flags;
    moved |= queue.rings.index[0].load() ^ index[0];
    if (last != 0) [[unlikely]]
      for (unsigned i = 1; i <= last; ++i) moved |= queue.rings.index[i].load() ^ index[i];
    if ((moved | filled) == 0) [[likely]]
      return true;
    at = 0;
    if (moved != 0) words = count = 0;
    return false;
  }
  /// Lists the open rings of the next word of the index that has any. kHint: there are some.
  [[gnu::noinline]] Sight list(const QueueRecord& queue, shm::Rings& all) {
    while (at == count) {
      if (words == shm::kIndexWords) return Sight::kNothing;
      const std::uint64_t word = queue.rings.index[words].load();  // PAIR ring-index
      for (auto bits = static_cast<std::uint32_t>(word); bits != 0; bits &= bits - 1) {
        if (count == rings.size()) return Sight::kTooMany;
        const unsigned number = words * 32 + static_cast<unsigned>(std::countr_zero(bits));
        rings[count++] = {all.peek(shm::Rings::find(queue.rings, number)),
                          number,  // PAIR ring-name
                          true};
      }
      index[words++] = word;
    }
    return Sight::kHint;
  }
};

}  // namespace ojs_shm::engine
