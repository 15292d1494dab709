// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/presence.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/signals.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_trace.hpp"
#include "worker_api/json/unique_key.hpp"
#include "worker_api/simulation/trace_workflows.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct RecordOptions {
  std::string length, queue;
  std::optional<std::uint64_t> jobs;
};

/// They stay on at the end: another reader may have come to need them.
void turn_events_on(const Request& request, const Observer& observer) {
  if (observer.segment_settings().events) return;
  must(must(Admin::attach(request.where)).set_events(true));
  shell::say("events are on now, and stay on; `ojs-shm events --off` turns them off\n");
}

/// Turns events into lines of a trace. A job arrives when it becomes available for the first time;
/// what goes back or is tried again is no arrival.
class Recorder {
 public:
  Recorder(const Observer& observer, std::string queue, std::uint64_t begun_at_ms)
      : observer_(observer), queue_(std::move(queue)), begun_at_ms_(begun_at_ms) {}

  void take(const Event& event) {
    if (event.job_id.empty() || (!queue_.empty() && event.queue != queue_)) return;
    if (event.type == "job.enqueued") {
      if (event.attempt == 0 && open_.insert(event.job_id).second) arrive(event);
    } else if (event.type == "job.failed" || event.type == "job.completed") {
      if (open_.contains(event.job_id))
        print_line(print_trace_service(event.job_id, static_cast<double>(event.duration_ms)));
    }
    if (event.type == "job.completed" || event.type == "job.discarded" ||
        event.type == "job.cancelled" || event.type == "job.expired") {
      open_.erase(event.job_id);
    }
  }
  std::uint64_t arrivals() const { return arrivals_; }

 private:
  void arrive(const Event& event) {
    TraceArrival arrival;
    arrival.at_us = event.time_ms < begun_at_ms_
                        ? 0
                        : static_cast<std::int64_t>(event.time_ms - begun_at_ms_) * 1000;
    arrival.queue = event.queue;
    arrival.priority = event.priority;
    std::vector<std::string> after;
    // a fast worker and a short retention may be done with it
    if (const auto job = observer_.get(event.job_id)) {
      arrival.type = job->type;
      arrival.tenant = tenant_of(job->extra);
      arrival.size = static_cast<std::uint32_t>(job->args.size() + job->extra.size());
      arrival.workflow = job->workflow_id;
      if (!job->unique_key.empty()) arrival.unique = print_unique(job->unique_key, job->unique);
    }
    if (!arrival.workflow.empty())
      if (const auto workflow = observer_.workflow(arrival.workflow)) {
        if (workflows_.insert(arrival.workflow).second) print_line(print_trace_workflow(*workflow));
        after = jobs_before(*workflow, event.job_id);
      }
    print_line(print_trace_arrival(event.job_id, arrival, after));
    ++arrivals_;
  }

  const Observer& observer_;
  std::string queue_;
  std::uint64_t begun_at_ms_, arrivals_ = 0;
  std::set<std::string> open_, workflows_;
};

/// The pools of the segment as lines of the trace: at the begin, and when one has changed.
class PoolRecorder {
 public:
  PoolRecorder(const Observer& observer, std::string queue)
      : observer_(observer), queue_(std::move(queue)) {}

  void look() {
    for (const WorkerPoolInfo& info : observer_.pools()) {
      const std::vector<std::string>& queues = info.settings.queues;
      if (!queue_.empty() && std::ranges::find(queues, queue_) == queues.end()) continue;
      SimulatedPool pool{info.name, info.settings, info.active_workers, 1};
      if (info.active_workers != 0 && info.declared_concurrency != 0)
        pool.concurrency = static_cast<std::uint32_t>(
            std::max<std::uint64_t>(info.declared_concurrency / info.active_workers, 1));
      std::string line = print_trace_pool(pool);
      std::string& told = told_[info.name];
      if (line != told) print_line(line);
      told = std::move(line);
    }
  }

 private:
  const Observer& observer_;
  std::string queue_;
  std::map<std::string, std::string> told_;
};

int record(const Request& request, const RecordOptions& options) {
  constexpr std::chrono::milliseconds kLook{50};
  constexpr std::uint64_t kPoolsEveryMs = 1000;
  const std::uint64_t length =
      options.length.empty() ? 0 : must(shell::parse_duration_ms(options.length));
  shell::note_stop_signals();
  const Segment attached = must(Segment::observe(request.where));
  const Observer observer = must(Observer::attach(attached));
  Presence presence(attached);
  EventReader reader = observer.events();
  turn_events_on(request, observer);
  const SegmentInfo segment = observer.segment_info();
  const std::uint64_t begun = shell::unix_now_ms();
  print_line(print_trace_head({segment.convention, segment.name, begun}));
  PoolRecorder pools(observer, options.queue);
  pools.look();
  std::uint64_t looked = begun;
  Recorder recorder(observer, options.queue, begun);
  const std::uint64_t end = options.length.empty() ? ~std::uint64_t{0} : begun + length;
  std::uint64_t told = 0;
  while (!shell::stop_signalled() && shell::unix_now_ms() < end &&
         recorder.arrivals() < options.jobs.value_or(~std::uint64_t{0})) {
    if (Event event; reader.next(event)) {
      recorder.take(event);
      continue;
    }
    if (reader.lost() != told) {
      print_line(
          object([&](json::ObjectWriter& writer) { count(writer, "lost", reader.lost() - told); }));
      shell::say("{} events lost: they were overwritten before they could be read\n",
                 reader.lost() - told);
      told = reader.lost();
    }
    if (const std::uint64_t now = shell::unix_now_ms(); now >= looked + kPoolsEveryMs) {
      pools.look();
      looked = now;
    }
    if (!shell::flush_output()) break;  // the reader has gone
    presence.must_last();
    std::this_thread::sleep_for(kLook);
  }
  pools.look();
  return shell::kExitOk;
}

}  // namespace

void add_record_command(CLI::App& app, Request& request) {
  auto [command, options] = add_command<RecordOptions>(
      app, request, "record", "Write a trace of arrivals and services, for `simulate`", &record);
  command->add_option("--for", options->length, "Stop after this time (SIGINT or SIGTERM)")
      ->type_name("TIME");
  command->add_option("--jobs", options->jobs, "Stop after so many arrivals")
      ->type_name("N")
      ->check(kNotNegative);
  command->add_option("--queue", options->queue, "Only of this queue")->type_name("NAME");
  set_footer(
      *command,
      "\nOUTPUT\n"
      "  JSON, a line for each pool of workers, workflow, arrival and service; docs/simulation.md "
      "has the members.\n"
      "  Events are turned on, if they are off, and stay on; `ojs-shm events --off` turns them "
      "off.\n"
      "\nEXAMPLE\n"
      "  ojs-shm record --for 10m > monday.trace; ojs-shm simulate monday.trace --workers 4\n");
}

}  // namespace ojs_shm::cli
