// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/filter.hpp"
#include "tools/cli/finish.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/known_id.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct JobGetOptions {
  std::string id;
};

int get(const Request& request, const JobGetOptions& options) {
  const std::string job = print_job(must(must(Observer::attach(request.where)).get(options.id)));
  if (request.json) {
    print_line(job);
  } else {
    print_members(job);
  }
  return shell::kExitOk;
}

struct JobListOptions {
  FilterFlags filter;
  std::string sort;
  bool rising = false;
  std::size_t offset = 0;
};

/// A part of a sorted list; stderr says where it lies in the whole.
int list_page(const Request& request, const JobListOptions& options, const Observer& observer) {
  JobPageRequest wanted{.filter = filter_of(options.filter, observer)};
  wanted.order = options.sort == "created"     ? JobOrder::kCreated
                 : options.sort == "scheduled" ? JobOrder::kScheduled
                                               : JobOrder::kPriority;
  wanted.falls = !options.rising;
  wanted.offset = options.offset;
  if (wanted.filter.limit != 0) wanted.limit = std::exchange(wanted.filter.limit, 0);
  const JobPage page = observer.page(wanted);
  print_jobs(page.jobs, request.json);
  shell::say("{} of {} jobs, behind {}\n", page.jobs.size(), page.total, options.offset);
  return shell::kExitOk;
}

int list(const Request& request, const JobListOptions& options) {
  const Observer observer = must(Observer::attach(request.where));
  if (!options.sort.empty()) return list_page(request, options, observer);
  print_jobs(observer.list(filter_of(options.filter, observer)), request.json);
  return shell::kExitOk;
}

struct WaitOptions {
  std::string id, timeout;
};

int wait(const Request& request, const WaitOptions& options) {
  auto producer = Producer::attach(request.where);
  if (producer.code() == Code::kPermission)
    return watch_and_print(must(Segment::observe(request.where)), options.id, options.timeout,
                           request.json);
  Producer writable = must(std::move(producer));
  return wait_and_print(writable, options.id, options.timeout, request.json);
}

}  // namespace

void add_job_commands(CLI::App& app, Request& request) {
  const auto [one, get_options] =
      add_command<JobGetOptions>(app, request, "get", "Show a job", &get);
  one->add_option("ID", get_options->id, "The job")->transform(shell::known_id)->required();

  const auto [many, list_options] = add_command<JobListOptions>(
      app, request, "list",
      "List jobs: the available ones in the order in which they would be fetched, then the others. "
      "A queue with\n"
      "weights of levels comes level by level, best first: turns decide among its levels. In a "
      "queue with\ntenants each level has the first job of each tenant, then the second ones",
      &list);
  add_filter(*many, list_options->filter);
  many->add_option("--state", list_options->filter.state, "Only in this state, such as active")
      ->type_name("S");
  CLI::Option* const sort =
      many->add_option(
              "--sort", list_options->sort,
              "A page of the list by created, scheduled or priority, the newest, latest or "
              "highest number first; 50 jobs without --limit")
          ->type_name("BY")
          ->check(CLI::IsMember({"created", "scheduled", "priority"}));
  many->add_flag("--rising", list_options->rising, "The oldest, soonest or lowest first")
      ->needs(sort);
  many->add_option("--offset", list_options->offset, "Leave out so many at the beginning")
      ->type_name("N")
      ->check(kNotNegative)
      ->needs(sort);

  const auto [until, wait_options] =
      add_command<WaitOptions>(app, request, "wait",
                               "Wait until a job is finished and print its result; status 0 "
                               "completed, 1 discarded or timed out,\n"
                               "5 cancelled",
                               &wait);
  until->add_option("ID", wait_options->id, "The job")->transform(shell::known_id)->required();
  until
      ->add_option("--timeout", wait_options->timeout,
                   "Give up after this time, such as 30s (never)")
      ->type_name("TIME");
}

}  // namespace ojs_shm::cli
