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
/// Jobs of a plain batch; a longer one takes the general way.
constexpr unsigned kPlainBatch = 64;

/// What one look at a plain queue found, and what proves it.
struct PlainLook {
  /// rings that were open but empty; of more, the general way
  static constexpr unsigned kMost = 8;
  struct Empty {
    const Word* cell;
    std::uint64_t value;
    unsigned number;
  };
  std::array<std::uint64_t, shm::kIndexWords> index;  ///< the first `words` are read
  std::array<Empty, kMost> empty;
  unsigned words = 0, passed = 0, tidied = 0;
  std::uint32_t bits = 0;  ///< of the last word: rings that were not looked at
  shm::Peeked head;        ///< of the first ring with a hint
  unsigned number = 0;
  std::uint32_t ring = shm::kNoIndex;  ///< that ring; kNoIndex: none yet

  /// Nothing is proved any more.
  OJS_SHM_INLINE void begin() {
    words = passed = tidied = 0;
    bits = 0;
    ring = shm::kNoIndex;
  }
  /// 1. Collects what proves that each better ring is empty, up to the first hint. False: none.
  /// Goes on where the fetch before has found its hint.
  OJS_SHM_INLINE bool find(const QueueRecord& queue, shm::Rings& rings) {
    for (;;) {
      if (ring != shm::kNoIndex) {
        head = rings.peek(ring);
        if (!head.empty() || passed == kMost) return true;
        empty[passed++] = {head.cell, head.value, number};
      }
      while (bits == 0) {
        if (words == shm::kIndexWords) return false;
        index[words] = queue.rings.index[words].load();  // PAIR ring-index
        bits = static_cast<std::uint32_t>(index[words++]);
      }
      number = (words - 1) * 32 + static_cast<unsigned>(std::countr_zero(bits));
      bits &= bits - 1;
      ring = shm::Rings::find(queue.rings, number);  // PAIR ring-name
    }
  }
  /// 2. Whether all of it still stands.
  OJS_SHM_INLINE bool stands(const QueueRecord& queue, std::uint64_t flags) const {
    std::uint64_t moved = queue.flags.load() ^ flags;
    for (unsigned i = 0; i < words; ++i) moved |= queue.rings.index[i].load() ^ index[i];
    for (unsigned i = 0; i < passed; ++i) moved |= empty[i].cell->load() ^ empty[i].value;
    return moved == 0;
  }
};

}  // namespace ojs_shm::engine
