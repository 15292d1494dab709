// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/each.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct ListOptions {
  std::string queue, type;
  std::size_t limit = 0;
};

JobFilter filter_of(const ListOptions& options) {
  JobFilter filter;
  filter.queue = options.queue;
  filter.type = options.type;
  filter.limit = options.limit;
  filter.dead_letter = true;
  return filter;
}

int list(const Request& request, const ListOptions& options) {
  print_jobs(must(Observer::attach(request.where)).list(filter_of(options)), request.json);
  return shell::kExitOk;
}

struct PickOptions {
  std::vector<std::string> ids;
  bool all = false;
};

int for_each_picked(const Request& request, const PickOptions& options, Status (Admin::*action)(std::string_view)) {
  if (options.all != options.ids.empty()) shell::refuse(Code::kInvalid, "give either job ids or --all");
  Admin admin = must(Admin::attach(request.where));
  std::vector<std::string> ids = options.ids;
  if (options.all) {
    for (const JobInfo& job : must(Observer::attach(admin.segment())).list(filter_of({}))) ids.push_back(job.id);
  }
  return for_each_id(ids, request.json, [&](const std::string& id) -> Status {
    const Status done = (admin.*action)(id);
    if (done && request.json) print_line(object([&](json::ObjectWriter& writer) { writer.text("id", id); }));
    return done;
  });
}

int retry(const Request& request, const PickOptions& options) {
  return for_each_picked(request, options, &Admin::retry_dead);
}
int drop(const Request& request, const PickOptions& options) {
  return for_each_picked(request, options, &Admin::drop_dead);
}

void add_pick(CLI::App& dead, Request& request, const char* name, const char* description,
              int (*run)(const Request&, const PickOptions&)) {
  const auto [command, options] = add_command<PickOptions>(dead, request, name, description, run);
  command->add_option("ID", options->ids, "The dead letters");
  command->add_flag("--all", options->all, "Every one of them");
}

}  // namespace

void add_dead_commands(CLI::App& app, Request& request) {
  CLI::App* dead = app.add_subcommand("dead", "Dead letters: jobs that failed for good and were kept");
  dead->require_subcommand(1);
  dead->fallthrough();
  set_footer(*dead);
  const auto [all, options] = add_command<ListOptions>(*dead, request, "list", "List them", &list);
  all->add_option("--queue", options->queue, "Only of this queue")->type_name("Q");
  all->add_option("--type", options->type, "Only of this type")->type_name("T");
  all->add_option("--limit", options->limit, "At most so many (0: all)")->type_name("N")->check(kNotNegative);
  add_pick(*dead, request, "retry", "Make them available again, with attempt 0", &retry);
  add_pick(*dead, request, "drop", "Remove them", &drop);
}

}  // namespace ojs_shm::cli
