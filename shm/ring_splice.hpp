// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/ring.hpp"

// Packing: the live hints of a run of chunks go into one, which takes their place (ADR 5).

namespace ojs_shm::shm {

/// How far a row of splices may go, and how far it came.
struct Stretch {
  std::uint32_t enough = kNoIndex;  ///< chunks to be freed by all of them
  std::uint32_t most = kNoIndex;    ///< chunks that they may still look at
  /// chunks behind the first of the ring that the next one leaves alone
  std::uint32_t skip = 0;
  std::uint32_t freed = 0;
  bool more = false;  ///< the last one has not seen all of its ring
  /// another lane was at a ring, or there was no chunk for its live hints
  bool refused = false;
};

/// Packs the live hints between the first and the last chunk into fewer chunks. When head comes
/// too near, chunks that stand in no ring are left to Rings::collect_leaks().
void splice(Rings& rings, std::uint32_t ring, StillLive live, Stretch& stretch);
/// The same, all of the ring. Returns chunks freed.
std::uint32_t splice(Rings& rings, std::uint32_t ring, StillLive live);
/// Whether a chunk stands between the first and the last one, so that a splice may gain something.
bool has_middle(const Segment& segment, std::uint32_t ring);

}  // namespace ojs_shm::shm
