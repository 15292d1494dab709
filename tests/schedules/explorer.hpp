// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

/// What runs at once. `prepare` runs alone, before; each part is one fiber and gets its own number.
struct Scenario {
  std::string name;
  std::function<void(World&)> prepare;
  std::vector<std::function<void(World&, std::uint32_t)>> parts;
  std::uint32_t slots = World::kSlots;  ///< of the world that it needs
};

struct Limits {
  unsigned preemptions = 1;
  unsigned kills = 0;
  std::uint64_t most_runs = ~0ULL;
};

struct Explored {
  std::uint64_t runs = 0, kills = 0, accesses = 0;
  bool complete = true;      ///< false: most_runs ended it
  std::string failure = {};  ///< the first wrong verdict, with the schedule that leads to it
};

/// Runs a scenario under every schedule within the limits: every place at which a fiber is about to
/// touch a word that another fiber touches too, in this run or in any other, and one of them
/// writes, is a place to go on with another one (elsewhere the order makes no difference); after
/// every shared write a fiber may be killed. Where one ends or is killed each of the others goes on
/// in its turn, which is no preemption. Each run begins anew and ends with a verdict.
class Explorer {
 public:
  explicit Explorer(World& world);
  Explored explore(const Scenario& scenario, const Limits& limits);

 private:
  struct Run {
    std::uint32_t first;
    std::vector<Switch> switches;
    unsigned preemptions = 0, kills = 0;
  };
  /// One more preemption of a run, before an access to a word that is not yet contended.
  struct Postponed {
    std::uint32_t run;  ///< in extended_
    std::uint32_t access : 24, to : 8;
  };
  struct Touched {
    unsigned readers = 0, writers = 0;  ///< a bit for each fiber
    std::vector<Postponed> postponed = {};
    bool contended() const;
  };
  std::vector<Step> play(const Run& run);
  void extend(const Run& run, const std::vector<Step>& steps);
  void learn(const std::vector<Step>& steps);
  void branch(const Run& run, std::size_t access, std::uint32_t to, Switch::Why why);
  std::string text_of(const Run& run, const std::vector<Step>& steps) const;

  World& world_;
  const Scenario* scenario_ = nullptr;
  Limits limits_;
  Explored result_;
  std::unordered_map<const void*, Touched> words_;
  /// still to be played; played, with preemptions that are postponed
  std::vector<Run> pending_, extended_;
};

}  // namespace ojs_shm::test
