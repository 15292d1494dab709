// SPDX-License-Identifier: Apache-2.0
#include "tools/broker/service.hpp"

#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tools/broker/order.hpp"
#include "tools/broker/service_notify.hpp"
#include "tools/broker/signals.hpp"
#include "tools/shell/colour.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm::broker {
namespace {

using shell::must;

/// Type and number.
using Priorities = std::vector<std::pair<std::string, std::int64_t>>;

Priorities default_priorities(const Settings& settings) {
  const auto convention =
      engine::convention_by_name(settings.options.convention).value_or(engine::Convention::kOjs);
  Priorities priorities;
  for (const auto& [type, text, place] : settings.default_priorities) {
    const auto priority = internal::priority_of_text(convention, text);
    if (!priority)
      shell::refuse(priority.code(), fmt::format("{}: {}", place, priority.error().message));
    priorities.emplace_back(type, priority.value());
  }
  return priorities;
}

void apply(const Segment& segment, const Settings& settings, const Priorities& priorities) {
  Admin admin = must(Admin::attach(segment));
  // What only the segment knows may be in the way: its room, what it was set to before.
  const auto taken = [&settings](const std::string& name, const Status& set) {
    if (!set)
      shell::refuse(set.code(),
                    fmt::format("{}: {}", settings.places.of(name), set.error().message));
  };
  if (settings.aging)
    taken(settings.places.knows("aging") ? "aging" : "worker",
          admin.set_default_aging(*settings.aging));
  for (const auto& [name, queue] : settings.queues)
    taken("queues." + name, admin.set_queue(name, queue));
  for (const auto& [name, pool] : settings.pools) must(admin.set_pool(name, pool));
  for (const auto& cron : settings.crons) {
    const auto set = admin.set_cron(cron->spec);
    taken("crons." + cron->name, set ? Status() : Status(set.error()));
  }
  for (const auto& [key, limit] : settings.limits) must(admin.set_limit(key, limit));
  if (settings.strict_envelopes) must(admin.set_strict_envelopes(*settings.strict_envelopes));
  if (settings.immutable_priorities)
    must(admin.set_immutable_priorities(*settings.immutable_priorities));
  if (settings.dead.max_age_ms || settings.dead.max_count)
    must(admin.set_dead_retention(settings.dead));
  if (settings.events) must(admin.set_events(*settings.events));
  for (const auto& [type, priority] : priorities) must(admin.set_default_priority(type, priority));
}

/// An unbounded queue fills the whole segment when its workers are away, and then every other queue
/// is refused too.
void warn_of_unbounded_queues(const Observer& observer) {
  std::vector<std::string> unbounded;
  for (const QueueInfo& queue : observer.queues()) {
    if (queue.max_depth == 0 && queue.max_size_bytes == 0) unbounded.push_back(queue.name);
  }
  unbounded.emplace_back("every queue made later");
  spdlog::warn(
      "unbounded: {}; `ojs-shm queue set NAME --max-depth N` or [queues.NAME.backpressure] bounds "
      "one",
      fmt::join(unbounded, ", "));
}

/// An existing segment has its own convention and mode where none was chosen.
void take_over_from_existing(Settings& settings) {
  const auto existing = Segment::observe(settings.where);
  if (!existing) return;
  if (!settings.convention_given) settings.options.convention = existing.value().convention();
  struct stat file {};
  if (!settings.mode_given && ::stat(existing.value().path().c_str(), &file) == 0)
    settings.options.mode = file.st_mode & 0777;
}

void start_logging(const std::string& level) {
  const auto colours =
      shell::has_colours(STDERR_FILENO) ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto logger = spdlog::stderr_color_mt("ojs-shm-broker", colours);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n[%P] %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

/// While the broker still has its seat, so that no other one begins to serve what goes.
void remove_unless_wanted(const Settings& settings, const Broker& broker) {
  const auto& name = settings.where.name;
  if (settings.keep) {
    spdlog::info("stopped; segment {} is kept (--keep)", name);
    return;
  }
  const Status removed =
      remove_segment(broker.segment(), settings.remove ? Removal::kWithJobs : Removal::kUnused);
  if (removed) {
    spdlog::info("stopped; segment {} is removed{}", name,
                 settings.remove ? " with all that it held (--remove)" : "");
  } else if (removed.code() == Code::kWrongState) {
    spdlog::warn("stopped; the segment is kept: {}; the next broker of this name goes on with them",
                 removed.error().message);
  } else if (removed.code() == Code::kInUse) {
    spdlog::warn(
        "stopped; segment {} stays, because other processes are attached to it; `ojs-shm rm {}` "
        "removes it",
        name, name);
  } else if (removed.code() == Code::kNotFound) {
    spdlog::warn("stopped; segment {} was removed by another process meanwhile", name);
  } else {
    throw shell::Refusal{removed.error()};
  }
}

void say_ready(const std::string& name) {
  fmt::print("READY name={}\n", name);
  if (const Status sent = shell::flush_output(); !sent)
    spdlog::warn("READY could not be written: {}", sent.error().message);
}

/// What the broker was asked for last; a SIGHUP may change it while it serves.
class CurrentSettings {
 public:
  explicit CurrentSettings(Settings settings) : settings_(std::move(settings)) {}
  Settings get() const {
    const std::lock_guard lock(mutex_);
    return settings_;
  }
  void set(Settings settings) {
    const std::lock_guard lock(mutex_);
    settings_ = std::move(settings);
  }

 private:
  mutable std::mutex mutex_;
  Settings settings_;
};

/// Reads everything anew. A file that is wrong changes nothing; a value that the segment refuses
/// leaves those before it set.
void reload(const Broker& broker, const ReadSettings& read, CurrentSettings& current,
            const std::string& origin) {
  const Settings before = current.get();
  notify_service_manager("RELOADING=1");
  bool checked = false;
  try {
    Settings settings = read();
    if (settings.where.name != before.where.name || settings.where.dir != before.where.dir)
      spdlog::warn("the segment's name and directory are chosen at the start: they stay {} and {}",
                   before.where.name, before.where.dir);
    settings.where = before.where;
    take_over_from_existing(settings);
    must(settle_order(settings));
    const Priorities priorities = default_priorities(settings);
    if (const std::string kept = broker.kept_options(settings.options); !kept.empty())
      spdlog::warn("what is chosen when a segment is made stays: {}", kept);
    checked = true;
    apply(broker.segment(), settings, priorities);
    spdlog::set_level(spdlog::level::from_str(settings.log_level));
    current.set(std::move(settings));
    spdlog::info("{}: the configuration was read again and is in force", origin);
  } catch (const shell::Refusal& refusal) {
    spdlog::error("{}: {}; {}", origin, refusal.error.message,
                  checked ? "what stands before it is in force, the rest is as it was"
                          : "all settings stay as they were");
  }
  notify_service_manager("READY=1");
}

void serve_until_stopped(const ReadSettings& read, CurrentSettings& current,
                         const Priorities& priorities) {
  const Settings settings = current.get();
  Broker broker = must(Broker::start(settings.where, settings.options));
  const Observer observer = must(Observer::attach(broker.segment()));
  const SegmentInfo info = observer.segment_info();
  spdlog::info("{} {}: {}, room for {} jobs, convention {}, format {}",
               broker.resumed() ? "resumed" : "created", info.path,
               shell::bytes_text(info.size_bytes), info.slots, info.convention, info.format);
  if (broker.resumed()) {
    spdlog::info("found: {}", broker.resume_report());
    if (const std::string kept = broker.kept_options(settings.options); !kept.empty())
      spdlog::warn("what is chosen when a segment is made stays: {}", kept);
  }
  try {
    apply(broker.segment(), settings, priorities);
  } catch (const shell::Refusal&) {
    // A segment made for settings that turned out to be wrong would stand in the way of the next
    // attempt.
    if (!broker.resumed()) [[maybe_unused]]
      const Status removed = remove_segment(broker.segment());
    throw;
  }
  warn_of_unbounded_queues(observer);

  {
    const SignalWatch watch([&](int signal, const std::string& origin) {
      if (signal == SIGHUP) return reload(broker, read, current, origin);
      spdlog::info("{}: stopping", origin);
      broker.stop();
    });
    say_ready(settings.where.name);
    notify_service_manager(
        fmt::format("READY=1\nMAINPID={}\nSTATUS=serving {}", ::getpid(), info.path));
    must(broker.run([](std::string_view line) { spdlog::info("{}", line); }));
  }
  notify_service_manager("STOPPING=1");
  remove_unless_wanted(current.get(), broker);
}

}  // namespace

int serve(const ReadSettings& read) {
  Settings settings = read();
  start_logging(settings.log_level);
  take_over_from_existing(settings);
  must(settle_order(settings));
  const Priorities priorities = default_priorities(settings);
  CurrentSettings current(std::move(settings));
  serve_until_stopped(read, current, priorities);
  return shell::kExitOk;
}

}  // namespace ojs_shm::broker
