// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/at_access.hpp"

namespace ojs_shm::test {
namespace {
thread_local AtAccess::Act act_now;
}

AtAccess::AtAccess(Act act) {
  act_now = std::move(act);
  shm::thread_hook = [](shm::Access access, shm::Point point, const void* word) {
    act_now(access, point, word);
  };
}

AtAccess::~AtAccess() { shm::thread_hook = nullptr; }

}  // namespace ojs_shm::test
