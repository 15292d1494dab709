// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/broker/settings.hpp"

namespace ojs_shm::broker {

/// Reads a TOML file into `settings`. A key or value that is not understood is an error that names
/// file and line.
Status read_config_file(const std::string& path, Settings& settings);

}  // namespace ojs_shm::broker
