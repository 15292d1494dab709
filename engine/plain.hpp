// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "engine/layout.hpp"
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

/// The open rings of a plain queue, best first, as a lane saw them last, and what that proves: those
/// before `at` were empty. An empty cell's word never comes again, and neither do the words of the
/// index and the flags; so what is as it was has been so all the while, and a fetch reads each of
/// them once, after it has seen its hint.
struct PlainLook {
  /// rings that are passed as empty; behind more of them, the general way
  static constexpr unsigned kMost = 8;
  struct Known {
    shm::Peeked head;
    unsigned number;
    bool served;  ///< had a job for this lane since the last tidying
  };
  enum class Sight : std::uint8_t { kHint, kNothing, kTooMany };

  std::uint64_t flags = ~0ULL;                        ///< of the queue; all ones: nothing is known
  std::array<std::uint64_t, shm::kIndexWords> index;  ///< the first `words` are known
  std::array<Known, kMost + 1> rings;                 ///< the first `count`
  unsigned words = 0, count = 0, at = 0;
  unsigned fetches = 0;  ///< since the last tidying
  /// What stands at the head of the ring at `at`, `run` hints in a row, and how many of them were
  /// tried; the ring's head is moved behind all of them at once.
  std::array<std::uint64_t, shm::kCellsPerChunk> hints;
  unsigned run = 0, tried = 0;

  OJS_SHM_INLINE void forget(std::uint64_t with_flags = ~0ULL) {
    flags = with_flags;
    words = count = at = run = tried = 0;
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
  /// Up to `most` hints in a row. They stand there before it is looked at again whether all better
  /// rings are empty, so what several fetches of one call take is what was best then.
  OJS_SHM_INLINE void reach(unsigned most) {
    const shm::Peeked& head = rings[at].head;
    const unsigned left = shm::kCellsPerChunk - shm::Place(head.head).cell();
    tried = 0, run = 1;
    hints[0] = head.value;
    for (; run < most && run < left; ++run) {
      hints[run] = head.cell[run].load();  // PAIR cell-publish
      if (shm::is_empty(hints[run]) || !shm::Hint(hints[run]).plain()) break;
    }
    if (head.ends->head.load() != head.head) [[unlikely]]
      run = 1;
  }
  /// 2. Whether all that was passed is as it was. If not, it is to be passed again.
  OJS_SHM_INLINE bool stands(const QueueRecord& queue, Sight sight) {
    const unsigned last = sight == Sight::kHint ? rings[at].number / 32 : shm::kIndexWords - 1;
    std::uint64_t moved = queue.flags.load() ^ flags;
    moved |= queue.rings.index[0].load() ^ index[0];
    if (last != 0) [[unlikely]]
      for (unsigned i = 1; i <= last; ++i) moved |= queue.rings.index[i].load() ^ index[i];
    std::uint64_t filled = 0;
    const Known* const end = rings.data() + at;
    for (const Known* passed = rings.data(); passed != end; ++passed)
      filled |= passed->head.cell->load() ^ passed->head.value;
    if ((moved | filled) == 0) [[likely]]
      return true;
    at = 0;
    if (moved != 0) words = count = 0;
    return false;
  }

 private:
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
