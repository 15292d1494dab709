// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "tests/support/ledger.hpp"
#include "tests/support/storm/dice.hpp"
#include "tests/support/storm/subject.hpp"

namespace ojs_shm::test {

struct StormPlan {
  std::uint64_t seed = 1;
  std::uint32_t producers = 3, workers = 4, observers = 0;
  /// how long it rages when neither of the next two is given, else at most
  std::uint64_t seconds = 20;
  std::uint64_t kills = 0, jobs = 0;                         ///< it rages until both are reached
  std::uint64_t pause_us_low = 100, pause_us_high = 50'000;  ///< between two strikes
  bool strikes = true;
  /// shares of the strikes that are SIGSTOP, or a polite request to leave
  double stops = 0.12, farewells = 0.05;
  std::uint64_t wedge_ms = 30'000;    ///< so long without progress is a wedge
  std::uint64_t look_every_ms = 0;    ///< 0: the subject is looked at only at the end
  void (*at_birth)(Lane&) = nullptr;  ///< runs first in each child
};

struct StormOutcome {
  std::uint64_t kills = 0, kills_of[kRoles] = {}, supervisor_kills = 0, stops = 0, farewells = 0;
  std::uint64_t longest_silence_ms = 0;  ///< between two steps forward of the whole, while raging
  double raged_s = 0, drain_s = 0;
  bool wedged = false, drained = false;
};

/// Starts the processes of a subject, strikes at them at random, starts them again, and watches
/// that the whole moves. One thread, and the only one of its process, for it forks.
class Storm {
 public:
  Storm(Subject& subject, Ledger& ledger, const StormPlan& plan);
  ~Storm();  ///< kills and reaps what is left, each by its pid
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  void start();
  /// Strikes until the plan is fulfilled, a wedge is seen, or the process was asked to stop
  /// (SIGINT, SIGTERM).
  void rage();
  /// No more strikes: producers leave, workers finish what there is. False when that takes longer
  /// than a wedge.
  bool drain();
  void dismiss_workers();
  void dismiss_all();
  void kill_all();
  /// After drain(): the next round of a soak.
  void resume();

  const StormOutcome& outcome() const { return outcome_; }
  static bool interrupted();

 private:
  struct Member {
    Role role;
    std::uint32_t lane, number;
    std::uint32_t life = 0;
    pid_t pid = 0;                    // 0: not running
    std::uint64_t wakes_ns = 0;       // stopped until then; 0: not stopped
    std::uint64_t born_again_ns = 0;  // when it may run again
    std::uint64_t last_steps = 0, last_step_ns = 0;
  };

  /// Prints the state of each member's threads, and their stacks where gdb is installed.
  void print_members() const;
  void spawn(Member& member);
  [[noreturn]] void live(const Member& member);
  void reap();
  void judge_end(const Member& member, int status);
  void respawn();
  void wake_sleepers(bool all);
  void strike();
  void strike_supervisor();
  void kill_member(Member& member);
  void ask_away(Member& member);
  void watch();
  bool fulfilled() const;
  bool leave(Role role);
  Member* pick(Role role);
  Member* by_pid(pid_t pid);

  Subject& subject_;
  Ledger& ledger_;
  StormPlan plan_;
  StormOutcome outcome_;
  Dice dice_;
  std::vector<Member> members_;
  std::vector<std::uint64_t> supervisor_strikes_ns_;
  std::uint64_t began_ns_ = 0, last_look_ns_ = 0, last_watch_ns_ = 0, last_moved_ns_ = 0,
                last_moves_ = 0;
};

}  // namespace ojs_shm::test
