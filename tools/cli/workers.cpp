// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/nearest.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct WorkerListOptions {
  std::string pool;
};

int list_workers(const Request& request, const WorkerListOptions& options) {
  shell::Table table(
      {"WORKER", "STATE", "POOL", "QUEUES", "CONCURRENCY>", "ACTIVE>", "SILENT>", "HOST", "PID>"});
  const auto dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  const auto state = [](const RegisteredWorker& worker) {
    return std::string(worker.state()) + (worker.ended ? fmt::format(" ({})", worker.end()) : "");
  };
  for (const RegisteredWorker& worker :
       must(Observer::attach(request.where)).registered_workers()) {
    if (!options.pool.empty() && worker.pool != options.pool) continue;
    if (request.json) {
      print_line(print_registered_worker(worker));
      continue;
    }
    table.row({worker.id, state(worker), dash(worker.pool),
               dash(fmt::format("{}", fmt::join(worker.queues, ","))),
               worker.concurrency == 0 ? "-" : std::to_string(worker.concurrency),
               std::to_string(worker.active_jobs), print_duration(worker.silent_ms / 1000 * 1000),
               dash(worker.hostname), worker.pid == 0 ? "-" : std::to_string(worker.pid)});
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

struct WorkerNameOptions {
  std::string id;
};

/// The error of a worker that is not there names the worker that may be meant.
void must_know(const Status& status, const Request& request, const std::string& id) {
  if (status || status.code() != Code::kNotFound) return must(status);
  Error error = status.error();
  std::vector<std::string> ids;
  for (const RegisteredWorker& worker : must(Observer::attach(request.where)).registered_workers())
    ids.push_back(worker.id);
  const std::vector<std::string_view> views(ids.begin(), ids.end());
  if (const std::string nearest = shell::nearest(id, views); !nearest.empty())
    error.message += "; did you mean '" + nearest + "'?";
  must(Status(error));
}

int get_worker(const Request& request, const WorkerNameOptions& options) {
  const auto worker = must(Observer::attach(request.where)).registered_worker(options.id);
  must_know(worker ? Status() : Status(worker.error()), request, options.id);
  const std::string shown = print_registered_worker(worker.value());
  request.json ? print_line(shown) : print_members(shown);
  return shell::kExitOk;
}

template <WorkerDirective kDirective>
int direct_worker(const Request& request, const WorkerNameOptions& options) {
  must_know(must(Admin::attach(request.where)).direct_worker(options.id, kDirective), request,
            options.id);
  told(request, "worker {} is told: {}", options.id, directive_name(kDirective));
  return shell::kExitOk;
}

int remove_worker(const Request& request, const WorkerNameOptions& options) {
  must_know(must(Admin::attach(request.where)).remove_worker(options.id), request, options.id);
  told(request, "worker {} is forgotten; its jobs stay with their leases", options.id);
  return shell::kExitOk;
}

}  // namespace

void add_workers_commands(CLI::App& app, Request& request) {
  CLI::App* workers = app.add_subcommand("workers", "List and direct registered workers");
  workers->require_subcommand(1);
  workers->fallthrough();
  set_footer(
      *workers,
      "\nA worker is registered by `work --worker-id`, by a handle with an id, or by what it tells "
      "a gateway. Its\n"
      "state is running, quiet, terminate, stale (no sign of life for 30 s, or died), or the "
      "worker's own word.\n"
      "\nEXAMPLES\n"
      "  ojs-shm work --worker-id mailer-1 --concurrency 4 -- ./send-mail\n"
      "  ojs-shm workers quiet mailer-1\n");
  const auto [list, list_options] = add_command<WorkerListOptions>(
      *workers, request, "list", "All workers, with those that ended in the last ten minutes",
      &list_workers);
  list->add_option("--pool", list_options->pool, "Only those of this pool")->type_name("NAME");
  const auto named = [&](const char* name, const char* text,
                         int (*run)(const Request&, const WorkerNameOptions&)) {
    const auto [command, options] =
        add_command<WorkerNameOptions>(*workers, request, name, text, run);
    command->add_option("ID", options->id, "The worker")->required();
  };
  named("get", "One worker", &get_worker);
  named("quiet", "Tell it to take no more jobs", &direct_worker<WorkerDirective::kQuiet>);
  named("terminate", "Tell it to finish its jobs and end",
        &direct_worker<WorkerDirective::kTerminate>);
  named("resume", "Tell it to take jobs again", &direct_worker<WorkerDirective::kRunning>);
  named("rm", "Forget it; its jobs stay with their leases", &remove_worker);
}

}  // namespace ojs_shm::cli
