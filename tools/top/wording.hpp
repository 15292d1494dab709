// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/top/grid.hpp"

namespace ojs_shm::top {

/// "0", "7.5", "1234", "12.3k"; "-" when it is not known.
std::string rate_text(std::optional<double> rate);
/// "0 ms", "350 ms", "12.4 s", "3m12s", "2h03m", "4d07h": at most kTimeWidth places, up to 99 days.
inline constexpr std::size_t kTimeWidth = 6;
std::string duration_text(std::uint64_t ms);
/// "12.5 %"; "-" when it is not known.
std::string share_text(std::optional<double> share);
/// Jobs of each level, best first, as a bar of `width` places in which `most` jobs fill all; each
/// level has its own shade.
std::string level_bar(const std::vector<std::uint64_t>& levels, std::uint64_t most,
                      std::size_t width);
/// A bar that is filled to a share from 0 to 1.
std::string filled_bar(double share, std::size_t width);
/// Names with a comma between them; "-" when there are none.
std::string list_text(const std::vector<std::string>& names);

Cell text_cell(std::string text, Style style = {});
Cell count_cell(std::uint64_t number, Style style = {});
Cell rate_cell(std::optional<double> rate);
Cell age_cell(std::uint64_t ms, bool known = true);
Cell share_cell(std::optional<double> share, Style style = {});

}  // namespace ojs_shm::top
