// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tables/store.hpp"
#include "engine/workers/registry_look.hpp"

namespace ojs_shm::engine {

class Actor;
enum class Outcome : std::uint8_t;

/// What is told of a worker; what is not told stays as it is.
struct WorkerReport {
  std::string_view id = {};
  std::optional<std::uint64_t> pool = {};  ///< hash of its name
  std::optional<std::uint32_t> concurrency = {}, active = {};
  std::optional<std::string_view> details = {};
  std::optional<bool> drains = {};
  std::optional<std::uint64_t> silence_ms = {};  ///< for how long it may give no sign, at least
  bool pledges = false;    ///< it will give signs of life, and loses its jobs when it does not
  bool registers = false;  ///< it begins anew: an order that it had is over
  bool native = false;     ///< this lane's handle is the worker
};

/// A worker that was ended for its silence.
struct LostWorker {
  std::string id;
  std::uint64_t silent_ms = 0, jobs = 0;
};

/// What one lane does with registered workers (registry.cpp).
///
/// A record is taken by one cas and named before any lane can see it; what a worker says of itself
/// is written in an exclusive phase. The last sign of life decides: a beat and the end are a cas on
/// the same word, so either the beat finds the worker ended, or the end finds the beat. What comes
/// after the end may be done by any lane, any number of times: 1. its jobs return; 2. its place is
/// free.
class Registry {
 public:
  explicit Registry(Actor& actor);

  /// Makes the worker's record, if there is none, and brings it up to date; a sign of life.
  /// kOtherPool: it has another pool already. kNoWorkers: all places are taken. kTooLarge: its
  /// details. kBusy.
  Outcome report(const WorkerReport& report, WorkerKey& key);
  /// A sign of life. False: the worker was ended, or has left.
  bool beat(WorkerKey key);
  /// What its worker shall do from now on. kNotFound: there is no such worker. kBusy.
  Outcome order(std::string_view id, WorkerOrder order);
  /// The worker leaves. Its jobs stay with their leases. False: there is none.
  bool leave(WorkerKey key);
  /// The record of a worker of that id that has ended, if there is one, is free. False: there is
  /// none.
  bool forget(std::string_view id);
  /// It has taken so many jobs, or ended some.
  void count(WorkerKey key, std::int32_t jobs);

  /// For the supervisor: ends the silent. When it is to be called again, Unix ms.
  std::uint64_t look(std::uint64_t now, std::vector<LostWorker>& lost);
  /// For a repair, whose lane is the dead one's.
  void release_dead();

 private:
  Outcome claim(const WorkerReport& report, std::uint32_t hash, WorkerKey& key);
  Outcome update(const WorkerReport& report, WorkerKey key);
  void name(std::uint32_t place, std::uint64_t life, const WorkerReport& report);
  std::uint32_t place_for(std::uint32_t hash) const;
  enum class Rivals : std::uint8_t { kNone, kSome, kStopped };
  Rivals rivals(std::uint32_t place, std::uint32_t hash, std::string_view id) const;
  template <class Write>
  Outcome change(WorkerKey key, const Write& write);
  bool end(std::uint32_t place, WorkerSign sign, WorkerEnd how);
  bool conclude(std::uint32_t place, std::vector<LostWorker>* lost);
  void tell_turn(const WorkerRecord& record, bool takes_jobs) const;
  std::uint64_t return_jobs(WorkerKey key, std::uint64_t silent_ms);

  Actor& actor_;
  Store& store_;
};

}  // namespace ojs_shm::engine
