// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/events.hpp>

namespace ojs_shm {

/// The event as clients receive it, in the envelope of ojs-events 2; members without a value are
/// left out.
std::string print_event(const Event& event);

}  // namespace ojs_shm
