// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "tools/shell/quantity.hpp"
#include "tools/top/view.hpp"
#include "tools/top/wording.hpp"

namespace ojs_shm::top {
namespace {

/// A paused queue is a reversed line, so that no one overlooks it; a word says it too.
Style row_style(std::string_view state) {
  if (state == "paused") return {Tone::kCare, true, true, false};
  return {};
}
Style state_style(std::string_view state) {
  if (state == "full" || state == "starving") return {Tone::kBad, true, false, false};
  if (state == "warning") return {Tone::kCare, true, false, false};
  return {};
}

std::string bound_text(const QueueInfo& queue) {
  std::string text = queue.max_depth == 0 ? "" : std::to_string(queue.max_depth);
  if (queue.max_size_bytes != 0)
    text += (text.empty() ? "" : ", ") + shell::bytes_text(queue.max_size_bytes);
  return text.empty() ? "none" : text;
}

bool belongs(const Sample& sample, const Subject& subject, const std::string& queue) {
  if (subject.pool.empty()) return true;
  for (const WorkerPoolInfo& pool : sample.census.pools)
    if (pool.name == subject.pool)
      return std::count(pool.settings.queues.begin(), pool.settings.queues.end(), queue) != 0;
  return false;
}

/// The columns that count what a queue refused or lost are those that the segment describes so.
std::vector<std::size_t> losses(const Census& census) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < census.queue_counters.size(); ++i) {
    const CounterFlow flow = census.queue_counters[i].flow;
    if (flow == CounterFlow::kRefused || flow == CounterFlow::kLost) found.push_back(i);
  }
  return found;
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

Cell percentiles(const Durations& times) {
  if (times.count == 0) return {"-", -1, {}};
  return {duration_text(times.p50_ms) + "/" + duration_text(times.p99_ms),
          static_cast<double>(times.p99_ms),
          {}};
}

}  // namespace

Grid queues_grid(const Sample& sample, const Subject& subject) {
  const Census& census = sample.census;
  Grid grid;
  grid.nothing = "no queue yet: the first job makes one";
  grid.columns = {
      {"QUEUE"},        {"STATE"},          {"DEPTH", true},        {"BY LEVEL"},
      {"ACTIVE", true}, {"IN/S", true},     {"OUT/S", true},        {"OLDEST", true},
      {"BOUND", true},  {"PRESSURE", true}, {"WAIT P50/P99", true}, {"RUN P50/P99", true}};
  const std::vector<std::size_t> lost = losses(census);
  for (const std::size_t i : lost)
    grid.columns.push_back({upper(census.queue_counters[i].label), true});
  grid.columns.push_back({"DEAD", true});
  grid.columns.push_back({"ORDER"});
  std::uint64_t deepest = 1;
  for (const QueueCensus& queue : census.queues)
    deepest = std::max(deepest, queue.info.by_state[static_cast<std::size_t>(State::kAvailable)]);
  for (std::size_t q = 0; q < census.queues.size(); ++q) {
    const QueueCensus& queue = census.queues[q];
    if (!belongs(sample, subject, queue.info.name)) continue;
    const std::string_view state = queue.state();
    std::vector<std::uint64_t> levels;
    for (const auto& [priority, jobs] : queue.info.available_by_priority) levels.push_back(jobs);
    const auto rate = [&](CounterFlow flow) {
      return rate_cell(q < sample.spans[0].queues.size()
                           ? rate_of(census.queue_counters, sample.spans[0].queues[q], flow)
                           : std::nullopt);
    };
    const bool bounded = queue.info.max_depth != 0 || queue.info.max_size_bytes != 0;
    Row row{queue.info.name, {}, row_style(state)};
    row.cells = {text_cell(queue.info.name),
                 text_cell(std::string(state), state_style(state)),
                 count_cell(queue.info.depth),
                 text_cell(level_bar(levels, deepest, 10)),
                 count_cell(queue.info.by_state[static_cast<std::size_t>(State::kActive)]),
                 rate(CounterFlow::kIn),
                 rate(CounterFlow::kOut),
                 age_cell(queue.info.oldest_age_ms, queue.info.oldest_age_ms != 0),
                 text_cell(bound_text(queue.info)),
                 bounded ? share_cell(queue.info.pressure, state_style(state)) : share_cell({}),
                 percentiles(queue.wait),
                 percentiles(queue.run)};
    for (const std::size_t i : lost)
      row.cells.push_back(count_cell(i < queue.counters.size() ? queue.counters[i] : 0));
    row.cells.push_back(count_cell(queue.info.dead_letters));
    row.cells.push_back(text_cell(queue.order()));
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

}  // namespace ojs_shm::top
