// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/bounds/admission.hpp"
#include "engine/limits/limit_gate.hpp"

namespace ojs_shm::engine {

/// How full bounded queues are, as this lane knows it: how its last enqueue met a bound, when it
/// warns, and what it advises those that are refused.
class Pressure : protected LimitGate {
 protected:
  Pressure(Store& store, std::uint32_t lane)
      : LimitGate(store, lane), depth_cache_(store.max_queues()) {}
  ~Pressure() = default;

  /// How the last enqueue or batch met its queue's bound: refused, or accepted above the threshold.
  const Meeting& met() const { return met_; }
  void meet_nothing() { met_.fullness.bound = 0; }
  /// The batch that was refused has its jobs in another order than its caller's.
  void refused_at(std::span<const std::size_t> places) {
    if (met_.of_tenant) met_.refused = static_cast<std::uint32_t>(places[met_.refused]);
  }

  /// What a bounded queue holds, as far as it does not stand in `reserved`.
  std::uint64_t used_beside_reserved(const QueueRecord& queue, std::uint32_t q) const;
  void notice_pressure(QueueRecord& queue, std::uint32_t q, std::uint64_t used, bool fresh,
                       Backpressure policy);
  /// Whether what was warned of is over.
  void look_for_calm(QueueRecord& queue, std::uint32_t q);
  void count_refusals(std::uint32_t q, std::uint64_t jobs, std::string_view type);
  std::uint32_t recommended_delay(QueueRecord& queue, std::uint32_t q, const Full& full,
                                  Backpressure policy);

  /// how often a supervisor looks whether a warning is over
  static constexpr std::uint64_t kWatchMs = 1'000;
  std::vector<DepthCache> depth_cache_;
  Meeting met_;

 private:
  void settle_pressure(QueueRecord& queue, std::uint32_t q, const Fullness& fullness,
                       Backpressure policy);
};

}  // namespace ojs_shm::engine
