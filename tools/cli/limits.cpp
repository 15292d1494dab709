// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <optional>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct LimitListOptions {};

std::string pace_text(std::uint32_t most, std::uint32_t period_ms) {
  if (most == 0) return "-";
  if (period_ms % 1000 != 0) return fmt::format("{}/{}ms", most, period_ms);
  return fmt::format("{}/{}s", most, period_ms / 1000);
}

int list_limits(const Request& request, const LimitListOptions&) {
  const Observer observer = must(Observer::attach(request.where));
  shell::Table table({"KEY", "CONCURRENCY>", "ACTIVE>", "WAITING>", "RATE>", "THROTTLE>",
                      "ON LIMIT", "EXCEEDED>"});
  for (const LimitInfo& info : observer.limits()) {
    if (request.json) {
      print_line(print_limit(info));
      continue;
    }
    constexpr const char* kNames[] = {"wait", "reschedule", "drop"};
    table.row({info.key, info.limit.concurrency ? std::to_string(*info.limit.concurrency) : "-",
               std::to_string(info.active), std::to_string(info.waiting),
               pace_text(info.limit.rate, info.limit.rate_period_ms),
               pace_text(info.limit.throttle, info.limit.throttle_period_ms),
               kNames[static_cast<std::size_t>(info.limit.on_limit)],
               std::to_string(info.exceeded_total)});
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

struct KeyOptions {
  std::string key;
};

int get_limit(const Request& request, const KeyOptions& options) {
  const std::string shown =
      print_limit(must(must(Observer::attach(request.where)).limit(options.key)));
  if (request.json) {
    print_line(shown);
  } else {
    print_members(shown);
  }
  return shell::kExitOk;
}

struct LimitSetOptions {
  std::string key;
  std::optional<std::uint32_t> concurrency, burst;
  std::optional<std::string> rate, window, throttle, on_limit, expires;
};

/// "100/minute" or "100/PT1M", and one member more, as the reader of limits wants it.
std::string pace_object(const std::string& text, std::string_view more,
                        const std::optional<std::string>& value) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos)
    shell::refuse(
        Code::kInvalid,
        fmt::format("'{}' is not a rate; write N/PERIOD, such as 100/minute or 100/PT1M", text));
  const std::string most = text.substr(0, slash);
  return object([&](json::ObjectWriter& writer) {
    json::check(most).ok() ? writer.value("limit", most) : writer.text("limit", most);
    writer.text("period", text.substr(slash + 1));
    if (value) more == "burst" ? writer.value(more, *value) : writer.text(more, *value);
  });
}

int set_limit(const Request& request, const LimitSetOptions& options) {
  if ((options.window && !options.rate) || (options.burst && !options.throttle))
    shell::refuse(Code::kInvalid, "--window goes with --rate, --burst with --throttle");
  if (!options.concurrency && !options.rate && !options.throttle)
    shell::refuse(Code::kInvalid,
                  "give a limit: --concurrency N, --rate N/PERIOD or --throttle N/PERIOD");
  const std::string rule = object([&](json::ObjectWriter& writer) {
    if (options.concurrency) count(writer, "concurrency", *options.concurrency);
    if (options.rate) writer.value("rate", pace_object(*options.rate, "window", options.window));
    const auto burst = options.burst ? std::optional(std::to_string(*options.burst)) : std::nullopt;
    if (options.throttle) writer.value("throttle", pace_object(*options.throttle, "burst", burst));
    if (options.on_limit) writer.text("on_limit", *options.on_limit);
    if (options.expires)
      writer.text("expires_at", print_timestamp(must(shell::parse_time_ms(*options.expires))));
  });
  const JobLimit limit = must(parse_limit(rule, true));
  must(must(Admin::attach(request.where)).set_limit(options.key, limit.limit, limit.expires_at_ms));
  if (request.json) return get_limit(request, KeyOptions{options.key});
  shell::inform("limit {} is set; `limit get {}` shows how", options.key, options.key);
  return shell::kExitOk;
}

int remove_limit(const Request& request, const KeyOptions& options) {
  must(must(Admin::attach(request.where)).clear_limit(options.key));
  told(request, "{} has no limit until a job is enqueued with one", options.key);
  return shell::kExitOk;
}

}  // namespace

void add_limit_commands(CLI::App& app, Request& request) {
  CLI::App* limit =
      app.add_subcommand("limit", "List, read and change limits on concurrency and rates");
  limit->require_subcommand(1);
  limit->fallthrough();
  set_footer(*limit);
  add_command<LimitListOptions>(*limit, request, "list",
                                "All keys with their limits and who works and waits", &list_limits);
  const auto [get, get_options] =
      add_command<KeyOptions>(*limit, request, "get", "One key", &get_limit);
  get->add_option("KEY", get_options->key, "The key")->required();
  const auto [remove, remove_options] = add_command<KeyOptions>(
      *limit, request, "rm", "No limit until a job is enqueued with one", &remove_limit);
  remove->add_option("KEY", remove_options->key, "The key")->required();

  const auto [set, options] = add_command<LimitSetOptions>(
      *limit, request, "set",
      "Set all of a key's limits, in place of what jobs bring; effective at once", &set_limit);
  set->add_option("KEY", options->key,
                  "queue:NAME, type:NAME, tenant:ID, or the key that jobs bring")
      ->required();
  set->add_option("--concurrency", options->concurrency, "So many active at once; 0: none")
      ->type_name("N")
      ->check(kNotNegative);
  set->add_option("--rate", options->rate,
                  "So many begin in each window, such as 100/minute or 100/PT1M")
      ->type_name("N/PERIOD");
  set->add_option("--window", options->window,
                  "fixed, or sliding: any period of that length [fixed]")
      ->type_name("KIND");
  set->add_option("--throttle", options->throttle, "So many begin in a period, evenly spaced")
      ->type_name("N/PERIOD");
  set->add_option("--burst", options->burst, "So many may begin at once after a pause [1]")
      ->type_name("N")
      ->check(kNotNegative);
  set->add_option("--expires", options->expires, "When it is taken back; never unless given")
      ->type_name("TIME");
  set->add_option("--on-limit", options->on_limit, "wait, reschedule or drop [wait]")
      ->type_name("WHAT");
}

}  // namespace ojs_shm::cli
