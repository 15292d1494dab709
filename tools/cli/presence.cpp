// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/presence.hpp"

#include "tools/shell/refusal.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::cli {

void Presence::must_last() {
  constexpr std::chrono::seconds kLook{1};
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kLook;
  const shm::Segment& segment = segment_.attachment()->segment();
  if (!segment.named())
    shell::refuse(Code::kCannotAttach, "segment " + segment.path() + " was removed");
}

}  // namespace ojs_shm::cli
