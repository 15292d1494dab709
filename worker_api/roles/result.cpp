// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>

#include <cstdio>
#include <cstdlib>

#include "engine/moves/state.hpp"
#include "shm/layout.hpp"

namespace ojs_shm {

std::string_view code_name(Code code) noexcept {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInternal: return "internal";
    case Code::kInvalid: return "invalid_request";
    case Code::kCannotAttach: return "cannot_attach";
    case Code::kNotFound: return "not_found";
    case Code::kWrongState: return "conflict";
    case Code::kQueueFull: return "QUEUE_FULL";
    case Code::kSegmentFull: return "SEGMENT_FULL";
    case Code::kPermission: return "permission";
    case Code::kInUse: return "in_use";
    case Code::kOtherFormat: return "other_format";
    case Code::kDuplicate: return "duplicate";
    case Code::kTooLarge: return "too_large";
    case Code::kEmpty: return "empty";
    case Code::kTimeout: return "timeout";
    case Code::kLost: return "lost";
    case Code::kClosed: return "closed";
    case Code::kNoSpace: return "no_space";
    case Code::kStaleVersion: return "stale_version";
  }
  return "internal";
}

void die_of_missing_value(const Error& error) {
  std::fprintf(stderr, "ojs-shm: the value of a failed result was read: %s\n",
               error.message.c_str());
  std::abort();
}

std::string_view state_name(State state) noexcept {
  return engine::name_of(static_cast<engine::JobState>(state));
}
bool is_terminal(State state) noexcept {
  return engine::is_terminal(static_cast<engine::JobState>(state));
}

std::uint32_t segment_format() noexcept { return shm::kFormat; }
std::string_view library_version() noexcept { return OJS_SHM_PROJECT_VERSION; }

}  // namespace ojs_shm
