// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/result.hpp>
#include <ojs_shm/worker.hpp>

namespace ojs_shm::cli {

/// The command of one job, running in a process group of its own: args on its stdin, its stdout
/// kept as the result, its stderr passed on and its end kept for the error. The kernel kills it
/// when the thread that started it is gone, so no command of a killed worker goes on with a job
/// that another worker then gets. One thread.
class JobCommand {
 public:
  /// Errors: kTooLarge, when the job's variables are too long for any command; kInternal, when no
  /// process can be started here and now, or its program cannot be run.
  static Result<JobCommand> start(const std::vector<std::string>& argv, const Job& job,
                                  std::size_t largest_result);
  JobCommand(JobCommand&& other) noexcept;
  JobCommand& operator=(JobCommand&&) = delete;
  ~JobCommand();  ///< kills what still runs

  /// Moves bytes for at most this long; true once the command has ended, and, after terminate() and
  /// before kill(), all that it started as well.
  bool step(std::chrono::milliseconds at_most);
  void terminate();
  void kill();

  bool succeeded() const;
  /// "exit_3", "signal_9".
  std::string failure_code() const;
  int exit_code() const;  ///< 128 + signal when one ended it
  const std::string& out() const { return out_text_; }
  bool out_too_large() const { return out_too_large_; }
  const std::string& err_tail() const { return err_tail_; }

 private:
  JobCommand() = default;
  void signal_group(int number) const;
  void send_input();
  void read_output();
  void read_errors();

  pid_t pid_ = -1;
  int pidfd_ = -1, in_ = -1, out_ = -1, err_ = -1;
  int status_ = 0;
  bool ended_ = false, leader_ended_ = false, terminated_ = false, killed_ = false;
  bool out_too_large_ = false;
  std::size_t largest_result_ = 0;
  std::string input_, out_text_, err_tail_;
};

}  // namespace ojs_shm::cli
