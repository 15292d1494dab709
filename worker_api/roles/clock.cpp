// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/clock.hpp>

#include <algorithm>

#include "engine/pools/samples.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {

std::uint64_t longest_clock_step_ms(const Observer& observer) {
  const engine::SampleTimes& times = observer.segment().attachment()->store().sample_times();
  const std::uint64_t last = times.last.load();
  std::uint64_t longest = 0, later = times.at_ms[last % engine::kSamples].load();
  for (unsigned back = 1; back < engine::kSamples; ++back) {
    // 0: none, or a sample that is being taken, which is the oldest
    const std::uint64_t at = times.at_ms[(last - back) % engine::kSamples].load();
    if (at == 0) break;
    longest = std::max(longest, later - std::min(later, at));
    later = at;
  }
  return longest;
}

}  // namespace ojs_shm
