// SPDX-License-Identifier: Apache-2.0
#include "tools/broker/service.hpp"

#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/broker/service_notify.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::broker {
namespace {

using shell::must;

Broker* running = nullptr;  // what a signal stops; set before the signals are let in

void on_stop_signal(int) {
  if (running != nullptr) running->stop();
}

void let_stop_signals_in(Broker& broker) {
  running = &broker;
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  sigset_t both;
  ::sigemptyset(&both);
  ::sigaddset(&both, SIGTERM);
  ::sigaddset(&both, SIGINT);
  ::pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
}

std::int64_t priority_of(const Observer& observer, const std::string& text) {
  std::int64_t number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc{} && rest == text.data() + text.size()) return number;
  return must(observer.priority_by_name(text));
}

void apply(const Segment& segment, const Settings& settings) {
  Admin admin = must(Admin::attach(segment));
  const Observer observer = must(Observer::attach(segment));
  for (const auto& [name, queue] : settings.queues) must(admin.set_queue(name, queue));
  for (const auto& [type, text] : settings.default_priorities) {
    must(admin.set_default_priority(type, priority_of(observer, text)));
  }
}

/// An unbounded queue fills the whole segment when its workers are away, and then every other queue is refused too.
void warn_of_unbounded_queues(const Observer& observer) {
  std::vector<std::string> unbounded;
  for (const QueueInfo& queue : observer.queues()) {
    if (queue.max_depth == 0 && queue.max_size_bytes == 0) unbounded.push_back(queue.name);
  }
  unbounded.emplace_back("every queue made later");
  spdlog::warn("unbounded: {}; `ojs-shm queue set NAME --max-depth N` or [queues.NAME.backpressure] bounds one",
               fmt::join(unbounded, ", "));
}

void keep_convention_of_existing(Settings& settings) {
  const auto existing = Segment::observe(settings.where);
  if (existing) settings.options.convention = existing.value().convention();
}

std::uint64_t unfinished_jobs(const Observer& observer) {
  std::uint64_t jobs = 0;
  for (const QueueInfo& queue : observer.queues()) {
    jobs += queue.depth + queue.by_state[static_cast<std::size_t>(State::kActive)];
  }
  return jobs;
}

void start_logging(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("ojs-shm-broker");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n[%P] %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

/// What is left when a broker has stopped.
struct Ended {
  bool others = false;
  std::uint64_t unfinished = 0;
};

void remove_unless_wanted(const Settings& settings, const Ended& ended) {
  const auto& name = settings.where.name;
  if (settings.keep) {
    spdlog::info("stopped; segment {} is kept with {} unfinished jobs", name, ended.unfinished);
    return;
  }
  if (!ended.others) {
    const Status removed = remove_segment(settings.where, false);
    if (removed) {
      if (ended.unfinished != 0) {
        spdlog::warn("segment {} held {} unfinished jobs; --keep keeps them", name, ended.unfinished);
      }
      spdlog::info("stopped; segment {} is removed", name);
      return;
    }
    if (removed.code() != Code::kInUse) throw shell::Refusal{removed.error()};
  }
  spdlog::warn("stopped; segment {} stays, because other processes are attached to it; `ojs-shm rm {}` removes it",
               name, name);
}

/// Everything that is attached to the segment lives in here, so that after it the files may go.
Ended serve_until_stopped(const Settings& settings, bool& made_here) {
  Broker broker = must(Broker::start(settings.where, settings.options));
  made_here = !broker.resumed();
  const Observer observer = must(Observer::attach(broker.segment()));
  const SegmentInfo info = observer.segment_info();
  spdlog::info("{} {}: {}, room for {} jobs, convention {}, format {}", broker.resumed() ? "resumed" : "created",
               info.path, shell::bytes_text(info.size_bytes), info.slots, info.convention, info.format);
  if (broker.resumed()) spdlog::info("found: {}", broker.resume_report());
  apply(broker.segment(), settings);
  warn_of_unbounded_queues(observer);

  let_stop_signals_in(broker);
  fmt::print("READY name={}\n", settings.where.name);
  std::fflush(stdout);
  notify_service_manager(fmt::format("READY=1\nMAINPID={}\nSTATUS=serving {}", ::getpid(), info.path));
  must(broker.run([](std::string_view line) { spdlog::info("{}", line); }));

  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  running = nullptr;
  notify_service_manager("STOPPING=1");
  return {broker.others_attached(), unfinished_jobs(observer)};
}

}  // namespace

int serve(Settings settings) {
  start_logging(settings.log_level);
  if (!settings.convention_given) keep_convention_of_existing(settings);
  bool made_here = false;
  Ended ended;
  try {
    ended = serve_until_stopped(settings, made_here);
  } catch (const shell::Refusal&) {
    // A segment made for settings that turned out to be wrong would stand in the way of the next attempt.
    if (made_here) [[maybe_unused]]
      const Status removed = remove_segment(settings.where, false);
    throw;
  }
  remove_unless_wanted(settings, ended);
  return shell::kExitOk;
}

}  // namespace ojs_shm::broker
