// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/linearizability/subject.hpp"

namespace ojs_shm::test {

/// How one history is made.
struct Plan {
  std::uint64_t seed = 0;
  unsigned calls = 4;  ///< of each process
  unsigned levels = 3;
  bool everything = false;  ///< also requeue, cancel, re-prioritise; else enqueue, fetch and ack
  /// processes run at once, with random delays; else one at a time, as the seed says
  bool free_running = false;
  bool crash = false;   ///< one process may be killed after a shared write
  unsigned elders = 0;  ///< jobs that wait before any process begins, each older than the next
};

/// Processes at work on one subject, again and again. Each does its calls of a plan and notes call
/// and return in shared memory; then the calling process fetches what is left, until a fetch finds
/// nothing, and these fetches belong to the history too. Before any shared access a process may be
/// made to wait: this is where others overtake it.
class Recorder {
 public:
  Recorder(Subject& subject, unsigned processes);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  /// Throws when a process dies that was not to, or when the bound passes.
  History record(const Plan& plan);
  /// Something that no history explains, such as a job of an earlier one.
  const std::string& strange() const { return strange_; }
  std::uint64_t kills() const { return kills_; }

 private:
  struct Board;
  class Player;
  void start(unsigned process);
  void await_end();
  void drain(History& history);
  void bring_elders(History& history);

  Subject& subject_;
  unsigned processes_;
  Board* board_ = nullptr;
  std::array<pid_t, kMostProcesses> children_{};
  std::unique_ptr<Hands> own_;
  std::uint32_t round_ = 0;
  std::uint64_t kills_ = 0;
  std::string strange_;
};

}  // namespace ojs_shm::test
