// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "shm/segment.hpp"

// What a segment counts, told by the segment itself: a table of descriptions in its first page.
// A monitor goes through the table and needs to know no counter by name, so an older monitor shows
// the counters of a newer segment of the same format.

namespace ojs_shm::shm {

/// What a number does, and how its words are read.
enum class CatalogueKind : std::uint32_t {
  kCounter = 1,  ///< only grows; the sum of its words
  kPool = 2,     ///< objects of which some are in use; each object has one word
};

/// How the number moves what is in the segment.
enum class Flow : std::uint32_t { kNone = 0, kIn = 1, kOut = 2, kRefused = 3, kLost = 4 };

/// One description. A number of row r is the sum of the `cells` words that begin at
/// offset + r * row_bytes and lie cell_bytes apart. Of a pool every row is an object: it is in use
/// when its word is not 0 and bit (word >> 60) of `free_states` is not set.
//   0 id  4 kind  8 subject  12 flow  16 offset  24 rows  28 row_bytes  32 cells  36 cell_bytes
//   40 word_bytes  44 free_states  48 unit_bytes  52 pad  56 label(24)  80 unit(16)
struct CatalogueRow {
  std::uint32_t id = 0;       ///< stays with the meaning of the number for ever
  std::uint32_t kind = 0;     ///< CatalogueKind
  std::uint32_t subject = 0;  ///< of what there is one number each: the upper room's own
  std::uint32_t flow = 0;     ///< Flow
  std::uint64_t offset = 0;
  std::uint32_t rows = 0, row_bytes = 0;
  std::uint32_t cells = 0, cell_bytes = 0;
  std::uint32_t word_bytes = 0;   ///< 4 or 8
  std::uint32_t free_states = 0;  ///< of a pool of words of eight bytes
  std::uint32_t unit_bytes = 0;   ///< of a pool: what one object takes
  std::uint32_t pad = 0;
  char label[24] = {};
  char unit[16] = {};
};
static_assert(sizeof(CatalogueRow) == 96 && offsetof(CatalogueRow, offset) == 16 &&
              offsetof(CatalogueRow, label) == 56);

/// The table lies behind the header, in the room that every segment keeps there. `row_bytes` lets a
/// newer library append to a description: an older one reads the front of each.
struct CatalogueHead {
  std::uint32_t rows;
  std::uint32_t row_bytes;
};
constexpr std::uint64_t kCatalogueOffset = 512, kCatalogueRowsOffset = 576, kCatalogueEnd = 4096;
constexpr std::uint32_t kCatalogueRows =
    (kCatalogueEnd - kCatalogueRowsOffset) / sizeof(CatalogueRow);
static_assert(sizeof(Header) <= kCatalogueOffset);

/// Reads the table and the numbers that it describes. What stands there is a stranger's: a
/// description that would lead out of the mapping is skipped.
class Catalogue {
 public:
  explicit Catalogue(const Segment& segment);

  std::uint32_t size() const { return rows_; }
  std::optional<CatalogueRow> row(std::uint32_t i) const;
  static std::string_view label_of(const CatalogueRow& row);
  static std::string_view unit_of(const CatalogueRow& row);
  /// Of a row that row() gave.
  std::uint64_t sum(const CatalogueRow& row, std::uint32_t of) const;
  std::uint64_t in_use(const CatalogueRow& row) const;

  /// For the maker of a segment, before the file has a name.
  static void append(Segment& segment, const CatalogueRow& row);

 private:
  std::uint64_t word(std::uint64_t at, std::uint32_t bytes) const;

  const std::byte* base_;
  std::uint64_t size_;
  std::uint32_t rows_ = 0, row_bytes_ = 0;
};

}  // namespace ojs_shm::shm
