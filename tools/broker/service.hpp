// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/broker/settings.hpp"

namespace ojs_shm::broker {

/// Starts the broker, applies the settings, serves until SIGTERM or SIGINT, and cleans up. Returns an exit code.
/// The caller has blocked both signals before any thread began. Throws shell::Refusal.
int serve(Settings settings);

}  // namespace ojs_shm::broker
