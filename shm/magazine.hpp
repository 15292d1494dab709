// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "shm/atomics.hpp"
#include "shm/bits.hpp"

namespace ojs_shm::shm {

/// Hints at free objects: a bitmap in the segment with a bit for each object that is probably free.
/// The object's own control word is the truth, so a lost hint costs a scan and a doubled one a
/// failed cas. A magazine takes 64 hints at once and belongs to one lane; a lane that dies with it
/// loses hints only, which the repair sets again.
class Magazine {
 public:
  Magazine() = default;
  Magazine(Word* map, std::uint32_t count, std::uint32_t start)
      : map_(map),
        count_(count),
        words_((count + 63) / 64),
        cursor_(words_ == 0 ? 0 : start % words_) {}

  /// A probably free index, or kNoIndex. After an empty round it looks again only after four times
  /// as many calls, unless `insist`.
  std::uint32_t take(bool insist = false) {
    if (mask_ == 0 && !refill(insist)) return kNoIndex;
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(mask_));
    mask_ &= mask_ - 1;
    return word_ * 64 + bit;
  }
  /// Gives a hint back: to itself when it is the same word, else to everyone, where it looks first
  /// when it needs one again.
  void give(std::uint32_t index) {
    if (index >= count_) return;  // a stranger's number
    if (index / 64 == word_ && mask_ != 0)
      mask_ |= 1ULL << (index % 64);
    else
      map_[cursor_ = index / 64].fetch_or(1ULL << (index % 64), Point::kHintReturned);
    gave_ = true;
  }
  void flush() {
    if (mask_ != 0) map_[word_].fetch_or(mask_, Point::kHintReturned);
    mask_ = 0;
  }

 private:
  bool refill(bool insist) {
    const bool seldom = dry_ > 0 && !insist;
    if (seldom) --dry_;
    if (seldom && !gave_) [[likely]]
      return false;
    gave_ = false;
    for (std::uint32_t left = seldom ? 1 : words_; left != 0; --left) {
      const std::uint32_t at = cursor_;
      cursor_ = cursor_ + 1 < words_ ? cursor_ + 1 : 0;
      if (map_[at].load_relaxed() == 0) continue;  // relaxed: a hint
      mask_ = map_[at].exchange(0, Point::kHintWordTaken);
      word_ = at;
      const std::uint32_t in_word = count_ - at * 64;
      // a stranger may have written past the end
      if (in_word < 64) mask_ &= (1ULL << in_word) - 1;
      if (mask_ != 0) return true;
    }
    if (!seldom) dry_ = words_ * 4;
    return false;
  }

  Word* map_ = nullptr;
  std::uint32_t count_ = 0, words_ = 0, cursor_ = 0, word_ = 0, dry_ = 0;
  std::uint64_t mask_ = 0;
  bool gave_ = false;  ///< a hint to everyone, where the cursor stands
};

}  // namespace ojs_shm::shm
