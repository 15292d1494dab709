// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <string_view>

#include <ojs_shm/segment.hpp>

namespace ojs_shm::shell {

/// --name and --dir, with their environment variables and defaults. Returns the --name option.
CLI::Option* add_target_options(CLI::App& app, SegmentName& where);
/// "ojs-shm 0.1.0 (segment format 1)".
std::string version_text(std::string_view program);
/// The section of --help that every program ends with.
std::string exit_code_help();

}  // namespace ojs_shm::shell
