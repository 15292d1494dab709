// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/priorities.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/cli/view.hpp"
#include "tools/shell/exit_code.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::cli {
namespace {

// In these stand jobs, or options of jobs. What is in args, meta and unknown members is the
// client's.
constexpr std::array<std::string_view, 9> kHoldJobs = {
    "steps", "jobs", "callbacks", "options", "chain", "group", "batch", "workflow", "job_template"};

void append_numbered(const Observer& observer, std::string_view json, std::string_view of,
                     std::string& out) {
  if (json::kind_of(json) == json::Kind::kArray) {
    const char* separator = "[";
    for (const std::string_view element : json::elements_of(json)) {
      out += separator;
      append_numbered(observer, element, "", out);
      separator = ",";
    }
    out += *separator == '[' ? "[]" : "]";
  } else if (json::kind_of(json) == json::Kind::kObject) {
    json::ObjectWriter writer(out);
    for (const json::Member& member : json::members_of(json)) {
      const auto name = member.name == "priority" ? json::string_of(member.value) : std::nullopt;
      if (name) {
        writer.number("priority", shell::must(observer.priority_by_name(*name)));
      } else if (of == "callbacks" ||  // these have names of their own
                 std::ranges::find(kHoldJobs, member.name) != kHoldJobs.end()) {
        append_numbered(observer, member.value, member.name, writer.open(member.name));
      } else {
        writer.value(member.name, member.value);
      }
    }
    writer.close();
  } else {
    json::append_compact(out, json);
  }
}

}  // namespace

std::string number_priorities(const Observer& observer, const std::string& json) {
  if (!json::check(json)) return json;
  std::string numbered;
  append_numbered(observer, json::trim(json), "", numbered);
  return numbered;
}

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
