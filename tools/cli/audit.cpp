// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <string>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct AuditOptions {
  bool mend = false, recent = false;
  std::size_t limit = 1000;
  std::string post_mortem;
};

/// The flight recorder, merged by time.
int print_recent(const Request& request, const Observer& observer, std::size_t limit) {
  shell::Table table({"TIME", "HANDLE>", "PID>", "JOB", "QUEUE", "FROM", "TO"});
  for (const Transition& each : observer.recent(limit)) {
    if (request.json) {
      print_line(print_transition(each));
      continue;
    }
    table.row({print_timestamp(each.time_ms), std::to_string(each.handle),
               each.pid == 0 ? "-" : std::to_string(each.pid),
               each.job.empty() ? fmt::format("(slot {}, used again)", each.slot) : each.job,
               each.queue.empty() ? "-" : each.queue, each.from, each.to});
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

int audit(const Request& request, const AuditOptions& options) {
  if (!options.post_mortem.empty()) {
    const Segment copy = must(Segment::examine(options.post_mortem));
    return print_recent(request, must(Observer::attach(copy)), options.limit);
  }
  if (options.recent)
    return print_recent(request, must(Observer::attach(request.where)), options.limit);
  if (options.mend) {
    Admin admin = must(Admin::attach(request.where));
    const std::uint32_t deaths = must(admin.repair());
    const std::uint32_t mended = must(admin.mend());
    if (request.json) {
      print_line(object([&](json::ObjectWriter& writer) {
        count(writer, "deaths_repaired", deaths);
        count(writer, "mended", mended);
      }));
    } else {
      shell::say("repaired after {} dead processes, mended {} words\n", deaths, mended);
    }
  }
  const auto violations = must(Observer::attach(request.where)).audit();
  shell::Table table({"INVARIANT", "VIOLATION"});
  for (const Violation& violation : violations) {
    if (request.json) {
      print_line(object([&](json::ObjectWriter& writer) {
        count(writer, "invariant", violation.invariant);
        writer.text("text", violation.text);
      }));
    } else {
      table.row({fmt::format("I{}", violation.invariant), violation.text});
    }
  }
  if (!table.empty()) table.print();
  if (violations.empty()) return shell::kExitOk;
  if (!request.json)
    shell::say("{} violations; docs/invariants.md explains the numbers\n", violations.size());
  return shell::kExitFailed;
}

}  // namespace

void add_audit_command(CLI::App& app, Request& request) {
  const auto [command, options] = add_command<AuditOptions>(
      app, request, "audit",
      "Walk the whole segment and list every violated invariant; status 1 when there is one",
      &audit);
  auto* mend = command->add_flag("--mend", options->mend,
                                 "Repair after dead processes and mend what can be mended first");
  auto* recent =
      command
          ->add_flag("--recent", options->recent,
                     "Instead: the last transitions of jobs of every handle, also of dead ones")
          ->excludes(mend);
  command
      ->add_option("--post-mortem", options->post_mortem,
                   "With --recent: from this copy of a segment's file")
      ->type_name("FILE")
      ->needs(recent);
  command->add_option("--limit", options->limit, "With --recent: at most so many [1000]")
      ->type_name("N")
      ->check(kNotNegative)
      ->needs(recent);
}

}  // namespace ojs_shm::cli
