// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/envelope_trace.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {
namespace {

using json::ObjectWriter;

constexpr std::int64_t kTraceVersion = 1;

Error wrong(std::string message) {
  return Error{Code::kInvalid, std::move(message)}.about("trace");
}

double number_or(std::string_view value, double otherwise) {
  return json::number_of(value).value_or(otherwise);
}

}  // namespace

std::string print_trace_head(const TraceHead& head) {
  std::string out;
  ObjectWriter writer(out);
  writer.number("ojs_shm_trace", kTraceVersion);
  writer.text("convention", head.convention);
  if (!head.segment.empty()) writer.text("segment", head.segment);
  if (head.begun_at_ms != 0) writer.text("begun_at", print_timestamp(head.begun_at_ms));
  writer.close();
  return out;
}

std::string print_trace_arrival(std::string_view job, const TraceArrival& arrival,
                                std::span<const std::string> after) {
  std::string out;
  ObjectWriter writer(out);
  ObjectWriter inner(writer.open("arrival"));
  inner.number("at_ms", static_cast<double>(arrival.at_us) / 1000);
  inner.text("job", job);
  inner.text("queue", arrival.queue);
  inner.number("priority", arrival.priority);
  inner.text("type", arrival.type);
  if (!arrival.tenant.empty()) inner.text("tenant", arrival.tenant);
  inner.number("size", std::int64_t{arrival.size});
  if (!arrival.unique.empty()) inner.value("unique", arrival.unique);
  if (!arrival.workflow.empty()) inner.text("workflow", arrival.workflow);
  if (!after.empty()) {
    std::string& list = inner.open("after") += '[';
    for (const std::string& each : after) {
      if (list.back() != '[') list += ',';
      json::append_quoted(list, each);
    }
    list += ']';
  }
  inner.close();
  writer.close();
  return out;
}

std::string print_trace_workflow(const WorkflowInfo& workflow) {
  std::string out;
  ObjectWriter writer(out);
  ObjectWriter inner(writer.open("workflow"));
  inner.text("id", workflow.id);
  inner.text("kind", workflow_kind_name(workflow.root.kind));
  if (!workflow.name().empty()) inner.text("name", workflow.name());
  inner.close();
  writer.close();
  return out;
}

std::string print_trace_service(std::string_view job, double ms) {
  std::string out;
  ObjectWriter writer(out);
  ObjectWriter inner(writer.open("service"));
  inner.text("job", job);
  inner.number("ms", ms);
  inner.close();
  writer.close();
  return out;
}

std::string print_trace_pool(const SimulatedPool& pool) {
  std::string out;
  ObjectWriter writer(out);
  ObjectWriter inner(writer.open("pool"));
  inner.text("name", pool.name);
  inner.number("workers", std::int64_t{pool.workers});
  inner.number("concurrency", std::int64_t{pool.concurrency});
  inner.value("settings", print_pool_settings(pool.settings));
  inner.close();
  writer.close();
  return out;
}

Status TraceReader::take_pool(std::string_view object) {
  constexpr std::int64_t kMostWorkers = 100'000;
  SimulatedPool pool;
  bool has_settings = false;
  for (const json::Member& member : json::members_of(object)) {
    if (member.name == "name") pool.name = json::string_of(member.value).value_or("");
    for (auto [name, number] :
         {std::pair("workers", &pool.workers), std::pair("concurrency", &pool.concurrency)}) {
      if (member.name != name) continue;
      const auto given = json::integer_of(member.value);
      if (!given || *given < 0 || *given > kMostWorkers)
        return wrong("pool." + member.name + " is not a count");
      *number = static_cast<std::uint32_t>(*given);
    }
    if (member.name != "settings") continue;
    auto settings = parse_pool_settings(member.value);
    if (!settings) return wrong("pool.settings: " + settings.error().message);
    pool.settings = std::move(settings).value();
    has_settings = true;
  }
  if (pool.name.empty() || !has_settings) return wrong("a pool needs a name and settings");
  const auto known = std::ranges::find(pools_, pool.name, &SimulatedPool::name);
  if (known == pools_.end()) {
    pools_.push_back(std::move(pool));
  } else {
    pool.workers = std::max(pool.workers, known->workers);
    *known = std::move(pool);
  }
  return {};
}

Status TraceReader::take(std::string_view line) {
  if (const Status checked = json::check(line); !checked) return wrong(checked.error().message);
  if (json::kind_of(line) != json::Kind::kObject) return wrong("a line of a trace is an object");
  const std::vector<json::Member> members = json::members_of(line);
  if (members.empty()) return wrong("the object says nothing");
  const json::Member& first = members.front();
  if (!headed_) {
    if (first.name != "ojs_shm_trace")
      return wrong("this is not a trace: its first line has no ojs_shm_trace");
    if (json::integer_of(first.value) != kTraceVersion)
      return Error{Code::kOtherFormat,
                   "this is a trace of version " + std::string(first.value) + ", not 1"}
          .about("trace");
    for (const json::Member& member : members)
      if (member.name == "convention")
        convention_ = json::string_of(member.value).value_or(convention_);
    headed_ = true;
    return {};
  }
  if (first.name != "arrival" && first.name != "service" && first.name != "pool")
    return {};  // a later version may say more
  if (json::kind_of(first.value) != json::Kind::kObject)
    return wrong(first.name + " must be an object");
  if (first.name == "pool") return take_pool(first.value);
  TraceArrival arrival;
  std::string job;
  std::vector<std::string> after;
  double ms = -1, at_ms = -1;
  for (const json::Member& member : json::members_of(first.value)) {
    const auto text = [&] { return json::string_of(member.value).value_or(""); };
    if (member.name == "job") job = text();
    if (member.name == "queue") arrival.queue = text();
    if (member.name == "type") arrival.type = text();
    if (member.name == "tenant") arrival.tenant = text();
    if (member.name == "priority") arrival.priority = json::integer_of(member.value).value_or(0);
    if (member.name == "size")
      arrival.size = static_cast<std::uint32_t>(std::clamp(number_or(member.value, 0), 0., 1e6));
    if (member.name == "unique") arrival.unique = json::compact(member.value);
    if (member.name == "workflow") arrival.workflow = text();
    if (member.name == "after") {
      if (json::kind_of(member.value) != json::Kind::kArray)
        return wrong("arrival.after must be an array of jobs");
      for (const std::string_view each : json::elements_of(member.value))
        after.push_back(json::string_of(each).value_or(""));
    }
    if (member.name == "ms") ms = number_or(member.value, -1);
    if (member.name == "at_ms") at_ms = number_or(member.value, -1);
  }
  constexpr double kLongest = 1e12;  // thirty years
  if (first.name == "service") {
    if (!(ms >= 0 && ms < kLongest)) return wrong("service.ms must be a number of milliseconds");
    services_us_[job] += ms * 1000;
    return {};
  }
  if (!(at_ms >= 0 && at_ms < kLongest))
    return wrong("arrival.at_ms must be a number of milliseconds");
  arrival.at_us = std::llround(at_ms * 1000);
  arrivals_.push_back(std::move(arrival));
  jobs_.push_back(std::move(job));
  after_.push_back(std::move(after));
  return {};
}

/// By time, those of one moment as they came; jobs become places in that order.
void TraceReader::sort_arrivals() {
  std::vector<std::uint32_t> order(arrivals_.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::ranges::stable_sort(order, {}, [&](std::uint32_t at) { return arrivals_[at].at_us; });
  std::map<std::string_view, std::uint32_t> places;
  for (std::uint32_t place = 0; place < order.size(); ++place)
    places.try_emplace(jobs_[order[place]], place);
  std::vector<TraceArrival> sorted;
  sorted.reserve(order.size());
  for (const std::uint32_t at : order) {
    TraceArrival& arrival = sorted.emplace_back(std::move(arrivals_[at]));
    for (const std::string& job : after_[at])
      if (const auto place = places.find(job); place != places.end())
        arrival.after.push_back(place->second);
  }
  arrivals_ = std::move(sorted);
}

Trace TraceReader::finish(std::int64_t otherwise_us) {
  std::map<std::string, Mean> types;
  Mean all;
  std::vector<const double*> known(arrivals_.size(), nullptr);
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const auto found = services_us_.find(jobs_[i]);
    if (found == services_us_.end()) continue;
    known[i] = &found->second;
    for (Mean* mean : {&types[arrivals_[i].type], &all})
      mean->sum += found->second, mean->count += 1;
  }
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const Mean& type = types[arrivals_[i].type];
    const Mean& mean = type.count > 0 ? type : all;
    arrivals_[i].service_us = known[i] != nullptr ? std::llround(*known[i])
                              : mean.count > 0    ? std::llround(mean.sum / mean.count)
                                                  : otherwise_us;
  }
  sort_arrivals();
  Trace trace{convention_, std::move(arrivals_), std::move(pools_)};
  if (!trace.arrivals.empty())
    for (const std::int64_t begin = trace.arrivals.front().at_us;
         TraceArrival & arrival : trace.arrivals)
      arrival.at_us -= begin;
  return trace;
}

}  // namespace ojs_shm
