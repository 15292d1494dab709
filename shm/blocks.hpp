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

  /// Stores the bytes for an exclusively held slot; the first block, or kNoIndex when there are not
  /// enough (then nothing is kept).
  std::uint32_t write(std::uint32_t slot, std::uint32_t generation, std::string_view bytes);
  /// Appends `size` bytes of the chain to `out`; less when a stranger's link breaks the chain.
  static void read(const Segment& segment, std::uint32_t first, std::uint32_t slot,
                   std::uint32_t generation, std::uint64_t size, std::string& out);
  void free_chain(std::uint32_t first, std::uint32_t slot, std::uint32_t generation);
  /// Frees one block whose word was seen without an owner.
  bool free_orphan(std::uint32_t block, std::uint64_t seen);
  void release() { hints_.flush(); }

 private:
  std::uint32_t take(std::uint64_t word);
  Segment& segment_;
  Magazine hints_;
};

}  // namespace ojs_shm::shm
