// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <vector>

#include <ojs_shm/admin.hpp>

#include "tools/cli/bulk.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/each.hpp"
#include "tools/cli/filter.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/known_id.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/retention_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct DeadListOptions {
  FilterFlags filter;
};

int list(const Request& request, const DeadListOptions& options) {
  const Observer observer = must(Observer::attach(request.where));
  JobFilter filter = filter_of(options.filter, observer);
  filter.dead_letter = true;
  print_jobs(observer.list(filter), request.json);
  return shell::kExitOk;
}

struct PickOptions {
  std::vector<std::string> ids;
  FilterFlags filter;
  bool all = false, yes = false;
};

int for_each_picked(const Request& request, const PickOptions& options,
                    Status (Admin::*action)(std::string_view), BulkAction bulk,
                    const BulkWords& words) {
  const bool many = options.all || options.filter.chosen();
  if (many != options.ids.empty())
    shell::refuse(
        Code::kInvalid,
        "give job ids, or choose dead letters by --all, --queue, --type, --tenant, --priority, "
        "--older-than, --ended-ago or --error-type");
  Admin admin = must(Admin::attach(request.where));
  if (many) {
    const JobFilter filter = filter_of(options.filter, must(Observer::attach(admin.segment())));
    return run_bulk(request, admin, bulk, filter, words, options.yes);
  }
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const Status done = (admin.*action)(id);
    if (!done) return done;
    if (request.json)
      print_line(object([&](json::ObjectWriter& writer) { writer.text("id", id); }));
    else
      shell::inform("{} {}", id, words.participle);
    return done;
  });
}

int retry(const Request& request, const PickOptions& options) {
  return for_each_picked(request, options, &Admin::retry_dead, BulkAction::kRetryDead,
                         {"retry", "available again", "dead letter"});
}
int drop(const Request& request, const PickOptions& options) {
  return for_each_picked(request, options, &Admin::drop_dead, BulkAction::kDropDead,
                         {"drop", "dropped", "dead letter"});
}

struct RetentionOptions {
  std::string max_age;
  std::optional<std::uint64_t> max_count;
};

int retention(const Request& request, const RetentionOptions& options) {
  DeadLetterRetention wanted{.max_count = options.max_count};
  if (!options.max_age.empty()) wanted.max_age_ms = must(shell::parse_duration_ms(options.max_age));
  if (wanted.max_age_ms || wanted.max_count)
    must(must(Admin::attach(request.where)).set_dead_retention(wanted));
  const SegmentInfo info = must(Observer::attach(request.where)).segment_settings();
  const std::string shown = print_dead_retention(info);
  if (!request.json && (wanted.max_age_ms || wanted.max_count)) {
    shell::inform("dead letters are kept as set; `dead retention` shows how");
    return shell::kExitOk;
  }
  request.json ? print_line(shown) : print_members(shown);
  return shell::kExitOk;
}

void add_pick(CLI::App& dead, Request& request, const char* name, const char* description,
              int (*run)(const Request&, const PickOptions&)) {
  const auto [command, options] = add_command<PickOptions>(dead, request, name, description, run);
  command->add_option("ID", options->ids, "The dead letters")->transform(shell::known_id);
  command->add_flag("--all", options->all, "Every one of them");
  add_filter(*command, options->filter);
  command->add_flag("-y,--yes", options->yes, "Do not ask");
}

}  // namespace

void add_dead_commands(CLI::App& app, Request& request) {
  CLI::App* dead =
      app.add_subcommand("dead", "Dead letters: jobs that failed for good and were kept");
  dead->require_subcommand(1);
  dead->fallthrough();
  set_footer(*dead);
  const auto [all, options] =
      add_command<DeadListOptions>(*dead, request, "list", "List them", &list);
  add_filter(*all, options->filter);
  add_pick(*dead, request, "retry", "Make them available again, with attempt 0", &retry);
  add_pick(*dead, request, "drop", "Remove them", &drop);
  const auto [kept, kept_options] = add_command<RetentionOptions>(
      *dead, request, "retention", "Show or set how long they are kept, and how many", &retention);
  kept->add_option("--max-age", kept_options->max_age,
                   "Drop those that were discarded so long ago, such as 180d; 0: at no age")
      ->type_name("TIME");
  kept->add_option("--max-count", kept_options->max_count,
                   "Keep so many, the youngest; 0: as many as the segment holds")
      ->type_name("N")
      ->check(kNotNegative);
}

}  // namespace ojs_shm::cli
