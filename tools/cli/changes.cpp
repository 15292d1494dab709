// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tools/cli/bulk.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/each.hpp"
#include "tools/cli/filter.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/known_id.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct IdsOptions {
  std::vector<std::string> ids;
  FilterFlags filter;
  bool yes = false;
};

/// Ids, or what flags choose: never both, never all by an oversight.
bool by_filter(const IdsOptions& options) {
  if (options.filter.chosen() != options.ids.empty())
    shell::refuse(Code::kInvalid,
                  "give job ids, or choose jobs by --queue, --type, --state, --tenant, --priority, "
                  "--older-than, --ended-ago or --error-type");
  return options.ids.empty();
}

int for_all(const Request& request, const IdsOptions& options, BulkAction action,
            const BulkWords& words) {
  Admin admin = must(Admin::attach(request.where));
  const JobFilter filter = filter_of(options.filter, must(Observer::attach(admin.segment())));
  return run_bulk(request, admin, action, filter, words, options.yes);
}

int cancel(const Request& request, const IdsOptions& options) {
  if (by_filter(options))
    return for_all(request, options, BulkAction::kCancel, {"cancel", "cancelled"});
  Producer producer = must(Producer::attach(request.where));
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const auto job = producer.cancel(id);
    if (!job) return job.error();
    request.json ? print_line(print_job(job.value())) : shell::inform("{} cancelled", id);
    return {};
  });
}

int activate(const Request& request, const IdsOptions& options) {
  Producer producer = must(Producer::attach(request.where));
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const Status activated = producer.activate(id);
    if (!activated) return activated;
    request.json ? print_line(print_job(must(producer.get(id))))
                 : shell::inform("{} available", id);
    return {};
  });
}

int promote(const Request& request, const IdsOptions& options) {
  if (by_filter(options))
    return for_all(request, options, BulkAction::kPromote, {"promote", "promoted"});
  Producer producer = must(Producer::attach(request.where));
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const Status promoted = producer.promote(id);
    if (!promoted) return promoted;
    request.json ? print_line(print_job(must(producer.get(id))))
                 : shell::inform("{} available", id);
    return {};
  });
}

int retry(const Request& request, const IdsOptions& options) {
  if (by_filter(options))
    return for_all(request, options, BulkAction::kRetry, {"retry", "available again"});
  Producer producer = must(Producer::attach(request.where));
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const Status retried = producer.retry(id);
    if (!retried) return retried;
    request.json ? print_line(print_job(must(producer.get(id))))
                 : shell::inform("{} available again", id);
    return {};
  });
}

int drop(const Request& request, const IdsOptions& options) {
  if (by_filter(options)) return for_all(request, options, BulkAction::kDrop, {"drop", "dropped"});
  Admin admin = must(Admin::attach(request.where));
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const Status dropped = admin.drop(id);
    if (!dropped) return dropped;
    if (request.json)
      print_line(object([&](json::ObjectWriter& writer) { writer.text("id", id); }));
    else
      shell::inform("{} dropped", id);
    return dropped;
  });
}

struct ReprioritizeOptions {
  std::string id, priority;
};

int reprioritize(const Request& request, const ReprioritizeOptions& options) {
  Producer producer = must(Producer::attach(request.where));
  const Observer observer = must(Observer::attach(producer.segment()));
  const std::int64_t wanted = parse_priority(observer, options.priority);
  const std::int64_t previous = must(producer.reprioritize(options.id, wanted));
  if (request.json) {
    print_line(object([&](json::ObjectWriter& writer) {
      writer.text("id", options.id);
      writer.number("priority", wanted);
      writer.number("previous_priority", previous);
    }));
  } else {
    fmt::print("{}\t{}\n", previous, wanted);
  }
  return shell::kExitOk;
}

void add_choice(CLI::App& command, IdsOptions& options, const std::string& state) {
  add_filter(command, options.filter);
  command.add_option("--state", options.filter.state, "Only in this state, such as " + state)
      ->type_name("S");
  command.add_flag("-y,--yes", options.yes, "Do not ask");
}

}  // namespace

void add_change_commands(CLI::App& app, Request& request) {
  const auto [stop, stop_options] =
      add_command<IdsOptions>(app, request, "cancel",
                              "Cancel jobs, by their ids or all that flags choose; the command of "
                              "an active one gets SIGTERM from its worker",
                              &cancel);
  stop->add_option("ID", stop_options->ids, "The jobs")->transform(shell::known_id);
  add_choice(*stop, *stop_options, "scheduled");

  const auto [now, now_options] = add_command<IdsOptions>(
      app, request, "promote",
      "Run scheduled and retryable jobs now: they become available before their time", &promote);
  now->add_option("ID", now_options->ids, "The jobs")->transform(shell::known_id);
  add_choice(*now, *now_options, "scheduled");

  const auto [again, again_options] = add_command<IdsOptions>(
      app, request, "retry",
      "Run discarded and cancelled jobs again, as if they had never been tried; of flags that "
      "choose, --state cancelled chooses cancelled jobs, else it is discarded ones",
      &retry);
  again->add_option("ID", again_options->ids, "The jobs")->transform(shell::known_id);
  add_choice(*again, *again_options, "cancelled");

  const auto [end, end_options] = add_command<IdsOptions>(
      app, request, "drop",
      "Remove what is kept of jobs that are completed, cancelled or discarded, by their ids or all "
      "that flags choose",
      &drop);
  end->add_option("ID", end_options->ids, "The jobs")->transform(shell::known_id);
  add_choice(*end, *end_options, "cancelled");

  const auto [move, move_options] = add_command<ReprioritizeOptions>(
      app, request, "reprioritize",
      "Change the priority of an available or scheduled job; prints the old and the new",
      &reprioritize);
  move->add_option("ID", move_options->id, "The job")->transform(shell::known_id)->required();
  move->add_option("PRIORITY", move_options->priority,
                   "A number or a name of the segment's convention")
      ->required();

  const auto [release, release_options] =
      add_command<IdsOptions>(app, request, "activate", "Make pending jobs available", &activate);
  release->add_option("ID", release_options->ids, "The jobs")
      ->transform(shell::known_id)
      ->required();
}

}  // namespace ojs_shm::cli
