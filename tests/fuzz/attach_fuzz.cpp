// SPDX-License-Identifier: Apache-2.0
// A file of a stranger's at the place of a segment: refused with an error, or looked at and worked
// in without harm.
//
// Input: 1 byte 255: the rest is the file | else: number of the image, how (1), number of blows
// (1), blows, reshaping, cut, and then the visitor's operations. A reshaped segment has other sizes
// that agree with each other and the file.
#include <cstring>
#include <utility>

#include "tests/fuzz/damage.hpp"
#include "tests/fuzz/lived_in.hpp"
#include "tests/fuzz/surroundings.hpp"
#include "tests/fuzz/visitor.hpp"
#include "tests/fuzz/watch.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::fuzz {
namespace {

using internal::Attachment;

enum How : unsigned { kReshaped = 1, kCut = 2, kWithKeeper = 4 };

const std::vector<Aim>& aims() {
  static const auto* all = [] {
    auto* made = new std::vector<Aim>;
    for (const Image& image : images()) made->emplace_back(image);
    return made;
  }();
  return *all;
}

/// Gives the tables other lengths, and takes along what they hold.
void reshape(Input& input, const std::string& image, std::string& file) {
  constexpr std::uint64_t kLargest = 8U << 20;
  shm::Header header;
  std::memcpy(static_cast<void*>(&header), file.data(), sizeof header);
  shm::Geometry& g = header.geometry;
  const shm::Offsets before =
      shm::offsets_of(reinterpret_cast<const shm::Header*>(image.data())->geometry);
  if (input.below(2) != 0)  // as small as they may be
    g = {.slots = 1,
         .lanes = 1,
         .processes = 1,
         .rings = 1,
         .chunks = 4,
         .blocks = 1,
         .key_cells = 64,
         .area_bytes = 256};
  std::uint32_t* counts[] = {&g.slots, &g.lanes, &g.processes, &g.rings, &g.chunks, &g.blocks};
  for (std::size_t changes = input.below(16); changes > 0; --changes) {
    const std::size_t field = input.below(std::size(counts) + 2);
    const auto value = static_cast<std::uint32_t>(input.number(1 + input.below(2)));
    if (field < std::size(counts)) *counts[field] = value;
    if (field == std::size(counts)) g.key_cells = 64U << value % 8;
    if (field > std::size(counts)) g.area_bytes = 256 + value;
  }
  const shm::Offsets after = shm::offsets_of(g);
  if (after.end > kLargest) return;
  header.size_bytes = after.end;
  std::string reshaped(after.end, '\0');
  using Table = std::uint64_t shm::Offsets::*;
  constexpr Table kTables[] = {
      &shm::Offsets::processes, &shm::Offsets::lanes,       &shm::Offsets::area,
      &shm::Offsets::slot_map,  &shm::Offsets::chunk_map,   &shm::Offsets::block_map,
      &shm::Offsets::rings,     &shm::Offsets::chunks,      &shm::Offsets::keys,
      &shm::Offsets::slots,     &shm::Offsets::block_words, &shm::Offsets::block_links,
      &shm::Offsets::blocks,    &shm::Offsets::end};
  for (std::size_t i = 0; i + 1 < std::size(kTables); ++i) {
    const Table table = kTables[i], next = kTables[i + 1];
    const std::size_t length = std::min(before.*next - before.*table, after.*next - after.*table);
    reshaped.replace(after.*table, length, file, before.*table, length);
  }
  std::memcpy(reshaped.data(), static_cast<const void*>(&header), sizeof header);
  file = std::move(reshaped);
}

void visit(Input& input, const std::vector<std::string>& ids, bool with_keeper) {
  Watch watch;
  if (const auto seen = Segment::observe(segment_name()); seen.ok()) look_around(*seen);
  Result<Segment> segment = [with_keeper]() -> Result<Segment> {
    if (with_keeper) return Segment::attach(segment_name());
    auto opened = Attachment::open(segment_name(), Attachment::Role::kBroker);
    if (!opened.ok()) return opened.error();
    return Segment::of(*opened);
  }();
  if (!segment.ok()) return require(!segment.error().message.empty(), "a refusal without a word");
  Visitor visitor(*segment, ids);
  for (int steps = 0; steps < 48 && !input.empty(); ++steps) {
    watch.begin_operation();
    visitor.act(input);
  }
  watch.begin_operation();
}

}  // namespace
}  // namespace ojs_shm::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ojs_shm::fuzz::aims();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ojs_shm::fuzz;
  begin_run();
  Input input(data, size);
  const unsigned first = input.byte();
  const std::string path = ojs_shm::internal::path_of(segment_name());
  if (first == 255) {
    write_file(path, input.rest());
    visit(input, {}, false);
    return 0;
  }
  const std::size_t chosen = first % images().size();
  std::string file = images()[chosen].bytes;
  const unsigned how = input.byte();
  for (std::size_t blows = input.below(16); blows > 0; --blows)
    aims()[chosen].read(input).strike(reinterpret_cast<std::byte*>(file.data()));
  if ((how & kReshaped) != 0) reshape(input, images()[chosen].bytes, file);
  if ((how & kCut) != 0) file.resize(input.number(3) % (file.size() + 1));
  write_file(path, file);
  visit(input, images()[chosen].ids, (how & kWithKeeper) != 0 && (how >> 3) % 8 == 0);
  return 0;
}
