// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "engine/observing/census.hpp"

namespace ojs_shm::internal {

/// The names of tenants by their hashes, read once out of a job of each. Thread-safe.
class TenantNames {
 public:
  /// "" for the jobs without a tenant; "#" and the hash when no job says the name.
  std::string name_of(const engine::Store& store, const engine::Census::Tenant& tenant);

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::string> names_;
};

}  // namespace ojs_shm::internal
