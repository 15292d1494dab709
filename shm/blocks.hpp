// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shm/magazine.hpp"
#include "shm/segment.hpp"

namespace ojs_shm::shm {

/// Bytes of any length in chains of 256-byte blocks. A block's word names the slot and the
/// generation that it belongs to, from the moment it is taken: a block of a generation that is over
/// has no owner, and any sweep may free it.
class Blocks {
 public:
  Blocks(Segment& segment, std::uint32_t lane)
      : segment_(segment), hints_(segment.block_map(), segment.geometry().blocks, lane * 7) {}

  /// 63 set when used  61..38 slot  31..0 generation.
  static constexpr std::uint64_t word_of(std::uint32_t slot, std::uint32_t generation) {
    return 1ULL << 63 | Field<38, 24>::put(slot) | generation;
  }
  static constexpr std::uint32_t slot_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(Field<38, 24>::get(word));
  }
  static constexpr std::uint32_t generation_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
  }
  /// Of a text that several lanes may write at once, because none of them holds the slot: the word
  /// names its maker as well, and which of the maker's texts it is.
  ///   63 set when used  62 set  61..38 slot  37..28 maker's lane  27..14 turn
  ///   13..0 generation's low bits
  static constexpr std::uint64_t made_word(std::uint32_t slot, std::uint32_t generation,
                                           std::uint32_t lane, std::uint32_t turn) {
    return 3ULL << 62 | Field<38, 24>::put(slot) | MakerBits::put(lane) | Field<14, 14>::put(turn) |
           MadeGeneration::put(generation);
  }
  static constexpr bool is_made(std::uint64_t word) { return word >> 62 == 3; }
  static constexpr std::uint32_t maker_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(MakerBits::get(word));
  }
  /// Whether a block with that word is of this life of the slot.
  static constexpr bool is_of(std::uint64_t word, std::uint32_t slot, std::uint32_t generation) {
    if (!is_made(word)) return word == word_of(slot, generation);
    return slot_of(word) == slot &&
           MadeGeneration::get(word) == (generation & MadeGeneration::kMax);
  }

  /// Stores the bytes in blocks with that word; the first block, or kNoIndex when there are not
  /// enough (then nothing is kept).
  std::uint32_t write(std::uint64_t word, std::string_view bytes);
  /// For an exclusively held slot.
  std::uint32_t write(std::uint32_t slot, std::uint32_t generation, std::string_view bytes) {
    return write(word_of(slot, generation), bytes);
  }
  /// Appends `size` bytes of the chain to `out`; less when a stranger's link breaks the chain.
  static void read(const Segment& segment, std::uint32_t first, std::uint64_t word,
                   std::uint64_t size, std::string& out);
  static void read(const Segment& segment, std::uint32_t first, std::uint32_t slot,
                   std::uint32_t generation, std::uint64_t size, std::string& out) {
    read(segment, first, word_of(slot, generation), size, out);
  }
  void free_chain(std::uint32_t first, std::uint32_t slot, std::uint32_t generation);
  /// The same from the end, so that after a death the first block still leads to what is left.
  void free_from_end(std::uint32_t first, std::uint64_t word);
  /// Frees one block whose word was seen without an owner.
  bool free_orphan(std::uint32_t block, std::uint64_t seen);
  void release() { hints_.flush(); }

 private:
  using MakerBits = Field<28, 10>;
  using MadeGeneration = Field<0, 14>;
  static_assert(kMaxLanes <= MakerBits::kMax + 1);
  std::uint32_t take(std::uint64_t word);
  Segment& segment_;
  Magazine hints_;
};

}  // namespace ojs_shm::shm
