// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/roster_watch.hpp"

#include <algorithm>
#include <random>

#include "engine/uuid.hpp"
#include "tools/gateway/json_text.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

template <class WriteData>
WorkerEvent event_of(std::string_view type, const std::string& worker, const std::string& source,
                     std::uint64_t now_ms, WriteData write_data) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  WorkerEvent event;
  event.id = "evt_" + engine::to_string(
                          {now_ms << 16 | 0x7000 | (random() & 0xFFF), 1ULL << 63 | random() >> 2});
  event.type = type;
  event.worker = worker;
  event.json = object([&](json::ObjectWriter& writer) {
    writer.text("specversion", "1.0");
    writer.text("id", event.id);
    writer.text("type", type);
    writer.text("source", source);
    writer.text("time", print_timestamp(now_ms));
    writer.text("subject", worker);
    json::ObjectWriter data(writer.open("data"));
    data.text("worker_id", worker);
    write_data(data);
    data.close();
  });
  return event;
}

}  // namespace

std::vector<WorkerEvent> RosterWatch::look(const std::vector<RegisteredWorker>& workers,
                                           const std::string& source, std::uint64_t now_ms) {
  std::vector<WorkerEvent> events;
  const auto stopped = [&](const std::string& id, const Seen& seen, std::string_view reason) {
    events.push_back(event_of("worker.stopped", id, source, now_ms, [&](json::ObjectWriter& data) {
      data.text("reason", reason);
      data.number("uptime_ms",
                  static_cast<std::int64_t>(now_ms - std::min(now_ms, seen.registered_at_ms)));
    }));
  };
  std::map<std::string, Seen> there;
  for (const RegisteredWorker& worker : workers) {
    const auto before = seen_.find(worker.id);
    const bool anew = before == seen_.end() || before->second.ended ||
                      before->second.registered_at_ms != worker.registered_at_ms;
    const Seen now{worker.registered_at_ms, worker.takes_jobs(), worker.ended};
    there[worker.id] = now;
    if (anew && !worker.ended)
      events.push_back(
          event_of("worker.started", worker.id, source, now_ms, [&](json::ObjectWriter& data) {
            data.value("queues", array_of(worker.queues, quoted));
            data.number("concurrency", std::int64_t{worker.concurrency});
          }));
    if (!worker.ended && !now.takes_jobs && (anew || before->second.takes_jobs))
      events.push_back(
          event_of("worker.quiet", worker.id, source, now_ms, [&](json::ObjectWriter& data) {
            data.number("active_jobs", std::int64_t{worker.active_jobs});
          }));
    // Of one that fell silent the segment tells worker.lost.
    if (!anew && worker.ended && worker.died) stopped(worker.id, now, "error");
  }
  for (const auto& [id, seen] : seen_)
    if (!seen.ended && !there.contains(id)) stopped(id, seen, "shutdown");
  seen_ = std::move(there);
  if (!looked_) events.clear();
  looked_ = true;
  return events;
}

}  // namespace ojs_shm::gateway
