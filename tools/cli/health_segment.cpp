// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "tools/cli/health.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

/// A file that is there and cannot be a segment: a broker would refuse it, too.
std::string advice_for_file(const SegmentName& where) {
  const std::string path = where.dir + "/ojs-shm." + where.name;
  struct stat file {
  }, behind{};
  if (::lstat(path.c_str(), &file) != 0) return "start one: " + broker_command(where);
  if (S_ISLNK(file.st_mode) && ::stat(path.c_str(), &behind) != 0)
    return fmt::format("`ojs-shm rm {}{}` removes the link; or choose another --name", where.name,
                       dir_flag(where));
  if (!S_ISREG(file.st_mode)) return fmt::format("move {} away, or choose another --name", path);
  return fmt::format(
      "no broker takes it, and its jobs, if it had any, cannot be read: see whose file it is, then "
      "move it away or "
      "delete it with `rm {}`; or choose another --name",
      path);
}

}  // namespace

std::string dir_flag(const SegmentName& where) {
  return where.dir == SegmentName{}.dir ? "" : " --dir " + where.dir;
}

std::string broker_command(const SegmentName& where) {
  return fmt::format("ojs-shm-broker --name {}{}", where.name, dir_flag(where));
}

std::string advice_for(const Error& error, const SegmentName& where) {
  switch (error.code) {
    case Code::kPermission:
      return "run as the segment's owner or as a member of its group; the broker sets both with "
             "--mode and --group";
    case Code::kOtherFormat:
    case Code::kStaleVersion:
      return "use the version that made it, or let its jobs finish there and make a new one";
    case Code::kCannotAttach: return advice_for_file(where);
    default: return "";
  }
}

namespace {

void check_permissions(const SegmentInfo& info, std::vector<Finding>& findings) {
  struct stat file {};
  if (::stat(info.path.c_str(), &file) != 0) return;
  const bool open_to_all = (file.st_mode & S_IWOTH) != 0;
  findings.push_back(
      {"permissions", open_to_all ? Verdict::kWarning : Verdict::kOk,
       fmt::format("{:04o}, owner {}, group {}", file.st_mode & 0777U, file.st_uid, file.st_gid),
       open_to_all
           ? "every user of this machine can change every job; --mode 0660 --group G limits it"
           : ""});
}

void check_version(const SegmentInfo& info, std::vector<Finding>& findings) {
  const bool same = info.created_by_version == library_version();
  findings.push_back({"version", Verdict::kOk,
                      fmt::format("format {}, made by {}{}", info.format, info.created_by_version,
                                  same ? "" : fmt::format(", this is {}", library_version())),
                      ""});
}

/// What gives some of a pool back at once.
std::string_view relief(std::string_view pool) {
  if (pool == "handles" || pool == "processes") return ", or end producers or workers now";
  if (pool == "queues" || pool == "levels")
    return "; neither queues nor their levels are given back";
  if (pool == "parts") return "; shards and rates of ageing keep theirs";
  return ", or finish or cancel jobs now";
}

/// How many chunks the jobs that are there need at most, once the places of those that are gone are
/// packed away: a hint and a timer for each, one place among the finished, two chunks at the ends
/// of each level, what handles keep ready.
std::uint64_t chunks_needed(const SegmentInfo& info, std::uint64_t unfinished,
                            std::uint64_t finished) {
  constexpr std::uint64_t kPlaces = 14, kReady = 8;
  std::uint64_t ends = 0, handles = 0;
  for (const PoolInfo& pool : info.pools) {
    if (pool.name == "levels") ends = 2 * pool.used;
    if (pool.name == "handles") handles = pool.used;
  }
  return (2 * unfinished + finished + kPlaces - 1) / kPlaces + ends + handles * kReady;
}

void check_pools(const SegmentInfo& info, const std::vector<QueueInfo>& queues,
                 std::vector<Finding>& findings) {
  std::uint64_t finished = 0, all = 0;
  for (const QueueInfo& queue : queues) {
    for (const std::uint64_t jobs : queue.by_state) all += jobs;
    for (const State state : {State::kCompleted, State::kCancelled, State::kDiscarded}) {
      finished += queue.by_state[static_cast<std::size_t>(state)];
    }
  }
  for (const PoolInfo& pool : info.pools) {
    if (pool.capacity == 0) continue;
    const std::uint64_t percent = pool.used * 100 / pool.capacity;
    std::string text = fmt::format("{} of {} used ({} %)", pool.used, pool.capacity, percent);
    // Finished jobs keep their blocks and their ids only until other jobs need them.
    bool recycled = finished != 0 && (pool.name == "blocks" || pool.name == "ids");
    // So do the places of jobs that left their level otherwise than by a fetch.
    if (pool.name == "chunks" && percent >= 90) {
      const std::uint64_t needed = chunks_needed(info, all - finished, finished);
      recycled = needed * 100 / pool.capacity < 90;
      if (recycled)
        text += fmt::format(
            ", of which {} unfinished jobs need no more than {}: the rest is packed when it is "
            "needed",
            all - finished, needed);
    }
    const Verdict verdict = recycled || percent < 90     ? Verdict::kOk
                            : pool.used >= pool.capacity ? Verdict::kProblem
                                                         : Verdict::kWarning;
    findings.push_back(
        {"pool " + pool.name, verdict, std::move(text),
         verdict == Verdict::kOk
             ? ""
             : fmt::format("{}{}",
                           pool.larger.empty() ? "no segment can have more"
                                               : "make the next one with " + pool.larger,
                           relief(pool.name))});
  }
}

/// A stopped one is alive, and keeps what it holds: also the supervisor's seat, which no other
/// process can take then.
void check_stopped(const SegmentName& where, const SegmentInfo& info,
                   std::vector<Finding>& findings) {
  for (const ProcessInfo& process : info.processes) {
    if (!process.stopped) continue;
    const bool serves = process.broker || process.supervisor;
    std::string advice = fmt::format("`kill -CONT {}` lets it go on", process.pid);
    if (serves) {
      advice += fmt::format(
          "; until then no delayed job, retry or ended lease is looked after. Or end it, `kill "
          "-KILL {}`",
          process.pid);
      advice += process.broker ? ", and start another: " + broker_command(where)
                               : ": another process takes over";
    } else {
      advice += "; what it holds comes back when its leases end, or at once when it is ended";
    }
    findings.push_back({"process " + std::to_string(process.pid),
                        serves ? Verdict::kProblem : Verdict::kWarning,
                        fmt::format("{} is stopped (SIGSTOP, or a debugger) with {} active jobs",
                                    process.broker       ? "the broker"
                                    : process.supervisor ? "the supervisor"
                                                         : "it",
                                    process.active_jobs),
                        std::move(advice)});
  }
}

/// The supervisor may be stopped where this process cannot see it, in another container.
void check_timers(const SegmentName& where, const SegmentInfo& info,
                  std::vector<Finding>& findings) {
  constexpr std::uint64_t kLateMs = 5000;  // far above what a busy machine needs
  if (info.overdue_ms < kLateMs) {
    findings.push_back({"timers", Verdict::kOk, "no job is late", ""});
    return;
  }
  std::string advice = "start a broker: " + broker_command(where);
  for (const ProcessInfo& process : info.processes)
    if (process.alive && (process.supervisor || process.broker))
      advice = fmt::format(
          "process {0} should do it: if it is stopped, `kill -CONT {0}`; if it hangs, end it, and "
          "another takes over",
          process.pid);
  findings.push_back(
      {"timers", Verdict::kProblem,
       fmt::format("a delayed job or a retry was due {} s ago, and is not looked after",
                   info.overdue_ms / 1000),
       std::move(advice)});
}

void check_processes(const SegmentName& where, const SegmentInfo& info,
                     std::vector<Finding>& findings) {
  const auto& processes = info.processes;
  const auto dead =
      std::count_if(processes.begin(), processes.end(), [](const auto& p) { return !p.alive; });
  if (dead != 0) {
    findings.push_back(
        {"processes", Verdict::kWarning, fmt::format("{} dead and not yet cleaned up after", dead),
         "the next living process does it by itself; `ojs-shm audit --mend` does it now"});
  }
  const auto broker = std::find_if(processes.begin(), processes.end(),
                                   [](const auto& p) { return p.broker && p.alive; });
  const bool supervisor = std::any_of(processes.begin(), processes.end(),
                                      [](const auto& p) { return p.supervisor && p.alive; });
  const bool serves = broker != processes.end() && !broker->stopped;
  const std::string text =
      fmt::format("{} alive, {}", processes.size() - static_cast<std::size_t>(dead),
                  serves                      ? "a broker among them"
                  : broker != processes.end() ? "but the broker is stopped"
                  : supervisor                ? "no broker, but a supervisor"
                                              : "no broker");
  findings.push_back({"broker", serves ? Verdict::kOk : Verdict::kWarning, text,
                      broker != processes.end() ? "" : "start one: " + broker_command(where)});
  check_stopped(where, info, findings);
  check_timers(where, info, findings);
}

void check_queues(const std::vector<QueueInfo>& queues, std::vector<Finding>& findings) {
  for (const QueueInfo& queue : queues) {
    const bool bounded = queue.max_depth != 0 || queue.max_size_bytes != 0;
    const bool full = (queue.max_depth != 0 && queue.depth >= queue.max_depth) ||
                      (queue.max_size_bytes != 0 && queue.size_bytes >= queue.max_size_bytes);
    const bool drops = queue.strategy == BackpressureStrategy::kDropOldest;
    if (full && drops) {
      findings.push_back(
          {"queue " + queue.name, Verdict::kOk,
           fmt::format(
               "full with {} jobs; it drops older ones for new ones, {} so far, as it was set to",
               queue.depth, queue.dropped_total),
           ""});
    } else if (full) {
      findings.push_back({"queue " + queue.name, Verdict::kProblem,
                          fmt::format("full: {} jobs, {} bytes", queue.depth, queue.size_bytes),
                          "add workers, or raise its bound with `ojs-shm queue set`"});
    } else if (!bounded) {
      findings.push_back(
          {"queue " + queue.name, Verdict::kOk, fmt::format("{} jobs, unbounded", queue.depth),
           fmt::format("`ojs-shm queue set {} --max-depth N` keeps it from filling the segment",
                       queue.name)});
    }
    if (queue.paused) {
      findings.push_back({"queue " + queue.name, Verdict::kWarning,
                          fmt::format("paused with {} jobs", queue.depth),
                          fmt::format("`ojs-shm queue resume {}`", queue.name)});
    }
  }
}

}  // namespace

void check_segment(const SegmentName& where, std::vector<Finding>& findings) {
  const auto observer = Observer::attach(where);
  if (!observer) {
    findings.push_back({"segment", Verdict::kProblem, observer.error().message,
                        advice_for(observer.error(), where)});
    return;
  }
  const SegmentInfo info = observer.value().segment_info();
  const auto queues = observer.value().queues();
  findings.push_back({"segment", Verdict::kOk,
                      fmt::format("{}, {}, convention {}", info.path,
                                  shell::bytes_text(info.size_bytes), info.convention),
                      ""});
  check_permissions(info, findings);
  check_version(info, findings);
  if (const auto attached = Segment::attach(where); attached.code() == Code::kPermission) {
    findings.push_back(
        {"attach", Verdict::kOk,
         "this user may look, but neither enqueue nor work: " + attached.error().message, ""});
  } else if (!attached) {
    findings.push_back({"attach", Verdict::kProblem, attached.error().message,
                        advice_for(attached.error(), where)});
  }
  if (info.maintenance.enabled)
    findings.push_back({"maintenance", Verdict::kWarning,
                        fmt::format("no job is handed out since {}{}{}",
                                    print_timestamp(info.maintenance.since_ms),
                                    info.maintenance.reason.empty() ? "" : ": ",
                                    shell::printable(info.maintenance.reason)),
                        "`ojs-shm maintenance off`"});
  check_pools(info, queues, findings);
  check_processes(where, info, findings);
  check_queues(queues, findings);
  check_jobs(observer.value(), info, queues, findings);
  const auto violations = observer.value().audit();
  findings.push_back(
      {"audit", violations.empty() ? Verdict::kOk : Verdict::kProblem,
       violations.empty() ? "every invariant holds"
                          : fmt::format("{} violations, the first: I{} {}", violations.size(),
                                        violations.front().invariant, violations.front().text),
       violations.empty() ? "" : "`ojs-shm audit --mend` repairs what can be repaired"});
}

}  // namespace ojs_shm::cli
