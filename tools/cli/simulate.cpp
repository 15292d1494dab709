// SPDX-License-Identifier: Apache-2.0
#include "worker_api/simulation.hpp"

#include <spdlog/fmt/fmt.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "tools/cli/command.hpp"
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
  std::uint32_t workers = 1, concurrency = 1;
  std::vector<std::string> queues, settings;
};

/// "mail={...}"; of "*" only `aging` can be said.
void add_settings(SimulationPlan& plan, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == text.npos) refuse(Code::kInvalid, fmt::format("--set: \"{}\" is not QUEUE=JSON", text));
  const std::string queue = text.substr(0, equals);
  QueueSettings settings = must(parse_queue_settings(text.substr(equals + 1)));
  if (queue == "*") {
    if (!settings.aging) refuse(Code::kInvalid, "--set: of all queues (*) only aging can be set");
    plan.default_aging = settings.aging;
  } else {
    plan.queues.emplace_back(queue, std::move(settings));
  }
}

SimulationPlan plan_of(const SimulateOptions& options, const Trace& trace) {
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
  kind.count = options.workers;
  kind.concurrency = options.concurrency;
  must(apply(config, kind.options));
  plan.workers.push_back(std::move(kind));
  return plan;
}

void write_group(json::ObjectWriter& writer, const SimulatedGroup& group) {
  if (!group.name.empty()) writer.text("name", group.name);
  count(writer, "arrived", group.arrived);
  count(writer, "refused", group.refused);
  count(writer, "served", group.served);
  writer.number("share", group.share);
  json::ObjectWriter waits(writer.open("wait_ms"));
  for (const auto& [name, value] :
       {std::pair("mean", group.mean_ms), std::pair("p50", group.p50_ms), std::pair("p95", group.p95_ms),
        std::pair("p99", group.p99_ms), std::pair("max", group.max_ms)})
    waits.number(name, value);
  waits.close();
}

void write_groups(json::ObjectWriter& writer, std::string_view name, const std::vector<SimulatedGroup>& groups) {
  std::string& out = writer.open(name) += '[';
  for (const SimulatedGroup& group : groups) {
    if (&group != &groups.front()) out += ',';
    json::ObjectWriter inner(out);
    write_group(inner, group);
    inner.close();
  }
  out += ']';
}

void add_rows(shell::Table& table, std::string_view kind, const std::vector<SimulatedGroup>& groups) {
  const auto ms = [](double value) { return fmt::format("{:.1f}", value); };
  for (const SimulatedGroup& group : groups)
    table.row({std::string(kind), group.name.empty() ? "-" : group.name, std::to_string(group.arrived),
               std::to_string(group.refused), std::to_string(group.served), fmt::format("{:.1f}%", 100 * group.share),
               ms(group.mean_ms), ms(group.p50_ms), ms(group.p95_ms), ms(group.p99_ms), ms(group.max_ms)});
}

Trace load_of(const SimulateOptions& options, std::uint64_t seed) {
  if (options.synthetic.empty() == options.trace.empty()) refuse(Code::kInvalid, "give a trace or --synthetic");
  if (!options.trace.empty())
    return read_trace(options.trace, static_cast<std::int64_t>(must(shell::parse_duration_ms(options.service))) * 1000);
  Trace trace = synthetic_trace(synthetic_load_of(options.synthetic, seed));
  trace.convention = options.convention;
  return trace;
}

int simulate_load(const Request& request, const SimulateOptions& options) {
  const std::uint64_t seed = options.seed ? *options.seed : std::random_device{}();
  if (!options.synthetic.empty()) shell::say("seed {}\n", seed);
  const Trace trace = load_of(options, seed);
  if (!options.save.empty()) must(write_trace(options.save, trace));
  const SimulationOutcome outcome = must(simulate(trace, plan_of(options, trace)));
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
    }));
    return shell::kExitOk;
  }
  shell::Table table(
      {"OF", "NAME", "ARRIVED>", "REFUSED>", "SERVED>", "SHARE>", "MEAN MS>", "P50>", "P95>", "P99>", "MAX>"});
  add_rows(table, "all", {report.all});
  add_rows(table, "queue", report.queues);
  add_rows(table, "level", report.levels);
  add_rows(table, "tenant", report.tenants);
  table.print();
  return shell::kExitOk;
}

}  // namespace

void add_simulate_command(CLI::App& app, Request& request) {
  auto [command, options] = add_command<SimulateOptions>(
      app, request, "simulate", "What a policy would do to a load: waits and shares, without any time passing",
      &simulate_load);
  command->add_option("trace", options->trace, "A file from `record`, or - for standard input")->type_name("TRACE");
  command
      ->add_option("--synthetic", options->synthetic,
                   "Instead of a trace: jobs=10000,rate=100,service=10ms,fixed,queues=a:3|b:1,\n"
                   "priorities=0:1|2:4,tenants=x:9|y:1,size=64; rates are a second, 0 means all at once")
      ->type_name("LOAD");
  command->add_option("--seed", options->seed, "Of --synthetic (made, and printed)")
      ->type_name("N")
      ->check(kNotNegative);
  command->add_option("--convention", options->convention, "Of --synthetic: ojs, ojs-core or qo (ojs)");
  command->add_option("--workers", options->workers, "Workers (1)")->type_name("N")->check(CLI::Range(1, 900));
  command->add_option("--concurrency", options->concurrency, "Jobs that each does at a time (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  command->add_option("--queue", options->queues, "Queues to take from, with weights if they are weighted (all)")
      ->type_name("NAME[:WEIGHT]");
  command->add_option("--strategy", options->strategy, "Of the workers among queues: strict or weighted (strict)");
  command
      ->add_option("--set", options->settings,
                   "Settings of a queue under trial, as `queue set` has them; of all with * (ageing alone)")
      ->type_name("QUEUE=JSON");
  command->add_option("--service", options->service, "Of jobs whose type never ended in the trace (10ms)")
      ->type_name("TIME");
  command->add_option("--svg", options->svg, "Draw each dispatch: when it was, how long the job had waited")
      ->type_name("FILE");
  command->add_option("--save", options->save, "Write the load as a trace")->type_name("FILE");
  set_footer(
      *command,
      "\nOUTPUT\n"
      "  A row for the whole, each queue, each level and each tenant: arrivals, refusals, services, share of the\n"
      "  dispatches up to the last arrival, waits in ms. No segment is needed, and none is touched.\n"
      "\nEXAMPLE\n"
      "  ojs-shm simulate monday.trace --workers 4 --set 'default={\"aging\":{\"interval\":\"PT30S\"}}'\n");
}

}  // namespace ojs_shm::cli
