// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <ojs_shm/observer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/work_config.hpp"
#include "tools/cli/work_crew.hpp"
#include "tools/shell/nearest.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct WorkOptions {
  std::vector<std::string> queues;
  std::string strategy, config, pool, worker_id;
  std::vector<std::string> labels;
  std::uint32_t concurrency = 1;
  std::uint64_t count = 0;
  bool until_empty = false;
  std::string lease, grace = "30s";
  std::vector<int> final_exits;
};

/// 0 is success, and no command ends with more than 255.
const CLI::Validator kFailureStatus(
    [](std::string& text) {
      const bool possible =
          text.size() <= 3 && text.find_first_not_of("0123456789") == std::string::npos &&
          text.find_first_not_of('0') != std::string::npos && std::stoi(text) <= 255;
      return possible ? std::string()
                      : fmt::format("\"{}\" is not an exit code of a failure: 1 to 255", text);
    },
    "");

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

/// A command that is not there would fail every job; better to say so before the first.
bool can_run(const std::string& command) {
  if (command.find('/') != std::string::npos) return is_program(command);
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program((folder.empty() ? "." : folder) + "/" + command)) return true;
  }
  return false;
}

std::uint32_t lease_of(const std::string& text) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t lease_ms = must(shell::parse_duration_ms(text));
  if (lease_ms > kMost) {
    shell::refuse(Code::kInvalid,
                  fmt::format("--lease {} is too long; at most {}", text, print_duration(kMost)));
  }
  return static_cast<std::uint32_t>(lease_ms);
}

/// A command may go to another directory.
std::string absolute(const std::string& directory) {
  std::error_code none;
  const std::filesystem::path whole = std::filesystem::absolute(directory, none);
  return none ? directory : whole.lexically_normal().string();
}

/// A queue that does not exist is made by its first job. It is named, for it may be a misspelt one.
void name_missing_queues(const Observer& observer, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const QueueInfo& queue : observer.queues()) known.push_back(queue.name);
  const std::vector<std::string_view> views(known.begin(), known.end());
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = shell::nearest(name, views);
    shell::say("warning: there is no queue '{}' yet{}; its first job makes it\n", name,
               nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest));
  }
}

/// "zone=a,size=large" as a JSON object.
Result<std::string> labels_of(const std::vector<std::string>& pairs) {
  std::string labels;
  json::ObjectWriter writer(labels);
  for (const std::string& pair : pairs) {
    const std::size_t at = pair.find('=');
    if (at == std::string::npos || at == 0)
      return Error{Code::kInvalid, "label '" + pair + "' is not NAME=VALUE"}.about("labels");
    writer.text(pair.substr(0, at), pair.substr(at + 1));
  }
  writer.close();
  return labels;
}

/// The file, and what flags say instead.
WorkConfig config_of(const WorkOptions& options) {
  WorkConfig config;
  if (!options.config.empty()) config = must(read_work_config(options.config));
  if (!options.queues.empty()) config.queues.clear();
  for (const std::string& queue : options.queues) config.queues.push_back(must(parse_share(queue)));
  if (!options.strategy.empty()) config.strategy = options.strategy;
  return config;
}

int work(const Request& request, const WorkOptions& options) {
  if (request.after_dashes.empty())
    shell::refuse(Code::kInvalid, "name the command behind --, as in `work -- ./send-mail`");
  if (options.concurrency == 0) shell::refuse(Code::kInvalid, "--concurrency must be at least 1");
  const std::string& command = request.after_dashes.front();
  if (!can_run(command))
    shell::refuse(Code::kInvalid, fmt::format("there is no command `{}` that can be run", command));
  CrewOptions crew;
  must(apply(config_of(options), crew.worker));
  crew.worker.pool = options.pool;
  crew.worker.id = options.worker_id;
  crew.worker.total_concurrency = options.concurrency;
  if (!options.labels.empty()) {
    if (options.worker_id.empty())
      shell::refuse(Code::kInvalid, "--labels belong to a worker: name it with --worker-id");
    crew.worker.labels = must(labels_of(options.labels));
  }
  if (!options.lease.empty()) crew.worker.lease_ms = lease_of(options.lease);
  crew.command = request.after_dashes;
  crew.concurrency = options.concurrency;
  crew.count = options.count;
  crew.until_empty = options.until_empty;
  crew.grace = shell::wait_of(options.grace);
  crew.final_exits = options.final_exits;
  crew.json = request.json;

  // Before the first thread: all of them inherit the mask, and only the crew's signalfd sees them.
  const sigset_t signals = crew_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // a command may end without having read its args
  // A command that calls ojs-shm means the segment of its job.
  ::setenv("OJS_SHM_NAME", request.where.name.c_str(), 1);
  ::setenv("OJS_SHM_DIR", absolute(request.where.dir).c_str(), 1);
  await_segment(request, kPatience);
  const Segment segment = must(Segment::attach(request.where));
  const Observer observer = must(Observer::attach(segment));
  if (!observer.pool(options.pool.empty() ? "default" : options.pool).ok())
    name_missing_queues(observer, crew.worker.queues);
  crew.largest_result = observer.segment_settings().max_body_bytes;
  must(WorkCrew(segment, std::move(crew)).run());
  return shell::kExitOk;
}

}  // namespace

void add_work_command(CLI::App& app, Request& request) {
  const auto [command, options] = add_command<WorkOptions>(
      app, request, "work", "Run a command for each job: work [OPTIONS] -- COMMAND [ARGUMENTS]",
      &work);
  command
      ->add_option("--queue", options->queues,
                   "Queues to take from, with weights if they are weighted (default)")
      ->type_name("Q[:WEIGHT],...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option(
          "--strategy", options->strategy,
          "strict: each time from left to right, so that a busy queue starves those behind it;\n"
          "weighted: in turns, each queue by its weight (strict)")
      ->type_name("S");
  command
      ->add_option("--pool", options->pool,
                   "The pool to work for: its queues and strategy count, whatever is said here "
                   "(`default`, if there is one)")
      ->type_name("NAME");
  command
      ->add_option("--worker-id", options->worker_id,
                   "Register a worker of that id, which `workers` lists and directs (none)")
      ->type_name("ID");
  command->add_option("--labels", options->labels, "What else is said of that worker")
      ->type_name("NAME=VALUE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--config", options->config,
                   "A TOML or JSON file with queues and strategy; flags win over it")
      ->type_name("F");
  command->add_option("--concurrency", options->concurrency, "Commands at once (1)")
      ->type_name("N")
      ->check(kNotNegative);
  command->add_option("--count", options->count, "Stop after so many jobs (0: never)")
      ->type_name("N")
      ->check(kNotNegative);
  command->add_flag("--until-empty", options->until_empty, "Stop when nothing is available");
  command
      ->add_option("--lease", options->lease,
                   "Lease of each job; renewed while its command runs (the job's own)")
      ->type_name("TIME");
  command
      ->add_option("--grace", options->grace,
                   "Time between SIGTERM and SIGKILL, and for running commands at a stop (30s)")
      ->type_name("TIME");
  command
      ->add_option("--final-exit", options->final_exits,
                   "Exit codes after which a job is not tried again, 1 to 255")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(kFailureStatus)
      ->allow_extra_args(false);
  set_footer(
      *command,
      "\nThe command gets the job's args, a JSON array, on its stdin and OJS_JOB_ID, OJS_TYPE, "
      "OJS_QUEUE, "
      "OJS_PRIORITY,\n"
      "OJS_ATTEMPT, OJS_MAX_ATTEMPTS and OJS_FENCE in its environment; after a checkpoint also "
      "OJS_LAST_CHECKPOINT, in a\n"
      "workflow also OJS_WORKFLOW_ID, and OJS_PARENT_RESULTS, a file with the results of the jobs "
      "before it. Status 0\n"
      "completes the job; what it wrote to stdout is the result (JSON as it stands, other text as "
      "a string, what is no\n"
      "UTF-8 as {\"encoding\":\"base64\",\"data\":\"...\"}). Any other end is a failure with the "
      "end of its stderr as\n"
      "the message, and the job's retry policy decides. A cancelled job's command gets SIGTERM.\n"
      "Prints a line for each job: id, type, attempt, outcome, milliseconds. The outcome is "
      "completed, retryable,\n"
      "discarded, timed_out, requeued, cancelled or lost.\n"
      "SIGTERM, SIGHUP and Ctrl-C end it once its commands are done, SIGTSTP and Ctrl-Z make it "
      "take no "
      "new jobs until "
      "SIGCONT.\n");
}

}  // namespace ojs_shm::cli
