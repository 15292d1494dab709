// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/finish.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/envelope.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct GetOptions {
  std::string id;
};

int get(const Request& request, const GetOptions& options) {
  const std::string job = print_job(must(must(Observer::attach(request.where)).get(options.id)));
  if (request.json) {
    print_line(job);
  } else {
    print_members(job);
  }
  return shell::kExitOk;
}

struct ListOptions {
  std::string queue, type, state;
  std::size_t limit = 0;
};

int list(const Request& request, const ListOptions& options) {
  JobFilter filter;
  filter.queue = options.queue;
  filter.type = options.type;
  filter.limit = options.limit;
  if (!options.state.empty()) filter.state = parse_state(options.state);
  print_jobs(must(Observer::attach(request.where)).list(filter), request.json);
  return shell::kExitOk;
}

struct WaitOptions {
  std::string id, timeout;
};

int wait(const Request& request, const WaitOptions& options) {
  Producer producer = must(Producer::attach(request.where));
  return wait_and_print(producer, options.id, options.timeout, request.json);
}

}  // namespace

void add_job_commands(CLI::App& app, Request& request) {
  const auto [one, get_options] = add_command<GetOptions>(app, request, "get", "Show a job", &get);
  one->add_option("ID", get_options->id, "The job")->required();

  const auto [many, list_options] = add_command<ListOptions>(
      app, request, "list",
      "List jobs: the available ones in the order in which they would be fetched, then the others. A queue with\n"
      "weights of levels comes level by level, best first: turns decide among its levels",
      &list);
  many->add_option("--queue", list_options->queue, "Only of this queue")->type_name("Q");
  many->add_option("--type", list_options->type, "Only of this type")->type_name("T");
  many->add_option("--state", list_options->state, "Only in this state, such as active")->type_name("S");
  many->add_option("--limit", list_options->limit, "At most so many (0: all)")->type_name("N")->check(kNotNegative);

  const auto [until, wait_options] = add_command<WaitOptions>(
      app, request, "wait",
      "Wait until a job is finished and print its result; status 0 completed, 1 discarded or timed out,\n"
      "5 cancelled",
      &wait);
  until->add_option("ID", wait_options->id, "The job")->required();
  until->add_option("--timeout", wait_options->timeout, "Give up after this time, such as 30s (never)")
      ->type_name("TIME");
}

}  // namespace ojs_shm::cli
