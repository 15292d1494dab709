// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {

/// A handle of a lane that dies: it is never closed, and known for as long as the program runs.
inline internal::Handle* doomed_handle(const Segment& segment) {
  static auto& all = *new std::vector<internal::Handle*>;
  return all.emplace_back(internal::Handle::make(segment).value().release());
}

}  // namespace ojs_shm::test
