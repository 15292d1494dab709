// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "engine/moves/state.hpp"
#include "engine/rules/retry.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/last_error.hpp"
#include "worker_api/json/result_ttl.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/json/unique_key.hpp"

namespace ojs_shm {
namespace {

using json::ObjectWriter;

// What a reply says itself. A client's own members of these names are not repeated behind it.
constexpr std::string_view kReplyMembers[] = {"dead_letter",
                                              "discard_reason",
                                              "specversion",
                                              "id",
                                              "type",
                                              "queue",
                                              "args",
                                              "meta",
                                              "priority",
                                              "state",
                                              "attempt",
                                              "max_attempts",
                                              "timeout_ms",
                                              "visibility_timeout_ms",
                                              "retry",
                                              "created_at",
                                              "enqueued_at",
                                              "scheduled_at",
                                              "expires_at",
                                              "started_at",
                                              "completed_at",
                                              "cancelled_at",
                                              "discarded_at",
                                              "next_attempt_at",
                                              "retry_delay_ms",
                                              "worker_id",
                                              "result",
                                              "error",
                                              "errors",
                                              "progress",
                                              "progress_message",
                                              "progress_data",
                                              "progress_at",
                                              "last_checkpoint",
                                              "workflow_id",
                                              "parent_results",
                                              "previous_state",
                                              "priority_age_rate",
                                              "cron_name",
                                              "result_stored_at",
                                              "result_expires_at",
                                              "result_size_bytes",
                                              "result_pruned",
                                              "activated_at",
                                              "re_enqueued_at",
                                              "deduplicated",
                                              "unique_key",
                                              "unique_policy",
                                              "unique_until"};

bool says_it_itself(std::string_view name) {
  return std::ranges::find(kReplyMembers, name) != std::end(kReplyMembers);
}

// The members a client left with its job. That text may be anything.
class Extra {
 public:
  explicit Extra(std::string_view text) {
    if (!text.empty() && json::check(text) && json::kind_of(text) == json::Kind::kObject)
      members_ = json::members_of(text);
  }
  std::optional<std::string_view> find(std::string_view name) const {
    for (const json::Member& member : members_) {
      if (member.name == name) return member.value;
    }
    return std::nullopt;
  }
  void write_the_rest(ObjectWriter& writer) const {
    for (const json::Member& member : members_) {
      if (!says_it_itself(member.name)) writer.value(member.name, member.value);
    }
  }

 private:
  std::vector<json::Member> members_;
};

template <class Name>
void write_text_or_json(ObjectWriter& writer, const Name& name, std::string_view text) {
  if (json::check(text))
    writer.value(name, text);
  else
    writer.text(name, text);
}

template <class Name>
void write_time(ObjectWriter& writer, const Name& name, std::uint64_t unix_ms) {
  if (unix_ms == 0) return;
  std::string& out = writer.open(name);
  out += '"';
  append_timestamp(out, unix_ms);
  out += '"';
}

/// Whether the client's words are another time than that.
bool is_other_time(std::string_view given, std::uint64_t unix_ms) {
  const ParsedMs parsed = parse_timestamp(json::string_of(given).value_or(""));
  // one before 1970 is kept as its first moment
  const std::int64_t kept = std::max<std::int64_t>(parsed.ms, 1);
  return parsed && unix_ms != 0 && kept != static_cast<std::int64_t>(unix_ms);
}

// A time comes back in the client's own words, if those were kept, are a text and still hold.
template <class Name>
void write_given_time(ObjectWriter& writer, const Extra& extra, const Name& name,
                      std::uint64_t unix_ms) {
  if (const auto given = extra.find(name);
      given && json::kind_of(*given) == json::Kind::kString && !is_other_time(*given, unix_ms))
    writer.value(name, *given);
  else
    write_time(writer, name, unix_ms);
}

std::string_view backoff_name(RetryBackoff backoff) {
  switch (backoff) {
    case RetryBackoff::kExponential: return "exponential";
    case RetryBackoff::kLinear: return "linear";
    case RetryBackoff::kConstant: return "constant";
    case RetryBackoff::kPolynomial: return "polynomial";
  }
  return "unknown";
}

std::string print_retry(const Retry& retry) {
  std::string out;
  ObjectWriter policy(out);
  policy.number("max_attempts", std::int64_t{retry.max_attempts});
  policy.text("initial_interval", print_duration(retry.initial_ms));
  policy.number("backoff_coefficient", double{retry.coefficient});
  policy.text("max_interval", print_duration(retry.max_ms));
  policy.boolean("jitter", retry.jitter);
  policy.value("non_retryable_errors", "[]");
  policy.text("backoff_strategy", backoff_name(retry.backoff));
  policy.text("on_exhaustion", retry.dead_letter ? "dead_letter" : "discard");
  policy.close();
  return out;
}

bool same(const Retry& one, const Retry& other) {
  const auto members = [](const Retry& r) {
    return std::tie(r.max_attempts, r.initial_ms, r.max_ms, r.coefficient, r.backoff, r.jitter,
                    r.dead_letter);
  };
  return members(one) == members(other);
}

void write_retry(ObjectWriter& writer, const Extra& extra, const Retry& retry) {
  static const std::string kMostOften = print_retry({});
  if (const auto given = extra.find("retry"))
    writer.value("retry", *given);
  else
    writer.open("retry") += same(retry, {}) ? kMostOften : print_retry(retry);
}

/// The client's own words, then what they leave to the defaults. Source: ojs-retry 8.1.
void write_whole_retry(ObjectWriter& writer, const Extra& extra, const Retry& retry) {
  const auto given = extra.find("retry");
  if (!given || json::kind_of(*given) != json::Kind::kObject)
    return write_retry(writer, extra, retry);
  ObjectWriter whole(writer.open("retry"));
  std::vector<std::string> said;
  for (const json::Member& member : json::members_of(*given)) {
    if (json::kind_of(member.value) == json::Kind::kNull) continue;
    whole.value(member.name, member.value);
    said.push_back(member.name);
  }
  const std::string policy = print_retry(retry);
  for (const json::Member& member : json::members_of(policy))
    if (std::ranges::find(said, member.name) == said.end()) whole.value(member.name, member.value);
  whole.close();
}

/// As it was sent, or what a native client asked for.
void write_unique(ObjectWriter& writer, const Extra& extra, std::string_view key,
                  const UniquePolicy& policy) {
  if (!key.empty() && !extra.find("unique")) writer.value("unique", print_unique(key, policy));
}

/// Source: ojs-results 6.2.
void write_result(ObjectWriter& writer, const JobInfo& job) {
  if (!job.result.empty()) {
    write_text_or_json(writer, "result", job.result);
    write_time(writer, "result_stored_at", job.completed_at_ms);
    writer.number("result_size_bytes", static_cast<std::int64_t>(job.result.size()));
  }
  if (job.result_pruned) writer.boolean("result_pruned", true);
  if (job.result_pruned || !job.result.empty())
    write_time(writer, "result_expires_at", job.result_expires_at_ms);
}

constexpr std::string_view kSilence = "visibility_timeout";

void write_timeout(ObjectWriter& writer, std::string_view kind, double limit_seconds,
                   std::uint64_t from_ms, std::uint64_t until_ms) {
  writer.text("timeout_kind", kind);
  writer.number("limit_seconds", limit_seconds);
  if (from_ms != 0 && until_ms >= from_ms)
    writer.number("elapsed_seconds", static_cast<double>(until_ms - from_ms) / 1000);
}

/// Which of its times an attempt, or the job, has passed. How long it ran is known of its last run
/// alone. Source: ojs-timeouts 8.
void write_timeout(ObjectWriter& writer, const JobInfo& job, const JobError& error,
                   std::optional<std::string_view> heartbeat_timeout) {
  const std::uint64_t began = error.attempt == job.attempt ? job.started_at_ms : 0;
  if (error.code == "timeout" && job.timeout_ms != 0)
    write_timeout(writer, "execution", static_cast<double>(job.timeout_ms) / 1000, began,
                  error.occurred_at_ms);
  else if (error.code == "total_timeout" && job.total_timeout_s != 0)
    write_timeout(writer, "total", job.total_timeout_s, job.created_at_ms, error.occurred_at_ms);
  else if (error.code == "enqueue_ttl_expired" && job.enqueue_ttl_s != 0)
    write_timeout(writer, "enqueue_ttl", job.enqueue_ttl_s, job.created_at_ms,
                  error.occurred_at_ms);
  else if (error.code == kSilence && heartbeat_timeout)
    write_timeout(writer, "stalled", json::number_of(*heartbeat_timeout).value_or(0), began,
                  error.occurred_at_ms);
}

/// The details, and beside them the backtrace that stands in them. Source: ojs-core 8.1.
void write_details(ObjectWriter& writer, std::string_view details) {
  if (details.empty()) return;
  if (!json::check(details) || json::kind_of(json::trim(details)) != json::Kind::kObject)
    return write_text_or_json(writer, "details", details);
  const std::vector<json::Member> members = json::members_of(json::trim(details));
  const auto backtrace = std::ranges::find(members, "backtrace", &json::Member::name);
  if (backtrace == members.end() || json::kind_of(backtrace->value) != json::Kind::kArray)
    return writer.value("details", details);
  writer.value("backtrace", backtrace->value);
  if (members.size() == 1) return;
  ObjectWriter rest(writer.open("details"));
  for (const json::Member& member : members)
    if (member.name != "backtrace") rest.value(member.name, member.value);
  rest.close();
}

/// A silence has another name where a job says how long it may last. Source: ojs-timeouts 7.3.
void append_error(std::string& out, const JobInfo& job, const Extra& extra, const JobError& error) {
  const auto heartbeat_timeout = extra.find("heartbeat_timeout");
  ObjectWriter writer(out);
  writer.text("code", error.code);
  writer.text("type", heartbeat_timeout && error.code == kSilence ? "stalled" : error_type(error));
  writer.text("message", error.message);
  writer.boolean("retryable", error.retryable);
  write_details(writer, error.details);
  write_timeout(writer, job, error, heartbeat_timeout);
  writer.number("attempt", std::int64_t{error.attempt});
  for (const std::string_view name : {"occurred_at", "timestamp"})  // also of ojs-retry 10.1
    write_time(writer, name, error.occurred_at_ms);
  writer.close();
}

void write_errors(ObjectWriter& writer, const JobInfo& job, const Extra& extra) {
  if (const auto last = last_error_of(job)) append_error(writer.open("error"), job, extra, *last);
  if (job.errors.empty()) return;
  std::string& out = writer.open("errors") += '[';
  for (const JobError& error : job.errors) {
    if (&error != &job.errors.front()) out += ',';
    append_error(out, job, extra, error);
  }
  out += ']';
}

/// As they were sent, or what a native client asked for.
template <class Job>
void write_own_times(ObjectWriter& writer, const Extra& extra, const Job& job) {
  const auto write = [&](std::string_view name, std::uint32_t seconds) {
    if (seconds != 0 && !extra.find(name)) writer.number(name, std::int64_t{seconds});
  };
  write("enqueue_ttl", job.enqueue_ttl_s);
  write("total_timeout", job.total_timeout_s);
  write("grace_period", job.grace_period_s);
}

/// What the client sent, and of a cron's job which cron it was. Source: ojs-cron 6.3.
void write_meta(ObjectWriter& writer, const Extra& extra, const JobInfo& job) {
  const std::string_view given = extra.find("meta").value_or("{}");
  if (job.cron_name.empty() || json::kind_of(given) != json::Kind::kObject)
    return writer.value("meta", given);
  ObjectWriter meta(writer.open("meta"));
  for (const json::Member& member : json::members_of(given))
    if (member.name != "cron_name" && member.name != "cron_triggered_at")
      meta.value(member.name, member.value);
  meta.text("cron_name", job.cron_name);
  write_time(meta, "cron_triggered_at", job.created_at_ms);
  meta.close();
}

}  // namespace

void append_job(std::string& out, const JobInfo& job) {
  const Extra extra(job.extra);
  ObjectWriter writer(out);
  writer.text("specversion", "1.0");
  writer.text("id", job.id);
  writer.text("type", job.type);
  writer.text("queue", job.queue);
  write_text_or_json(writer, "args", job.args);
  write_meta(writer, extra, job);
  writer.number("priority", job.priority);
  if (job.priority_age_rate)
    writer.number("priority_age_rate", std::int64_t{*job.priority_age_rate});
  writer.text("state", engine::name_of(static_cast<engine::JobState>(job.state)));
  writer.number("attempt", std::int64_t{job.attempt});
  writer.number("max_attempts", std::int64_t{job.retry.max_attempts});
  if (job.timeout_ms != 0) writer.number("timeout_ms", std::int64_t{job.timeout_ms});
  if (job.lease_ms != 0) writer.number("visibility_timeout_ms", std::int64_t{job.lease_ms});
  write_own_times(writer, extra, job);
  write_whole_retry(writer, extra, job.retry);
  write_time(writer, "created_at", job.created_at_ms);
  write_time(writer, "enqueued_at", job.enqueued_at_ms);
  write_given_time(writer, extra, "scheduled_at", job.scheduled_at_ms);
  write_given_time(writer, extra, "expires_at", job.expires_at_ms);
  if (has_started(job)) write_time(writer, "started_at", job.started_at_ms);
  write_time(writer, "completed_at", job.completed_at_ms);
  write_time(writer, "cancelled_at", job.cancelled_at_ms);
  write_time(writer, "discarded_at", job.discarded_at_ms);
  for (const std::string_view name : {"next_attempt_at", "next_retry_at"})  // also of ojs-retry 10
    write_time(writer, name, job.next_attempt_at_ms);
  if (job.retry_delay_ms != 0 && !job.errors.empty())
    writer.number("retry_delay_ms", std::int64_t{job.retry_delay_ms});
  if (job.previous_state)
    writer.text("previous_state",
                engine::name_of(static_cast<engine::JobState>(*job.previous_state)));
  if (!job.discard_reason.empty()) writer.text("discard_reason", job.discard_reason);
  if (job.dead_letter && job.state == State::kDiscarded) writer.boolean("dead_letter", true);
  if (job.progress >= 0) writer.number("progress", std::min(job.progress, 1.0));
  if (!job.progress_message.empty()) writer.text("progress_message", job.progress_message);
  if (!job.progress_data.empty()) write_text_or_json(writer, "progress_data", job.progress_data);
  write_time(writer, "progress_at", job.progress_at_ms);
  if (!job.last_checkpoint.empty())
    write_text_or_json(writer, "last_checkpoint", job.last_checkpoint);
  write_result(writer, job);
  if (!job.workflow_id.empty()) writer.text("workflow_id", job.workflow_id);
  if (!job.cron_name.empty()) writer.text("cron_name", job.cron_name);
  if (!job.parent_results.empty()) writer.value("parent_results", job.parent_results);
  write_errors(writer, job, extra);
  write_unique(writer, extra, job.unique_key, job.unique);
  extra.write_the_rest(writer);
  writer.close();
}

std::string print_job(const JobInfo& job) {
  std::string out;
  out.reserve(512 + job.args.size() + job.extra.size() + job.result.size());
  append_job(out, job);
  return out;
}

std::optional<std::string> tenant_in(std::string_view extra) {
  if (extra.find("tenant_id") == std::string_view::npos || !json::check(extra)) return "";
  for (const json::Member& member : json::members_of(json::trim(extra))) {
    if (member.name != "meta" || json::kind_of(member.value) != json::Kind::kObject) continue;
    for (const json::Member& meta : json::members_of(member.value))
      if (meta.name == "tenant_id") return json::string_of(meta.value);
  }
  return "";
}

std::string with_tenant(std::string_view extra, std::string_view tenant) {
  extra = json::trim(extra);
  if (!extra.empty() && (!json::check(extra) || json::kind_of(extra) != json::Kind::kObject))
    return std::string(extra);
  const auto members = extra.empty() ? std::vector<json::Member>() : json::members_of(extra);
  std::string out;
  ObjectWriter writer(out);
  ObjectWriter meta(writer.open("meta"));
  meta.text("tenant_id", tenant);
  for (const json::Member& member : members)
    if (member.name == "meta" && json::kind_of(member.value) == json::Kind::kObject)
      for (const json::Member& each : json::members_of(member.value))
        if (each.name != "tenant_id") meta.value(each.name, each.value);
  meta.close();
  for (const json::Member& member : members)
    if (member.name != "meta") writer.value(member.name, member.value);
  writer.close();
  return out;
}

std::string print_envelope(const JobSpec& job) {
  const std::string members =
      job.result_ttl_s ? with_result_ttl(job.extra, *job.result_ttl_s) : std::string(job.extra);
  const Extra extra(members);
  std::string out;
  ObjectWriter writer(out);
  writer.text("specversion", "1.0");
  if (!job.id.empty()) writer.text("id", job.id);
  writer.text("type", job.type);
  writer.text("queue", job.queue);
  write_text_or_json(writer, "args", job.args);
  if (const auto meta = extra.find("meta")) writer.value("meta", *meta);
  if (job.priority) writer.number("priority", *job.priority);
  if (job.priority_age_rate)
    writer.number("priority_age_rate", std::int64_t{*job.priority_age_rate});
  if (job.timeout_ms != 0) writer.number("timeout_ms", std::int64_t{job.timeout_ms});
  if (job.lease_ms != 0) writer.number("visibility_timeout_ms", std::int64_t{job.lease_ms});
  write_own_times(writer, extra, job);
  write_retry(writer, extra, job.retry);
  write_given_time(writer, extra, "scheduled_at", job.scheduled_at_ms);
  write_given_time(writer, extra, "expires_at", job.expires_at_ms);
  if (job.pending) writer.boolean("pending", true);
  if (job.unique != nullptr) write_unique(writer, extra, job.unique->key(), job.unique->policy());
  extra.write_the_rest(writer);
  writer.close();
  return out;
}

bool forbids_retry(std::string_view extra, std::string_view error_type) {
  const Extra members(extra);
  const auto retry = members.find("retry");
  if (!retry || json::kind_of(*retry) != json::Kind::kObject) return false;
  for (const json::Member& member : json::members_of(*retry)) {
    if (member.name != "non_retryable_errors" || json::kind_of(member.value) != json::Kind::kArray)
      continue;
    for (const std::string_view element : json::elements_of(member.value)) {
      const auto entry = json::string_of(element);
      if (entry && engine::matches_error_type(*entry, error_type)) return true;
    }
  }
  return false;
}

}  // namespace ojs_shm
