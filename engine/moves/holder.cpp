// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/holder.hpp"

#include <algorithm>

#include "engine/tables/own_times.hpp"

// Leases. What reports do stands in report.cpp.

namespace ojs_shm::engine {

using shm::Point;

/// The supervisor must know of a lease shorter than any before, for it looks at leases only as
/// often as needed.
void Holder::note_lease(std::uint64_t lease_ms, std::uint64_t now) {
  shm::Header& header = segment_.header();
  std::uint64_t shortest = header.shortest_lease_ms.load_relaxed();  // relaxed: it only ever falls
  while (lease_ms < shortest) {
    if (!header.shortest_lease_ms.cas(shortest, lease_ms, Point::kLeaseMoved)) continue;
    return bell_.ring_supervisor_for(now + lease_ms);
  }
}

/// The end of the lease of a job that is active under this word, into `until`. False: it is lost.
bool Holder::move_lease(JobRecord& job, std::uint64_t word, std::uint32_t lease_ms, Lease how,
                        std::uint64_t& until) {
  const std::uint64_t now = store_.now_ms();
  std::uint64_t found = job.deadline.load();
  for (;;) {
    if (job.control.load() != word || !Deadline(found).belongs_to(Control(word).tag()) ||
        Deadline(found).ms() == 0)
      return false;
    const std::uint32_t lease = lease_ms != 0 ? lease_ms : job.lease_in_force_ms.get();
    until = now + lease;
    if (const std::uint64_t longest = longest_run_ms(job); longest != 0)
      until = std::min(until, job.started_at.get() + longest);
    if (how == Lease::kOnlyLonger && until <= Deadline(found).ms()) {
      until = Deadline(found).ms();
      return true;
    }
    // The supervisor ends a lease by a cas on this very word, so either it sees the longer lease or
    // we see its end.
    if (job.deadline.cas(found, Deadline(until, Control(word).tag()).word,
                         Point::kLeaseMoved)) {  // PAIR lease
      note_lease(lease, now);
      return true;
    }
  }
}

Outcome Holder::heartbeat(std::uint32_t slot, std::uint64_t word, std::uint32_t lease_ms,
                          std::uint64_t& until) {
  JobRecord& job = store_.job(slot);
  if (!move_lease(job, word, lease_ms, Lease::kAsAsked, until)) return Outcome::kLost;
  if (tellings_.on()) [[unlikely]]
    tellings_.held(EventKind::kJobHeartbeat, job, Control(word), until);
  return job.control.load() == word ? Outcome::kOk : Outcome::kLost;
}

/// The tag stays: it is the fence by which the client names its attempt.
Outcome Holder::hand_over(std::uint32_t slot, std::uint64_t word) {
  const Control active(word);
  const Control leased(kSlotActive, active.ring(), shm::kLeaseOwner, active.tag());
  const bool held = active.state() == kSlotActive && active.owner() != shm::kLeaseOwner;
  return held && store_.job(slot).control.cas_once(word, leased.word, Point::kSlotHandedOver)
             ? Outcome::kOk
             : Outcome::kLost;
}

}  // namespace ojs_shm::engine
