// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {

/// Does the same to every id, reports each failure and goes on. The first failure decides the exit
/// code.
template <class Action>
int for_each_id(const std::vector<std::string>& ids, bool json, Action action) {
  int exit = shell::kExitOk;
  for (const std::string& id : ids) {
    const Status done = action(id);
    if (done) continue;
    const int code = shell::report(done.error(), json);
    if (exit == shell::kExitOk) exit = code;
  }
  return exit;
}

}  // namespace ojs_shm::cli
