// SPDX-License-Identifier: Apache-2.0
//
// One run of a benchmark: a few parts (producers, workers), each a process or a thread of its own
// on a core of its own.
//
//   1. Every part attaches to the queue, then calls begin(); none passes before all are there.
//   2. The first two parts bounce a cache line, so that the run knows how far its two cores are
//      apart just now.
//   3. They work; each calls end() when its last job is done.
//   4. The line is bounced again, and the larger of the two figures stands beside the result.
//
// A part that throws, dies or takes longer than two minutes ends the run: the others are killed and
// the outcome says why.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/shared_array.hpp"
#include "bench/stopwatch.hpp"
#include "shm/atomics.hpp"

namespace ojs_shm::bench {

enum class Cast { kProcesses, kThreads };

struct Outcome {
  std::string trouble;            ///< Empty when every part reached its end.
  double seconds = 0;             ///< From the gate to the last end().
  double line_round_trip_ns = 0;  ///< The larger one of before and after; 0 with a single part.
  long preemptions = 0;           ///< Times the kernel took the core from a working part.
  double core_share = 1;          ///< The part of its time that the least served part had a core.
};

/// The two cores of the run: the first two this process may use. Both are the same core on a
/// machine with one.
unsigned core_number(unsigned which);
bool two_cores_available();

class Stage {
 public:
  static constexpr unsigned kMaxParts = 4;

  /// What a part sees of its stage.
  class Part {
   public:
    void begin();
    void end() { end(ticks()); }
    /// For a part that knows only afterwards when its last job was done.
    void end(std::uint64_t at_ticks);
    /// The kernel's id of another part's thread, known once begin() has returned.
    pid_t thread_of(unsigned part) const;

   private:
    friend class Stage;
    Part(Stage& stage, unsigned self) : stage_(stage), self_(self) {}
    Stage& stage_;
    unsigned self_;
  };
  using Action = std::function<void(Part&)>;

  explicit Stage(Cast cast) : cast_(cast), board_(1) {}

  /// `core` is 0 or 1.
  void add(unsigned core, Action action) { parts_.push_back({core, std::move(action)}); }

  /// Plays all parts to their end. Throws only when processes cannot be made.
  Outcome play();

 private:
  struct Entry {
    unsigned core;
    Action action;
  };

  struct alignas(128) Record {
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = 0;
    double begin_cpu_ns = 0;
    double end_cpu_ns = 0;
    long preemptions = 0;
    double round_trip_ns = 0;
    pid_t thread = 0;
    char trouble[256] = {};
  };

  struct Board {
    alignas(128) std::atomic<std::uint32_t> arrived{0};
    alignas(128) std::atomic<std::uint32_t> ball{0};
    Record records[kMaxParts];
  };

  void act(unsigned self);
  void play_processes();
  void play_threads();
  void meet(unsigned gate);
  void bounce_line(unsigned self);
  bool two_cores_apart() const { return parts_.size() >= 2 && parts_[0].core != parts_[1].core; }

  Cast cast_;
  std::vector<Entry> parts_;
  SharedArray<Board> board_;
};

}  // namespace ojs_shm::bench
