// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/actor.hpp"

namespace ojs_shm::internal {

/// The numbers of those queues that exist, in that order. None is made.
inline std::vector<std::uint32_t> found_queues(engine::Store& store,
                                               const std::vector<std::string>& names) {
  std::vector<std::uint32_t> found;
  for (const std::string& name : names)
    if (const std::uint32_t queue = store.find_queue(name); queue != engine::kNoIndex)
      found.push_back(queue);
  return found;
}

/// This lane among the sleepers of some queues, while it lives.
class Sleeper {
 public:
  Sleeper(engine::Actor& actor, const std::vector<std::uint32_t>& queues)
      : actor_(actor), queues_(queues) {}
  void lie_down() {
    for (const std::uint32_t q : queues_)
      word(q).fetch_or(bit(), shm::Point::kWaiterSet);  // PAIR idle
  }
  /// Returns true when another lane had already chosen this one to be woken.
  bool get_up() {
    bool chosen = false;
    for (const std::uint32_t q : queues_)
      chosen = (word(q).fetch_and(~bit(), shm::Point::kWaiterCleared) & bit()) == 0 || chosen;
    return chosen;
  }
  /// Workers of pools go by what is said of a queue; the process that made a job available may be
  /// stopped before it says so.
  bool sees_work() {
    const auto found =
        std::ranges::find_if(queues_, [this](std::uint32_t q) { return actor_.sees_work(q); });
    if (found == queues_.end()) return false;
    actor_.bell().mark_busy(*found);
    return true;
  }
  /// Hands a wake on that this lane does not need.
  void wake_another() {
    for (const std::uint32_t q : queues_)
      if (actor_.sees_work(q)) actor_.bell().wake_one(actor_.store().queue(q));
  }

 private:
  shm::Word& word(std::uint32_t q) { return actor_.store().queue(q).waiters[actor_.lane() / 64]; }
  std::uint64_t bit() const { return 1ULL << (actor_.lane() % 64); }
  engine::Actor& actor_;
  const std::vector<std::uint32_t>& queues_;
};

}  // namespace ojs_shm::internal
