// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::top {
namespace {

constexpr Style kName{Tone::kPlain, true, false, false};
constexpr Style kLabel{Tone::kNote, false, false, false};

Style style_of_seat(std::string_view state) {
  if (state == "alive" || state == "attached") return {Tone::kGood, false, false, false};
  return {state == "none" ? Tone::kCare : Tone::kBad, true, false, false};
}

/// "12:34:56" of a time of day, in UTC.
std::string clock_text(std::uint64_t ms) { return print_timestamp(ms).substr(11, 8); }

Line first_line(const Sample& sample) {
  const Census& census = sample.census;
  const std::string_view broker = census.broker_state(), seat = census.supervisor_state();
  Line line{{census.segment.name, kName}, {"  " + census.segment.convention + "  "}};
  line.push_back({"broker ", kLabel});
  line.push_back({std::string(broker), style_of_seat(broker)});
  if (sample.broker_lost_ms != 0)
    line.push_back({" since " + clock_text(sample.broker_lost_ms) + "Z", {Tone::kBad}});
  line.push_back({"  supervisor ", kLabel});
  line.push_back({std::string(seat), style_of_seat(seat)});
  for (const ProcessInfo& process : census.segment.processes)
    if (process.supervisor) line.push_back({fmt::format(" (pid {})", process.pid)});
  const std::uint64_t age = census.at_ms - std::min(census.at_ms, census.segment.created_at_ms);
  line.push_back({"  up ", kLabel});
  line.push_back({duration_text(age)});
  line.push_back({"  " + clock_text(census.at_ms) + "Z"});
  return line;
}

/// The fullest memory pools as bars, as many as there is room for.
Line memory_line(const Sample& sample, std::size_t width) {
  const Census& census = sample.census;
  Line line{{"memory ", kLabel},
            {fmt::format("{} of {}", shell::bytes_text(census.bytes_used()),
                         shell::bytes_text(census.segment.size_bytes))}};
  std::vector<PoolInfo> pools = census.segment.pools;
  const auto share = [](const PoolInfo& pool) {
    return pool.capacity == 0 ? 0.0
                              : static_cast<double>(pool.used) / static_cast<double>(pool.capacity);
  };
  std::stable_sort(pools.begin(), pools.end(),
                   [&share](const PoolInfo& a, const PoolInfo& b) { return share(a) > share(b); });
  for (const PoolInfo& pool : pools) {
    const double used = share(pool);
    const Tone tone = used >= 0.98 ? Tone::kBad : used >= 0.9 ? Tone::kCare : Tone::kGood;
    Line next{{"  " + pool.name, kLabel},
              {filled_bar(used, 8), {tone}},
              {fmt::format("{:.0f}%", used * 100)}};
    if (width_of(line) + width_of(next) > width) break;
    line.insert(line.end(), next.begin(), next.end());
  }
  return line;
}

Line totals_line(const Sample& sample) {
  const Census& census = sample.census;
  std::uint64_t depth = 0, active = 0, dead = 0;
  for (const QueueCensus& queue : census.queues) {
    depth += queue.info.depth;
    active += queue.info.by_state[static_cast<std::size_t>(State::kActive)];
    dead += queue.info.dead_letters;
  }
  Line line{{"jobs ", kLabel},
            {fmt::format("depth {}  active {}  dead letters {}", depth, active, dead)}};
  const std::vector<std::uint64_t> totals = census.totals();
  for (std::size_t i = 0; i < totals.size(); ++i)
    if (totals[i] != 0)
      line.push_back({fmt::format("  {} {}", census.queue_counters[i].label, totals[i])});
  return line;
}

Line rates_line(const Sample& sample) {
  Line line{{"per second ", kLabel}};
  for (std::size_t i = 0; i < kSpanCount; ++i) {
    const auto of = [&](CounterFlow flow) {
      return rate_text(rate_of(sample.census.queue_counters, sample.spans[i].totals, flow));
    };
    line.push_back({fmt::format(" {}:", kSpanNames[i]), kLabel});
    line.push_back({fmt::format(" in {} out {}  ", of(CounterFlow::kIn), of(CounterFlow::kOut))});
  }
  return line;
}

Line segment_line(const Sample& sample, const std::string& notice) {
  Line line{{"segment ", kLabel}};
  if (const Maintenance& maintenance = sample.census.segment.maintenance; maintenance.enabled)
    line.push_back(
        {"IN MAINTENANCE since " + clock_text(maintenance.since_ms) + "Z" +
             (maintenance.reason.empty() ? "  "
                                         : ": " + shell::printable(maintenance.reason) + "  "),
         {Tone::kCare, true, true}});
  if (const auto& repair = sample.census.segment.last_repair)
    line.push_back({fmt::format("last repair {}Z: {} by {}, {} slots  ", clock_text(repair->at_ms),
                                repair->pid, repair->by_pid, repair->mended)});
  if (sample.census.segment.overdue_ms > 5000)
    line.push_back({"timers late by " + duration_text(sample.census.segment.overdue_ms) + "  ",
                    {Tone::kBad, true}});
  if (sample.removed) line.push_back({"the segment was REMOVED  ", {Tone::kBad, true, true}});
  if (sample.census.post_mortem)
    line.push_back({"POST MORTEM, last trace " + print_timestamp(sample.census.at_ms) + "  ",
                    {Tone::kCare, true, true}});
  if (!notice.empty()) line.push_back({notice + "  ", {Tone::kCare, true}});
  // Last: a narrow screen shows what is wrong.
  for (std::size_t i = 0; i < sample.census.segment_counters.size(); ++i) {
    const CounterInfo& counter = sample.census.segment_counters[i];
    line.push_back({fmt::format("{} {}  ", counter.label, sample.census.segment_values[i])});
  }
  return line;
}

}  // namespace

Picture header_of(const Sample& sample, const std::string& notice, std::size_t width) {
  Picture picture{first_line(sample), memory_line(sample, width), totals_line(sample),
                  rates_line(sample), segment_line(sample, notice)};
  for (Line& line : picture) line = cut(line, width);
  return picture;
}

}  // namespace ojs_shm::top
