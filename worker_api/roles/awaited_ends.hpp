// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/tables/store.hpp"

namespace ojs_shm::internal {

/// Jobs whose end one thread waits for. Each lies with those that ring the same word of the segment
/// when they end, so that a look at them takes 64 loads while none has ended. Once a second all are
/// looked at.
class AwaitedEnds {
 public:
  explicit AwaitedEnds(engine::Store& store) : store_(store) {}

  /// From now on. True: collect() has something to do already.
  bool add(engine::JobId id);
  void remove(engine::JobId id);
  /// Takes out those that have ended, or are gone. True: another process has one of the rest in its
  /// hands and may end it without ringing; look again soon.
  bool collect(std::vector<engine::JobId>& ended);
  bool empty() const {
    return in_hands_.empty() && ended_.empty() &&
           std::ranges::all_of(waiting_, [](const auto& jobs) { return jobs.empty(); });
  }

 private:
  static constexpr std::size_t kBells = 64;  ///< of shm::Header::completions
  static constexpr std::uint64_t kLookMs = 1000;

  engine::Store& store_;
  std::array<std::vector<engine::JobId>, kBells> waiting_;
  std::array<std::uint32_t, kBells> rung_{};  ///< what each word was before its jobs were looked at
  std::vector<engine::JobId> in_hands_, ended_;
  std::uint64_t looked_ms_ = 0;  ///< at all
};

}  // namespace ojs_shm::internal
