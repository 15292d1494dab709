// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "tools/broker/settings.hpp"

namespace ojs_shm::broker {

/// Reads the configuration, as it is now, from its file and the flags. Throws shell::Refusal.
using ReadSettings = std::function<Settings()>;

/// Starts the broker, applies the settings, serves until SIGTERM or SIGINT, and cleans up; SIGHUP
/// reads and applies the settings again. Returns an exit code. The caller has held the signals
/// before any thread began. Throws shell::Refusal.
int serve(const ReadSettings& read);

}  // namespace ojs_shm::broker
