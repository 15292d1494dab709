// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <initializer_list>
#include <string>

namespace ojs_shm::shell {

/// What the log says of a signal: "SIGTERM from process 812 (systemd)", "SIGINT from the terminal".
/// `code` and `pid` are those of its siginfo_t.
std::string signal_origin(int signal, int code, pid_t pid);

/// From now on SIGINT and SIGTERM end no process, only what sleeps in the kernel. For the whole
/// process; a loop asks whether one came.
void note_stop_signals();
/// Whether one has come since.
bool stop_signalled();

/// A descriptor that becomes readable when one of these signals comes. They are blocked from now
/// on, in this thread and all that it starts: make it before the first thread.
class SignalDescriptor {
 public:
  /// Throws std::system_error when there is no descriptor left.
  explicit SignalDescriptor(std::initializer_list<int> signals);
  ~SignalDescriptor();
  SignalDescriptor(const SignalDescriptor&) = delete;
  int fd() const { return fd_; }

  /// The next signal; its number is 0 when none waits.
  struct Signal {
    int number = 0;
    std::string origin = {};
  };
  Signal take() const;

 private:
  int fd_;
};

}  // namespace ojs_shm::shell
