// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/eventfd.h>

#include <cstdio>
#include <optional>
#include <thread>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/proxy.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/presence.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/signals.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/json/envelope_event.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct EventsOptions {
  bool on = false, off = false, follow = false;
  EventOptions choice;
};

/// What a person wants to see of it beside job and queue.
std::string detail_of(const Event& event) {
  if (event.type == "priority.changed")
    return fmt::format("{} -> {}", event.previous_priority, event.priority);
  if (event.type == "job.completed") return fmt::format("after {} ms", event.duration_ms);
  if (event.type == "job.progress")
    return fmt::format("{}%{}{}", event.progress * 100, event.progress_message.empty() ? "" : " ",
                       event.progress_message);
  if (event.type == "job.scheduled" || event.type == "job.retrying" ||
      event.type == "job.heartbeat")
    return print_timestamp(event.at_ms);
  if (event.type == "scheduling.queue_starved")
    return fmt::format("{} wait, since {} ms", event.waiting_jobs, event.duration_ms);
  if (event.type == "scheduling.pool_overloaded")
    return fmt::format("{}: {} active, {} wait", event.pool, event.active_jobs, event.waiting_jobs);
  if (event.type == "scheduling.rebalanced")
    return fmt::format("{}: {} -> {}", event.pool, event.previous_strategy, event.new_strategy);
  if (event.type == "dead_letter.pruned") return fmt::format("{} dropped", event.count);
  if (event.type.starts_with("bulk.")) return fmt::format("{} of {}", event.done, event.count);
  if (event.type == "queue.deleted") return fmt::format("{} discarded", event.count);
  if (event.limit_ms != 0)
    return fmt::format("after {} ms of {}", event.duration_ms, event.limit_ms);
  if (event.job_id.empty() && !event.worker_id.empty())
    return event.reason.empty() ? event.worker_id
                                : fmt::format("{}: {}", event.worker_id, event.reason);
  if (!event.workflow_id.empty())
    return event.step_id.empty() ? event.workflow_id
                                 : fmt::format("{}: {}", event.workflow_id, event.step_id);
  if (!event.cron_name.empty())
    return event.reason.empty() ? event.cron_name
                                : fmt::format("{}: {}", event.cron_name, event.reason);
  return event.error ? event.error->message : "";
}

/// True when there was one. What was lost is told where it is missed.
bool print_next(EventReader& reader, const Request& request, std::uint64_t& told) {
  Event event;
  const bool any = reader.next(event);
  if (reader.lost() != told) {
    const std::uint64_t lost = reader.lost() - told;
    told = reader.lost();
    if (request.json)
      shell::say("{{\"events_lost\":{}}}\n", lost);
    else
      shell::say("{} events lost: they were overwritten before they could be read\n", lost);
  }
  if (!any) return false;
  if (request.json) {
    print_line(print_event(event));
  } else {
    shell::Table row({"TIME", "TYPE", "QUEUE", "PRIORITY>", "JOB", "JOB TYPE", "DETAIL"});
    row.row({print_timestamp(event.time_ms), event.type, event.queue,
             event.job_id.empty() ? "" : std::to_string(event.priority), event.job_id,
             event.job_type, detail_of(event)});
    fmt::print("{}", row.tab_separated());
  }
  return true;
}

/// Sleeps until something is told. Where this process may not be one of the segment's, or no handle
/// is left, for a moment.
class Sleep {
 public:
  explicit Sleep(const SegmentName& where) {
    const auto segment = Segment::attach(where);
    auto proxy = segment ? Proxy::attach(*segment) : Result<Proxy>(segment.error());
    if (!proxy) return;
    bell_.emplace(std::move(proxy).value());
    const auto told = bell_->await_events();
    if (told) descriptor_ = *told;
  }
  void until_told() const {
    constexpr std::chrono::milliseconds kLook{50}, kSignal{1000};
    if (descriptor_ < 0) return std::this_thread::sleep_for(kLook);
    pollfd bell{descriptor_, POLLIN, 0};
    eventfd_t count = 0;
    // a signal that came just before does not end it
    if (::poll(&bell, 1, kSignal.count()) == 1) ::eventfd_read(descriptor_, &count);
  }

 private:
  std::optional<Proxy> bell_;
  int descriptor_ = -1;
};

/// Once the first event was asked for.
void tell_of_gap(const EventReader& reader, const EventOptions& choice) {
  if (!choice.after.empty() && !reader.resumed())
    shell::say("event {} is kept no more; some that came behind it may be missing\n", choice.after);
}

void follow(const Request& request, const EventsOptions& options, const Segment& segment,
            const Observer& observer) {
  shell::note_stop_signals();
  EventReader reader = observer.events(options.choice);
  Presence presence(segment);
  const Sleep sleep(request.where);
  std::uint64_t told = 0;
  bool any = print_next(reader, request, told);
  tell_of_gap(reader, options.choice);
  for (; !shell::stop_signalled(); any = print_next(reader, request, told)) {
    if (any) continue;
    if (!shell::flush_output()) return;  // the reader has gone
    presence.must_last();
    sleep.until_told();
  }
}

int events(const Request& request, const EventsOptions& options) {
  must(check(options.choice));
  if (options.on || options.off) {
    must(must(Admin::attach(request.where)).set_events(options.on));
    if (!options.follow) {
      told(request, "events are {} in segment {}", options.on ? "on" : "off", request.where.name);
      return shell::kExitOk;
    }
  }
  const Segment segment = must(Segment::observe(request.where));
  const Observer observer = must(Observer::attach(segment));
  if (!observer.segment_settings().events)
    shell::say("events are off in segment '{}'; `ojs-shm events --on` turns them on\n",
               request.where.name);
  if (options.follow) {
    follow(request, options, segment, observer);
    return shell::kExitOk;
  }
  EventOptions choice = options.choice;
  choice.from_start = true;
  choice.settle_ms = 0;
  EventReader reader = observer.events(choice);
  std::uint64_t told = 0;
  const std::size_t most = observer.segment_settings().slots + (1U << 20);  // other processes go on
  for (std::size_t i = 0; i < most && print_next(reader, request, told); ++i) {}
  tell_of_gap(reader, choice);
  return shell::kExitOk;
}

}  // namespace

void add_events_command(CLI::App& app, Request& request) {
  auto [command, options] = add_command<EventsOptions>(
      app, request, "events", "What happens, or happened, to jobs and queues", &events);
  auto* on =
      command->add_flag("--on", options->on, "Let every handle of the segment tell what it does");
  auto* off = command->add_flag("--off", options->off, "Let them stop");
  auto* watch = command->add_flag("--follow", options->follow, "Go on until SIGINT or SIGTERM");
  command
      ->add_flag("--since-start", options->choice.from_start,
                 "With --follow: first what the segment still keeps")
      ->needs(watch);
  command
      ->add_option("--after", options->choice.after, "Only what came behind the event with this id")
      ->type_name("ID");
  command
      ->add_option("--types", options->choice.types,
                   "Only of these types; 'job.*' means all that begin so")
      ->type_name("A,B")
      ->delimiter(',');
  const auto list = [&](const char* flag, std::vector<std::string>& names, const char* about,
                        const char* type_name) {
    command->add_option(flag, names, about)->type_name(type_name)->delimiter(',');
  };
  list("--queue", options->choice.queues, "Only of these queues", "A,B");
  list("--job", options->choice.jobs, "Only of these jobs", "ID,ID");
  list("--job-type", options->choice.job_types, "Only of jobs of these types", "A,B");
  command
      ->add_option("--tenant", options->choice.tenant, "Only of this tenant's jobs and workflows")
      ->type_name("NAME");
  on->excludes(off);
  off->excludes(watch);
  set_footer(*command,
             "\nOUTPUT\n"
             "  Time, type, queue, priority, job, job type and detail; with --json the event of "
             "ojs-events. Without\n"
             "  --follow what the segment still keeps. How many were overwritten unread is told on "
             "stderr, and\n"
             "  whether the event of --after is kept no more.\n"
             "\nEXAMPLE\n"
             "  ojs-shm events --on --follow --types priority.changed,job.failed --json\n");
}

}  // namespace ojs_shm::cli
