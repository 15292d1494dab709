// SPDX-License-Identifier: Apache-2.0
#include "engine/fetch/turns.hpp"

namespace ojs_shm::engine {

std::uint64_t key_of_shares(std::span<const std::string> queues,
                            std::span<const std::uint32_t> weights) {
  std::string text;
  for (std::size_t i = 0; i < queues.size(); ++i)
    text.append(queues[i]).append(":").append(std::to_string(weights[i])).append(" ");
  return std::max<std::uint64_t>(SharedTurn::Of::get(Store::hash_name(text)), 1);
}

/// Two lanes that look for one place at once find the same: each is given once, and never again.
Word* shared_turn(const Store& store, std::uint64_t key) {
  constexpr unsigned kPlacesOfKey = 8;
  for (unsigned i = 0; i < kPlacesOfKey; ++i) {
    Word& word = store.shared_turns[(key + i) % kSharedTurns].word;
    std::uint64_t found = word.load();
    if (found == 0 && word.cas(found, SharedTurn::Of::put(key), shm::Point::kSharedTurnTaken))
      return &word;
    if (SharedTurn::Of::get(found) == key) return &word;
  }
  return nullptr;
}

}  // namespace ojs_shm::engine
