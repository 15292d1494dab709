// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/priorities.hpp"

#include "tools/cli/view.hpp"
#include "tools/shell/exit_code.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"

namespace ojs_shm::cli {

int print_priorities(const Observer& observer, const std::string& queue, bool as_json) {
  std::vector<QueueInfo> queues;
  if (queue.empty())
    queues = observer.queues();
  else
    queues.push_back(shell::must(observer.queue(queue)));
  shell::Table table({"QUEUE", "PRIORITY>", "AVAILABLE>"});
  for (const QueueInfo& each : queues) {
    std::uint64_t total = 0;
    for (const auto& [priority, jobs] : each.available_by_priority) {
      total += jobs;
      table.row({each.name, std::to_string(priority), std::to_string(jobs)});
    }
    if (!as_json) continue;
    print_line(object([&](json::ObjectWriter& writer) {
      writer.text("queue", each.name);
      writer.open("counts_by_priority") += object([&](json::ObjectWriter& counts) {
        for (const auto& [priority, jobs] : each.available_by_priority)
          count(counts, std::to_string(priority), jobs);
      });
      count(writer, "total", total);
    }));
  }
  if (!as_json) table.print();
  return shell::kExitOk;
}

}  // namespace ojs_shm::cli
