// SPDX-License-Identifier: Apache-2.0
#include "worker_api/simulation/simulation.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tools/cli/command.hpp"
#include "tools/cli/progress_bar.hpp"
#include "tools/cli/simulate_load.hpp"
#include "tools/cli/view.hpp"
#include "tools/cli/work_config.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;
using shell::refuse;

struct SimulateOptions {
  std::string trace, synthetic, convention = "ojs", strategy, service = "10ms", svg, save;
  std::optional<std::uint64_t> seed;
  std::uint32_t concurrency = 1;
  std::vector<std::string> queues, settings, pools, workers;
};

/// "mail={...}"; of "*" only `aging` can be said.
void add_settings(SimulationPlan& plan, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == text.npos)
    refuse(Code::kInvalid, fmt::format("--set: \"{}\" is not QUEUE=JSON", text));
  const std::string queue = text.substr(0, equals);
  QueueSettings settings = must(parse_queue_settings(text.substr(equals + 1)));
  if (queue == "*") {
    if (!settings.aging) refuse(Code::kInvalid, "--set: of all queues (*) only aging can be set");
    plan.default_aging = settings.aging;
  } else {
    plan.queues.emplace_back(queue, std::move(settings));
  }
}

/// "web={...}": in place of what the load says of that pool.
void declare_pool(Trace& trace, const std::string& text, std::uint32_t concurrency) {
  const auto equals = text.find('=');
  if (equals == text.npos)
    refuse(Code::kInvalid, fmt::format("--pool: \"{}\" is not NAME=JSON", text));
  const std::string name = text.substr(0, equals);
  auto pool = std::ranges::find(trace.pools, name, &SimulatedPool::name);
  if (pool == trace.pools.end())
    pool = trace.pools.insert(pool, SimulatedPool{name, {}, 1, concurrency});
  pool->settings = must(parse_pool_settings(text.substr(equals + 1)));
}

/// "4", workers of no pool, or "web:4". Returns those of no pool.
std::uint32_t hire(Trace& trace, const std::vector<std::string>& texts) {
  std::uint32_t free = trace.pools.empty() ? 1 : 0;
  for (const std::string& text : texts) {
    const auto mark = text.rfind(':');
    const std::string digits = mark == text.npos ? text : text.substr(mark + 1);
    std::uint32_t count = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (fault != std::errc() || end != digits.data() + digits.size() || count > 900)
      refuse(Code::kInvalid,
             fmt::format("--workers: \"{}\" is no N or POOL:N with at most 900", text));
    if (mark == text.npos) {
      free = count;
      continue;
    }
    const auto pool = std::ranges::find(trace.pools, text.substr(0, mark), &SimulatedPool::name);
    if (pool == trace.pools.end())
      refuse(Code::kInvalid, fmt::format("--workers: no pool \"{}\"", text.substr(0, mark)));
    pool->workers = count;
  }
  return free;
}

SimulationPlan plan_of(const SimulateOptions& options, const Trace& trace, std::uint32_t workers) {
  SimulationPlan plan;
  for (const std::string& text : options.settings) add_settings(plan, text);
  WorkConfig config;
  for (const std::string& queue : options.queues) config.queues.push_back(must(parse_share(queue)));
  if (!options.strategy.empty()) config.strategy = options.strategy;
  if (config.queues.empty()) {
    std::set<std::string> names;
    for (const TraceArrival& arrival : trace.arrivals) names.insert(arrival.queue);
    for (const std::string& name : names) config.queues.push_back({name, std::nullopt});
  }
  SimulatedWorkers kind;
  kind.count = workers;
  kind.concurrency = options.concurrency;
  must(apply(config, kind.options));
  plan.workers.push_back(std::move(kind));
  return plan;
}

void write_times(json::ObjectWriter& writer, std::string_view name, const SimulatedGroup& group) {
  json::ObjectWriter times(writer.open(name));
  for (const auto& [each, value] : {std::pair("mean", group.mean_ms),
                                    std::pair("p50", group.p50_ms), std::pair("p95", group.p95_ms),
                                    std::pair("p99", group.p99_ms), std::pair("max", group.max_ms)})
    times.number(each, value);
  times.close();
}

void write_group(json::ObjectWriter& writer, const SimulatedGroup& group) {
  if (!group.name.empty()) writer.text("name", group.name);
  count(writer, "arrived", group.arrived);
  count(writer, "refused", group.refused);
  count(writer, "duplicates", group.duplicates);
  count(writer, "served", group.served);
  writer.number("share", group.share);
  write_times(writer, "wait_ms", group);
}

void write_groups(json::ObjectWriter& writer, std::string_view name,
                  const std::vector<SimulatedGroup>& groups) {
  std::string& out = writer.open(name) += '[';
  for (const SimulatedGroup& group : groups) {
    if (&group != &groups.front()) out += ',';
    json::ObjectWriter inner(out);
    write_group(inner, group);
    inner.close();
  }
  out += ']';
}

void write_workflows(json::ObjectWriter& writer, const SimulatedGroup& group) {
  json::ObjectWriter inner(writer.open("workflows"));
  count(inner, "arrived", group.arrived);
  count(inner, "refused", group.refused);
  count(inner, "completed", group.served);
  write_times(inner, "took_ms", group);
  inner.close();
}

void add_rows(shell::Table& table, std::string_view kind,
              const std::vector<SimulatedGroup>& groups) {
  const auto ms = [](double value) { return fmt::format("{:.1f}", value); };
  for (const SimulatedGroup& group : groups)
    table.row({std::string(kind), group.name.empty() ? "-" : group.name,
               std::to_string(group.arrived), std::to_string(group.refused),
               std::to_string(group.duplicates), std::to_string(group.served),
               fmt::format("{:.1f}%", 100 * group.share), ms(group.mean_ms), ms(group.p50_ms),
               ms(group.p95_ms), ms(group.p99_ms), ms(group.max_ms)});
}

Trace load_of(const SimulateOptions& options, std::uint64_t seed) {
  if (options.synthetic.empty() == options.trace.empty())
    refuse(Code::kInvalid, "give a trace or --synthetic");
  if (!options.trace.empty())
    return read_trace(
        options.trace,
        static_cast<std::int64_t>(must(shell::parse_duration_ms(options.service))) * 1000);
  Trace trace = synthetic_trace(synthetic_load_of(options.synthetic, seed));
  trace.convention = options.convention;
  return trace;
}

int simulate_load(const Request& request, const SimulateOptions& options) {
  const std::uint64_t seed = options.seed ? *options.seed : std::random_device{}();
  if (!options.synthetic.empty()) shell::say("seed {}\n", seed);
  Trace trace = load_of(options, seed);
  for (const std::string& pool : options.pools) declare_pool(trace, pool, options.concurrency);
  const std::uint32_t workers = hire(trace, options.workers);
  if (!options.save.empty()) must(write_trace(options.save, trace));
  ProgressBar bar(trace.arrivals.size());
  const auto draw = [&](std::size_t played, bool final) {
    if (final || played % 256 == 0) bar.draw(played, fmt::format("{} jobs played", played), final);
  };
  const SimulationOutcome outcome = must(simulate(
      trace, plan_of(options, trace, workers), [&](std::size_t played) { draw(played, false); }));
  draw(trace.arrivals.size(), true);
  const SimulationReport report = report_of(trace, outcome);
  if (!options.svg.empty()) must(write_file(options.svg, picture_of(trace, outcome, report)));
  if (request.json) {
    print_line(object([&](json::ObjectWriter& writer) {
      if (!options.synthetic.empty()) count(writer, "seed", seed);
      writer.number("end_ms", static_cast<double>(outcome.end_us) / 1000);
      json::ObjectWriter all(writer.open("all"));
      write_group(all, report.all);
      all.close();
      write_groups(writer, "queues", report.queues);
      write_groups(writer, "levels", report.levels);
      write_groups(writer, "tenants", report.tenants);
      write_groups(writer, "pools", report.pools);
      if (report.workflows) write_workflows(writer, *report.workflows);
    }));
    return shell::kExitOk;
  }
  shell::Table table({"OF", "NAME", "ARRIVED>", "REFUSED>", "DUPLICATES>", "SERVED>", "SHARE>",
                      "MEAN MS>", "P50>", "P95>", "P99>", "MAX>"});
  add_rows(table, "all", {report.all});
  add_rows(table, "queue", report.queues);
  add_rows(table, "level", report.levels);
  add_rows(table, "tenant", report.tenants);
  add_rows(table, "pool", report.pools);
  if (report.workflows) add_rows(table, "workflow", {*report.workflows});
  table.print();
  return shell::kExitOk;
}

}  // namespace

void add_simulate_command(CLI::App& app, Request& request) {
  auto [command, options] = add_command<SimulateOptions>(
      app, request, "simulate",
      "What a policy would do to a load: waits and shares, without any time passing",
      &simulate_load);
  command->add_option("trace", options->trace, "A file from `record`, or - for standard input")
      ->type_name("TRACE");
  command
      ->add_option("--synthetic", options->synthetic,
                   "Instead of a trace: jobs=10000,rate=100,service=10ms,fixed,queues=a:3|b:1,\n"
                   "priorities=0:1|2:4,tenants=x:9|y:1,size=64,unique=KEYS; rates are a second, 0 "
                   "means all at once")
      ->type_name("LOAD");
  command->add_option("--seed", options->seed, "Of --synthetic (made, and printed)")
      ->type_name("N")
      ->check(kNotNegative);
  command->add_option("--convention", options->convention,
                      "Of --synthetic: ojs, ojs-core or qo (ojs)");
  command
      ->add_option(
          "--pool", options->pools,
          "A pool of workers, or other settings for one of the trace, as `pool set` has them")
      ->type_name("NAME=JSON")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--workers", options->workers,
          "Workers of a pool (as in the trace, else 1), or of none (1; 0 where there are pools)")
      ->type_name("[POOL:]N")
      ->allow_extra_args(false);
  command
      ->add_option("--concurrency", options->concurrency,
                   "Jobs that each worker does at a time, where the trace is silent (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  command
      ->add_option("--queue", options->queues,
                   "Queues of workers of no pool, with weights if they are weighted (all)")
      ->type_name("NAME[:WEIGHT]")
      ->allow_extra_args(false);
  command->add_option("--strategy", options->strategy,
                      "Of the workers among queues: strict or weighted (strict)");
  command
      ->add_option(
          "--set", options->settings,
          "Settings of a queue under trial, as `queue set` has them; of all with * (ageing alone)")
      ->type_name("QUEUE=JSON")
      ->allow_extra_args(false);
  command
      ->add_option("--service", options->service,
                   "Of jobs whose type never ended in the trace (10ms)")
      ->type_name("TIME");
  command
      ->add_option("--svg", options->svg,
                   "Draw each dispatch: when it was, how long the job had waited")
      ->type_name("FILE");
  command->add_option("--save", options->save, "Write the load as a trace")->type_name("FILE");
  set_footer(*command,
             "\nOUTPUT\n"
             "  A row for the whole, each queue, level, tenant and pool: arrivals, refusals, "
             "services, share of the\n"
             "  dispatches up to the last arrival, waits in ms. Of workflows: how many completed, "
             "and how long they\n"
             "  took. No segment is needed, and none is touched.\n"
             "\nEXAMPLE\n"
             "  ojs-shm simulate monday.trace --workers 4 --set "
             "'default={\"aging\":{\"interval\":\"PT30S\"}}'\n"
             "  ojs-shm simulate monday.trace --pool "
             "'web={\"queues\":{\"a\":3,\"b\":1},\"strategy\":\"weighted\"}' "
             "--workers web:2\n");
}

}  // namespace ojs_shm::cli
