// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/filter.hpp"
#include "tools/cli/finish.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/envelope.hpp"

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
  FilterFlags filter;
};

int list(const Request& request, const ListOptions& options) {
  const Observer observer = must(Observer::attach(request.where));
  print_jobs(observer.list(filter_of(options.filter, observer)), request.json);
  return shell::kExitOk;
}

struct WaitOptions {
  std::string id, timeout;
};

int wait(const Request& request, const WaitOptions& options) {
  auto producer = Producer::attach(request.where);
  if (producer.code() == Code::kPermission)
    return watch_and_print(must(Observer::attach(request.where)), options.id, options.timeout,
                           request.json);
  Producer writable = must(std::move(producer));
  return wait_and_print(writable, options.id, options.timeout, request.json);
}

}  // namespace

void add_job_commands(CLI::App& app, Request& request) {
  const auto [one, get_options] = add_command<GetOptions>(app, request, "get", "Show a job", &get);
  one->add_option("ID", get_options->id, "The job")->required();

  const auto [many, list_options] = add_command<ListOptions>(
      app, request, "list",
      "List jobs: the available ones in the order in which they would be fetched, then the others. "
      "A queue with\n"
      "weights of levels comes level by level, best first: turns decide among its levels",
      &list);
  add_filter(*many, list_options->filter);
  many->add_option("--state", list_options->filter.state, "Only in this state, such as active")
      ->type_name("S");

  const auto [until, wait_options] =
      add_command<WaitOptions>(app, request, "wait",
                               "Wait until a job is finished and print its result; status 0 "
                               "completed, 1 discarded or timed out,\n"
                               "5 cancelled",
                               &wait);
  until->add_option("ID", wait_options->id, "The job")->required();
  until
      ->add_option("--timeout", wait_options->timeout,
                   "Give up after this time, such as 30s (never)")
      ->type_name("TIME");
}

}  // namespace ojs_shm::cli
