// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/observing/tellings.hpp"
#include "engine/supervision/repairer.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {

std::string Deaths::text() const {
  std::string list;
  for (const std::uint32_t pid : pids) list += (list.empty() ? "" : ", ") + std::to_string(pid);
  const bool one = pids.size() == 1;
  return "process " + std::to_string(by) + " repaired after " + std::to_string(pids.size()) +
         (one ? " dead process (pid " : " dead processes (pids ") + list +
         "; ended without detaching): " + std::to_string(mended) +
         (mended == 1 ? " slot" : " slots") + " mended";
}

std::uint32_t Attachment::repair_the_dead(Deaths* deaths) {
  Deaths found;
  if (!repair(found)) return 0;
  tell(found);
  const auto dead = static_cast<std::uint32_t>(found.pids.size());
  if (deaths != nullptr) *deaths = std::move(found);
  return dead;
}

/// The lock on the byte of the dead is the proof of death, and keeps other repairers away until we
/// are done; if we die, it is free again, and the next one begins anew. Needs no lane and no record
/// of our own. All of the dead at once, for the walks over the tables cost the same for one as for
/// many.
bool Attachment::repair(Deaths& deaths) {
  if (forked() || read_only()) return false;
  if (!locks_.intact()) return mark_lost(), false;
  const std::lock_guard lock(repair_);  // when our keeper is at it, the caller finds its work done
  std::vector<std::uint32_t> dead, lanes;
  for (std::uint32_t i = 0; i < segment_.geometry().processes; ++i) {
    if (i == process_ || segment_.process(i).live.load() == 0 ||
        !locks_.try_lock(shm::kProcessByte + i))
      continue;
    if (segment_.process(i).live.load() != 0)
      dead.push_back(i);
    else
      locks_.unlock(shm::kProcessByte + i);
  }
  if (dead.empty()) return false;
  for (std::uint32_t l = 0; l < store_.lanes(); ++l)
    if (const std::uint32_t process = segment_.lane(l).process.load();
        process != 0 && std::binary_search(dead.begin(), dead.end(), process - 1))
      lanes.push_back(l);
  deaths.mended = engine::Repairer::repair(store_, lanes);
  deaths.by = static_cast<std::uint32_t>(::getpid());
  for (const std::uint32_t i : dead) deaths.pids.push_back(segment_.process(i).pid.load());
  for (const std::uint32_t l : lanes) give_lane(l);
  shm::Header& header = segment_.header();
  header.deaths.fetch_add(dead.size(), shm::Point::kCounterMoved);
  header.repairs.fetch_add(deaths.mended, shm::Point::kCounterMoved);
  header.last_repair.store(std::uint64_t{deaths.by} << 32 | deaths.pids.back(),
                           shm::Point::kCounterMoved);
  header.last_mended.store(deaths.mended, shm::Point::kCounterMoved);
  header.last_repair_at_ms.store(store_.now_ms(), shm::Point::kCounterMoved);
  for (const std::uint32_t i : dead) {
    segment_.process(i).live.store(0, shm::Point::kProcessFreed);
    locks_.unlock(shm::kProcessByte + i);
  }
  return true;
}

/// Needs a lane of our own, since those of the dead have been given back; without one the event is
/// left out. A death here leaves it out as well.
void Attachment::tell(const Deaths& deaths) {
  if ((store_.header().telling.load() & engine::kTells) == 0) return;
  const Result<std::uint32_t> lane = take_lane(true);
  if (!lane) return;
  engine::Tellings tellings(store_, *lane);
  for (const std::uint32_t pid : deaths.pids)
    tellings.repaired(pid, deaths.by, deaths.pids.size(), deaths.mended);
  tellings.close();
  give_lane(*lane);
}

std::uint32_t Attachment::mend() {
  const Result<std::uint32_t> lane = take_lane(true);
  if (!lane) return 0;
  const std::lock_guard lock(repair_);
  engine::Actor actor(store_, *lane);
  const std::uint32_t mended = actor.mend();
  actor.retire();
  give_lane(*lane);
  return mended;
}

}  // namespace ojs_shm::internal
