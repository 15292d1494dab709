// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/exit_code.hpp"

namespace ojs_shm::shell {

ExitCode exit_code_for(Code code) noexcept {
  switch (code) {
    case Code::kOk: return kExitOk;
    case Code::kInvalid:
    case Code::kTooLarge: return kExitUsage;
    case Code::kCannotAttach:
    case Code::kInUse:
    case Code::kOtherFormat:
    case Code::kStaleVersion: return kExitCannotAttach;
    case Code::kNotFound: return kExitNotFound;
    case Code::kWrongState:
    case Code::kDuplicate: return kExitWrongState;
    case Code::kQueueFull:
    case Code::kSegmentFull:
    case Code::kNoSpace: return kExitFull;
    case Code::kPermission: return kExitPermission;
    case Code::kInternal:
    case Code::kEmpty:
    case Code::kTimeout:
    case Code::kLost:
    case Code::kClosed: break;
  }
  return kExitFailed;
}

}  // namespace ojs_shm::shell
