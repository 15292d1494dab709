// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// How long dead letters are kept, and how many. Source: ojs-dead-letter 5.
struct DeadRetention {
  std::uint64_t max_age_ms = 0, max_count = 0;  ///< 0: without limit
  static DeadRetention of(const Store& store) {
    return {store.header().dead_max_age_ms.load(), store.header().dead_max_count.load()};
  }
  friend constexpr bool operator==(const DeadRetention&, const DeadRetention&) = default;
};

/// Times at which dead letters are pruned: those that this divides, so that everybody knows the
/// next.
constexpr std::uint64_t kPruneEveryMs = 300'000;
constexpr std::uint64_t next_prune(std::uint64_t now) {
  return (now / kPruneEveryMs + 1) * kPruneEveryMs;
}

/// Drops the dead letters that are kept for too long or are too many, the oldest first. A walk over
/// all slots, a part of it in each call; nothing that another could not begin anew. Those that the
/// workflow they belong to still needs, or the key they are unique by, are neither dropped nor
/// counted.
class DeadLetters {
 public:
  explicit DeadLetters(Actor& actor) : actor_(actor), store_(actor.store()) {}

  /// Does what is due. When it is to be called again, Unix ms: at once when that is `now`.
  std::uint64_t look(std::uint64_t now);
  /// The clock was set back.
  void look_anew() { next_ = 0; }

 private:
  struct Found {
    std::uint64_t finished_at;
    Control control;
    std::uint32_t slot;
  };
  void choose(std::uint64_t now);

  Actor& actor_;
  Store& store_;
  DeadRetention kept_;
  bool walking_ = false;
  std::uint32_t cursor_ = 0;
  std::uint64_t next_ = 0;
  std::vector<Found> found_;  ///< while it walks all; then those that go, the youngest first
};

}  // namespace ojs_shm::engine
