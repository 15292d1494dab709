// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/priorities.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "tools/shell/text_file.hpp"
#include "tools/shell/unknown_members.hpp"
#include "worker_api/json/cron_change.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

std::string time_or_dash(std::uint64_t ms) { return ms == 0 ? "-" : print_timestamp(ms); }

struct CronListOptions {};

int list_crons(const Request& request, const CronListOptions&) {
  const Observer observer = must(Observer::attach(request.where));
  shell::Table table({"NAME", "STATE!", "WHEN", "ZONE", "NEXT", "LAST", "RUNS>", "SKIPPED>", "TYPE",
                      "QUEUE", "OVERLAP"});
  for (const CronInfo& cron : observer.crons()) {
    if (request.json) {
      print_line(print_cron(cron));
      continue;
    }
    table.row({cron.name, cron.enabled ? "enabled" : "paused", cron.expression, cron.timezone,
               time_or_dash(cron.enabled ? cron.next_run_at_ms : 0),
               time_or_dash(cron.last_run_at_ms), std::to_string(cron.run_count),
               std::to_string(cron.skipped_count), cron.job.type, cron.job.queue,
               std::string(cron_overlap_name(cron.overlap))});
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

struct CronNameOptions {
  std::string name;
};

void show_cron(const Request& request, const CronInfo& cron) {
  if (request.json)
    print_line(print_cron(cron));
  else
    print_members(print_cron(cron));
}

int get_cron(const Request& request, const CronNameOptions& options) {
  show_cron(request, must(must(Observer::attach(request.where)).cron(options.name)));
  return shell::kExitOk;
}

struct CronSetOptions {
  std::string name, expression;
  std::optional<std::string> type, input, timezone, overlap, queue, priority, description, file;
  bool paused = false, resumed = false, strict = false;
};

/// What the flags say, as a client of HTTP would write it.
std::string changes_of(const Observer& observer, const CronSetOptions& options) {
  return object([&](json::ObjectWriter& writer) {
    if (!options.expression.empty()) writer.text("expression", options.expression);
    if (options.timezone) writer.text("timezone", *options.timezone);
    if (options.overlap) writer.text("overlap_policy", *options.overlap);
    if (options.description) writer.text("description", *options.description);
    if (options.paused || options.resumed) writer.boolean("enabled", options.resumed);
    if (options.type) writer.text("type", *options.type);
    if (options.input) writer.value("args", must(args_of_input(*options.input)));
    if (options.queue) writer.text("queue", *options.queue);
    if (options.priority) writer.number("priority", parse_priority(observer, *options.priority));
  });
}

/// Refused when strict, else told of; most are misspelt.
void judge_unknown(const CronText& cron, bool strict) {
  if (strict) must(shell::refuse_unknown(shell::Document::kCron, cron.unknown));
  std::vector<std::string> told;
  for (const std::string& name : cron.unknown)
    told.push_back(shell::told_member(shell::Document::kCron, name));
  if (!told.empty())
    shell::say("warning: members that mean nothing here and stay with the cron's jobs: {}\n",
               fmt::join(told, "; "));
}

int set_cron(const Request& request, const CronSetOptions& options) {
  Admin admin = must(Admin::attach(request.where));
  const Observer observer = must(Observer::attach(request.where));
  const bool flags = !options.expression.empty() || options.type || options.input ||
                     options.timezone || options.overlap || options.queue || options.priority ||
                     options.description || options.paused || options.resumed;
  if (options.file && flags)
    shell::refuse(Code::kInvalid, "--file says all of it; leave the other flags out");
  if (!options.file && !flags)
    shell::refuse(Code::kInvalid, "say what to set: EXPRESSION and --type, or a flag of --help");

  const auto known = observer.cron(options.name);
  const std::string text =
      options.file ? number_priorities(observer, must(shell::read_text_input(*options.file)))
                   : changes_of(observer, options);
  const auto cron =
      must(known && !options.file ? parse_cron_changes(*known, text, shell::unix_now_ms())
                                  : parse_cron(text, shell::unix_now_ms(), options.name));
  judge_unknown(*cron, options.strict || observer.segment_settings().strict_envelopes);
  must(admin.set_cron(cron->spec));
  const CronInfo made = must(observer.cron(options.name));
  if (request.json)
    print_line(print_cron(made));
  else
    shell::inform("{} fires {}", made.name,
                  made.next_run_at_ms == 0 ? std::string("at no time")
                                           : "next at " + print_timestamp(made.next_run_at_ms));
  return shell::kExitOk;
}

int remove_cron(const Request& request, const CronNameOptions& options) {
  must(must(Admin::attach(request.where)).remove_cron(options.name));
  told(request, "{} is removed; its jobs stay", options.name);
  return shell::kExitOk;
}

int enable_cron(const Request& request, const std::string& name, bool enabled) {
  must(must(Admin::attach(request.where)).enable_cron(name, enabled));
  const CronInfo cron = must(must(Observer::attach(request.where)).cron(name));
  told(request, "{}",
       enabled ? fmt::format("{} fires next at {}", name, time_or_dash(cron.next_run_at_ms))
               : fmt::format("{} fires at no time until it is resumed", name));
  return shell::kExitOk;
}
int pause_cron(const Request& request, const CronNameOptions& options) {
  return enable_cron(request, options.name, false);
}
int resume_cron(const Request& request, const CronNameOptions& options) {
  return enable_cron(request, options.name, true);
}

int trigger_cron(const Request& request, const CronNameOptions& options) {
  const std::string id = must(must(Admin::attach(request.where)).trigger_cron(options.name)).str();
  print_line(request.json ? object([&](json::ObjectWriter& writer) { writer.text("job_id", id); })
                          : id);
  return shell::kExitOk;
}

struct CronNextOptions {
  std::string cron;
  std::optional<std::string> timezone, after;
  std::size_t times = 5;
};

/// A name has neither spaces nor an @, and an expression has one of them.
bool is_expression(const std::string& text) {
  return text.find_first_of(" @") != std::string::npos;
}

int next_times(const Request& request, const CronNextOptions& options) {
  std::string expression = options.cron, timezone = options.timezone.value_or("UTC");
  std::uint64_t after = shell::unix_now_ms();
  if (options.after) {
    const ParsedMs parsed = parse_time(*options.after, static_cast<std::int64_t>(after));
    if (!parsed || parsed.ms < 0)
      shell::refuse(Code::kInvalid,
                    fmt::format("--after {}; such as 2026-03-29T00:00:00Z, or +PT2H",
                                parsed ? "must not be before 1970" : text_of(parsed.fault)));
    after = static_cast<std::uint64_t>(parsed.ms);
  }
  if (!is_expression(options.cron)) {
    const CronInfo cron = must(must(Observer::attach(request.where)).cron(options.cron));
    expression = cron.expression;
    if (!options.timezone) timezone = cron.timezone;
  }
  for (const std::uint64_t time : must(cron_times(expression, timezone, after, options.times)))
    print_line(request.json ? '"' + print_timestamp(time) + '"' : print_timestamp(time));
  return shell::kExitOk;
}

void add_named(CLI::App& cron, Request& request, const char* name, const char* description,
               int (*run)(const Request&, const CronNameOptions&)) {
  const auto [command, options] =
      add_command<CronNameOptions>(cron, request, name, description, run);
  command->add_option("NAME", options->name, "The cron")->required();
}

}  // namespace

void add_cron_commands(CLI::App& app, Request& request) {
  CLI::App* cron = app.add_subcommand("cron", "Jobs that are enqueued again and again");
  cron->require_subcommand(1);
  cron->fallthrough();
  set_footer(*cron);
  add_command<CronListOptions>(*cron, request, "list", "All crons with their times", &list_crons);
  add_named(*cron, request, "get", "One cron", &get_cron);
  add_named(*cron, request, "rm", "Remove one; its jobs stay", &remove_cron);
  add_named(*cron, request, "pause", "Fire at no time until it is resumed", &pause_cron);
  add_named(*cron, request, "resume", "Fire at the next time again", &resume_cron);
  add_named(*cron, request, "trigger", "Enqueue its job now and print the id", &trigger_cron);

  const auto [set, options] = add_command<CronSetOptions>(
      *cron, request, "set", "Make a cron, or change what the flags say of the one of that name",
      &set_cron);
  set->add_option("CRON", options->name, "Its name")->required();
  set->add_option("EXPRESSION", options->expression,
                  "When: \"0 9 * * MON-FRI\", @hourly, \"@every 90s\"; docs/cron.md");
  set->add_option("--type", options->type, "Type of its jobs")->type_name("TYPE");
  set->add_option("-i,--input", options->input, "Their args: a JSON array, or the only one")
      ->type_name("JSON");
  set->add_option("--timezone", options->timezone, "IANA name, such as Europe/Berlin [UTC]")
      ->type_name("ZONE");
  set->add_option("--overlap", options->overlap,
                  "skip, enqueue, allow or cancel_previous, while its last job goes on [skip]")
      ->type_name("WHAT");
  set->add_option("--queue", options->queue, "Where its jobs go [default]")->type_name("NAME");
  set->add_option("--priority", options->priority, "Of its jobs, a number or a name")
      ->type_name("P");
  set->add_option("--description", options->description, "For readers")->type_name("TEXT");
  set->add_option("--file", options->file,
                  "All of it as JSON, as over HTTP; - is stdin; replaces the one of that name")
      ->type_name("FILE");
  set->add_flag("--strict", options->strict,
                "Refuse members that mean nothing, which most often are misspelt");
  auto* paused = set->add_flag("--paused", options->paused, "Fire at no time until it is resumed");
  set->add_flag("--enabled", options->resumed, "Fire at its times")->excludes(paused);

  const auto [next, next_options] = add_command<CronNextOptions>(
      *cron, request, "next", "When a cron, or an expression, fires next", &next_times);
  next->add_option("CRON", next_options->cron, "A cron's name, or an expression")->required();
  next->add_option("--timezone", next_options->timezone, "IANA name, such as Europe/Berlin [UTC]")
      ->type_name("ZONE");
  next->add_option("--times", next_options->times, "How many [5]")
      ->type_name("N")
      ->check(kNotNegative);
  next->add_option("--after", next_options->after,
                   "From then on, such as 2026-03-29T00:00:00Z [now]")
      ->type_name("TIME");
}

}  // namespace ojs_shm::cli
