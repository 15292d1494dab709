// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ojs_shm::shell {

/// "; did you mean `enqueue`?" or nothing.
std::string meant(std::string_view word, const std::vector<std::string>& names);

/// The command that was chosen last, as far as the words were understood.
const CLI::App& last_chosen(const CLI::App& app);

/// The same for the first flag that neither the program nor its chosen command has. `app` has
/// failed to parse its words.
std::string meant_flag(const CLI::App& app);

}  // namespace ojs_shm::shell
