// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <ojs_shm/clock.hpp>

#include "tools/cli/health.hpp"
#include "tools/shell/quantity.hpp"

// What the jobs and the numbers of a segment say of its queues, its workers and its clock.

namespace ojs_shm::cli {
namespace {

std::uint64_t available_in(const QueueInfo& queue) {
  return queue.by_state[static_cast<std::size_t>(State::kAvailable)];
}

/// After how long without a dispatch a queue starves: as the strictest of its pools says.
std::uint64_t rotation_interval_ms(const std::string& queue,
                                   const std::vector<WorkerPoolInfo>& pools) {
  std::uint64_t interval = StarvationPrevention{}.rotation_interval_ms;
  for (const WorkerPoolInfo& pool : pools) {
    const auto& served = pool.settings.queues;
    if (std::find(served.begin(), served.end(), queue) != served.end())
      interval = std::min<std::uint64_t>(interval,
                                         pool.settings.starvation_prevention.rotation_interval_ms);
  }
  return interval;
}

/// A queue with jobs of which no worker has taken one for longer than that.
void check_starving(const Observer& observer, const std::vector<QueueInfo>& queues,
                    std::vector<Finding>& findings) {
  const std::vector<WorkerPoolInfo> pools = observer.pools();
  const SchedulingStats minute = observer.scheduling_stats();
  for (const QueueInfo& queue : queues) {
    const auto taken =
        std::find_if(minute.queues.begin(), minute.queues.end(),
                     [&](const QueueScheduling& each) { return each.queue == queue.name; });
    if (taken != minute.queues.end() && taken->dispatch_count_1m != 0) continue;
    if (queue.paused || available_in(queue) == 0 ||
        queue.oldest_age_ms <= rotation_interval_ms(queue.name, pools))
      continue;
    findings.push_back(
        {"queue " + queue.name, Verdict::kWarning,
         fmt::format("starving: {} jobs are available, the oldest for {} s, and no worker has "
                     "taken one in the last minute",
                     available_in(queue), queue.oldest_age_ms / 1000),
         fmt::format("start a worker, `ojs-shm work --queue {}`; if one runs, see whether a limit "
                     "or its pool keeps it away: `ojs-shm limit list`, `ojs-shm pool list`",
                     queue.name)});
  }
}

/// Full queues are a finding of their own.
void check_pressure(const std::vector<QueueInfo>& queues, std::vector<Finding>& findings) {
  for (const QueueInfo& queue : queues) {
    if (queue.pressure < queue.warning_threshold || queue.pressure >= 1) continue;
    if (queue.max_depth == 0 && queue.max_size_bytes == 0) continue;
    findings.push_back({"queue " + queue.name, Verdict::kWarning,
                        fmt::format("filled to {:.0f} % of its bound: {} jobs, {} bytes",
                                    queue.pressure * 100, queue.depth, queue.size_bytes),
                        "add workers, or raise its bound with `ojs-shm queue set`"});
  }
}

/// How long jobs of one type ran that are done and still in the segment.
struct Runs {
  unsigned count = 0;
  std::uint64_t longest_ms = 0;
};

std::map<std::string, Runs> usual_runs(const Observer& observer) {
  std::map<std::string, Runs> runs;
  for (const JobInfo& job : observer.list({.state = State::kCompleted})) {
    Runs& of_type = runs[job.type];
    ++of_type.count;
    of_type.longest_ms = std::max(
        of_type.longest_ms, job.completed_at_ms - std::min(job.completed_at_ms, job.started_at_ms));
  }
  return runs;
}

/// A job that a worker has held for far longer than any of its type took: a handler that hangs.
void check_runs(const Observer& observer, std::vector<Finding>& findings) {
  constexpr unsigned kEnough = 5, kTimes = 10, kShown = 10;
  constexpr std::uint64_t kLeastMs = 30'000;
  const std::vector<JobInfo> active = observer.list({.state = State::kActive});
  if (active.empty()) return;
  const std::map<std::string, Runs> runs = usual_runs(observer);
  const std::uint64_t now = shell::unix_now_ms();
  unsigned found = 0;
  for (const JobInfo& job : active) {
    const auto usual = runs.find(job.type);
    if (usual == runs.end() || usual->second.count < kEnough) continue;
    const std::uint64_t held = now - std::min(now, job.started_at_ms);
    if (held < kLeastMs || held <= usual->second.longest_ms * kTimes) continue;
    if (++found > kShown) break;
    findings.push_back(
        {"job " + job.id, Verdict::kWarning,
         fmt::format("its worker has held it for {} s; of the last {} of type {} none took longer "
                     "than {:.1f} s",
                     held / 1000, usual->second.count, job.type,
                     static_cast<double>(usual->second.longest_ms) / 1000),
         fmt::format("`ojs-shm get {0}` shows its progress; `ojs-shm cancel {0}` asks its worker "
                     "to stop; a `timeout` ends such jobs by itself",
                     job.id)});
  }
}

/// Stamps that lie ahead were made before the clock was set back. Leases, delays and ages that
/// began then last longer by as much; they end early when it was set forwards, which the
/// supervisor's samples show for a minute.
void check_clock(const Observer& observer, const SegmentInfo& info,
                 std::vector<Finding>& findings) {
  constexpr std::uint64_t kNoticeableMs = 2'000;  // above what processes may differ
  constexpr std::uint64_t kLongStepMs = 10'000;   // above what a busy supervisor is late
  const std::uint64_t now = shell::unix_now_ms();
  std::uint64_t latest = info.created_at_ms;
  for (const JobInfo& job : observer.list({}))
    latest = std::max({latest, job.created_at_ms, job.started_at_ms, job.completed_at_ms,
                       job.cancelled_at_ms, job.discarded_at_ms});
  const std::uint64_t ahead = latest - std::min(latest, now);
  const std::uint64_t step = longest_clock_step_ms(observer);
  if (ahead < kNoticeableMs && step < kLongStepMs) {
    findings.push_back(
        {"clock", Verdict::kOk, "nothing in the segment happened later than now", ""});
    return;
  }
  if (ahead < kNoticeableMs) {
    findings.push_back(
        {"clock", Verdict::kWarning,
         fmt::format(
             "the clock made a step of {} s within the last minute: it was set forwards, or "
             "the machine slept, or no process supervised the segment",
             step / 1000),
         "let the clock be slewed, not stepped (chrony, systemd-timesyncd); leases and delays that "
         "began before end earlier by that time"});
    return;
  }
  findings.push_back(
      {"clock", Verdict::kWarning,
       fmt::format("the machine's clock was set back: something here happened {} s later than now",
                   ahead / 1000),
       "let the clock be slewed, not stepped (chrony, systemd-timesyncd); leases and delays that "
       "began before last longer by that time"});
}

}  // namespace

void check_jobs(const Observer& observer, const SegmentInfo& info,
                const std::vector<QueueInfo>& queues, std::vector<Finding>& findings) {
  check_pressure(queues, findings);
  check_starving(observer, queues, findings);
  check_runs(observer, findings);
  check_clock(observer, info, findings);
}

}  // namespace ojs_shm::cli
