// SPDX-License-Identifier: Apache-2.0
#include "shm/blocks.hpp"

#include <algorithm>
#include <vector>

namespace ojs_shm::shm {

std::uint32_t Blocks::take(std::uint64_t word) {
  for (std::uint32_t i = hints_.take(true); i != kNoIndex; i = hints_.take(true))
    if (segment_.block_word(i).cas_once(0, word, Point::kBlockTaken)) return i;  // PAIR block-taken
  // the hints are gone: ask the truth
  for (std::uint32_t i = 0; i < segment_.geometry().blocks; ++i)
    if (segment_.block_word(i).load_relaxed() == 0 &&
        segment_.block_word(i).cas_once(0, word, Point::kBlockTaken))
      return i;
  return kNoIndex;
}

std::uint32_t Blocks::write(std::uint64_t word, std::string_view bytes) {
  std::uint32_t first = kNoIndex;
  std::uint32_t last = kNoIndex;
  for (std::size_t at = 0; at == 0 || at < bytes.size(); at += kBlockBytes) {
    const std::uint32_t block = take(word);
    if (block == kNoIndex) {
      free_from_end(first, word);
      return kNoIndex;
    }
    // NO CRASH POINT: the block's word already says whose it is; a broken chain is found by the
    // sweep
    segment_.block_link(block).store(kNoIndex, Point::kNone);
    // NO CRASH POINT: as above
    copy_in(segment_.block(block).bytes, bytes.data() + at,
            std::min<std::size_t>(kBlockBytes, bytes.size() - at));
    if (last == kNoIndex)
      first = block;
    else
      segment_.block_link(last).store(block, Point::kNone);  // NO CRASH POINT: as above
    last = block;
  }
  return first;
}

void Blocks::read(const Segment& segment, std::uint32_t first, std::uint64_t word,
                  std::uint64_t size, std::string& out) {
  char part[kBlockBytes];
  // a stranger's length
  size = std::min<std::uint64_t>(size, std::uint64_t{segment.geometry().blocks} * kBlockBytes);
  for (std::uint32_t block = first; size > 0 && block != kNoIndex;
       block = segment.block_link(block).load()) {
    if (block >= segment.geometry().blocks || segment.block_word(block).load() != word) return;
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, size));
    copy_out(part, segment.block(block).bytes, now);
    out.append(part, now);
    size -= now;
  }
}

void Blocks::free_chain(std::uint32_t first, std::uint32_t slot, std::uint32_t generation) {
  for (std::uint32_t block = first; block != kNoIndex && block < segment_.geometry().blocks;) {
    const std::uint32_t next = segment_.block_link(block).load();
    // freed before, and perhaps another's by now
    if (!free_orphan(block, word_of(slot, generation))) return;
    block = next;
  }
}

void Blocks::free_from_end(std::uint32_t first, std::uint64_t word) {
  std::vector<std::uint32_t> chain;
  for (std::uint32_t block = first;
       block < segment_.geometry().blocks && chain.size() < segment_.geometry().blocks &&
       segment_.block_word(block).load() == word;
       block = segment_.block_link(block).load())
    chain.push_back(block);
  for (; !chain.empty(); chain.pop_back()) free_orphan(chain.back(), word);
}

bool Blocks::free_orphan(std::uint32_t block, std::uint64_t seen) {
  if (!segment_.block_word(block).cas_once(seen, 0, Point::kBlockFreed)) return false;
  hints_.give(block);
  return true;
}

}  // namespace ojs_shm::shm
