// SPDX-License-Identifier: Apache-2.0
#include <langinfo.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "tools/shell/exit_code.hpp"
#include "tools/shell/meant_flag.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/target.hpp"
#include "tools/top/options.hpp"

namespace ojs_shm::top {

Observer open_observer(const Options& options) {
  if (options.post_mortem.empty()) return shell::must(Observer::attach(options.where));
  return shell::must(Observer::attach(shell::must(Segment::examine(options.post_mortem))));
}

namespace {

/// The widths of characters, and the bars, need UTF-8.
void choose_locale() {
  std::setlocale(LC_ALL, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
  std::setlocale(LC_NUMERIC, "C");
}

void add_options(CLI::App& app, Options& options, std::string& view, std::string& interval) {
  CLI::Option* name = shell::add_target_options(app, options.where);
  app.add_option("--post-mortem", options.post_mortem,
                 "Look at this copy of a segment's file instead: what stood there when it was made")
      ->type_name("FILE")
      ->excludes(name);
  auto* once = app.add_flag("--once", options.once, "Print one look and end");
  app.add_flag("--batch", options.batch, "Print a look after each interval, for scripts")
      ->excludes(once);
  app.add_flag("--json", options.json, "Print each look as one JSON object");
  auto* admin = app.add_flag("--admin", options.admin,
                             "Let keys change something: pause, resume, retry, drop, cancel, "
                             "re-prioritise, repair; each after a question");
  admin->excludes(once)->excludes("--post-mortem");
  app.add_flag("--no-color", options.no_color, "No colors; so does NO_COLOR in the environment");
  app.add_option("-n,--samples", options.samples, "With --batch or --json: so many looks")
      ->type_name("N");
  app.add_option("-d,--interval", interval, "Time between two looks [1s]")->type_name("TIME");
  app.add_option("--view", view,
                 "Begin with, or print: queues, workers, pools, tenants, limits, jobs, events, "
                 "counters, past, workflows, crons [queues]")
      ->type_name("VIEW");
  app.add_option("--queue", options.subject.queue, "Jobs and tenants of this queue alone")
      ->type_name("QUEUE");
}

void read(Options& options, const std::string& view, const std::string& interval) {
  if (!interval.empty()) options.interval_ms = shell::must(shell::parse_duration_ms(interval));
  if (options.interval_ms < 10 || options.interval_ms > 3'600'000)
    shell::refuse(Code::kInvalid, "--interval is a time from 10ms to 1h");
  if (view.empty()) return;
  const auto found = view_by_name(view);
  if (!found)
    shell::refuse(Code::kInvalid, fmt::format("there is no view \"{}\"; --help lists them", view));
  options.view = *found;
}

int run(int argc, char** argv) {
  Options options;
  std::string view, interval;
  CLI::App app(
      "Shows what happens in an ojs-shm segment. It maps the segment read-only, takes no handle "
      "and slows "
      "no process down; with --admin, keys may change something.",
      "ojs-shm-top");
  app.set_version_flag("-V,--version", shell::version_text("ojs-shm-top"),
                       "Print the version and the segment format");
  app.footer("\n" + shell::exit_code_help());
  add_options(app, options, view, interval);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    return shell::report(shell::invalid(fmt::format("ojs-shm-top: {}{}; see --help", problem.what(),
                                                    shell::meant_flag(app))),
                         options.json);
  }
  try {
    read(options, view, interval);
    const bool prints = options.once || options.batch || options.json;
    return prints ? print_samples(options) : watch(options);
  } catch (const shell::Refusal& refusal) {
    return shell::report(refusal.error, options.json);
  }
}

}  // namespace
}  // namespace ojs_shm::top

int main(int argc, char** argv) {
  ojs_shm::shell::fill_closed_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  ojs_shm::top::choose_locale();
  try {
    return ojs_shm::top::run(argc, argv);
  } catch (const std::exception& problem) {
    ojs_shm::shell::say("ojs-shm-top: {}\n", problem.what());
    return ojs_shm::shell::kExitFailed;
  }
}
