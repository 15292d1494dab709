// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/rules/smooth.hpp"
#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

/// Under which all handles know these queues with these weights: what SharedTurn::Of holds.
std::uint64_t key_of_shares(std::span<const std::string> queues,
                            std::span<const std::uint32_t> weights);
/// The word of the segment that holds the turn of those shares; null when its place is taken by
/// others.
Word* shared_turn(const Store& store, std::uint64_t key);

/// Whose turn it is among parties with weights. A party that has nothing when its turn comes is
/// passed over, so the others share its turns by their own weights; and one that has something is
/// never passed over, so while it has, at most W - weight others are served between two of its
/// services (W: the reduced weights' sum).
///
/// The turn may stand in the segment, so that this holds over all handles that ask for the same. It
/// is taken before its party is served: a death costs a turn.
class Turns {
 public:
  explicit Turns(std::span<const std::uint32_t> weights) : Turns(weights, nullptr, 1) {}
  /// With the turn in that word; null: in this object.
  Turns(std::span<const std::uint32_t> weights, Word* word, std::uint64_t key)
      : cycle_(smooth_schedule(weights)), asked_(weights.size()), word_(word), key_(key) {}

  /// Calls `serve(party)` for each party once, in the order of their turns, until one call returns
  /// true. The next round begins after that turn; where all calls return false, it begins where
  /// this one did.
  template <class Serve>
  bool serve_next(Serve serve) {
    if (cycle_.empty()) return false;
    std::fill(asked_.begin(), asked_.end(), false);
    const std::size_t mine = take_turn();
    for (std::size_t step = 0; step < cycle_.size(); ++step) {
      const std::size_t at = (mine + step) % cycle_.size();
      const std::uint16_t party = cycle_[at];
      if (asked_[party]) continue;
      asked_[party] = true;
      if (!serve(party)) continue;
      if (step != 0) go_on(mine + 1, at + 1);
      return true;
    }
    go_on(mine + 1, mine);
    return false;
  }

 private:
  Word& word() { return word_ != nullptr ? *word_ : own_; }
  std::uint64_t word_at(std::size_t turn) const {
    return SharedTurn::Of::put(key_) | SharedTurn::Next::put(turn % cycle_.size());
  }
  std::size_t take_turn() {
    std::uint64_t found = word().load();
    for (;;) {
      const std::size_t at =
          SharedTurn::Of::get(found) == key_ ? SharedTurn::Next::get(found) % cycle_.size() : 0;
      if (word().cas(found, word_at(at + 1), shm::Point::kSharedTurnTaken)) return at;
    }
  }
  /// Unless another handle has taken a turn since.
  void go_on(std::size_t from, std::size_t to) {
    word().cas_once(word_at(from), word_at(to), shm::Point::kSharedTurnTaken);
  }

  std::vector<std::uint16_t> cycle_;
  std::vector<bool> asked_;
  Word* word_;
  std::uint64_t key_;
  Word own_{};
};

}  // namespace ojs_shm::engine
