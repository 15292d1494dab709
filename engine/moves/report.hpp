// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/tables/layout.hpp"
#include "shm/segment.hpp"

namespace ojs_shm::engine {

/// What the holder of a running job says of it.
struct Report {
  std::optional<double> fraction = 0.0;  ///< how far it is, 0..1; nothing: as far as before
  /// Whether these take the place of what was said before.
  bool has_texts = false;
  std::string_view message = {}, data = {};
  /// what the next attempt is to go on from; empty: what was said of that before stays
  std::string_view checkpoint = {};
};

/// The texts of a report as they stand with the job.
struct ReportTexts {
  std::uint64_t at_ms = 0;  ///< when message and data were reported; 0: never
  std::string message = {}, data = {};
  std::string checkpoint = {};  ///< also of an earlier attempt
  bool empty() const { return at_ms == 0 && checkpoint.empty(); }
};

/// What a report leaves in JobRecord::signals. All of it changes by one cas, so that a reader sees
/// a fraction with the texts that were reported with it.
///   14..0 the fraction in 1/10,000 plus one (0: none)  22 it has texts
///   31..23 the attempt that reported  57..32 first block of the texts
///   63..58 counts their changes, for blocks come again
/// A report belongs to one attempt. The next one begins without, though the texts keep their blocks
/// until it reports or the slot is used again; a checkpoint goes over from each text to the next.
struct ReportWord {
  std::uint64_t word = 0;
  constexpr explicit ReportWord(std::uint64_t signals) : word(signals) {}

  static constexpr std::uint64_t kTexts = 1ULL << 22;
  using Attempt = shm::Field<23, 9>;
  using FirstBlock = shm::Field<32, 26>;
  using Turn = shm::Field<58, 6>;
  static constexpr std::uint64_t kFraction = kProgressMask;
  static constexpr std::uint64_t kAll = kFraction | kTexts | Attempt::put(Attempt::kMax) |
                                        FirstBlock::put(FirstBlock::kMax) | Turn::put(Turn::kMax);

  static constexpr std::uint64_t mark_of(std::uint16_t attempt) {
    return 1 + attempt % Attempt::kMax;
  }
  /// Of a fraction from 0 to 1, to the nearest of them: what was read and is said again is the
  /// same.
  static constexpr std::uint64_t parts_of(double fraction) {
    return static_cast<std::uint64_t>(std::clamp(fraction, 0.0, 1.0) * 10'000 + 0.5) + 1;
  }
  constexpr bool is_of(std::uint16_t attempt) const {
    return Attempt::get(word) == mark_of(attempt);
  }
  constexpr std::uint64_t parts() const { return word & kFraction; }
  constexpr bool has_texts() const { return (word & kTexts) != 0; }
  constexpr std::uint32_t first_block() const {
    return has_texts() ? static_cast<std::uint32_t>(FirstBlock::get(word)) : shm::kNoIndex;
  }
  /// The word with this report in it, and its other bits as they are; kNoIndex: without texts.
  constexpr ReportWord with(std::uint64_t parts, std::uint16_t attempt,
                            std::uint32_t first_block) const {
    const std::uint64_t texts =
        first_block == shm::kNoIndex ? 0 : kTexts | FirstBlock::put(first_block);
    const std::uint64_t turn = Turn::get(word) + (first_block == this->first_block() ? 0 : 1);
    return ReportWord((word & ~kAll) | parts | Attempt::put(mark_of(attempt)) | texts |
                      Turn::put(turn));
  }
  /// Whether the texts are those of that word, as far as it can tell.
  constexpr bool has_texts_of(ReportWord other) const {
    return first_block() == other.first_block() && Turn::get(word) == Turn::get(other.word);
  }
  constexpr ReportWord without_texts() const {
    return ReportWord(word & ~(kTexts | FirstBlock::put(FirstBlock::kMax)));
  }
  /// The word after its attempt was taken back: the texts wait to be freed.
  constexpr ReportWord withdrawn() const {
    return ReportWord(word & ~(kFraction | Attempt::put(Attempt::kMax)));
  }
};

/// Where a lane's intent_data keeps what undoes a report.
struct ReportIntent {
  static constexpr unsigned kOwnWord = 0;  ///< of the blocks that the lane takes
  static constexpr unsigned kOldWord = 1;  ///< of those of the texts before
  static constexpr unsigned kOldBlock = 2;
};

/// What the blocks of texts that begin there say, if they are of this life of the slot; else 0.
std::uint64_t report_blocks(const shm::Segment& segment, std::uint32_t first_block,
                            std::uint32_t slot, std::uint32_t generation);
std::string encode_report(const ReportTexts& texts);
/// The texts that begin there. None: another report took their place meanwhile, or they are
/// damaged.
std::optional<ReportTexts> read_report(const shm::Segment& segment, std::uint32_t first_block,
                                       std::uint32_t slot, std::uint32_t generation,
                                       std::uint64_t max_bytes);

}  // namespace ojs_shm::engine
