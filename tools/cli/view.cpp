// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/view.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cstdio>

#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {

/// A failure of the write is found by flush_output(), which knows what was done before it.
void print_line(std::string_view json) {
  const std::string text = shell::printable_json(json);
  std::fwrite(text.data(), 1, text.size(), stdout);
  shell::note_output();
  std::fputc('\n', stdout);
  shell::note_output();
}

void print_members(std::string_view object) {
  shell::Table table({"MEMBER", "VALUE"});
  for (const json::Member& member : json::members_of(object)) {
    table.row({member.name, json::string_of(member.value).value_or(std::string(member.value))});
  }
  table.print();
}

void print_jobs(const std::vector<JobInfo>& jobs, bool as_json) {
  shell::Table table(
      {"ID", "STATE!", "PRIORITY>", "QUEUE", "TYPE", "ATTEMPT>", "ENQUEUED", "ERROR"});
  for (const JobInfo& job : jobs) {
    if (as_json) {
      print_line(print_job(job));
      continue;
    }
    const std::string error = job.errors.empty() ? "" : job.errors.back().code;
    table.row({job.id, std::string(state_name(job.state)), std::to_string(job.priority), job.queue,
               job.type, std::to_string(job.attempt), print_timestamp(job.enqueued_at_ms), error});
  }
  if (!table.empty()) table.print();
}

void write_queue(json::ObjectWriter& writer, const QueueInfo& queue) {
  writer.text("name", queue.name);
  writer.boolean("paused", queue.paused);
  count(writer, "depth", queue.depth);
  count(writer, "size_bytes", queue.size_bytes);
  writer.number("pressure", queue.pressure);
  count(writer, "oldest_age_ms", queue.oldest_age_ms);
  count(writer, "dead_letters", queue.dead_letters);
  count(writer, "waiting", queue.waiting);
  writer.open("counts") += object([&](json::ObjectWriter& counts) {
    for (std::size_t state = 0; state < std::size(queue.by_state); ++state) {
      count(counts, state_name(static_cast<State>(state)), queue.by_state[state]);
    }
  });
  writer.open("totals") += object([&](json::ObjectWriter& totals) {
    count(totals, "enqueued", queue.enqueued_total);
    count(totals, "dispatched", queue.dispatched_total);
    count(totals, "completed", queue.completed_total);
    count(totals, "discarded", queue.discarded_total);
    count(totals, "cancelled", queue.cancelled_total);
    count(totals, "retried", queue.retried_total);
    count(totals, "failed_attempts", queue.failed_attempts_total);
    count(totals, "returned", queue.returned_total);
    count(totals, "rejected", queue.rejected_total);
    count(totals, "dropped", queue.dropped_total);
    count(totals, "expired", queue.expired_total);
    count(totals, "pruned", queue.pruned_total);
    count(totals, "priority_changes", queue.reprioritized_total);
  });
  writer.open("available_by_priority") += object([&](json::ObjectWriter& levels) {
    for (const auto& [priority, jobs] : queue.available_by_priority)
      count(levels, std::to_string(priority), jobs);
  });
  const std::string policy = print_queue_policy(queue);
  for (const json::Member& member : json::members_of(policy))
    writer.value(member.name, member.value);
  writer.boolean("aging_inherited", queue.aging_is_default);
  writer.value("age_rates", fmt::format("[{}]", fmt::join(queue.age_rates, ",")));
  const char* order = !queue.level_weights.empty() ? "weighted"
                      : queue.aging.enabled        ? "aged"
                                                   : "strict";
  writer.text("order", fmt::format("{}{}", order, queue.shards > 1 ? ", within a shard" : ""));
}

Error out_of_range(const Observer& observer, std::string_view priority) {
  const SegmentInfo info = observer.segment_info();
  Error error;
  error.code = Code::kInvalid;
  error.subject = "priority";
  error.bound = static_cast<std::uint64_t>(info.priority_max);
  error.message =
      fmt::format("priority {} is out of range: the minimum is {} and the maximum is {}", priority,
                  info.priority_min, info.priority_max);
  return error;
}

std::int64_t parse_priority(const Observer& observer, const std::string& text) {
  std::int64_t number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = rest == text.data() + text.size();
  if (problem == std::errc{} && all) return number;
  if (problem == std::errc::result_out_of_range && all)
    throw shell::Refusal{out_of_range(observer, text)};
  return shell::must(observer.priority_by_name(text));
}

State parse_state(const std::string& text) {
  std::string known;
  for (std::uint8_t state = 0; state < 8; ++state) {
    if (state_name(static_cast<State>(state)) == text) return static_cast<State>(state);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", state_name(static_cast<State>(state)));
  }
  shell::refuse(Code::kInvalid, fmt::format("there is no state \"{}\"; there are {}", text, known));
}

}  // namespace ojs_shm::cli
