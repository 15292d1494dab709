// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/App.hpp>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/exit_code.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/maintenance_text.hpp"
#include "worker_api/json/time_text.hpp"

// Maintenance of the segment: no process gets a job while it is on.

namespace ojs_shm::cli {
namespace {

using shell::must;

struct MaintenanceOptions {
  std::string reason, duration;
};

int show(const Request& request, const MaintenanceOptions&) {
  const Maintenance maintenance = must(Observer::attach(request.where)).maintenance();
  if (request.json)
    print_line(print_maintenance(maintenance));
  else if (!maintenance.enabled)
    fmt::print("off\n");
  else
    fmt::print("on since {}{}{}{}\n", print_timestamp(maintenance.since_ms),
               maintenance.estimated_end_ms == 0
                   ? ""
                   : ", until about " + print_timestamp(maintenance.estimated_end_ms),
               maintenance.reason.empty() ? "" : ": ", shell::printable(maintenance.reason));
  return shell::kExitOk;
}

int turn(const Request& request, bool on, const MaintenanceOptions& options) {
  std::uint64_t end_ms = 0;
  if (!options.duration.empty())
    end_ms = shell::unix_now_ms() + must(shell::parse_duration_ms(options.duration));
  must(must(Admin::attach(request.where)).set_maintenance(on, options.reason, end_ms));
  if (request.json) return show(request, {});
  shell::inform(on ? "no job is handed out until `ojs-shm maintenance off`"
                   : "jobs are handed out again");
  return shell::kExitOk;
}

int turn_on(const Request& request, const MaintenanceOptions& options) {
  return turn(request, true, options);
}
int turn_off(const Request& request, const MaintenanceOptions&) { return turn(request, false, {}); }

}  // namespace

void add_maintenance_commands(CLI::App& app, Request& request) {
  CLI::App* maintenance =
      app.add_subcommand("maintenance", "Hand out no job of any queue for a while; enqueues go on");
  maintenance->require_subcommand(1);
  maintenance->fallthrough();
  set_footer(*maintenance);
  const auto [on, options] = add_command<MaintenanceOptions>(
      *maintenance, request, "on", "From now on, for every process of the segment", &turn_on);
  on->add_option("--estimated-duration", options->duration,
                 "How long it will take, as far as is known; it is told, and ends nothing")
      ->type_name("TIME");
  on->add_option("--reason", options->reason, "Why, for those who look")->type_name("TEXT");
  add_command<MaintenanceOptions>(*maintenance, request, "off", "Hand out jobs again", &turn_off);
  add_command<MaintenanceOptions>(*maintenance, request, "show", "Whether it is on, and why",
                                  &show);
}

}  // namespace ojs_shm::cli
