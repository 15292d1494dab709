// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/cli/command.hpp"
#include "tools/cli/health.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/exit_code.hpp"
#include "tools/shell/table.hpp"
#include "tools/shell/target.hpp"

namespace ojs_shm::cli {
namespace {

struct DoctorOptions {
  const CLI::Option* name = nullptr;
};

int doctor(const Request& request, const DoctorOptions& options) {
  std::vector<Finding> findings;
  findings.push_back({"program", Verdict::kOk, shell::version_text("ojs-shm"), ""});
  check_machine(request.where, findings);
  const bool one = options.name->count() != 0 || std::getenv("OJS_SHM_NAME") != nullptr;
  check_files(request.where, one, findings);
  check_segment(request.where, findings);

  shell::Table table({"CHECK", "VERDICT!", "SEEN", "WHAT TO DO"});
  for (const Finding& finding : findings) {
    if (request.json) {
      print_line(object([&](json::ObjectWriter& writer) {
        writer.text("check", finding.check);
        writer.text("verdict", verdict_name(finding.verdict));
        writer.text("seen", finding.text);
        if (!finding.advice.empty()) writer.text("advice", finding.advice);
      }));
    } else {
      table.row({finding.check, std::string(verdict_name(finding.verdict)), finding.text,
                 finding.advice});
    }
  }
  if (!table.empty()) table.print();
  const bool problem = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict == Verdict::kProblem;
  });
  return problem ? shell::kExitFailed : shell::kExitOk;
}

}  // namespace

void add_doctor_command(CLI::App& app, Request& request) {
  const auto [command, options] = add_command<DoctorOptions>(
      app, request, "doctor",
      "Check memory, limits, permissions, versions, files, pools and queues, and say what to do;\n"
      "status 1 when there is a problem. With a name it looks at the files of that segment alone",
      &doctor);
  options->name = app.get_option("--name");
}

}  // namespace ojs_shm::cli
