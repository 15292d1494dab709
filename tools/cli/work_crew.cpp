// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/work_crew.hpp"

#include <poll.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include <ojs_shm/observer.hpp>

#include "tools/cli/command_result.hpp"
#include "tools/cli/job_command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"

namespace ojs_shm::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How often a running command is asked about besides its own news: a cancellation waits at most
/// this long.
constexpr milliseconds kLook{50};
/// A fetch is cut into pieces, so that a lost wake-up delays a stop by no more than this.
constexpr milliseconds kFetch{250};

/// A third of what is left of the lease, so that two beats may fail before it ends.
milliseconds beat_pause(std::uint64_t lease_end_ms) {
  const std::uint64_t now = shell::unix_now_ms();
  const std::uint64_t left = lease_end_ms > now ? lease_end_ms - now : 0;
  return milliseconds(std::clamp<std::uint64_t>(left / 3, 20, 600'000));
}

/// Whether one has come that was not read yet: its sender, before a job ended, expects no further
/// job to begin.
bool signal_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, SIGTERM) == 1 || ::sigismember(&pending, SIGINT) == 1 ||
         ::sigismember(&pending, SIGHUP) == 1;
}

/// As `nohup` has it.
bool hangup_is_ignored() {
  struct sigaction inherited {};
  return ::sigaction(SIGHUP, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

}  // namespace

sigset_t crew_signals() {
  sigset_t all;
  ::sigemptyset(&all);
  for (const int signal : {SIGTERM, SIGINT, SIGTSTP, SIGCONT}) ::sigaddset(&all, signal);
  if (!hangup_is_ignored()) ::sigaddset(&all, SIGHUP);
  return all;
}

struct WorkCrew::Lane {
  Worker worker;
  std::thread thread;
  WorkerDirective said = WorkerDirective::kRunning;
};

WorkCrew::WorkCrew(const Segment& segment, CrewOptions options)
    : segment_(segment), options_(std::move(options)), done_fd_(::eventfd(0, EFD_CLOEXEC)) {}

WorkCrew::~WorkCrew() { ::close(done_fd_); }

Status WorkCrew::run() {
  for (std::uint32_t i = 0; i < options_.concurrency; ++i) {
    auto worker = Worker::attach(segment_, options_.worker);
    if (!worker) return worker.error();
    lanes_.push_back({.worker = std::move(worker).value(), .thread = {}});
  }
  busy_lanes_ = lanes_.size();
  for (Lane& lane : lanes_) {
    lane.thread = std::thread([this, &lane] {
      work(lane);
      const std::lock_guard lock(mutex_);
      const std::uint64_t one = 1;
      if (--busy_lanes_ == 0) [[maybe_unused]]
        const auto n = ::write(done_fd_, &one, sizeof one);
    });
  }
  watch_signals();
  for (Lane& lane : lanes_) lane.thread.join();
  return outcome_;
}

void WorkCrew::watch_signals() {
  const sigset_t all = crew_signals();
  const int signals = ::signalfd(-1, &all, SFD_CLOEXEC);
  std::optional<Clock::time_point> abort_at;
  for (;;) {
    std::array<pollfd, 2> watched = {{{done_fd_, POLLIN, 0}, {signals, POLLIN, 0}}};
    const auto left =
        abort_at ? std::chrono::ceil<milliseconds>(*abort_at - Clock::now()) : milliseconds(-1);
    const auto wait_ms = std::clamp<std::int64_t>(left.count(), 0, 3'600'000);
    ::poll(watched.data(), watched.size(), abort_at ? static_cast<int>(wait_ms) : -1);
    if (watched[0].revents != 0) break;
    if (watched[1].revents != 0) {
      if (heed(signals) && !abort_at) abort_at = Clock::now() + options_.grace;
    } else if (abort_at && Clock::now() >= *abort_at) {
      const std::lock_guard lock(mutex_);
      end(true);
      abort_at = Clock::now() + std::chrono::hours(24);
    }
  }
  ::close(signals);
}

bool WorkCrew::heed(int signals) {
  const std::lock_guard lock(mutex_);
  signalfd_siginfo info{};  // read under the lock: at every moment it is either pending or known
  if (::read(signals, &info, sizeof info) != sizeof info) return false;
  const bool ends =
      info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP;
  if (ends)
    end(std::exchange(signalled_, true));
  else
    be_quiet(info.ssi_signo == SIGTSTP);
  return ends;
}

/// The lock is held.
void WorkCrew::end(bool abort) {
  stopping_ = true;
  aborting_ = aborting_ || abort;
  for (Lane& lane : lanes_) lane.worker.interrupt();
}

/// The lock is held.
void WorkCrew::be_quiet(bool quiet) {
  if (stopping_ || std::exchange(quiet_, quiet) == quiet) return;
  for (Lane& lane : lanes_) quiet ? lane.worker.quiet() : lane.worker.resume();
  if (shell::takes_output(STDERR_FILENO, errors_stand_))
    shell::say("{}\n", quiet ? "quiet: takes no new jobs until SIGCONT" : "takes jobs again");
}

/// What lists of workers say of it; without, they lag behind until it has ended.
void WorkCrew::tell_state(Lane& lane) {
  const auto state = stopping() || told_to_end(lane) ? WorkerDirective::kTerminate
                     : quiet()                       ? WorkerDirective::kQuiet
                                                     : WorkerDirective::kRunning;
  if (std::exchange(lane.said, state) != state) (void)lane.worker.say(state);
}

bool WorkCrew::told_to_end(const Lane& lane) {
  return lane.worker.directive() == WorkerDirective::kTerminate;
}

/// By a signal, or told so.
bool WorkCrew::is_quiet(const Lane& lane) const {
  return quiet() || lane.worker.directive() == WorkerDirective::kQuiet;
}

bool WorkCrew::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool WorkCrew::quiet() const {
  const std::lock_guard lock(mutex_);
  return quiet_;
}

bool WorkCrew::aborting() const {
  const std::lock_guard lock(mutex_);
  return aborting_;
}

bool WorkCrew::take_ticket() {
  const std::lock_guard lock(mutex_);
  if (stopping_ || signal_pending() || (options_.count != 0 && tickets_ >= options_.count))
    return false;
  ++tickets_;
  return true;
}

void WorkCrew::work(Lane& lane) {
  Job job;
  while (take_ticket()) {
    Status fetched;
    do {
      tell_state(lane);
      fetched = options_.until_empty && !is_quiet(lane) ? lane.worker.try_fetch(job)
                                                        : lane.worker.fetch(job, kFetch);
    } while (
        (fetched.code() == Code::kTimeout || (fetched.code() == Code::kEmpty && is_quiet(lane))) &&
        !stopping());
    if (fetched) {
      run_job(lane, job);
      continue;
    }
    const bool over = fetched.code() == Code::kEmpty || fetched.code() == Code::kTimeout ||
                      (fetched.code() == Code::kClosed && (stopping() || told_to_end(lane)));
    if (!over) {
      const std::lock_guard lock(mutex_);
      outcome_ = fetched;
    }
    return;
  }
}

void WorkCrew::run_job(Lane& lane, Job& job) {
  const auto begun = Clock::now();
  auto started = JobCommand::start(options_.command, job, options_.largest_result);
  std::string outcome;
  int exit_code = -1;
  if (!started && started.code() != Code::kTooLarge) {
    outcome = lane.worker.requeue(job) ? "requeued" : why_gone(job);
    give_up(started.error());
  } else if (!started) {
    Failure failure;
    failure.code = "cannot_start";
    failure.message = started.error().message;
    const auto nacked = lane.worker.nack(job, failure);
    outcome = nacked ? state_name(nacked.value().state) : code_name(nacked.code());
  } else {
    JobCommand& command = *started;
    auto next_beat = begun + beat_pause(job.deadline_ms());
    std::optional<Clock::time_point> kill_at;
    bool lost = false;
    while (!command.step(kLook)) {
      const auto now = Clock::now();
      if (now >= next_beat && !lost) {
        const auto lease_end = lane.worker.heartbeat(job);
        lost = !lease_end && lease_end.code() == Code::kLost;
        next_beat = now + (lease_end ? beat_pause(lease_end.value()) : kLook);
      }
      lane.worker.beat();
      tell_state(lane);
      if (!kill_at && (lost || job.cancel_requested() || aborting())) {
        command.terminate();
        kill_at = now + options_.grace;
      }
      if (kill_at && now >= *kill_at) command.kill();
    }
    outcome = settle(lane, job, command);
    exit_code = command.exit_code();
  }
  const auto ms = std::chrono::duration_cast<milliseconds>(Clock::now() - begun).count();
  report(job, outcome, exit_code, ms);
}

/// It would fail one job after the other: what runs ends, and no job is taken.
void WorkCrew::give_up(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (outcome_) outcome_ = error;
  end(aborting_);
}

void WorkCrew::report(const Job& job, const std::string& outcome, int exit_code, std::int64_t ms) {
  std::string line;
  if (options_.json) {
    line = object([&](json::ObjectWriter& writer) {
      writer.text("id", job.id());
      writer.text("type", job.type());
      count(writer, "attempt", job.attempt());
      writer.text("outcome", outcome);
      writer.number("exit_code", std::int64_t{exit_code});
      writer.number("duration_ms", ms);
    });
  } else {
    line = fmt::format("{}\t{}\t{}\t{}\t{}", job.id(), job.type(), job.attempt(), outcome, ms);
  }
  line += '\n';
  const std::lock_guard lock(report_mutex_);
  // a report that is not read stops neither the jobs nor the end
  if (!shell::takes_output(STDOUT_FILENO, reports_stand_)) return;
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  shell::note_output();
}

/// Tells the segment how it went; returns the word for the report.
std::string WorkCrew::settle(Lane& lane, Job& job, const JobCommand& command) {
  Failure failure;
  std::string message;
  if (command.succeeded() && !command.out_too_large()) {
    const Status acked = lane.worker.ack(job, as_json(command.out()));
    if (acked) return "completed";
    if (acked.code() == Code::kLost) return why_gone(job);
    failure.code = code_name(acked.code());
    message = acked.error().message;
    failure.retryable = acked.code() != Code::kTooLarge;
  } else if (command.succeeded()) {
    failure.code = code_name(Code::kTooLarge);
    message = fmt::format("the result is longer than {} bytes", options_.largest_result);
    failure.retryable = false;
  } else {
    if (aborting() && !job.cancel_requested())
      return lane.worker.requeue(job) ? "requeued" : why_gone(job);
    const auto& final_exits = options_.final_exits;
    failure.retryable =
        std::find(final_exits.begin(), final_exits.end(), command.exit_code()) == final_exits.end();
    failure.type = command.failure_code().starts_with("exit") ? "exit" : "signal";
    const std::string code = command.failure_code();
    message = command.err_tail().empty() ? "the command ended with " + code
                                         : std::string(trimmed(command.err_tail()));
    failure.message = message;
    failure.code = code;
    const auto nacked = lane.worker.nack(job, failure);
    return nacked ? std::string(state_name(nacked.value().state)) : why_gone(job);
  }
  failure.message = message;
  const auto nacked = lane.worker.nack(job, failure);
  return nacked ? std::string(state_name(nacked.value().state)) : why_gone(job);
}

std::string WorkCrew::why_gone(const Job& job) const {
  const auto observer = Observer::attach(segment_);
  const auto now = observer ? observer.value().get(job.id()) : Result<JobInfo>(observer.error());
  if (!now) return "lost";
  if (now->state == State::kCancelled) return "cancelled";
  // The supervisor has ended this attempt, and says in its error why.
  for (const JobError& error : now->errors)
    if (error.attempt == job.attempt() && error.code == "timeout") return "timed_out";
  return "lost";
}

}  // namespace ojs_shm::cli
