// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "shm/atomics.hpp"

namespace ojs_shm::test {

/// Does something at each shared access of this thread, for schedules that no clock could bring
/// about. One at a time.
class AtAccess {
 public:
  using Act = std::function<void(shm::Access, shm::Point, const void* word)>;
  explicit AtAccess(Act act);
  AtAccess(const AtAccess&) = delete;
  ~AtAccess();
};

}  // namespace ojs_shm::test
