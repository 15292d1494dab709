// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

/// A violated invariant; docs/invariants.md explains each number.
struct Finding {
  std::uint32_t invariant = 0;
  std::string text;
  bool operator==(const Finding&) const = default;
};

constexpr std::size_t kMostFindings = 1000;

/// Walks the whole segment, changes nothing, and lists what is wrong; exact in a quiet segment.
/// At most kMostFindings are listed.
std::vector<Finding> audit(const Store& store);

/// Looks again at what it finds, so that work in progress is not mistaken for damage: only what
/// stays is listed.
std::vector<Finding> audit_patiently(const Store& store);

}  // namespace ojs_shm::engine
