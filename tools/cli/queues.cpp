// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <map>
#include <optional>

#include <ojs_shm/admin.hpp>

#include "tools/cli/bulk.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/pairs.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/roles/queue_policy.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct QueueListOptions {};

std::string bound_text(std::uint64_t bound) { return bound == 0 ? "-" : std::to_string(bound); }

int list_queues(const Request& request, const QueueListOptions&) {
  const Observer observer = must(Observer::attach(request.where));
  shell::Table table({"QUEUE", "STATE!", "DEPTH>", "MAX>", "BYTES>", "MAX BYTES>", "ACTIVE>",
                      "COMPLETED>", "DISCARDED>"});
  for (const QueueInfo& queue : observer.queues()) {
    if (request.json) {
      print_line(object([&](json::ObjectWriter& writer) { write_queue(writer, queue); }));
      continue;
    }
    table.row({queue.name, queue.paused ? "paused" : "running", std::to_string(queue.depth),
               bound_text(queue.max_depth), std::to_string(queue.size_bytes),
               bound_text(queue.max_size_bytes),
               std::to_string(queue.by_state[static_cast<std::size_t>(State::kActive)]),
               std::to_string(queue.completed_total), std::to_string(queue.discarded_total)});
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

struct QueueNameOptions {
  std::string name;
};

int get_queue(const Request& request, const QueueNameOptions& options) {
  const Observer observer = must(Observer::attach(request.where));
  const QueueInfo queue = must(observer.queue(options.name));
  const std::string shown = object([&](json::ObjectWriter& writer) { write_queue(writer, queue); });
  if (request.json) {
    print_line(shown);
  } else {
    print_members(shown);
  }
  return shell::kExitOk;
}

struct QueueSetOptions {
  std::string name;
  std::optional<std::uint64_t> max_depth;
  std::optional<std::string> max_size_bytes;
  std::optional<bool> paused;
  std::optional<std::string> aging, level_weights, tenant_fairness, tenant_weights, retention;
  std::optional<std::uint32_t> shards;
  std::string strategy, warning_threshold, clear_threshold, drop;
  std::optional<std::uint64_t> tenant_max_depth;
  std::optional<std::string> tenant_max_size_bytes;
  std::vector<std::string> tenant_bounds;
};

/// "default", or the members of `aging` as JSON, or as NAME=VALUE,... with "on" or "off" among
/// them; all of them go through the reader of settings.
std::string aging_object(const std::string& text) {
  if (text == "default") return R"("default")";
  if (text.starts_with('{')) return text;
  return object([&](json::ObjectWriter& writer) {
    for (const auto& [name, value] : shell::pairs_of(text, '=')) {
      if (value.empty() && (name == "on" || name == "off")) {
        writer.boolean("enabled", name == "on");
        continue;
      }
      const bool literal = json::check(value).ok() && json::kind_of(value) != json::Kind::kString;
      literal ? writer.value(name, value) : writer.text(name, value);
    }
  });
}

std::string weights_object(const std::string& text) {
  if (text.starts_with('{')) return text;
  return object([&](json::ObjectWriter& writer) {
    const bool none = text == "off" || text == "none";
    for (const auto& [level, weight] : none ? shell::Pairs() : shell::pairs_of(text, ':')) {
      json::check(weight).ok() ? writer.value(level, weight) : writer.text(level, weight);
    }
  });
}

/// What the queue has, and in its place what the flags say.
std::string fairness_object(const QueueSetOptions& options, const TenantFairness& has) {
  std::map<std::string, std::string> members = {
      {"enabled", "true"},
      {"scope", has.across ? R"("across")" : R"("within")"},
      {"default_weight", std::to_string(has.default_weight)},
      {"weights", object([&](json::ObjectWriter& weights) {
         for (const auto& [tenant, weight] : has.weights)
           weights.number(tenant, std::int64_t{weight});
       })}};
  std::string given = options.tenant_fairness.value_or("{}");
  if (given == "on" || given == "across") {
    given = given == "on" ? R"({"scope":"within"})" : R"({"scope":"across"})";
  } else if (given == "off") {
    given = R"({"enabled":false})";
  } else if (!given.starts_with('{')) {
    given = object([pairs = shell::pairs_of(given, '=')](json::ObjectWriter& writer) {
      for (const auto& [name, value] : pairs)
        json::check(value).ok() ? writer.value(name, value) : writer.text(name, value);
    });
  }
  if (!json::check(given).ok()) return given;  // the reader of settings says what is wrong
  for (const json::Member& member : json::members_of(given))
    members[member.name] = std::string(member.value);
  if (options.tenant_weights) members["weights"] = weights_object(*options.tenant_weights);
  return object([&](json::ObjectWriter& writer) {
    for (const auto& [name, value] : members) writer.value(name, value);
  });
}

/// STATE=TIME,..., or off for all states.
std::string retention_object(const std::string& text) {
  if (text.starts_with('{')) return text;
  return object([&](json::ObjectWriter& writer) {
    for (const auto& [state, kept] :
         shell::pairs_of(text == "off" ? "completed=off,discarded=off,cancelled=off" : text, '='))
      kept == "off" || kept == "0" ? writer.value(state, "null") : writer.text(state, kept);
  });
}

void add_order(QueueSettings& settings, const QueueSetOptions& options,
               const TenantFairness& fairness) {
  const std::string order = object([&](json::ObjectWriter& writer) {
    if (options.aging) writer.value("aging", aging_object(*options.aging));
    if (options.level_weights)
      writer.value("level_weights", weights_object(*options.level_weights));
    if (options.tenant_fairness || options.tenant_weights)
      writer.value("tenant_fairness", fairness_object(options, fairness));
    if (options.retention) writer.value("retention", retention_object(*options.retention));
  });
  const QueueSettings read = must(parse_queue_settings(order));
  settings.aging = read.aging;
  settings.level_weights = read.level_weights;
  settings.shards = options.shards;
  settings.tenant_fairness = read.tenant_fairness;
  settings.retention = read.retention;
}

/// As the Admin API reads them.
void add_backpressure(QueueSettings& settings, const QueueSetOptions& options) {
  const QueueSettings read = must(parse_queue_settings(object([&](json::ObjectWriter& writer) {
    writer.open("backpressure") += object([&](json::ObjectWriter& members) {
      if (!options.strategy.empty()) members.text("strategy", options.strategy);
      if (!options.drop.empty()) members.text("drop", options.drop);
      for (const auto& [name, share] : {std::pair("warning_threshold", options.warning_threshold),
                                        std::pair("clear_threshold", options.clear_threshold)})
        if (!share.empty())
          json::check(share).ok() ? members.value(name, share) : members.text(name, share);
    });
  })));
  settings.strategy = read.strategy;
  settings.warning_threshold = read.warning_threshold;
  settings.clear_threshold = read.clear_threshold;
  settings.drop = read.drop;
}

/// NAME:JOBS[:BYTES], or NAME:off; each a change to what the queue's tenants have.
void add_tenant_bounds(QueueSettings& settings, const QueueSetOptions& options,
                       std::vector<TenantBound> bounds) {
  for (const std::string& text : options.tenant_bounds) {
    const auto wrong = [&text] {
      must(
          Status(Error{Code::kInvalid,
                       "'" + text + "' must be NAME:JOBS, NAME:JOBS:BYTES, NAME::BYTES or NAME:off"}
                     .about("tenant-bound")));
    };
    // A name may have colons of its own.
    std::size_t last = text.rfind(':');
    if (last == std::string::npos) wrong();
    std::string jobs = text.substr(last + 1), bytes;
    if (const std::size_t before = last == 0 ? std::string::npos : text.rfind(':', last - 1);
        jobs != "off" && before != std::string::npos &&
        text.find_first_not_of("0123456789", before + 1) >= last) {
      bytes = jobs;
      jobs = text.substr(before + 1, last - before - 1);
      last = before;
    }
    TenantBound bound{text.substr(0, last)};
    std::erase_if(bounds,
                  [&bound](const TenantBound& each) { return each.tenant == bound.tenant; });
    if (jobs == "off") continue;
    if (!jobs.empty()) {
      const std::int64_t number = json::check(jobs).ok() ? json::integer_of(jobs).value_or(-1) : -1;
      if (number < 0) wrong();
      bound.max_depth = static_cast<std::uint64_t>(number);
    }
    if (!bytes.empty()) bound.max_size_bytes = must(shell::parse_bytes(bytes));
    if (!bound.max_depth && !bound.max_size_bytes) wrong();
    bounds.push_back(std::move(bound));
  }
  settings.tenant_bounds = std::move(bounds);
}

int set_queue(const Request& request, const QueueSetOptions& options) {
  QueueSettings settings;
  settings.max_depth = options.max_depth;
  settings.paused = options.paused;
  if (options.max_size_bytes)
    settings.max_size_bytes = must(shell::parse_bytes(*options.max_size_bytes));
  QueueInfo present;  // as it is; a queue that there is not yet has nothing
  if (options.tenant_fairness || options.tenant_weights || !options.tenant_bounds.empty())
    if (auto queue = must(Observer::attach(request.where)).queue(options.name))
      present = std::move(queue).value();
  add_order(settings, options, present.tenant_fairness);
  add_backpressure(settings, options);
  settings.tenant_max_depth = options.tenant_max_depth;
  if (options.tenant_max_size_bytes)
    settings.tenant_max_size_bytes = must(shell::parse_bytes(*options.tenant_max_size_bytes));
  if (!options.tenant_bounds.empty())
    add_tenant_bounds(settings, options, std::move(present.tenant_bounds));
  must(must(Admin::attach(request.where)).set_queue(options.name, settings));
  if (request.json) return get_queue(request, QueueNameOptions{options.name});
  shell::inform("queue {} is set; `queue get {}` shows how", options.name, options.name);
  return shell::kExitOk;
}

/// A misspelt name is not taken for a new queue.
int pause_or_resume(const Request& request, const std::string& name, bool paused) {
  must(must(Observer::attach(request.where)).queue(name));
  QueueSettings settings;
  settings.paused = paused;
  must(must(Admin::attach(request.where)).set_queue(name, settings));
  told(request, "queue {} {}", name,
       paused ? "is paused: it accepts jobs and gives none" : "gives its jobs again");
  return shell::kExitOk;
}

int pause(const Request& request, const QueueNameOptions& options) {
  return pause_or_resume(request, options.name, true);
}
int resume(const Request& request, const QueueNameOptions& options) {
  return pause_or_resume(request, options.name, false);
}

struct ClearOptions {
  std::string name;
  bool yes = false;
};

int clear(const Request& request, const ClearOptions& options) {
  Admin admin = must(Admin::attach(request.where));
  JobFilter filter;
  filter.queue = options.name;
  filter.waiting = true;
  return run_bulk(request, admin, BulkAction::kCancel, filter, {"cancel", "cancelled"},
                  options.yes);
}

struct DeleteOptions {
  std::string name;
  bool discard = false, yes = false;
};

int delete_queue(const Request& request, const DeleteOptions& options) {
  Admin admin = must(Admin::attach(request.where));
  if (options.discard && !options.yes) {
    const QueueInfo queue = must(must(Observer::attach(request.where)).queue(options.name));
    const std::uint64_t jobs =
        queue.depth + queue.by_state[static_cast<std::size_t>(State::kActive)];
    if (jobs != 0 && !confirmed(jobs, {"discard", "discarded", "unfinished job"}))
      return shell::kExitFailed;
  }
  const std::uint64_t discarded = must(admin.delete_queue(
      options.name, options.discard ? QueueDeletion::kDiscard : QueueDeletion::kReject));
  if (request.json)
    print_line(object([&](json::ObjectWriter& writer) {
      writer.text("queue", options.name);
      count(writer, "discarded", discarded);
    }));
  else
    shell::inform("queue {} is deleted, {} unfinished job{} discarded", options.name, discarded,
                  discarded == 1 ? "" : "s");
  return shell::kExitOk;
}

struct DefaultPriorityOptions {
  std::string type, priority;
};

int default_priority(const Request& request, const DefaultPriorityOptions& options) {
  const Observer observer = must(Observer::attach(request.where));
  if (!options.priority.empty()) {
    std::optional<std::int64_t> wanted;
    if (options.priority != "none") wanted = parse_priority(observer, options.priority);
    must(must(Admin::attach(request.where)).set_default_priority(options.type, wanted));
  }
  const auto priority = observer.default_priority(options.type);
  const std::int64_t shown = priority.value_or(observer.segment_settings().priority_default);
  if (request.json) {
    print_line(object([&](json::ObjectWriter& writer) {
      writer.text("type", options.type);
      writer.number("default_priority", shown);
      writer.boolean("set", priority.has_value());
    }));
  } else {
    fmt::print("{}\n", shown);
  }
  return shell::kExitOk;
}

struct DefaultAgingOptions {
  std::string aging;
};

int default_aging(const Request& request, const DefaultAgingOptions& options) {
  if (!options.aging.empty()) {
    const QueueSettings read = must(parse_queue_settings(object(
        [&](json::ObjectWriter& writer) { writer.value("aging", aging_object(options.aging)); })));
    must(must(Admin::attach(request.where)).set_default_aging(*read.aging));
  }
  const SegmentInfo info = must(Observer::attach(request.where)).segment_settings();
  const std::string shown = internal::print_aging(info.aging, info.lower_first);
  request.json ? print_line(shown) : print_members(shown);
  return shell::kExitOk;
}

}  // namespace

void add_queue_commands(CLI::App& app, Request& request) {
  CLI::App* queue = app.add_subcommand("queue", "List, read and change queues");
  queue->require_subcommand(1);
  queue->fallthrough();
  set_footer(*queue,
             "\nEXAMPLES\n"
             "  ojs-shm queue set mail --max-depth 10000 --aging on,interval=30s\n"
             "  ojs-shm queue get mail --json\n");
  add_command<QueueListOptions>(*queue, request, "list", "All queues with depth, bounds and totals",
                                &list_queues);
  const auto [get, get_options] =
      add_command<QueueNameOptions>(*queue, request, "get", "One queue", &get_queue);
  get->add_option("NAME", get_options->name, "The queue")->required();

  const auto [set, set_options] = add_command<QueueSetOptions>(
      *queue, request, "set", "Make or change a queue; effective at once", &set_queue);
  set->add_option("NAME", set_options->name, "The queue")->required();
  set->add_option("--max-depth", set_options->max_depth, "Waiting jobs it takes; 0: unbounded")
      ->type_name("N")
      ->check(kNotNegative);
  set->add_option("--max-size-bytes,--max-bytes", set_options->max_size_bytes,
                  "Bytes of waiting jobs it takes, such as 8M; 0: unbounded")
      ->type_name("BYTES");
  set->add_option(
         "--strategy", set_options->strategy,
         "When it is full: reject, block (a producer may wait) or drop_oldest (an older job goes)")
      ->type_name("HOW");
  set->add_option("--warning-threshold", set_options->warning_threshold,
                  "Fuller than this it warns; 0 to 1, at first 0.8")
      ->type_name("SHARE");
  set->add_option("--clear-threshold", set_options->clear_threshold,
                  "Below this the warning ends; 0 to 1, at first the warning threshold")
      ->type_name("SHARE");
  set->add_option("--drop", set_options->drop, "What drop_oldest drops: oldest, or lowest_priority")
      ->type_name("WHICH");
  set->add_option("--tenant-max-depth", set_options->tenant_max_depth,
                  "Waiting jobs of each tenant that it takes; 0: unbounded")
      ->type_name("N")
      ->check(kNotNegative);
  set->add_option("--tenant-max-size-bytes,--tenant-max-bytes", set_options->tenant_max_size_bytes,
                  "Bytes of waiting jobs of each tenant that it takes; 0: unbounded")
      ->type_name("BYTES");
  set->add_option("--tenant-bound", set_options->tenant_bounds,
                  "A tenant's own bounds, such as acme:50000 or acme:50000:8M, or acme:off; may be "
                  "given again")
      ->type_name("TENANT:N[:BYTES]")
      ->allow_extra_args(false);
  set->add_option("--paused", set_options->paused, "A paused queue accepts jobs and gives none")
      ->type_name("true|false");
  set->add_option("--aging", set_options->aging,
                  "Waiting jobs rise: on, off, preset=ojs|qo, interval=60s, rate=1, floor=0 or "
                  "cap=200, with commas; or "
                  "default: as the segment has it (default-aging)")
      ->type_name("WHAT");
  set->add_option("--level-weights", set_options->level_weights,
                  "Turns of priorities, such as 0:5,1:3,*:1, at least 1 each; *: all that are not "
                  "listed, 1 unless "
                  "said, or 0; or "
                  "none for the strict order")
      ->type_name("LEVEL:N,...");
  set->add_option("--tenant-fairness", set_options->tenant_fairness,
                  "Tenants share each level by turns: on, off (weights stay), or default_weight=1; "
                  "across: they take turns "
                  "whatever the levels of their jobs")
      ->type_name("WHAT");
  set->add_option("--retention", set_options->retention,
                  "How long its jobs are kept after their end, such as completed=7d,discarded=30d,"
                  "cancelled=off; off: as the segment keeps them")
      ->type_name("STATE=TIME,...");
  set->add_option("--tenant-weights", set_options->tenant_weights,
                  "Turns of tenants, such as acme:5,basic:1; others have default_weight (1)")
      ->type_name("TENANT:N,...");
  set->add_option("--shards", set_options->shards,
                  "Lines that share the queue; order holds within one")
      ->type_name("N");

  const auto [stop, stop_options] = add_command<QueueNameOptions>(
      *queue, request, "pause", "Give no more jobs of it; new ones are accepted", &pause);
  stop->add_option("NAME", stop_options->name, "The queue")->required();
  const auto [go, go_options] =
      add_command<QueueNameOptions>(*queue, request, "resume", "Give its jobs again", &resume);
  go->add_option("NAME", go_options->name, "The queue")->required();

  const auto [empty, empty_options] = add_command<ClearOptions>(
      *queue, request, "clear", "Cancel every job of it that waits; active ones go on", &clear);
  empty->add_option("NAME", empty_options->name, "The queue")->required();
  empty->add_flag("-y,--yes", empty_options->yes, "Do not ask");

  const auto [gone, gone_options] = add_command<DeleteOptions>(
      *queue, request, "delete",
      "Forget its settings and list it no longer, until a job or a setting makes it anew",
      &delete_queue);
  gone->add_option("NAME", gone_options->name, "The queue")->required();
  gone->add_flag("--discard", gone_options->discard,
                 "Discard its unfinished jobs; without this flag they are in the way");
  gone->add_flag("-y,--yes", gone_options->yes, "Do not ask");

  const auto [type, type_options] = add_command<DefaultPriorityOptions>(
      app, request, "default-priority",
      "Show or set the priority of jobs of a type that bring none", &default_priority);
  type->add_option("TYPE", type_options->type, "The job type")->required();
  const auto [aging, aging_options] = add_command<DefaultAgingOptions>(
      app, request, "default-aging",
      "Show or set how jobs rise in queues that have no ageing of their own", &default_aging);
  aging->add_option("WHAT", aging_options->aging, "As for `queue set --aging`, but for default");
  type->add_option("PRIORITY", type_options->priority,
                   "A number or a name of the segment's convention; none: the convention's own");
}

}  // namespace ojs_shm::cli
