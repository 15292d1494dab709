// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {

inline UniquePolicy policy_with(OnConflict conflict) {
  UniquePolicy policy;
  policy.args = true;
  policy.on_conflict = conflict;
  return policy;
}

/// A spec with its uniqueness, which it points to.
struct UniqueSpec {
  JobUnique unique;
  JobSpec spec;
  UniqueSpec(JobSpec of, const UniquePolicy& policy)
      : unique(JobUnique::of(of, policy).value()), spec(of) {
    spec.unique = &unique;
  }
  UniqueSpec(const UniqueSpec& other) : unique(other.unique), spec(other.spec) {
    spec.unique = &unique;
  }
};

inline UniqueSpec unique_job(OnConflict conflict = OnConflict::kReject,
                             std::string_view args = "[1]",
                             std::optional<std::int64_t> priority = {}) {
  JobSpec spec = spec_of(priority);
  spec.args = args;
  return {spec, policy_with(conflict)};
}

}  // namespace ojs_shm::test
