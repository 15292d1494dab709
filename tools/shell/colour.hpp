// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ojs_shm::shell {

/// Whether text for this descriptor may be coloured: it is a terminal, NO_COLOR is unset or empty,
/// and TERM is not dumb.
bool has_colours(int fd);

/// The word in the colour of what it means: green is well, yellow is worth a look, red is wrong,
/// blue is at work. Every other word is returned as it is.
std::string coloured(std::string_view word);
std::string bold(std::string_view text);
std::string red(std::string_view text);

}  // namespace ojs_shm::shell
