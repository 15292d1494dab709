// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// Gives the chunks of dead hints back, for the supervisor, so that no push has to. A pass goes
/// over all rings once the chunks in use have become twice what the last one left, which is what
/// the living need: so it costs no more than was pushed since, and nothing while nothing piles up.
/// Bounded work per look. One thread.
class Packer {
 public:
  explicit Packer(Actor& actor) : actor_(actor), store_(actor.store()) {}
  /// Returns when it wants to be called again: at once when that is `now`, 0 when no time is too
  /// late.
  std::uint64_t look(std::uint64_t now);

 private:
  std::uint64_t bound() const;
  bool pack_some();

  Actor& actor_;
  Store& store_;
  /// chunks in use after the last pass, or the fewest seen since
  std::uint64_t left_ = 0;
  std::uint64_t seen_ = 0, looked_ms_ = 0;  ///< chunks in use at the last look
  bool again_ = false;
  bool packing_ = false, refused_ = false;
  std::uint64_t began_with_ = 0, freed_ = 0;  ///< by the pass
  /// where the pass goes on: how many rings, and chunks of the next, are done
  std::uint32_t ring_ = 0, skip_ = 0;
};

}  // namespace ojs_shm::engine
