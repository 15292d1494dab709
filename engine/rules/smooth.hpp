// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace ojs_shm::engine {

/// By what all weights can be divided; 0: none has a turn.
inline std::uint32_t common_divisor(std::span<const std::uint32_t> weights) {
  std::uint32_t divisor = 0;
  for (const std::uint32_t weight : weights) divisor = std::gcd(divisor, weight);
  return divisor;
}

/// How many turns the cycle of smooth_schedule() has.
inline std::int64_t turns_of(std::span<const std::uint32_t> weights) {
  const std::uint32_t divisor = common_divisor(weights);
  std::int64_t turns = 0;
  for (const std::uint32_t weight : weights) turns += weight == 0 ? 0 : weight / divisor;
  return turns;
}

/// The cycle in which parties with these weights take turns, as indices into `weights`: smooth
/// weighted round robin. Weights are reduced by their greatest common divisor first; the cycle is
/// as long as their sum W, so that each window of W turns, wherever it begins, holds every party
/// exactly as often as its weight. The turns of a party lie apart, and between two of them at most
/// W - weight others have theirs. {5, 2, 1} gives 0 1 0 0 2 0 1 0. A party of weight 0 has no turn;
/// when no party has one, the cycle is empty.
inline std::vector<std::uint16_t> smooth_schedule(std::span<const std::uint32_t> weights) {
  const std::uint32_t divisor = common_divisor(weights);
  const std::int64_t sum = turns_of(weights);
  std::vector<std::uint16_t> cycle;
  cycle.reserve(static_cast<std::size_t>(sum));
  std::vector<std::int64_t> credit(weights.size(), 0);
  for (std::int64_t turn = 0; turn < sum; ++turn) {
    std::size_t chosen = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      credit[i] += weights[i] / divisor;
      if (credit[i] <= most) continue;  // the first of equals
      most = credit[i];
      chosen = i;
    }
    credit[chosen] -= sum;
    cycle.push_back(static_cast<std::uint16_t>(chosen));
  }
  return cycle;
}

}  // namespace ojs_shm::engine
