// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/ledger.hpp"
#include "tests/support/storm/dice.hpp"

namespace ojs_shm::test {

enum class Role : std::uint32_t { kProducer, kWorker, kBroker, kObserver };
inline constexpr std::uint32_t kRoles = 4;
std::string_view role_name(Role role);

/// What a process of the storm knows of itself.
struct Lane {
  Ledger& ledger;
  Role role;
  std::uint32_t lane;    ///< index of its LaneBook
  std::uint32_t member;  ///< the nth of its role
  std::uint32_t life;
  std::uint64_t seed;  ///< of this life

  LaneBook& book() const { return ledger.lane(lane); }
  void step() const { book().steps.fetch_add(1); }
  bool asked_to_leave() const { return ledger.phase() >= last_phase() || book().quit.load() != 0; }
  Phase last_phase() const {
    return role == Role::kProducer ? Phase::kProducersStop
           : role == Role::kWorker ? Phase::kWorkersStop
                                   : Phase::kEverybodyStops;
  }
  void accuse(Offence offence, PayloadKey key, std::string_view text) const {
    ledger.accuse(offence, life, key, text);
  }
};

/// A thing that carries jobs between processes, to be put into a storm. create(), remove() and the
/// questions are asked by the storm's own process; the bodies run in children of their own, which
/// find the thing by themselves and return when asked to leave. They may be killed anywhere.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;
  virtual bool has_broker() const { return false; }
  virtual void create() = 0;
  /// Run when all are dead; must also work after create() failed.
  virtual void remove() noexcept = 0;

  virtual void produce(Lane& lane) = 0;
  virtual void work(Lane& lane) = 0;
  virtual void broke(Lane&) {}
  virtual void observe(Lane&) {}

  /// The process that repairs just now.
  virtual std::optional<pid_t> supervisor() { return std::nullopt; }
  /// False only when the job was never there or vanished. It was still at work at that time of the
  /// monotonic clock.
  virtual bool knows(std::string_view, std::uint64_t /*since_ns*/) { return true; }
  /// Nothing waits, runs or is to come.
  virtual bool drained(const Ledger& ledger) = 0;
  /// Looks inside while everybody works, and accuses.
  virtual void look(Ledger&) {}
  /// The unfinished jobs that are there, each of them accused, when nothing should be left to do.
  virtual std::vector<PayloadKey> unfinished(Ledger&) { return {}; }
  /// Holds what the ledger says of a round against what the thing says of itself, and accuses.
  virtual void compare(Ledger&, const LedgerVerdict&) {}
  /// Looks inside when no process but the broker and those who only look is left, and accuses.
  virtual void inspect(Ledger&) {}
  /// And when no process at all is left.
  virtual void inspect_abandoned(Ledger&) {}
  /// Lines for the report.
  virtual std::vector<std::string> remarks() { return {}; }
};

}  // namespace ojs_shm::test
