// SPDX-License-Identifier: Apache-2.0
#include "shm/catalogue.hpp"

#include <algorithm>
#include <cstring>

namespace ojs_shm::shm {
namespace {

/// A walk over more words than this is no number that a monitor can ask for.
constexpr std::uint64_t kMostWords = 1ULL << 28;

/// A walk over objects prefetches the object that comes so many places later.
constexpr std::uint64_t kAhead = 24;

const std::byte* base_of(const Segment& segment) {
  return reinterpret_cast<const std::byte*>(&segment.header());
}

bool readable(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

template <std::size_t N>
std::string_view text_of(const char (&text)[N]) {
  return {text, ::strnlen(text, N)};
}

/// Whether every word of the row lies aligned within `size` bytes.
bool fits(const CatalogueRow& row, std::uint64_t size) {
  if (row.word_bytes != 4 && row.word_bytes != 8) return false;
  if (row.rows == 0 || row.cells == 0 || row.kind == 0) return false;
  if (row.offset % row.word_bytes != 0 || row.row_bytes % row.word_bytes != 0 ||
      row.cell_bytes % row.word_bytes != 0)
    return false;
  if (row.offset >= size || std::uint64_t{row.rows} * row.cells > kMostWords) return false;
  // No more than 2^28 times 32 bits each, so that nothing overflows.
  const std::uint64_t reach =
      std::uint64_t{row.rows - 1} * row.row_bytes + std::uint64_t{row.cells - 1} * row.cell_bytes;
  return reach + row.word_bytes <= size - row.offset;
}

}  // namespace

Catalogue::Catalogue(const Segment& segment) : base_(base_of(segment)), size_(segment.size()) {
  CatalogueHead head{};
  std::memcpy(&head, base_ + kCatalogueOffset, sizeof head);
  if (head.row_bytes < sizeof(CatalogueRow) || head.row_bytes > kCatalogueEnd) return;
  row_bytes_ = head.row_bytes;
  rows_ = std::min(head.rows,
                   static_cast<std::uint32_t>((kCatalogueEnd - kCatalogueRowsOffset) / row_bytes_));
}

std::optional<CatalogueRow> Catalogue::row(std::uint32_t i) const {
  if (i >= rows_) return std::nullopt;
  CatalogueRow row;
  std::memcpy(&row, base_ + kCatalogueRowsOffset + std::uint64_t{i} * row_bytes_, sizeof row);
  if (!fits(row, size_) || !readable(label_of(row)) || !readable(unit_of(row))) return std::nullopt;
  return row;
}

std::string_view Catalogue::label_of(const CatalogueRow& row) { return text_of(row.label); }
std::string_view Catalogue::unit_of(const CatalogueRow& row) { return text_of(row.unit); }

std::uint64_t Catalogue::word(std::uint64_t at, std::uint32_t bytes) const {
  // relaxed: a number for people, which decides nothing
  return bytes == 8 ? reinterpret_cast<const Word*>(base_ + at)->load_relaxed()
                    : reinterpret_cast<const Half*>(base_ + at)->load_relaxed();
}

std::uint64_t Catalogue::sum(const CatalogueRow& row, std::uint32_t of) const {
  if (of >= row.rows) return 0;
  std::uint64_t sum = 0, at = row.offset + std::uint64_t{of} * row.row_bytes;
  for (std::uint32_t cell = 0; cell < row.cells; ++cell, at += row.cell_bytes)
    sum += word(at, row.word_bytes);
  return sum;
}

std::uint64_t Catalogue::in_use(const CatalogueRow& row) const {
  std::uint64_t used = 0, at = row.offset;
  if (row.word_bytes == 4) {
    for (std::uint32_t i = 0; i < row.rows; ++i, at += row.row_bytes)
      used += word(at, 4) != 0 ? 1 : 0;
    return used;
  }
  for (std::uint32_t i = 0; i < row.rows; ++i, at += row.row_bytes) {
    __builtin_prefetch(base_ + at + kAhead * row.row_bytes);
    const std::uint64_t found = word(at, 8);
    used += found != 0 && (row.free_states >> (found >> 60) & 1) == 0 ? 1 : 0;
  }
  return used;
}

void Catalogue::append(Segment& segment, const CatalogueRow& row) {
  std::byte* base = reinterpret_cast<std::byte*>(&segment.header());
  CatalogueHead head{};
  std::memcpy(&head, base + kCatalogueOffset, sizeof head);
  if (head.rows >= kCatalogueRows) return;
  std::memcpy(base + kCatalogueRowsOffset + head.rows * sizeof row, &row, sizeof row);
  head = {head.rows + 1, sizeof row};
  std::memcpy(base + kCatalogueOffset, &head, sizeof head);
}

}  // namespace ojs_shm::shm
