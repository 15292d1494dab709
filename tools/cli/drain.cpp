// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/presence.hpp"
#include "tools/cli/progress_bar.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct DrainOptions {
  std::vector<std::string> queues;
  bool empty = false;
  std::string timeout;
};

/// How many jobs still stand in the way. A walk does not see what comes behind it, so none is left
/// when nothing came during a walk that found none.
std::uint64_t remaining(const Observer& observer, const DrainOptions& options) {
  for (std::optional<std::uint64_t> came;;) {
    std::uint64_t jobs = 0, enqueued = 0;
    for (const QueueInfo& queue : observer.queues()) {
      const bool chosen = options.queues.empty() ||
                          std::find(options.queues.begin(), options.queues.end(), queue.name) !=
                              options.queues.end();
      if (!chosen) continue;
      enqueued += queue.enqueued_total;
      for (std::size_t at = 0; at < std::size(queue.by_state); ++at) {
        const auto state = static_cast<State>(at);
        const bool in_the_way = options.empty ? !is_terminal(state) : state == State::kActive;
        if (in_the_way) jobs += queue.by_state[at];
      }
    }
    if (jobs != 0 || !options.empty || came == enqueued) return jobs;
    came = enqueued;
  }
}

void pause_queues(const Request& request, const Observer& observer, const DrainOptions& options) {
  Admin admin = must(Admin::attach(request.where));
  QueueSettings paused;
  paused.paused = true;
  for (const QueueInfo& queue : observer.queues()) {
    const bool chosen =
        options.queues.empty() ||
        std::find(options.queues.begin(), options.queues.end(), queue.name) != options.queues.end();
    if (chosen) must(admin.set_queue(queue.name, paused));
  }
}

int drain(const Request& request, const DrainOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Segment segment = must(Segment::observe(request.where));
  const Observer observer = must(Observer::attach(segment));
  Presence presence(segment);
  for (const auto& name : options.queues) must(observer.queue(name));
  const auto limit =
      options.timeout.empty() ? std::chrono::milliseconds(0) : shell::wait_of(options.timeout);
  const auto end = Clock::now() + limit;
  if (!options.empty) pause_queues(request, observer, options);

  std::uint64_t jobs = remaining(observer, options);
  const std::uint64_t first = jobs;
  ProgressBar bar(first);
  const auto draw = [&](bool final) {
    bar.draw(first - std::min(first, jobs), fmt::format("{} jobs left", jobs), final);
  };
  while (jobs != 0 && (options.timeout.empty() || Clock::now() < end)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    jobs = remaining(observer, options);
    draw(false);
    presence.must_last();
  }
  if (first != 0) draw(true);
  if (request.json) {
    print_line(object([&](json::ObjectWriter& writer) { count(writer, "remaining", jobs); }));
  } else if (jobs != 0) {
    shell::say("{} jobs {} after {}\n", jobs, options.empty ? "unfinished" : "active",
               options.timeout);
  }
  return jobs == 0 ? shell::kExitOk : shell::kExitFailed;
}

}  // namespace

void add_drain_command(CLI::App& app, Request& request) {
  const auto [command, options] = add_command<DrainOptions>(
      app, request, "drain",
      "Pause queues and wait until none of their jobs is active; `queue resume` goes on", &drain);
  command->add_option("QUEUE", options->queues, "The queues (all)");
  command->add_flag("--empty", options->empty,
                    "Do not pause; wait until no job is waiting or active");
  command->add_option("--timeout", options->timeout, "Give up after this time, status 1 (never)")
      ->type_name("TIME");
}

}  // namespace ojs_shm::cli
