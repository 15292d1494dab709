// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ojs_shm::test {

/// No test waits longer than this for anything.
inline constexpr std::chrono::milliseconds kBound{30'000};

struct ProcessOptions {
  std::string input;                                             ///< written to its stdin
  bool keep_input_open = false;                                  ///< then close_input() ends it
  std::string directory;                                         ///< empty: the caller's
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to the caller's
};

/// How a process ended and everything it said.
struct Finished {
  int exit_code = -1;      ///< 128 + signal when a signal ended it
  bool timed_out = false;  ///< it was killed because the bound passed
  std::string out, err;
};

/// A child process with pipes on stdin, stdout and stderr. Destroying it kills it with SIGKILL, by
/// its own pid, and reaps it. The kernel kills it as well when the thread that started it ends, so
/// nothing outlives a crashed test. One thread at a time.
class Process {
 public:
  /// Throws std::system_error when the program cannot be started.
  static Process start(const std::vector<std::string>& argv, const ProcessOptions& options = {});
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  bool running();  ///< false as soon as it has ended, reaped or not
  void signal(int number);
  void write(std::string_view text);  ///< queued; goes out while this object waits or reads
  void close_input();
  /// The next whole line of stdout without its end; nothing when stdout ended or the bound passed.
  std::optional<std::string> read_line(std::chrono::milliseconds bound = kBound);
  /// Waits for its end and collects what it wrote; past the bound it is killed and `timed_out` is
  /// set.
  Finished wait(std::chrono::milliseconds bound = kBound);
  /// What it wrote so far to stderr.
  const std::string& err();

 private:
  Process() = default;
  bool pump(std::chrono::milliseconds at_most);  // moves bytes; false when it has ended
  void drain();
  void reap(bool block);
  void close_all() noexcept;

  pid_t pid_ = -1;
  int pidfd_ = -1, in_ = -1, out_ = -1, err_ = -1;
  bool reaped_ = false, close_when_written_ = false;
  int status_ = 0;
  std::string pending_, out_text_, err_text_;
};

/// Starts, waits, returns.
Finished run(const std::vector<std::string>& argv, const ProcessOptions& options = {});
/// The path of one of the project's programs: in OJS_SHM_BIN_DIR, else found from where this test
/// program lies.
std::string program(std::string_view name);

/// A directory that goes away with everything in it.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view file) const { return path_ + "/" + std::string(file); }

 private:
  std::string path_;
};

/// Gives the processor to others; only eventually() needs it.
void yield_for_a_moment();

/// Asks until `done` says yes or the bound passes; between two questions it yields the processor.
template <class Condition>
bool eventually(Condition done, std::chrono::milliseconds bound = kBound) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    yield_for_a_moment();
  }
  return true;
}

}  // namespace ojs_shm::test
