// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "shm/atomics.hpp"

namespace ojs_shm::test {

/// Which fiber goes on before a given shared access, counted over the whole run.
struct Switch {
  enum class Why : std::uint8_t {
    kPreempted,  ///< the one that was about to make the access
    kKilled,     ///< the one that was about to make it is dead from here on
    kEnded,      ///< the one that made the access before has come to its end
  };
  std::uint32_t access = 0;  ///< 1-based
  std::uint32_t to = 0;      ///< fiber that goes on
  Why why = Why::kPreempted;
};

/// What happened before each shared access of a run.
struct Step {
  std::uint32_t fiber;
  const void* word;
  bool writes;
};

/// Runs functions as fibers of one thread, one at a time, and changes between them only where it is
/// told to, or when one ends: then, unless it is told otherwise, the first that has not. A fiber
/// that makes very many accesses in a row waits for another: then the next one goes on.
class Fibers {
 public:
  explicit Fibers(std::vector<std::function<void()>> parts);
  ~Fibers();
  Fibers(const Fibers&) = delete;
  /// True when every fiber ended or was killed; false when they only wait for each other.
  bool run(std::uint32_t first, const std::vector<Switch>& switches);
  const std::vector<Step>& steps() const { return steps_; }
  bool killed(std::uint32_t fiber) const;
  /// How many fibers were killed right after the write of that point, in all runs of this process.
  static std::uint64_t& deaths_at(shm::Point point);
  /// Shared accesses so far: the clock of a run.
  static std::uint64_t now();

 private:
  struct Fiber;
  static void on_access(shm::Access access, shm::Point point, const void* word);
  static void begin();
  void before_access(const void* word, bool writes);
  /// The next switch, when it is for the next access and an end is or is not its cause.
  const Switch* next_switch(bool ended);
  void pass_on();
  void go_to(std::uint32_t fiber);
  void leave();  ///< the present fiber is done: another goes on, or the run ends

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Step> steps_;
  const std::vector<Switch>* switches_ = nullptr;
  std::size_t next_switch_ = 0;
  std::uint32_t current_ = 0, in_a_row_ = 0, waits_ = 0;
  bool stuck_ = false;
  struct Home;
  std::unique_ptr<Home> home_;
};

}  // namespace ojs_shm::test
