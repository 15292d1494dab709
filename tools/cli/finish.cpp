// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/finish.hpp"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tools/cli/presence.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::cli {
namespace {

/// Without a limit the wait is cut into pieces, so that no clock arithmetic below has to take "for
/// ever".
Result<JobInfo> wait_for(Producer& producer, const std::string& id, const std::string& timeout) {
  if (!timeout.empty()) return producer.wait(id, shell::wait_of(timeout));
  for (;;) {
    auto finished = producer.wait(id, std::chrono::hours(1));
    if (finished || finished.code() != Code::kTimeout) return finished;
  }
}

/// For a user that may only look: the segment does not know of this wait, so it is asked again and
/// again.
Result<JobInfo> watch_for(const Segment& segment, const std::string& id,
                          const std::string& timeout) {
  using Clock = std::chrono::steady_clock;
  const Observer observer = shell::must(Observer::attach(segment));
  Presence presence(segment);
  const auto end =
      timeout.empty() ? Clock::time_point::max() : Clock::now() + shell::wait_of(timeout);
  for (;;) {
    auto job = observer.get(id);
    if (!job || is_terminal(job->state)) return job;
    if (Clock::now() >= end) {
      Error late;
      late.code = Code::kTimeout;
      late.subject = id;
      late.message = fmt::format("job {} has not finished yet", id);
      return late;
    }
    presence.must_last();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

int print_end(const JobInfo& job, bool json) {
  if (json) {
    print_line(print_job(job));
  } else if (job.result_pruned) {
    shell::say("job {} was completed; its result is kept no longer\n", job.id);
  } else if (!job.result.empty()) {
    print_line(shell::stdout_is_terminal() ? shell::printable(job.result, true) : job.result);
  }
  if (job.state == State::kCompleted) return shell::kExitOk;
  if (job.state == State::kCancelled) {
    if (!json) shell::say("job {} was cancelled\n", job.id);
    return shell::kExitWrongState;
  }
  const std::string reason =
      job.errors.empty() ? "expired" : job.errors.back().code + ": " + job.errors.back().message;
  if (!json)
    shell::say("job {} was discarded after {} attempts: {}\n", job.id, job.attempt,
               shell::printable(reason));
  return shell::kExitFailed;
}

}  // namespace

int wait_and_print(Producer& producer, const std::string& id, const std::string& timeout,
                   bool json) {
  return print_end(shell::must(wait_for(producer, id, timeout)), json);
}

int watch_and_print(const Segment& segment, const std::string& id, const std::string& timeout,
                    bool json) {
  return print_end(shell::must(watch_for(segment, id, timeout)), json);
}

}  // namespace ojs_shm::cli
