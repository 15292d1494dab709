// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/tables/patience.hpp"
#include "shm/parking.hpp"
#include "shm/points.hpp"

namespace ojs_shm::engine {

/// A word that names the one lane which may do something just now, by its owner's number; 0: none.
/// A lane that dies there is relieved by its repair. What a word says above its low half is the
/// lane's own.
template <class Cell>
class Seat {
 public:
  Seat(Cell& word, std::uint32_t owner, shm::Point point)
      : word_(word), owner_(owner), point_(point) {}

  /// False when another lane seems to be stopped there.
  [[nodiscard]] bool take(unsigned patience = kPatience) const {
    for (unsigned look = 0; !word_.cas_once(0, owner_, point_); ++look) {
      if (look >= patience) return false;
      shm::wait_for_another(look);
    }
    return true;
  }
  bool ours() const { return static_cast<std::uint32_t>(word_.load()) == owner_; }
  void leave() const { word_.store(0, point_); }
  void leave_if_ours() const {
    if (ours()) leave();
  }

 private:
  Cell& word_;
  std::uint32_t owner_;
  shm::Point point_;
};

/// That of the lane which writes settings.
inline Seat<shm::Word> settler(shm::Word& word, std::uint32_t lane) {
  return {word, lane + 1, shm::Point::kSettlerSet};
}

}  // namespace ojs_shm::engine
