// SPDX-License-Identifier: Apache-2.0
#include "tools/top/wording.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/shell/output.hpp"

namespace ojs_shm::top {

std::string rate_text(std::optional<double> rate) {
  if (!rate) return "-";
  if (*rate == 0) return "0";
  if (*rate < 10) return fmt::format("{:.1f}", *rate);
  if (*rate < 10'000) return fmt::format("{:.0f}", *rate);
  if (*rate < 1e6) return fmt::format("{:.1f}k", *rate / 1e3);
  return fmt::format("{:.1f}M", *rate / 1e6);
}

std::string duration_text(std::uint64_t ms) {
  const std::uint64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60;
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (seconds < 100) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  if (minutes < 100) return fmt::format("{}m{:02}s", minutes, seconds % 60);
  if (hours < 48) return fmt::format("{}h{:02}m", hours, minutes % 60);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

std::string share_text(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", *share * 100) : "-";
}

std::string level_bar(const std::vector<std::uint64_t>& levels, std::uint64_t most,
                      std::size_t width) {
  constexpr const char* kShades[] = {"█", "▓", "▒", "░"};
  std::string bar;
  std::uint64_t jobs = 0;
  std::size_t drawn = 0;
  for (std::size_t level = 0; level < levels.size() && most != 0; ++level) {
    jobs += levels[level];
    const double part = static_cast<double>(jobs) / static_cast<double>(most);
    auto end = static_cast<std::size_t>(std::lround(part * static_cast<double>(width)));
    // One job is seen, and a bar that is not full looks so.
    if (levels[level] != 0 && end == drawn && drawn == 0) end = 1;
    for (end = std::min(end, width); drawn < end; ++drawn)
      bar += kShades[std::min<std::size_t>(level, 3)];
  }
  return bar + std::string(width - drawn, ' ');
}

std::string filled_bar(double share, std::size_t width) {
  const double bounded = std::clamp(share, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(std::lround(bounded * static_cast<double>(width)));
  return "[" + std::string(full, '|') + std::string(width - full, ' ') + "]";
}

std::string list_text(const std::vector<std::string>& names) {
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ","));
}

Cell text_cell(std::string text, Style style) {
  return {shell::printable(text), std::nullopt, style};
}
Cell count_cell(std::uint64_t number, Style style) {
  return {std::to_string(number), static_cast<double>(number), style};
}
Cell rate_cell(std::optional<double> rate) { return {rate_text(rate), rate.value_or(-1), {}}; }
Cell age_cell(std::uint64_t ms, bool known) {
  return {known ? duration_text(ms) : "-", known ? static_cast<double>(ms) : -1, {}};
}
Cell share_cell(std::optional<double> share, Style style) {
  return {share_text(share), share.value_or(-1), style};
}

}  // namespace ojs_shm::top
