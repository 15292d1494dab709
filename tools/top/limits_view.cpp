// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {
namespace {

std::string rule_of(const RateLimit& limit) {
  std::vector<std::string> parts;
  if (limit.concurrency) parts.push_back(fmt::format("{} at once", *limit.concurrency));
  if (limit.rate != 0)
    parts.push_back(fmt::format("{} in {}{}", limit.rate, duration_text(limit.rate_period_ms),
                                limit.sliding ? ", sliding" : ""));
  if (limit.throttle != 0)
    parts.push_back(fmt::format("{} evenly in {}, burst {}", limit.throttle,
                                duration_text(limit.throttle_period_ms), limit.burst));
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, "; "));
}

std::string use_of(const LimitInfo& limit) {
  std::string use = limit.limit.concurrency
                        ? fmt::format("{}/{}", limit.active, *limit.limit.concurrency)
                        : std::to_string(limit.active);
  if (limit.limit.rate != 0) use += fmt::format("  {}/{} begun", limit.begun, limit.limit.rate);
  return use;
}

}  // namespace

Grid limits_grid(const Sample& sample) {
  Grid grid;
  grid.nothing = "no limit: `ojs-shm limit set` makes one, and jobs may bring theirs";
  grid.columns = {{"KEY"},           {"USE"},      {"WAITING", true},  {"NEXT", true},
                  {"RULE"},          {"ON LIMIT"}, {"EXCEEDED", true}, {"RELEASED", true},
                  {"DROPPED", true}, {"SET BY"}};
  constexpr const char* kOnLimit[] = {"wait", "reschedule", "drop"};
  for (const LimitInfo& limit : sample.census.limits) {
    const std::uint64_t now = sample.census.at_ms;
    const bool reached = limit.waiting != 0;
    Row row{limit.key, {}, {}};
    row.cells = {
        text_cell(limit.key),
        text_cell(use_of(limit)),
        count_cell(limit.waiting, reached ? Style{Tone::kCare, true, false, false} : Style{}),
        limit.next_at_ms > now ? age_cell(limit.next_at_ms - now) : text_cell("now"),
        text_cell(rule_of(limit.limit)),
        text_cell(
            kOnLimit[std::min<std::size_t>(static_cast<std::size_t>(limit.limit.on_limit), 2)]),
        count_cell(limit.exceeded_total),
        count_cell(limit.released_total),
        count_cell(limit.dropped_total),
        text_cell(limit.by_operator ? "operator" : "jobs")};
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

}  // namespace ojs_shm::top
