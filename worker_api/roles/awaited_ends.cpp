// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/awaited_ends.hpp"

#include <algorithm>
#include <utility>

#include "engine/tables/job_look.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::internal {

/// Asks for the ring, then looks: a lane that takes the job into its hands afterwards sees the
/// wish.
bool AwaitedEnds::add(engine::JobId id) {
  const std::uint32_t slot = engine::find_job(store_, id);
  if (slot == engine::kNoIndex) {
    ended_.push_back(id);
    return true;
  }
  engine::JobRecord& job = store_.job(slot);
  const std::size_t bell = slot % kBells;
  const std::uint32_t rung = store_.segment().header().completions[bell].load();
  if ((job.signals.load() & engine::kWaited) == 0)
    job.signals.fetch_or(engine::kWaited, shm::Point::kWaitFlagSet);
  const engine::Control control(job.control.load_seq_cst());
  const bool gone = job.id() != id;  // the slot has another job by now
  if (!gone && engine::is_exclusive(control.state())) {
    in_hands_.push_back(id);
    return true;
  }
  if (gone || engine::is_finished(control.state())) {
    ended_.push_back(id);
    return true;
  }
  if (waiting_[bell].empty()) rung_[bell] = rung;
  waiting_[bell].push_back(id);
  return false;
}

void AwaitedEnds::remove(engine::JobId id) {
  for (auto& jobs : waiting_) std::erase(jobs, id);
  std::erase(in_hands_, id);
  std::erase(ended_, id);
}

bool AwaitedEnds::collect(std::vector<engine::JobId>& ended) {
  std::vector<engine::JobId> again = std::exchange(in_hands_, {});
  const std::uint64_t steady = shm::steady_ms();
  const bool looks_at_all = steady - looked_ms_ >= kLookMs;
  if (looks_at_all) looked_ms_ = steady;
  for (std::size_t bell = 0; bell < kBells; ++bell) {
    if (waiting_[bell].empty()) continue;
    const std::uint32_t now = store_.segment().header().completions[bell].load();
    if (now == std::exchange(rung_[bell], now) && !looks_at_all) continue;
    again.insert(again.end(), waiting_[bell].begin(), waiting_[bell].end());
    waiting_[bell].clear();
  }
  for (const engine::JobId id : again) add(id);
  ended.insert(ended.end(), ended_.begin(), ended_.end());
  ended_.clear();
  return !in_hands_.empty();
}

}  // namespace ojs_shm::internal
