// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ojs_shm::shell {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// "0:5,1:3" with ':' gives {"0","5"}, {"1","3"}. A part without the mark has an empty second half.
Pairs pairs_of(std::string_view text, char mark);

}  // namespace ojs_shm::shell
