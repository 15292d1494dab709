// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/events.hpp>

namespace ojs_shm::internal {

/// Whether a reader with these options gives it out.
bool is_chosen(const Event& event, const EventOptions& options);

}  // namespace ojs_shm::internal
