// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace ojs_shm::test {

/// Why this machine does not let a process trace its child; empty when it does.
std::string tracing_forbidden();

struct NotPrepared : std::runtime_error {
  NotPrepared() : std::runtime_error("what comes before the act threw") {}
};

/// A child that runs `prepare` freely and stands still at the first instruction of `act`; from
/// there it moves when told, one instruction at a time or up to an address. Its other threads run
/// freely. Destroying it kills it with SIGKILL and reaps it; so does the end of this process.
class Stepped {
 public:
  /// What one of them throws is printed if `complains`. Throws NotPrepared when `prepare` throws.
  Stepped(const std::function<void()>& prepare, const std::function<void()>& act,
          bool complains = true);
  ~Stepped();
  Stepped(const Stepped&) = delete;
  Stepped& operator=(const Stepped&) = delete;

  /// False when `act` has returned, or thrown; then nothing moves it any more but finish().
  bool acting() const { return acting_; }
  std::uintptr_t at() const { return at_; }  ///< the instruction that comes next
  void step();                               ///< one instruction
  /// Up to the moment before the instruction at `address` is executed for the `time`-th time, the
  /// one that comes next counted. False where the processor's breakpoints cannot be had: then it
  /// has not moved.
  bool run_to(std::uintptr_t address, std::uint32_t time);
  void kill();
  /// Lets it go. What was wrong with its end, empty when nothing was.
  std::string finish();
  bool threw() const;  ///< that is what was wrong

 private:
  void settle();  // waits for its next stop
  void go(int request);
  bool set_debug_word(unsigned number, std::uintptr_t value) const;

  pid_t pid_ = -1;
  int status_ = 0, passed_on_ = 0;
  bool acting_ = false;
  std::uintptr_t at_ = 0;
};

}  // namespace ojs_shm::test
