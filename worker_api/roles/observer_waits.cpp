// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/observer.hpp>

#include "engine/observing/waits.hpp"
#include "engine/rules/convention.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {
namespace {

WaitHistogram to_histogram(const engine::WaitHistogram& read) {
  WaitHistogram waits;
  waits.sum_ms = read.sum_ms;
  for (unsigned bucket = 0; bucket < engine::kWaitBuckets; ++bucket) {
    waits.count += read.count[bucket];
    if (bucket + 1 < engine::kWaitBuckets)
      waits.up_to_ms.emplace_back(engine::wait_bound_ms(bucket), waits.count);
  }
  return waits;
}

void print_histogram(std::string& out, const WaitHistogram& waits) {
  json::ObjectWriter writer(out);
  writer.number("count", static_cast<std::int64_t>(waits.count));
  writer.number("sum_ms", static_cast<std::int64_t>(waits.sum_ms));
  json::ObjectWriter bounds(writer.open("up_to_ms"));
  for (const auto& [ms, jobs] : waits.up_to_ms)
    bounds.number(std::to_string(ms), static_cast<std::int64_t>(jobs));
  bounds.close();
  writer.close();
}

}  // namespace

std::vector<LevelWaits> Observer::waits() const {
  const engine::Store& store = segment_.attachment()->store();
  std::vector<LevelWaits> levels;
  for (const auto& [level, histograms] : engine::read_waits(store)) {
    LevelWaits waits;
    waits.queue = store.queue_name(level.first);
    waits.priority = engine::priority_of(store.convention(), level.second);
    waits.from_enqueue = to_histogram(histograms.from_enqueue);
    waits.from_available = to_histogram(histograms.from_available);
    waits.runs = to_histogram(histograms.runs);
    // A page that was taken, and whose owner has counted nothing yet or died before it could.
    if (waits.from_enqueue.count + waits.from_available.count + waits.runs.count == 0) continue;
    levels.push_back(std::move(waits));
  }
  return levels;
}

std::string print_waits(const std::vector<LevelWaits>& waits) {
  std::string out = "[";
  for (const LevelWaits& level : waits) {
    if (out.size() > 1) out += ',';
    json::ObjectWriter writer(out);
    writer.text("queue", level.queue);
    writer.number("priority", level.priority);
    print_histogram(writer.open("from_enqueue"), level.from_enqueue);
    print_histogram(writer.open("from_available"), level.from_available);
    print_histogram(writer.open("runs"), level.runs);
    writer.close();
  }
  return out + "]";
}

}  // namespace ojs_shm
