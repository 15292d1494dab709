// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/result.hpp>

namespace ojs_shm::shell {

/// What every program of this project answers to its caller. docs/operations.md has the table.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitCannotAttach = 3,
  kExitNotFound = 4,
  kExitWrongState = 5,
  kExitFull = 6,
  kExitPermission = 7,
};

ExitCode exit_code_for(Code code) noexcept;

}  // namespace ojs_shm::shell
