// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <ojs_shm/segment.hpp>
#include <ojs_shm/worker.hpp>

namespace ojs_shm::cli {

struct CrewOptions {
  WorkerOptions worker;
  std::vector<std::string> command;
  std::uint32_t concurrency = 1;
  std::uint64_t count = 0;  ///< jobs to run; 0: no limit
  bool until_empty = false;
  std::chrono::milliseconds grace{30'000};
  std::vector<int> final_exits;  ///< exit codes after which there is no retry
  bool json = false;
  std::size_t largest_result = 0;
};

/// What a crew listens to: SIGTERM and SIGINT, SIGHUP unless it was ignored, SIGTSTP and SIGCONT.
sigset_t crew_signals();

/// Threads that fetch jobs and run the command for each. SIGTERM, SIGINT and SIGHUP, blocked by the
/// caller in every thread as the other two, end it: first no new jobs, after the grace time (or a
/// second signal) SIGTERM to the commands, whose jobs go back. SIGTSTP makes it quiet, which is to
/// take no new jobs, and SIGCONT ends that. Source: ojs-graceful-shutdown 4.
class WorkCrew {
 public:
  WorkCrew(const Segment& segment, CrewOptions options);
  ~WorkCrew();
  /// Returns when all is done. Errors: those of Worker and of JobCommand.
  Status run();

 private:
  struct Lane;
  void work(Lane& lane);
  void run_job(Lane& lane, Job& job);
  void give_up(const Error& error);
  void report(const Job& job, const std::string& outcome, int exit_code, std::int64_t ms);
  std::string settle(Lane& lane, Job& job, const class JobCommand& command);
  /// Why a job is no longer held here: "cancelled", or "lost" for any other reason.
  std::string why_gone(const Job& job) const;
  bool take_ticket();
  /// Does what one signal of the signalfd asks for. True when it is the end.
  bool heed(int signals);
  void end(bool abort);
  void be_quiet(bool quiet);
  void tell_state(Lane& lane);
  static bool told_to_end(const Lane& lane);
  bool stopping() const;
  bool quiet() const;
  bool is_quiet(const Lane& lane) const;
  bool aborting() const;
  void watch_signals();

  Segment segment_;
  CrewOptions options_;
  std::vector<Lane> lanes_;
  mutable std::mutex mutex_;  // guards what follows
  bool quiet_ = false, stopping_ = false, aborting_ = false;
  bool signalled_ = false, errors_stand_ = false;
  std::uint64_t tickets_ = 0;
  std::size_t busy_lanes_ = 0;
  Status outcome_;
  int done_fd_ = -1;  // readable when the last lane is done

  std::mutex report_mutex_;  // guards what follows
  bool reports_stand_ = false;
};

}  // namespace ojs_shm::cli
