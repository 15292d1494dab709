// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// Tends jobs whose time has come. What is announced in the ring of timers is kept in a heap; when
/// an announcement was lost, and at the beginning, the heap is built anew from the slots. Each call
/// does a bounded part. A new supervisor builds all of it anew.
class Timers {
 public:
  explicit Timers(Actor& actor) : actor_(actor) {}

  struct Report {
    std::uint32_t tended = 0, hints_mended = 0;
  };
  /// Does what is due. When it is to be called again, Unix ms, if nothing is announced until then:
  /// at once when that is `now`, ~0 when nothing waits.
  std::uint64_t look(std::uint64_t now, Report& report);

 private:
  /// Of several that are due at once, the one that was announced first comes first.
  struct Timer {
    std::uint64_t due, announced;
    std::uint32_t slot, generation;
    bool operator>(const Timer& other) const {
      return due != other.due ? due > other.due : announced > other.announced;
    }
  };
  void rebuild(std::uint64_t now);
  void add(std::uint64_t due, std::uint32_t slot, std::uint32_t generation);
  bool read_inbox(std::uint64_t now);

  Actor& actor_;
  std::vector<Timer> heap_;
  std::uint64_t announced_ = 0;  ///< of the last one: grows, and lies not behind the clock
  bool built_ = false;
  std::uint64_t lost_ = 0;  ///< EngineHeader::timers_lost as it was
};

}  // namespace ojs_shm::engine
