// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ojs_shm/segment.hpp>

namespace ojs_shm::cli {

/// What the command line asked for: the options that every command has, and the command to run.
struct Request {
  SegmentName where;
  bool json = false;
  std::vector<std::string> after_dashes;  ///< what stands behind "--": of `work` its command
  std::function<int()> run;               ///< returns an exit code; may throw shell::Refusal
  std::string attach_timeout;             ///< empty: as the command thinks best
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

/// Waits until the segment's file is there: a broker that was started a moment ago is still making
/// it. Counts from the begin of the program, for --attach-timeout, else for `patience`. The attach
/// that comes next says what is missing.
void await_segment(const Request& request, std::chrono::milliseconds patience);
/// What `enqueue` and `work` have: they are often started together with the broker.
inline constexpr std::chrono::milliseconds kPatience{2000};

/// An empty text is a variable that was not set, never a wish for the default. Throws
/// shell::Refusal.
void refuse_empty_values(const CLI::App& command);

/// For counts, which the parser itself would wrap around, or cut at what 64 bits hold.
inline const CLI::Validator kNotNegative(
    [](std::string& text) {
      std::uint64_t count = 0;
      if (text.starts_with('-')) return text + " must not be negative";
      const bool too_large =
          std::from_chars(text.data(), text.data() + text.size(), count).ec != std::errc{} &&
          text.find_first_not_of("0123456789") == std::string::npos;
      return too_large ? text + " is too large" : std::string();
    },
    "");

/// What a command's --help ends with: this text, and the options that every command has.
inline void set_footer(CLI::App& command, const std::string& text = "") {
  command.footer(text +
                 "\nEvery command also takes --name N, --dir D and --json; `ojs-shm --help` has "
                 "the exit status.\n");
}

/// Adds a command whose options live in an `Options`, filled by the parser and handed to `run`.
template <class Options>
std::pair<CLI::App*, std::shared_ptr<Options>> add_command(
    CLI::App& app, Request& request, const char* name, const char* description,
    int (*run)(const Request&, const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(name, description);
  command->fallthrough();
  set_footer(*command);
  command->callback([&request, command, options, run] {
    request.run = [&request, command, options, run] {
      refuse_empty_values(*command);
      return run(request, *options);
    };
  });
  return {command, options};
}

void add_segment_commands(CLI::App& app, Request& request);  // segments, rm
void add_enqueue_command(CLI::App& app, Request& request);
void add_work_command(CLI::App& app, Request& request);
void add_job_commands(CLI::App& app, Request& request);     // get, list, wait
void add_change_commands(CLI::App& app, Request& request);  // cancel, reprioritize, activate
void add_progress_command(CLI::App& app, Request& request);
void add_dead_commands(CLI::App& app, Request& request);
void add_maintenance_commands(CLI::App& app, Request& request);  // maintenance on, off, show
void add_queue_commands(CLI::App& app, Request& request);        // queue ..., default-priority
void add_pool_commands(CLI::App& app, Request& request);         // pool ...
void add_workers_commands(CLI::App& app, Request& request);
void add_limit_commands(CLI::App& app, Request& request);
void add_workflow_commands(CLI::App& app, Request& request);  // workflow ...
void add_cron_commands(CLI::App& app, Request& request);      // cron ...
void add_stats_command(CLI::App& app, Request& request);
void add_events_command(CLI::App& app, Request& request);
void add_record_command(CLI::App& app, Request& request);
void add_simulate_command(CLI::App& app, Request& request);
void add_drain_command(CLI::App& app, Request& request);
void add_audit_command(CLI::App& app, Request& request);
void add_doctor_command(CLI::App& app, Request& request);
void add_transfer_commands(CLI::App& app, Request& request);  // export, import
void add_up_command(CLI::App& app, Request& request);

}  // namespace ojs_shm::cli
