// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <vector>

#include "engine/moves/changer.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tables/probes.hpp"

// What time brings: due jobs, expiry, leases. Called by the supervisor; nothing here
// is on a job's path.

namespace ojs_shm::engine {

using shm::Point;

namespace {
/// Until when a job that is due is looked at again while the segment is in maintenance.
constexpr std::uint64_t kMaintainedMs = 1000;
}  // namespace

bool Changer::promote(std::uint32_t slot, JobRecord& job, Control before, std::uint64_t now) {
  Control held;
  if (!hold(Event::kDue, slot, before, held)) return false;
  return land(Event::kDue, before.state(), slot, job, held, now), true;
}

bool Changer::expire(std::uint32_t slot, JobRecord& job, Control before, std::uint64_t now) {
  Control held;
  if (!hold(Event::kExpire, slot, before, held)) return false;
  return end_expired(slot, job, held, now, before.state()), true;
}

/// Of a job in this lane's hands, which was in that state.
[[gnu::noinline]] void Changer::end_expired(std::uint32_t slot, JobRecord& job, Control held,
                                            std::uint64_t now, unsigned before) {
  const TimeUp why = why_in(job, before);
  Policy policy = job.flags();
  if (why != TimeUp::kExpired) policy = policy.with_previous(static_cast<unsigned>(why));
  // One that ran out of time between its attempts failed for good.
  const bool buried = why == TimeUp::kTotalTimeout && policy.has(Policy::kDeadLetter);
  job.policy.set(policy.word | Policy::kExpired | (buried ? Policy::kDead : 0));
  job.finished_at.set(now);
  if (why != TimeUp::kExpired && tellings_.on()) tellings_.time_is_up(job, held, now, why);
  OJS_SHM_PROBE3(expire, job.id_hi.get(), job.id_lo.get(), job.queue.get());
  land(Event::kExpire, kSlotAvailable, slot, job, held, now);
}

/// Ends the attempt of a job whose total timeout is over. False: a lane changes it just now, or its
/// lease is longer than it was.
bool Changer::end_total(std::uint32_t slot, JobRecord& job, Control active, std::uint64_t now) {
  const Deadline deadline(job.deadline.load());  // PAIR lease
  if (!deadline.belongs_to(active.tag())) return false;
  if (deadline.ms() != 0 &&
      !job.deadline.cas_once(deadline.word, Deadline(0, active.tag()).word, Point::kLeaseEnded))
    return false;
  const ErrorEntry error = own_error(now, job.attempt.get(), false, "total_timeout",
                                     "the job was not done within its total timeout");
  return set_back(slot, active.word, Setback::kTotalTimeout, &error).outcome == Outcome::kOk;
}

std::uint64_t Changer::tend(std::uint32_t slot, std::uint32_t generation, std::uint64_t now) {
  if (slot >= store_.slots()) return 0;
  JobRecord& job = store_.job(slot);
  const Control before(job.control.load());
  if (job.generation.get() != generation || before.state() == kSlotFree ||
      before.state() >= kSlotTemplate)
    return 0;
  if (is_finished(before.state())) {
    if (!is_minded(job, before.state()) || job.flags().has(Policy::kDead)) return 0;
    if (const std::uint64_t end = minded_until(job); end > now) return end;
    slots_.list(slot, before);
    return 0;
  }
  if (is_exclusive(before.state())) return now + 10;  // a lane holds it for a moment
  const std::uint64_t expires = job.expires_at.get(), due = job.due_at.get();
  const std::uint64_t end = end_in(job, before.state());
  if (end != 0 && end <= now) {
    const bool ended = before.state() == kSlotActive ? end_total(slot, job, before, now)
                                                     : expire(slot, job, before, now);
    return ended ? 0 : now + 1;
  }
  switch (before.state()) {
    case kSlotScheduled:
    case kSlotRetryable:
      if (due <= now && MaintenanceWord(store_.header().maintenance.load()).on())
        return earlier(end, now + kMaintainedMs);
      if (due <= now) return promote(slot, job, before, now) && expires == 0 ? 0 : now + 1;
      return earlier(due, end);
    case kSlotAvailable: return end;
    default:  // pending or active: it may come back and expire then
      return earlier(end, expires == 0 ? 0 : std::max(expires, now + 1000));
  }
}

namespace {

/// When a job whose lease could not be judged, or ended, is looked at again.
constexpr std::uint64_t kUnsettledMs = 1000;

/// Whether the job's own words forbid a retry after a timeout.
bool is_final(const Store& store, std::uint32_t slot, RetryRule forbids_retry) {
  if (forbids_retry == nullptr) return false;
  const auto job = snapshot(store, slot);
  return job &&
         forbids_retry(std::string_view(job->body).substr(job->type_length + job->args_length),
                       "timeout");
}

}  // namespace

std::uint64_t Changer::end_leases(std::uint32_t begin, std::uint32_t end, std::uint64_t now,
                                  std::uint32_t& ended, RetryRule forbids_retry) {
  struct Over {
    Deadline deadline;
    Control control;
    std::uint32_t slot;
    std::uint64_t available_at;
    JobId id;
  };
  std::vector<Over> over;
  std::uint64_t earliest = 0;
  const auto look_again = [&earliest](std::uint64_t at) {
    earliest = earliest == 0 ? at : std::min(earliest, at);
  };
  for (std::uint32_t slot = begin; slot < std::min(end, store_.slots()); ++slot) {
    const JobRecord& job = store_.job(slot);
    const Control control(job.control.load());  // PAIR slot-active
    // Its dispatch may be counted already, and the lane that settles it may give it back.
    if (control.state() == kSlotClaimed || control.state() == kSlotSettling)
      look_again(now + kUnsettledMs);
    if (control.state() != kSlotActive) continue;
    const Deadline deadline(job.deadline.load());  // PAIR lease
    if (!deadline.belongs_to(control.tag())) continue;
    if (deadline.ms() <= now)
      over.push_back({deadline, control, slot, job.available_at.get(), job.id()});
    else
      look_again(deadline.ms());
  }
  // What ends at once comes back in the order in which it had come.
  std::ranges::sort(over, {}, [](const Over& each) {
    return std::tuple(each.deadline.ms(), each.available_at, each.id);
  });
  for (const auto& [deadline, control, slot, available_at, id] : over) {
    JobRecord& job = store_.job(slot);
    if (deadline.ms() != 0 && !job.deadline.cas_once(deadline.word, Deadline(0, control.tag()).word,
                                                     Point::kLeaseEnded)) {
      look_again(now + kUnsettledMs);  // extended at the last moment
      continue;
    }
    const std::uint64_t longest = longest_run_ms(job);
    const bool ran_too_long = longest != 0 && job.started_at.get() + longest <= now;
    const ErrorEntry error =
        own_error(now, job.attempt.get(), !(ran_too_long && is_final(store_, slot, forbids_retry)),
                  ran_too_long ? "timeout" : "visibility_timeout",
                  ran_too_long ? "the job ran longer than its timeout"
                               : "the lease ended without a heartbeat");
    if (set_back(slot, control.word,
                 ran_too_long ? Setback::kExecutionTimeout : Setback::kLeaseExpiry, &error)
            .outcome == Outcome::kOk)
      ++ended;
    else
      look_again(now + kUnsettledMs);
  }
  return earliest;
}

}  // namespace ojs_shm::engine
