// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ojs_shm::cli {

/// A program that this one runs and that ends with it: its stdout is read here, its stderr is ours.
class Child {
 public:
  /// Starts it in a process group of its own, so that Ctrl-C reaches this program alone. Throws
  /// shell::Refusal.
  Child(std::string name, const std::vector<std::string>& words);
  ~Child();  ///< kills it, if it still runs
  Child(const Child&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  /// The first line of its stdout; empty when it ended without one.
  std::string first_line();
  void send(int signal) const;
  /// Waits for its end; its exit code, 128 and the number for a signal.
  int wait();
  /// Whether it has ended, without waiting.
  bool ended();

 private:
  std::string name_;
  pid_t pid_ = -1;
  int out_ = -1, exit_code_ = 0;
};

/// The path of a program that was installed beside this one; else its name, for PATH.
std::string program_beside(const std::string& name);

}  // namespace ojs_shm::cli
