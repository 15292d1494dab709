// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#include "shm/segment.hpp"
#include "tests/support/process.hpp"

namespace ojs_shm::test {

/// A segment as this room knows it: slots, chunks, blocks and keys, and no engine in them. All of
/// them are free.
class BareSegment {
 public:
  static shm::Geometry small() {
    shm::Geometry geometry;
    geometry.slots = 256;
    geometry.lanes = 4;
    geometry.processes = 4;
    geometry.rings = 16;
    geometry.chunks = 64;
    geometry.blocks = 100;
    geometry.key_cells = 256;
    geometry.area_bytes = 2 * sizeof(shm::RingSet);
    return geometry;
  }
  explicit BareSegment(const shm::Geometry& geometry = small()) {
    shm::MakeSpec spec;
    spec.geometry = geometry;
    opened_ = shm::make_segment(
        folder_ / "bare", spec,
        [](shm::Segment& made, void*) {
          const shm::Geometry& g = made.geometry();
          const auto fill = [](shm::Word* map, std::uint32_t count) {
            for (std::uint32_t i = 0; i < count; ++i)
              map[i / 64].fetch_or(1ULL << (i % 64), shm::Point::kNone);
          };
          fill(made.slot_map(), g.slots);
          fill(made.chunk_map(), g.chunks);
          fill(made.block_map(), g.blocks);
        },
        nullptr);
    if (opened_.code != shm::OpenCode::kOk) throw std::runtime_error(opened_.detail);
  }

  shm::Segment& operator*() { return opened_.segment; }
  shm::Segment* operator->() { return &opened_.segment; }
  /// One of two sets of rings.
  shm::RingSet& set(unsigned i = 0) {
    return reinterpret_cast<shm::RingSet*>(opened_.segment.area())[i];
  }

 private:
  ScratchDirectory folder_;
  shm::Opened opened_;
};

}  // namespace ojs_shm::test
