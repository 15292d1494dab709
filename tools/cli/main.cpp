// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tools/cli/command.hpp"
#include "tools/shell/meant_flag.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/target.hpp"

namespace {

using namespace ojs_shm;

int report_usage(const char* message, bool json) {
  Error error;
  error.code = Code::kInvalid;
  error.message = json ? message : fmt::format("ojs-shm: {}; see --help", message);
  return shell::report(error, json);
}

/// The word that stands where a command should, also beside --help; empty when there is none.
std::string unknown_command(const CLI::App& app) {
  const CLI::App* last = &app;
  std::string path;
  for (auto chosen = last->get_subcommands(); !chosen.empty(); chosen = last->get_subcommands()) {
    last = chosen.front();
    path += last->get_name() + " ";
  }
  if (last->get_require_subcommand_min() == 0) return {};
  for (const std::string& word : app.remaining(true)) {
    if (!word.starts_with('-')) return path + word;
  }
  return {};
}

std::string meant_command(const CLI::App& app, const std::string& path) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       shell::last_chosen(app).get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return shell::meant(std::string_view(path).substr(path.rfind(' ') + 1), names);
}

/// `help`, `help CMD` and `help CMD SUB` are --help of that command.
void read_help(std::vector<std::string>& words) {
  if (words.empty() || words.front() != "help") return;
  words.erase(words.begin());
  words.emplace_back("--help");
}

/// Whether the words choose `work`, behind options that every command has. Only there `--` begins
/// what is not for this program; elsewhere it ends the flags.
bool chooses_work(const CLI::App& app, const std::vector<std::string>& words) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (!word->starts_with('-')) return *word == "work";
    const CLI::Option* option = app.get_option_no_throw(*word);
    if (option != nullptr && option->get_items_expected_max() > 0 && ++word == words.end()) break;
  }
  return false;
}

/// A command whose answer got lost has not succeeded.
int finish(int exit_code, bool json) {
  shell::note_output();  // help and version are written by the parser
  const Status flushed = shell::flush_output();
  if (flushed || exit_code != shell::kExitOk) return exit_code;
  if (flushed.code() == Code::kClosed) return shell::kExitFailed;  // `| head` has seen enough
  return shell::report(flushed.error(), json);
}

int run(std::vector<std::string> words) {
  cli::Request request;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) {
    request.after_dashes.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }

  read_help(words);
  CLI::App app(
      "Puts Open Job Spec jobs into a shared-memory segment, runs them, and looks after them.",
      "ojs-shm");
  app.set_version_flag("-V,--version", shell::version_text("ojs-shm"),
                       "Print the version and the segment format");
  app.footer(
      "\nOUTPUT\n"
      "  A table on a terminal; else a line for each item with tabs between its cells and no "
      "heading. With --json\n"
      "  a JSON object for each item, one to a line. Errors go to stderr, with --json as\n"
      "  {\"error\":{\"code\",\"message\"}}.\n\n" +
      shell::exit_code_help() +
      "\nEXAMPLES\n"
      "  ojs-shm enqueue -t email.send -i '{\"to\":\"a@b.c\"}' --priority high --wait\n"
      "  ojs-shm work --queue default --concurrency 4 -- ./send-mail\n");
  app.require_subcommand(1);
  shell::add_target_options(app, request.where);
  app.add_flag("--json", request.json, "Answer in JSON");
  app.add_flag(
      "-q,--quiet", [](std::int64_t) { shell::be_quiet(); },
      "Do not say what was done: only answers and errors");
  app.add_option("--attach-timeout", request.attach_timeout,
                 "Wait so long for a segment that is not there yet [enqueue, work and workflow run "
                 "2s, else 0]")
      ->type_name("TIME");
  cli::add_enqueue_command(app, request);
  cli::add_work_command(app, request);
  cli::add_job_commands(app, request);
  cli::add_change_commands(app, request);
  cli::add_progress_command(app, request);
  cli::add_dead_commands(app, request);
  cli::add_maintenance_commands(app, request);
  cli::add_queue_commands(app, request);
  cli::add_pool_commands(app, request);
  cli::add_workers_commands(app, request);
  cli::add_limit_commands(app, request);
  cli::add_workflow_commands(app, request);
  cli::add_cron_commands(app, request);
  cli::add_stats_command(app, request);
  cli::add_events_command(app, request);
  cli::add_record_command(app, request);
  cli::add_simulate_command(app, request);
  cli::add_drain_command(app, request);
  cli::add_audit_command(app, request);
  cli::add_doctor_command(app, request);
  cli::add_segment_commands(app, request);
  cli::add_transfer_commands(app, request);
  cli::add_up_command(app, request);

  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  if (!request.after_dashes.empty() && !chooses_work(app, words)) {
    words.emplace_back("--");
    words.insert(words.end(), request.after_dashes.begin(), request.after_dashes.end());
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::ParseError& problem) {
    if (const std::string word = unknown_command(app); !word.empty()) {
      return report_usage(
          fmt::format("there is no command `{}`{}", word, meant_command(app, word)).c_str(), json);
    }
    if (problem.get_exit_code() == 0) return finish(app.exit(problem), json);
    return report_usage((problem.what() + shell::meant_flag(app)).c_str(), json);
  }
  try {
    cli::refuse_empty_values(app);
    cli::await_segment(request, {});
    return finish(request.run(), json);
  } catch (const shell::Refusal& refusal) {
    return shell::report(refusal.error, request.json);
  }
}

}  // namespace

int main(int argc, char** argv) {
  shell::fill_closed_descriptors();
  // a reader that went away is an error of the write, which says what was done
  std::signal(SIGPIPE, SIG_IGN);
  const bool json = std::any_of(argv + 1, std::find(argv + 1, argv + argc, std::string_view("--")),
                                [](std::string_view word) { return word == "--json"; });
  const auto failed = [json](const std::exception& problem) {
    const std::string text = json ? problem.what() : fmt::format("ojs-shm: {}", problem.what());
    return shell::report(Error{Code::kInternal, text}, json);
  };
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::system_error& problem) {
    if (problem.code() == std::errc::broken_pipe) return shell::kExitFailed;
    // Written by a format call, which throws; flush_output() says the same of other output.
    if (problem.code() == std::errc::no_space_on_device)
      return shell::report(shell::output_lost(ENOSPC), json);
    return failed(problem);
  } catch (const std::exception& problem) {
    return failed(problem);
  }
}
