// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tools/cli/simulate_load.hpp"

namespace ojs_shm::cli {
namespace {

constexpr double kWidth = 640, kLeft = 64, kBarHeight = 14;

/// What may stand in the text of an SVG.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<' || c == '&')
      out += c == '<' ? "&lt;" : "&amp;";
    else
      out += c;
  }
  return out;
}

/// A bar for each group, as long as its share, with its waits beside it.
std::vector<std::string> bars_of(const SimulationReport& report, double top) {
  constexpr std::size_t kMostOfAKind = 16;
  constexpr double kBegin = 200, kLongest = 140;
  std::vector<std::string> bars;
  const auto add = [&](std::string_view kind, const std::vector<SimulatedGroup>& groups) {
    for (std::size_t i = 0; i < std::min(groups.size(), kMostOfAKind); ++i) {
      const SimulatedGroup& group = groups[i];
      const double y = top + kBarHeight * static_cast<double>(bars.size());
      bars.push_back(fmt::format(
          R"(<text x="{:.0f}" y="{:.0f}" text-anchor="end">{} {}</text>)"
          R"(<rect x="{:.0f}" y="{:.0f}" width="{:.1f}" height="10" fill="#2458a6" fill-opacity="0.6"/>)"
          R"(<text x="{:.0f}" y="{:.0f}">{:.1f} %; p50 {:.1f}, p95 {:.1f}, max {:.1f} ms</text>)"
          "\n",
          kBegin - 6, y + 9, kind, group.name.empty() ? "-" : escaped(group.name), kBegin, y,
          group.share * kLongest, kBegin + kLongest + 6, y + 9, 100 * group.share, group.p50_ms,
          group.p95_ms, group.max_ms));
    }
  };
  add("queue", report.queues);
  add("level", report.levels);
  add("tenant", report.tenants);
  add("pool", report.pools);
  return bars;
}

}  // namespace

std::string picture_of(const Trace& trace, const SimulationOutcome& outcome,
                       const SimulationReport& report) {
  constexpr double kHeight = 260, kBottom = 40, kTop = 30, kRight = 16;
  constexpr std::size_t kMostDots = 6000;
  constexpr const char* kColours[] = {"#b3261e", "#d98200", "#2f7d32",
                                      "#2458a6", "#7b3fa0", "#555555"};
  const double longest = std::max(report.all.max_ms, 1e-3),
               last = std::max<double>(1, static_cast<double>(outcome.end_us));
  const std::vector<std::string> bars = bars_of(report, kHeight + 18);
  const double height =
      kHeight + (bars.empty() ? 0 : 30 + kBarHeight * static_cast<double>(bars.size()));
  const auto x = [&](double us) { return kLeft + us / last * (kWidth - kLeft - kRight); };
  const auto y = [&](double ms) {
    return kHeight - kBottom - ms / longest * (kHeight - kBottom - kTop);
  };
  std::vector<std::string> dots(std::size(kColours));
  const std::size_t step = outcome.dispatches.size() / kMostDots + 1;
  for (std::size_t i = 0; i < outcome.dispatches.size(); i += step) {
    const SimulatedDispatch& dispatch = outcome.dispatches[i];
    const TraceArrival& arrival = trace.arrivals[dispatch.arrival];
    const std::string name = arrival.queue + " " + std::to_string(arrival.priority);
    const auto level =
        std::find_if(report.levels.begin(), report.levels.end(),
                     [&](const SimulatedGroup& group) { return group.name == name; });
    const auto colour = std::min<std::size_t>(
        static_cast<std::size_t>(level - report.levels.begin()), dots.size() - 1);
    dots[colour] += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="1.5"/>)", x(static_cast<double>(dispatch.at_us)),
        y(static_cast<double>(dispatch.at_us - outcome.came_us[dispatch.arrival]) / 1000));
  }
  std::string svg =
      fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" )"
                  R"(font-family="sans-serif" font-size="11">)"
                  "\n<title>waits of a simulation</title>\n"
                  R"(<rect width="{0:.0f}" height="{1:.0f}" fill="#ffffff"/>)"
                  "\n",
                  kWidth, height);
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    svg += fmt::format(R"(<text x="{:.0f}" y="{:.0f}" text-anchor="middle">{:.4g}</text>)"
                       "\n",
                       x(share * last), kHeight - kBottom + 15, share * last / 1e6);
    svg += fmt::format(R"(<path d="M{0:.0f} {1:.0f}H{2:.0f}" stroke="#dddddd"/>)"
                       R"(<text x="{3:.0f}" y="{4:.0f}" text-anchor="end">{5:.1f}</text>)"
                       "\n",
                       kLeft, y(share * longest), kWidth - kRight, kLeft - 6,
                       y(share * longest) + 4, share * longest);
  }
  svg += fmt::format(
      R"(<text x="{:.0f}" y="{:.0f}" text-anchor="middle">second of the dispatch</text>)"
      "\n"
      R"svg(<text transform="translate(14 {:.0f}) rotate(-90)" text-anchor="middle">ms waited</text>)svg"
      "\n",
      (kLeft + kWidth) / 2, kHeight - 8, kHeight / 2);
  for (std::size_t i = 0; i < dots.size(); ++i) {
    if (dots[i].empty()) continue;
    const bool others = i + 1 == dots.size() && report.levels.size() > dots.size();
    svg +=
        fmt::format(R"(<g fill="{0}" fill-opacity="0.6">{1}</g>)"
                    R"(<text x="{2:.0f}" y="{3:.0f}" text-anchor="end" fill="{0}">{4}</text>)"
                    "\n",
                    kColours[i], dots[i], kWidth - kRight, kTop + 12 + 14 * static_cast<double>(i),
                    others ? "others" : report.levels[i].name);
  }
  if (!bars.empty())
    svg += fmt::format(
        "<text x=\"{:.0f}\" y=\"{:.0f}\">share of the dispatches up to the last arrival; "
        "waits</text>\n",
        kLeft, kHeight + 10);
  for (const std::string& bar : bars) svg += bar;
  return svg + "</svg>\n";
}

}  // namespace ojs_shm::cli
