// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/each.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/envelope.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct IdsOptions {
  std::vector<std::string> ids;
};

int cancel(const Request& request, const IdsOptions& options) {
  Producer producer = must(Producer::attach(request.where));
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const auto job = producer.cancel(id);
    if (!job) return job.error();
    if (request.json) print_line(print_job(job.value()));
    return {};
  });
}

int activate(const Request& request, const IdsOptions& options) {
  Producer producer = must(Producer::attach(request.where));
  return for_each_id(options.ids, request.json, [&](const std::string& id) -> Status {
    const Status activated = producer.activate(id);
    if (!activated) return activated;
    if (request.json) print_line(print_job(must(producer.get(id))));
    return {};
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

}  // namespace

void add_change_commands(CLI::App& app, Request& request) {
  const auto [stop, stop_options] = add_command<IdsOptions>(
      app, request, "cancel", "Cancel jobs; the command of an active one gets SIGTERM from its worker", &cancel);
  stop->add_option("ID", stop_options->ids, "The jobs")->required();

  const auto [move, move_options] = add_command<ReprioritizeOptions>(
      app, request, "reprioritize", "Change the priority of an available or scheduled job; prints the old and the new",
      &reprioritize);
  move->add_option("ID", move_options->id, "The job")->required();
  move->add_option("PRIORITY", move_options->priority, "A number or a name of the segment's convention")->required();

  const auto [release, release_options] =
      add_command<IdsOptions>(app, request, "activate", "Make pending jobs available", &activate);
  release->add_option("ID", release_options->ids, "The jobs")->required();
}

}  // namespace ojs_shm::cli
