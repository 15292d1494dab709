// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <deque>
#include <exception>
#include <string>

#include "tools/broker/config_file.hpp"
#include "tools/broker/service.hpp"
#include "tools/broker/settings.hpp"
#include "tools/broker/signals.hpp"
#include "tools/shell/meant_flag.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/service.hpp"
#include "tools/shell/target.hpp"

namespace {

using namespace ojs_shm;

/// A flag that was given, to be applied after the file.
struct Given {
  const broker::Setting* setting = nullptr;
  CLI::Option* option = nullptr;
  std::string text;
};

std::string footer() {
  return "\nSIGTERM and SIGINT stop the broker. A segment with unfinished jobs, dead letters or "
         "crons is kept, and the next\n"
         "broker of its name goes on with them; an empty one is removed, unless --keep is given or "
         "other processes "
         "are\n"
         "attached; --remove removes it whatever it holds. SIGHUP reads the configuration again "
         "and ends nothing.\n"
         "Jobs go on between producers and workers while no broker runs.\n\n"
         "FILE\n"
         "  The same names with _ for -, then tables:\n"
         "    max_queues = 16\n"
         "    [queues.mail]              # paused, backpressure, aging, level_weights, shards, "
         "tenant_fairness, retention\n"
         "    backpressure = { max_depth = 10000, max_size_bytes = \"8M\" }\n"
         "    level_weights = { critical = 5, \"*\" = 1 }\n"
         "    shards = 1\n"
         "    [aging]                    # of queues without their own: enabled, preset, interval, "
         "rate, cap or floor\n"
         "    enabled = false\n"
         "    [worker]                   # the same in the words of qo: priority_aging, "
         "priority_age_rate,\n"
         "    priority_aging = false     # priority_age_cap\n"
         "    [pools.web]                # queues, strategy, weights, concurrency, isolated, "
         "starvation_prevention\n"
         "    queues = [\"mail\"]\n"
         "    [crons.nightly]            # timezone, overlap_policy, enabled, job_template as "
         "well: "
         "docs/cron.md\n"
         "    expression = \"30 4 * * *\"\n"
         "    type = \"report.night\"\n"
         "    [limits.\"queue:mail\"]      # concurrency, rate, throttle, on_limit\n"
         "    concurrency = 20\n"
         "    [default_priorities]\n"
         "    \"email.send\" = \"high\"\n"
         "  See docs/operations.md for all of their members.\n\n" +
         shell::exit_code_help() +
         "\nEXAMPLE\n  ojs-shm-broker --name mail --size 64M --config mail.toml\n";
}

int run(int argc, char** argv) {
  CLI::App app(
      "Makes a shared-memory segment for Open Job Spec jobs and supervises it: timers, retries, "
      "leases, and\n"
      "repair after processes that died. Prints READY name=N on stdout when programs may attach.",
      "ojs-shm-broker");
  app.set_version_flag("-V,--version", shell::version_text("ojs-shm-broker"),
                       "Print the version and the segment format");
  app.footer(footer());
  SegmentName where;
  auto* name = shell::add_target_options(app, where);
  auto* dir = app.get_option("--dir");
  std::string config;
  app.add_option("--config", config, "A TOML file with the same settings; flags win over it")
      ->type_name("F.toml");
  std::deque<Given> flags;
  for (const auto& setting : broker::all_settings()) {
    Given& given = flags.emplace_back();
    given.setting = &setting;
    const std::string help(setting.help);
    if (setting.value.empty()) {
      given.text = "true";
      given.option = app.add_flag(broker::flag_of(setting), help);
    } else {
      given.option = app.add_option(broker::flag_of(setting), given.text, help);
      given.option->type_name(std::string(setting.value));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    shell::say("ojs-shm-broker: {}{}; see --help\n", problem.what(), shell::meant_flag(app));
    return shell::kExitUsage;
  }

  broker::hold_signals();
  return broker::serve([&] {
    broker::Settings settings;
    settings.where = where;
    if (!config.empty()) shell::must(broker::read_config_file(config, settings));
    if (name->count() != 0) settings.where.name = where.name;
    if (dir->count() != 0) settings.where.dir = where.dir;
    // one of these two in the file, the other as a flag: the flag wins
    for (const Given& given : flags)
      if (given.option->count() != 0 &&
          (given.setting->name == "keep" || given.setting->name == "remove"))
        settings.keep = settings.remove = false;
    for (const Given& given : flags) {
      if (given.option->count() == 0) continue;
      const Status set = given.setting->set(settings, given.text);
      if (!set)
        shell::refuse(set.code(),
                      fmt::format("{}: {}", broker::flag_of(*given.setting), set.error().message));
    }
    return settings;
  });
}

}  // namespace

int main(int argc, char** argv) {
  return shell::run_service("ojs-shm-broker", [&] { return run(argc, argv); });
}
