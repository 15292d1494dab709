// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/damage.hpp"

#include <cstring>
#include <string_view>

#include "shm/ring.hpp"

namespace ojs_shm::fuzz {

using shm::Field;

namespace {
constexpr unsigned kManners = 11, kLink = 10;

/// The word without its bits [low, low + width), and the value in their place.
template <unsigned kLow, unsigned kWidth>
std::uint64_t with_field(std::uint64_t word, std::uint64_t value) {
  const std::uint64_t mask = ((1ULL << kWidth) - 1) << kLow;
  return (word & ~mask) | (value << kLow & mask);
}
}  // namespace

void Blow::strike(std::byte* segment) const {
  std::uint64_t word = 0;
  std::memcpy(&word, segment + at, sizeof word);
  switch (manner % kManners) {
    case 0: word = value; break;
    case 1: word ^= 1ULL << value % 64; break;
    case 2: word += value; break;
    case 3: word -= value; break;
    case 4: word = with_field<0, 32>(word, value); break;
    case 5: word = with_field<32, 32>(word, value); break;
    case 6: word = with_field<60, 4>(word, value); break;   // a state
    case 7: word = with_field<36, 14>(word, value); break;  // an owner, a cell
    case 8: word = with_field<39, 24>(word, value); break;  // an index
    default: word = ~word; break;
  }
  std::memcpy(segment + at, &word, sizeof word);
}

Aim::Aim(const Image& made) {
  const std::string_view image = made.bytes;
  const std::vector<std::size_t>& begins = made.tables;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    Table table{begins[i], (begins[i + 1] - begins[i]) / 8, {}};
    for (std::size_t word = 0; word < table.words; ++word)
      if (image.compare(table.begin + word * 8, 8, std::string_view("\0\0\0\0\0\0\0\0", 8)) != 0)
        table.used.push_back(word);
    if (table.words != 0) tables_.push_back(std::move(table));
  }
  shm::Header header;
  std::memcpy(static_cast<void*>(&header), image.data(), sizeof header);
  const shm::Geometry& g = header.geometry;
  const shm::Offsets o = shm::offsets_of(g);
  for (std::uint32_t i = 0; i < g.chunks; ++i) {
    std::uint64_t control = 0;
    std::memcpy(&control,
                image.data() + o.chunks + i * sizeof(shm::Chunk) + offsetof(shm::Chunk, control),
                8);
    if (const shm::ChunkControl found(control); found.state() != shm::ChunkState::kFree)
      links_.push_back(shm::Hint(i, found.incarnation()).word);
  }
}

Blow Aim::read(Input& input) const {
  const Table& table = tables_[input.below(tables_.size())];
  const std::size_t place = input.number(2);
  const bool any = place >= 0xC000 || table.used.empty();
  const std::size_t word = any ? place * 7919 % table.words : table.used[place % table.used.size()];
  Blow blow{table.begin + word * 8, input.byte(), 0};
  // Small numbers mean more than large ones: indexes, counts, ranks.
  blow.value = input.number(blow.manner / kManners % 2 == 0 ? 1 : 8);
  // of rings that go in circles or into each other
  if (blow.manner % kManners == kLink && !links_.empty()) {
    blow.value = links_[blow.value % links_.size()];
    blow.manner = 0;
  }
  return blow;
}

}  // namespace ojs_shm::fuzz
