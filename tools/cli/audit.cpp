// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cstdio>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct AuditOptions {
  bool mend = false;
};

int audit(const Request& request, const AuditOptions& options) {
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
  command->add_flag("--mend", options->mend,
                    "Repair after dead processes and mend what can be mended first");
}

}  // namespace ojs_shm::cli
