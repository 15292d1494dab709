// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/envelope_event.hpp"

#include <algorithm>

#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {
namespace {

using json::ObjectWriter;

void write_error(ObjectWriter& data, std::string_view name, const Event& event) {
  if (!event.error) return;
  ObjectWriter error(data.open(name));
  error.text("code", event.error->code);
  error.text("type", error_type(*event.error));
  error.text("message", event.error->message);
  error.boolean("retryable", event.error->retryable);
  error.close();
}

bool about_a_worker(const Event& event) { return !event.worker_id.empty() && event.job_id.empty(); }

void write_worker(ObjectWriter& data, const Event& event) {
  if (!event.worker_id.empty()) data.text("worker_id", event.worker_id);
  data.number("attempt", std::int64_t{event.attempt});
}

/// A limit that holds a job back is full: as many jobs as it allows. Source: ojs-rate-limiting
/// 11.1.
void write_limit(ObjectWriter& data, const Event& event) {
  data.text("key", event.limit_key);
  if (!event.limit_strategy.empty()) data.text("strategy", event.limit_strategy);
  if (event.type != "rate_limit.exceeded" || !event.limit_allows) return;
  data.number("limit", static_cast<std::int64_t>(*event.limit_allows));
  data.number("current", static_cast<std::int64_t>(*event.limit_allows));
}

/// Empty: it is about no timeout. Source: ojs-timeouts 8, 11.1.
std::string_view timeout_kind(std::string_view type) {
  if (type == "job.timeout") return "execution";
  if (type == "job.stalled") return "stalled";
  if (type == "job.ttl_expired") return "enqueue_ttl";
  return type == "job.total_timeout" ? "total" : "";
}

/// Which state the job has by it; empty: the event does not say.
std::string_view state_after(const Event& event) {
  if (event.led_to) return state_name(*event.led_to);
  const std::string_view type = event.type;
  if (type == "job.enqueued") return "available";
  if (type == "job.scheduled") return "scheduled";
  if (type == "job.started" || type == "job.heartbeat" || type == "job.progress") return "active";
  if (type == "job.completed") return "completed";
  if (type == "job.retrying") return "retryable";
  if (type == "job.cancelled") return "cancelled";
  return type == "job.discarded" || type == "job.expired" ? "discarded" : "";
}

/// What readers look for in each event of a job, beside the data of its type.
void write_common(ObjectWriter& data, const Event& event) {
  if (!event.job_type.empty()) data.text("type", event.job_type);
  if (const std::string_view state = state_after(event); !state.empty()) data.text("state", state);
  data.text("timestamp", print_timestamp(event.time_ms));
}

/// What only this type has. Source: ojs-events 4, ojs-timeouts 11.
void write_own(ObjectWriter& data, const Event& event) {
  const auto time = [&](std::string_view name, std::uint64_t ms) {
    data.text(name, print_timestamp(ms));
  };
  const auto number = [&](std::string_view name, std::uint64_t n) {
    data.number(name, static_cast<std::int64_t>(n));
  };
  if (event.type == "priority.changed") {
    data.number("previous_priority", event.previous_priority);
    data.number("new_priority", event.priority);
    return;
  }
  data.number("priority", event.priority);
  if (!event.limit_key.empty()) write_limit(data, event);
  if (event.type == "rate_limit.dynamic_adjusted") {
    time("until", event.at_ms);
    data.text("reason", event.error ? std::string_view(event.error->message) : "");
    write_error(data, "error", event);
  } else if (event.type == "job.scheduled") {
    time("scheduled_at", event.at_ms);
  } else if (event.type == "job.started") {
    write_worker(data, event);
  } else if (event.type == "job.completed") {
    number("duration_ms", event.duration_ms);
    number("attempt", event.attempt);
  } else if (event.type == "job.failed") {
    number("attempt", event.attempt);
    write_error(data, "error", event);
    number("duration_ms", event.duration_ms);
  } else if (event.type == "job.retrying") {
    number("attempt", event.attempt);
    number("max_attempts", event.max_attempts);
    time("next_retry_at", event.at_ms);
    write_error(data, "error", event);
  } else if (event.type == "job.discarded") {
    number("total_attempts", event.attempt);
    write_error(data, "last_error", event);
  } else if (event.type == "job.expired") {
    time("created_at", event.at_ms);
    time("expired_at", event.time_ms);
    if (!event.job_type.empty()) number("ttl_ms", event.ttl_ms);  // else the job is gone
  } else if (const std::string_view kind = timeout_kind(event.type); !kind.empty()) {
    data.text("timeout_kind", kind);
    data.number("limit_seconds", static_cast<double>(event.limit_ms) / 1000);
    data.number("elapsed_seconds", static_cast<double>(event.duration_ms) / 1000);
    number("attempt", event.attempt);
  } else if (event.type == "job.heartbeat") {
    write_worker(data, event);
    time("visible_until", event.at_ms);
  } else if (event.type == "job.progress") {
    write_worker(data, event);
    data.number("progress_percent", event.progress * 100);
    if (!event.progress_message.empty()) {
      data.text("progress_message", event.progress_message);
      data.text("message", event.progress_message);
    }
    if (json::check(event.progress_data)) data.value("data", event.progress_data);
  }
}

void write_repair(ObjectWriter& data, const Event& event) {
  data.number("pid", std::int64_t{event.pid});
  data.number("repaired_by", std::int64_t{event.repaired_by});
  data.number("repaired_at_once", static_cast<std::int64_t>(event.repaired_at_once));
  data.number("slots_mended", static_cast<std::int64_t>(event.mended));
}

bool about_many_jobs(const Event& event) { return event.type.starts_with("bulk."); }

/// Source: ojs-bulk-operations 12.1.
void write_bulk(ObjectWriter& data, const Event& event) {
  const std::uint64_t left = event.count - std::min(event.count, event.done);
  const auto number = [&](std::string_view name, std::uint64_t n) {
    data.number(name, static_cast<std::int64_t>(n));
  };
  number("total", event.count);
  if (event.type == "bulk.enqueue.completed") {
    number("succeeded", event.done);
    number("failed", left);
    data.text("atomicity", event.atomic ? "atomic" : "partial");
    return;
  }
  number(event.type == "bulk.cancel.completed"  ? "cancelled"
         : event.type == "bulk.retry.completed" ? "retried"
                                                : "deleted",
         event.done);
  number("skipped", left);
}

/// Source: ojs-events 3.4.
void write_registered_worker(ObjectWriter& data, const Event& event) {
  const auto number = [&](std::string_view name, std::uint64_t n) {
    data.number(name, static_cast<std::int64_t>(n));
  };
  data.text("worker_id", event.worker_id);
  if (event.type == "worker.lost") {
    data.text("silent_for", print_duration(event.duration_ms));
    number("returned_jobs", event.count);
  } else if (event.type == "worker.started") {
    std::string& queues = data.open("queues") += '[';
    for (const std::string& queue : event.worker_queues) {
      if (queues.back() != '[') queues += ',';
      json::append_quoted(queues, queue);
    }
    queues += ']';
    number("concurrency", event.worker_concurrency);
  } else if (event.type == "worker.stopped") {
    data.text("reason", event.reason);
    number("uptime_ms", event.duration_ms);
  } else {
    number("active_jobs", event.active_jobs);
  }
}

/// What is about no job. Source: ojs-fair-scheduling 11.1.
void write_scheduling(ObjectWriter& data, const Event& event) {
  const auto number = [&](std::string_view name, std::uint64_t n) {
    data.number(name, static_cast<std::int64_t>(n));
  };
  if (event.type == "scheduling.queue_starved") {
    data.text("duration", print_duration(event.duration_ms));
    number("available_count", event.waiting_jobs);
  } else if (event.type == "scheduling.pool_overloaded") {
    number("active_jobs", event.active_jobs);
    number("waiting_jobs", event.waiting_jobs);
  } else if (event.type == "scheduling.rebalanced") {
    data.text("previous_strategy", event.previous_strategy);
    data.text("new_strategy", event.new_strategy);
  }
}

/// What the workflow says is missing when the segment keeps it no longer. Source: ojs-events 4.4.
void write_workflow(ObjectWriter& data, const Event& event) {
  const auto number = [&](std::string_view name, std::uint64_t n) {
    data.number(name, static_cast<std::int64_t>(n));
  };
  data.text("workflow_id", event.workflow_id);
  if (!event.workflow_type.empty()) {
    data.text("workflow_name", event.workflow_name);
    data.text("workflow_type", event.workflow_type);
  }
  if (event.total_steps != 0) number("total_steps", event.total_steps);
  const bool failed = event.type == "workflow.failed";
  if (!event.step_id.empty()) {
    data.text(failed ? "failed_step_id" : "step_id", event.step_id);
    data.text(failed ? "failed_step_type" : "step_type", event.job_type);
  }
  if (event.type != "workflow.started") number("duration_ms", event.duration_ms);
  if (event.type == "workflow.step_completed") {
    number("steps_remaining", event.steps_remaining);
    number("remaining_steps", event.steps_remaining);  // by either name
  }
  if (failed) write_error(data, "error", event);
}

/// Under the names of both texts. Source: ojs-cron 9, ojs-events 4.
void write_cron(ObjectWriter& data, const Event& event) {
  data.text("cron_name", event.cron_name);
  if (!event.cron_expression.empty()) {
    data.text("cron_expression", event.cron_expression);
    data.text("cron_expr", event.cron_expression);
    data.text("timezone", event.timezone);
  }
  const std::uint64_t came = event.scheduled_at_ms != 0 ? event.scheduled_at_ms : event.time_ms;
  data.text("scheduled_time", print_timestamp(came));
  data.text("scheduled_at", print_timestamp(came));
  data.text("actual_time", print_timestamp(event.time_ms));
  data.boolean("triggered_by_hand", event.scheduled_at_ms == 0);
  data.number("run_count", static_cast<std::int64_t>(event.run_count));
  if (!event.reason.empty()) {
    data.text("reason", event.reason);
    if (!event.job_id.empty()) {
      data.text("existing_job_id", event.job_id);
      if (event.reason == "overlap_skip") data.text("active_job_id", event.job_id);
    }
  }
  if (event.at_ms != 0) data.text("next_run_at", print_timestamp(event.at_ms));
}

}  // namespace

std::string print_event(const Event& event) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("specversion", "1.0");
  writer.text("id", event.id);
  writer.text("type", event.type);
  writer.text("source", event.source);
  writer.text("time", print_timestamp(event.time_ms));
  writer.text("subject", event.pid != 0               ? "process-" + std::to_string(event.pid)
                         : about_a_worker(event)      ? event.worker_id
                         : about_many_jobs(event)     ? "jobs"
                         : !event.pool.empty()        ? event.pool
                         : !event.workflow_id.empty() ? event.workflow_id
                         : !event.cron_name.empty()   ? event.cron_name
                         : event.job_id.empty()       ? event.queue
                                                      : event.job_id);
  ObjectWriter data(writer.open("data"));
  if (!event.job_id.empty()) data.text("job_id", event.job_id);
  if (!event.workflow_id.empty())
    write_workflow(data, event);
  else if (!event.job_type.empty())
    data.text("job_type", event.job_type);
  if (!event.cron_name.empty()) write_cron(data, event);
  if (event.pid != 0)
    write_repair(data, event);
  else if (about_many_jobs(event))
    write_bulk(data, event);
  else if (about_a_worker(event))
    write_registered_worker(data, event);
  else
    data.text(event.pool.empty() ? "queue" : "pool", event.pool.empty() ? event.queue : event.pool);
  if (!event.unit.empty()) {
    data.number("depth", static_cast<std::int64_t>(event.depth));
    data.number("bound", static_cast<std::int64_t>(event.bound));
    data.text("unit", event.unit);
  }
  if (event.count != 0 && !about_a_worker(event) && !about_many_jobs(event))
    data.number("count", static_cast<std::int64_t>(event.count));
  if (event.type.starts_with("job.")) write_common(data, event);
  if (event.cron_name.empty())
    event.job_id.empty() ? write_scheduling(data, event) : write_own(data, event);
  data.close();
  writer.close();
  return out;
}

}  // namespace ojs_shm
