// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/tables/store.hpp"

// Limits, for reading. A key's name says on what it stands: `queue:NAME` on a queue, `type:NAME` on
// a type of jobs, any other name on the jobs that bring it (`tenant:ID`: on those of a tenant).
// LimitSetter sets them.

namespace ojs_shm::engine {

constexpr std::string_view kQueueLimit = "queue:", kTypeLimit = "type:", kTenantLimit = "tenant:",
                           kPoolLimit = "pool:";

/// By which a key is found. A job carries no more of its tenant than a hash, so that is where the
/// key of a tenant stands.
std::uint64_t hash_limit(std::string_view name);
/// The key of that name, or kNoIndex.
std::uint32_t find_limit(const Store& store, std::string_view name);
/// The key on the tenant with that hash (hash_tenant()), or kNoIndex.
std::uint32_t find_tenant_limit(const Store& store, std::uint64_t tenant);
std::string limit_name(const Store& store, std::uint32_t key);
LimitSettings settings_of(const LimitKey& key);

/// All keys that hold for one job, in their canonical order, each once.
struct LimitList {
  static constexpr unsigned kMost = 8;
  std::array<std::uint16_t, kMost> key{};
  unsigned count = 0;
  std::uint32_t gates =
      /// bit i: key[i] stands on the queue or the worker: it closes a queue and holds no job back
      0;

  void add(std::uint32_t added, bool gate);
  bool empty() const { return count == 0; }
  bool gate(unsigned i) const { return (gates >> i & 1) != 0; }
};
/// `held`: the job is held now, so that its second limit is its worker's.
LimitList limits_of(const Store& store, std::uint32_t slot, const JobRecord& job, bool held);

/// Whether a job of the key could begin now, as far as the key goes. `at`, if given: when it can,
/// Unix ms, 0: not known.
bool may_begin(const Store& store, const LimitKey& key, std::uint64_t now,
               std::uint64_t* at = nullptr);

/// A rule of a limit, or a job's report, by which jobs have to wait.
enum class LimitRule : std::uint8_t { kConcurrency, kRate, kThrottle, kReport };
/// What an event says of a limit: its key, with the rule that holds its jobs back << 32. Where none
/// does any more: the first rule that the limit has.
std::uint64_t describe_rule(const Store& store, std::uint32_t key, std::uint64_t now);

/// Whether anything may stand in the lot; a yes may be stale.
bool occupied(const ParkingLot& lot);
/// The lot of a key for a queue, or kNoIndex.
std::uint32_t find_lot(const Store& store, const LimitKey& key, std::uint32_t queue);

}  // namespace ojs_shm::engine
