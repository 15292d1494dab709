// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <optional>
#include <string>
#include <vector>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/cli/work_config.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct PoolListOptions {};

int list_pools(const Request& request, const PoolListOptions&) {
  shell::Table table(
      {"POOL", "STRATEGY", "QUEUES", "LIMIT>", "WORKERS>", "ACTIVE>", "WAITING>", "ISOLATED"});
  for (const WorkerPoolInfo& pool : must(Observer::attach(request.where)).pools()) {
    if (request.json) {
      print_line(print_pool(pool));
      continue;
    }
    const PoolSettings& settings = pool.settings;
    table.row({pool.name, std::string(pool_strategy_name(settings.strategy)),
               fmt::format("{}", fmt::join(settings.queues, ",")),
               settings.concurrency == 0 ? "-" : std::to_string(settings.concurrency),
               std::to_string(pool.active_workers), std::to_string(pool.active_jobs),
               std::to_string(pool.waiting_jobs), settings.isolated ? "yes" : "no"});
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

struct PoolNameOptions {
  std::string name;
};

int get_pool(const Request& request, const PoolNameOptions& options) {
  const std::string shown =
      print_pool(must(must(Observer::attach(request.where)).pool(options.name)));
  request.json ? print_line(shown) : print_members(shown);
  return shell::kExitOk;
}

int remove_pool(const Request& request, const PoolNameOptions& options) {
  must(must(Admin::attach(request.where)).remove_pool(options.name));
  told(request, "pool {} is removed; its queues stay", options.name);
  return shell::kExitOk;
}

struct PoolSetOptions {
  std::string name;
  std::vector<std::string> queues;
  std::optional<std::string> strategy, rotation_interval;
  std::optional<std::uint64_t> concurrency;
  std::optional<bool> isolated, prevention;
  std::optional<double> ratio;
};

/// What is not given stays as it is.
int set_pool(const Request& request, const PoolSetOptions& options) {
  Admin admin = must(Admin::attach(request.where));
  const auto before = must(Observer::attach(admin.segment())).pool(options.name);
  PoolSettings settings = before ? before.value().settings : PoolSettings{};
  if (options.strategy) {
    const std::string json = object([&](json::ObjectWriter& writer) {
      writer.value("queues", "[]");
      writer.text("strategy", *options.strategy);
    });
    settings.strategy = must(parse_pool_settings(json)).strategy;
  }
  if (!options.queues.empty()) {
    settings.queues.clear();
    settings.weights.clear();
    for (const std::string& text : options.queues) {
      const QueueShare share = must(parse_share(text));
      settings.queues.push_back(share.name);
      if (share.weight && (*share.weight < 1 || *share.weight > 1'000'000))
        shell::refuse(Code::kInvalid,
                      fmt::format("the weight of {} must be from 1 to 1000000", share.name));
      if (share.weight)
        settings.weights.emplace_back(share.name, static_cast<std::uint32_t>(*share.weight));
    }
    if (!settings.weights.empty() && !options.strategy) settings.strategy = PoolStrategy::kWeighted;
  }
  if (options.concurrency) settings.concurrency = *options.concurrency;
  if (options.isolated) settings.isolated = *options.isolated;
  StarvationPrevention& prevention = settings.starvation_prevention;
  if (options.prevention) prevention.enabled = *options.prevention;
  if (options.ratio) prevention.min_dispatch_ratio = *options.ratio;
  if (options.rotation_interval)
    prevention.rotation_interval_ms = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(must(shell::parse_duration_ms(*options.rotation_interval)), ~0U));
  must(admin.set_pool(options.name, settings));
  if (request.json) return get_pool(request, PoolNameOptions{options.name});
  shell::inform("pool {} is set; `pool get {}` shows how", options.name, options.name);
  return shell::kExitOk;
}

}  // namespace

void add_pool_commands(CLI::App& app, Request& request) {
  CLI::App* pool = app.add_subcommand("pool", "List, read and change pools of workers");
  pool->require_subcommand(1);
  pool->fallthrough();
  set_footer(*pool,
             "\nEXAMPLES\n"
             "  ojs-shm pool set web --queue critical:5,default:2,low:1 --concurrency 20\n"
             "  ojs-shm pool get web --json\n");
  add_command<PoolListOptions>(*pool, request, "list",
                               "All pools with their queues and what they have in hand",
                               &list_pools);
  const auto [get, get_options] =
      add_command<PoolNameOptions>(*pool, request, "get", "One pool", &get_pool);
  get->add_option("NAME", get_options->name, "The pool")->required();
  const auto [set, set_options] = add_command<PoolSetOptions>(
      *pool, request, "set", "Make or change a pool; effective at once", &set_pool);
  set->add_option("NAME", set_options->name, "The pool")->required();
  set->add_option("--queue", set_options->queues,
                  "Its queues, in order; with weights they are weighted")
      ->type_name("Q[:WEIGHT],...")
      ->delimiter(',')
      ->allow_extra_args(false);
  set->add_option(
         "--strategy", set_options->strategy,
         "strict, round-robin, weighted or least-loaded (round-robin, with weights weighted)")
      ->type_name("S");
  set->add_option("--concurrency", set_options->concurrency,
                  "Active jobs of all its workers together; 0: unlimited")
      ->type_name("N")
      ->check(kNotNegative);
  set->add_option("--isolated", set_options->isolated, "Only its workers get jobs of its queues")
      ->type_name("true|false");
  set->add_option("--starvation-prevention", set_options->prevention,
                  "Serve every queue that has jobs now and then (false)")
      ->type_name("true|false");
  set->add_option("--rotation-interval", set_options->rotation_interval,
                  "A queue that has jobs is served in it (30s)")
      ->type_name("TIME");
  set->add_option("--min-dispatch-ratio", set_options->ratio, "Least share of each queue (0.05)")
      ->type_name("R");
  const auto [remove, remove_options] = add_command<PoolNameOptions>(
      *pool, request, "rm", "Remove a pool; its queues stay, open to all workers", &remove_pool);
  remove->add_option("NAME", remove_options->name, "The pool")->required();
}

}  // namespace ojs_shm::cli
