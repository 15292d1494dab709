// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <functional>
#include <string>
#include <thread>

namespace ojs_shm::broker {

/// SIGTERM, SIGINT and SIGHUP wait from now on, in this thread and all that it starts, until a
/// SignalWatch takes them. SIGPIPE is ignored: a reader that went away is an error of the write.
void hold_signals();

/// A thread that takes the held signals and hands each to `take`, with its number and its sender,
/// for the log: "SIGTERM from process 812 (systemd)". Its destructor ends it.
class SignalWatch {
 public:
  using Take = std::function<void(int signal, const std::string& origin)>;
  explicit SignalWatch(Take take);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;

 private:
  void run() const;

  Take take_;
  std::thread thread_;
};

}  // namespace ojs_shm::broker
