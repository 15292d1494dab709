// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ojs_shm::broker {

/// Tells a service manager such as systemd how this service is ("READY=1", "STOPPING=1"): one
/// datagram to the socket that NOTIFY_SOCKET names, as sd_notify(3) does it. Does nothing without
/// one; a manager that went away is no error.
void notify_service_manager(std::string_view state) noexcept;

}  // namespace ojs_shm::broker
