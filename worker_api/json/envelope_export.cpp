// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/envelope_export.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include <spdlog/fmt/fmt.h>

#include <ojs_shm/transfer.hpp>

#include "engine/moves/state.hpp"
#include "engine/rules/retry.hpp"
#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/export_line.hpp"
#include "worker_api/json/exported_progress.hpp"
#include "worker_api/json/exported_value.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/queue_policy.hpp"

namespace ojs_shm {
namespace {

using json::Complaint;
using json::Member;
using json::ObjectWriter;

void count(ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  if (number != 0) writer.number(name, static_cast<std::int64_t>(number));
}

void time(ObjectWriter& writer, std::string_view name, std::uint64_t unix_ms) {
  if (unix_ms != 0) writer.text(name, print_timestamp(unix_ms));
}

/// A number as such, a name as a string.
void priority_value(ObjectWriter& writer, std::string_view priority) {
  if (json::check(priority) && json::integer_of(json::trim(priority)))
    writer.value("priority", priority);
  else
    writer.text("priority", priority);
}

/// What should be JSON stands as such; what is none, as a text under another name.
void opaque(ObjectWriter& writer, const std::string& name, std::string_view text) {
  if (text.empty()) return;
  if (json::check(text))
    writer.value(name, text);
  else
    writer.text(name + "_text", text);
}

constexpr std::string_view kBackoffs[] = {"exponential", "linear", "constant", "polynomial"};

void retry(ObjectWriter& writer, const Retry& policy) {
  ObjectWriter object(writer.open("retry"));
  object.number("max_attempts", std::int64_t{policy.max_attempts});
  object.number("initial_interval_ms", std::int64_t{policy.initial_ms});
  object.number("max_interval_ms", std::int64_t{policy.max_ms});
  object.number("backoff_coefficient", double{policy.coefficient});
  object.text("backoff_strategy",
              kBackoffs[static_cast<std::size_t>(policy.backoff) % std::size(kBackoffs)]);
  object.boolean("jitter", policy.jitter);
  object.text("on_exhaustion", policy.dead_letter ? "dead_letter" : "discard");
  object.close();
}

void errors(ObjectWriter& writer, const std::vector<JobError>& entries) {
  if (entries.empty()) return;
  std::string& out = writer.open("errors") += '[';
  for (const JobError& error : entries) {
    if (&error != &entries.front()) out += ',';
    ObjectWriter object(out);
    object.number("attempt", std::int64_t{error.attempt});
    time(object, "occurred_at", error.occurred_at_ms);
    object.text("code", error.code);
    object.text("type", error.type);
    object.text("message", error.message);
    opaque(object, "details", error.details);
    object.boolean("retryable", error.retryable);
    object.close();
  }
  out += ']';
}

// ---- reading ------------------------------------------------------------------------------------

/// Reads the members of one kind of object, by a table of their names; a member that is not in the
/// table is a complaint.
template <class Target>
struct Field {
  std::string_view name;
  void (*take)(Target& target, const Member& member, Complaint& complaint);
};

template <class Target>
void read_members(std::string_view object, std::string_view what,
                  std::span<const Field<Target>> fields, Target& target, Complaint& complaint) {
  if (json::kind_of(object) != json::Kind::kObject)
    return complaint.wrong_kind(what, "an object", object);
  for (const Member& member : json::members_of(object)) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const auto& f) { return f.name == member.name; });
    if (field == fields.end())
      complaint.about(member.name, fmt::format("is not a member of {}", what));
    if (complaint.raised()) return;
    field->take(target, member, complaint);
    if (complaint.raised()) return;
  }
}

using internal::take_count, internal::take_flag, internal::take_priority, internal::take_text,
    internal::take_time;

template <auto kMember>
void count_of(ExportedJob& exported, const Member& member, Complaint& complaint) {
  take_count(exported.job.*kMember, member, complaint);
}

template <auto kMember>
void text_of_job(ExportedJob& exported, const Member& member, Complaint& complaint) {
  take_text(exported.job.*kMember, member, complaint);
}

template <auto kMember>
void time_of(ExportedJob& exported, const Member& member, Complaint& complaint) {
  take_time(exported.job.*kMember, member, complaint);
}

std::optional<State> take_state(const Member& member, Complaint& complaint) {
  const auto state = engine::job_state_by_name(json::string_of(member.value).value_or(""));
  if (!state) {
    complaint.wrong_kind(member.name, "one of the eight states", member.value);
    return std::nullopt;
  }
  return static_cast<State>(*state);
}

constexpr Field<JobError> kErrorFields[] = {
    {"attempt", [](JobError& e, const Member& m, Complaint& c) { take_count(e.attempt, m, c); }},
    {"occurred_at",
     [](JobError& e, const Member& m, Complaint& c) { take_time(e.occurred_at_ms, m, c); }},
    {"code", [](JobError& e, const Member& m, Complaint& c) { take_text(e.code, m, c); }},
    {"type", [](JobError& e, const Member& m, Complaint& c) { take_text(e.type, m, c); }},
    {"message", [](JobError& e, const Member& m, Complaint& c) { take_text(e.message, m, c); }},
    {"details",
     [](JobError& e, const Member& m, Complaint&) { e.details = json::compact(m.value); }},
    {"details_text",
     [](JobError& e, const Member& m, Complaint& c) { take_text(e.details, m, c); }},
    {"retryable", [](JobError& e, const Member& m, Complaint& c) { take_flag(e.retryable, m, c); }},
};

void take_errors(std::vector<JobError>& to, const Member& member, Complaint& complaint) {
  if (json::kind_of(member.value) != json::Kind::kArray)
    return complaint.wrong_kind(member.name, "an array", member.value);
  for (const std::string_view element : json::elements_of(member.value))
    read_members<JobError>(element, "errors", kErrorFields, to.emplace_back(), complaint);
}

constexpr Field<ExportedJob> kJobFields[] = {
    {"id", &text_of_job<&JobInfo::id>},
    {"type", &text_of_job<&JobInfo::type>},
    {"queue", &text_of_job<&JobInfo::queue>},
    {"state", [](ExportedJob& e, const Member& m,
                 Complaint& c) { e.job.state = take_state(m, c).value_or(State::kAvailable); }},
    {"previous_state", [](ExportedJob& e, const Member& m,
                          Complaint& c) { e.job.previous_state = take_state(m, c); }},
    {"priority", [](ExportedJob& e, const Member& m,
                    Complaint& c) { take_priority(e.priority.emplace(), m, c); }},
    {"priority_age_rate",
     [](ExportedJob& e, const Member& m, Complaint& c) {
       take_count(e.job.priority_age_rate.emplace(), m, c);
     }},
    {"attempt", &count_of<&JobInfo::attempt>},
    {"fence", &count_of<&JobInfo::fence>},
    {"args",
     [](ExportedJob& e, const Member& m, Complaint&) { e.job.args = json::compact(m.value); }},
    {"args_text", &text_of_job<&JobInfo::args>},
    {"extra",
     [](ExportedJob& e, const Member& m, Complaint&) { e.job.extra = json::compact(m.value); }},
    {"extra_text", &text_of_job<&JobInfo::extra>},
    {"retry",
     [](ExportedJob& e, const Member& m, Complaint& c) {
       json::RetryFields fields;
       fields.read(m.value, c);
       if (!c.raised()) e.job.retry = fields.policy();
     }},
    {"created_at", &time_of<&JobInfo::created_at_ms>},
    {"enqueued_at", &time_of<&JobInfo::enqueued_at_ms>},
    {"scheduled_at", &time_of<&JobInfo::scheduled_at_ms>},
    {"expires_at", &time_of<&JobInfo::expires_at_ms>},
    {"started_at", &time_of<&JobInfo::started_at_ms>},
    {"completed_at", &time_of<&JobInfo::completed_at_ms>},
    {"cancelled_at", &time_of<&JobInfo::cancelled_at_ms>},
    {"discarded_at", &time_of<&JobInfo::discarded_at_ms>},
    {"next_attempt_at", &time_of<&JobInfo::next_attempt_at_ms>},
    {"retry_delay_ms", &count_of<&JobInfo::retry_delay_ms>},
    {"timeout_ms", &count_of<&JobInfo::timeout_ms>},
    {"visibility_timeout_ms", &count_of<&JobInfo::lease_ms>},
    {"enqueue_ttl", &count_of<&JobInfo::enqueue_ttl_s>},
    {"total_timeout", &count_of<&JobInfo::total_timeout_s>},
    {"grace_period", &count_of<&JobInfo::grace_period_s>},
    {"discard_reason", &text_of_job<&JobInfo::discard_reason>},
    {"dead_letter",
     [](ExportedJob& e, const Member& m, Complaint& c) { take_flag(e.job.dead_letter, m, c); }},
    {"expired", [](ExportedJob& e, const Member& m, Complaint& c) { take_flag(e.expired, m, c); }},
    {"progress", &internal::take_exported_progress},
    {"progress_message", &internal::take_exported_progress},
    {"progress_data", &internal::take_exported_progress},
    {"progress_data_text", &internal::take_exported_progress},
    {"progress_at", &internal::take_exported_progress},
    {"last_checkpoint", &internal::take_exported_progress},
    {"result",
     [](ExportedJob& e, const Member& m, Complaint&) { e.job.result = json::compact(m.value); }},
    {"result_text", &text_of_job<&JobInfo::result>},
    {"errors",
     [](ExportedJob& e, const Member& m, Complaint& c) { take_errors(e.job.errors, m, c); }},
};

constexpr Field<ExportedQueue> kQueueFields[] = {
    {"name", [](ExportedQueue& q, const Member& m, Complaint& c) { take_text(q.name, m, c); }},
    {"settings",
     [](ExportedQueue& q, const Member& m, Complaint& c) {
       const Result<QueueSettings> settings = parse_queue_settings(m.value);
       if (!settings) return c.about(m.name, "is wrong: " + settings.error().message);
       q.settings = *settings;
     }},
};

void take_hash(std::uint64_t& to, const Member& member, Complaint& complaint) {
  const std::string text = json::string_of(member.value).value_or("");
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), to, 16);
  if (problem != std::errc{} || rest != text.data() + text.size() || to == 0)
    complaint.wrong_kind(member.name, "16 hexadecimal digits", member.value);
}

constexpr Field<ExportedDefault> kDefaultFields[] = {
    {"type", [](ExportedDefault& d, const Member& m, Complaint& c) { take_text(d.type, m, c); }},
    {"type_hash",
     [](ExportedDefault& d, const Member& m, Complaint& c) { take_hash(d.type_hash, m, c); }},
    {"priority",
     [](ExportedDefault& d, const Member& m, Complaint& c) { take_priority(d.priority, m, c); }},
};

constexpr Field<ExportHead> kHeadFields[] = {
    {"ojs_shm_export",
     [](ExportHead& h, const Member& m, Complaint& c) { take_count(h.version, m, c); }},
    {"convention",
     [](ExportHead& h, const Member& m, Complaint& c) { take_text(h.convention, m, c); }},
    {"segment", [](ExportHead& h, const Member& m, Complaint& c) { take_text(h.segment, m, c); }},
    {"library", [](ExportHead& h, const Member& m, Complaint& c) { take_text(h.library, m, c); }},
    {"exported_at",
     [](ExportHead& h, const Member& m, Complaint& c) { take_time(h.exported_at_ms, m, c); }},
};

template <class Target>
Result<ExportLine> read_one(std::string_view object, std::string_view what,
                            std::span<const Field<Target>> fields) {
  Complaint complaint;
  ExportLine line;
  read_members(object, what, fields, line.emplace<Target>(), complaint);
  if (complaint.raised()) return complaint.error();
  return line;
}

/// A later version may have members that this one does not know, so its number is looked at before
/// all else.
Result<ExportLine> read_head(std::string_view object, std::string_view version) {
  const auto number = json::integer_of(version);
  if (number && *number > kExportVersion)
    return Error{
        Code::kOtherFormat,
        fmt::format("this is version {} of the export's text, and this library reads up to {}",
                    *number, kExportVersion)}
        .about("ojs_shm_export");
  return read_one<ExportHead>(object, "the first line", kHeadFields);
}

}  // namespace

std::string print_export(const ExportHead& head) {
  std::string out;
  ObjectWriter writer(out);
  writer.number("ojs_shm_export", std::int64_t{head.version});
  writer.text("convention", head.convention);
  writer.text("segment", head.segment);
  writer.text("library", head.library);
  time(writer, "exported_at", head.exported_at_ms);
  writer.close();
  return out;
}

/// Without what was never set.
static std::string changed_backpressure(const QueueInfo& queue) {
  const QueueInfo untouched;
  std::string text;
  ObjectWriter bounds(text);
  if (queue.max_depth != 0 || queue.max_size_bytes != 0) {
    count(bounds, "max_depth", queue.max_depth);
    count(bounds, "max_size_bytes", queue.max_size_bytes);
  }
  if (queue.strategy != untouched.strategy) bounds.text("strategy", strategy_name(queue.strategy));
  if (queue.warning_threshold != untouched.warning_threshold)
    bounds.number("warning_threshold", queue.warning_threshold);
  if (queue.clear_threshold != queue.warning_threshold)
    bounds.number("clear_threshold", queue.clear_threshold);
  if (queue.drop != untouched.drop) bounds.text("drop", drop_order_name(queue.drop));
  if (queue.tenant_max_depth != 0 || queue.tenant_max_size_bytes != 0 ||
      !queue.tenant_bounds.empty())
    internal::print_tenant_bounds(bounds, queue);
  bounds.close();
  return text;
}

std::string print_export_aging(const QueueInfo& any_queue) {
  const std::string policy = print_queue_policy(any_queue);
  return std::string("{\"aging\":").append(json::members_of(policy).front().value).append("}");
}

std::string print_export(const QueueInfo& queue) {
  return internal::export_line("queue", [&](ObjectWriter& writer) {
    writer.text("name", queue.name);
    std::string text;
    ObjectWriter settings(text);
    if (queue.paused) settings.boolean("paused", true);
    const std::string policy = print_queue_policy(queue);
    const std::string bounds = changed_backpressure(queue);
    if (bounds != "{}") settings.value("backpressure", bounds);
    for (const Member& member : json::members_of(policy)) {
      if (member.name == "backpressure") continue;
      const bool is_default = member.name == "aging"             ? queue.aging_is_default
                              : member.name == "level_weights"   ? queue.level_weights.empty()
                              : member.name == "tenant_fairness" ? !queue.tenant_fairness.enabled
                              : member.name == "retention"       ? member.value == "{}"
                                                                 : queue.shards == 1;
      if (!is_default) settings.value(member.name, member.value);
    }
    settings.close();
    if (text != "{}") writer.value("settings", text);
  });
}

std::string print_export(const ExportedDefault& priority) {
  return internal::export_line("default_priority", [&](ObjectWriter& writer) {
    if (!priority.type.empty())
      writer.text("type", priority.type);
    else
      writer.text("type_hash", fmt::format("{:016x}", priority.type_hash));
    priority_value(writer, priority.priority);
  });
}

std::string print_export(const ExportedJob& exported) {
  const JobInfo& job = exported.job;
  return internal::export_line("job", [&](ObjectWriter& writer) {
    writer.text("id", job.id);
    writer.text("type", job.type);
    writer.text("queue", job.queue);
    writer.text("state", engine::name_of(static_cast<engine::JobState>(job.state)));
    if (exported.priority) priority_value(writer, *exported.priority);
    if (job.priority_age_rate)
      writer.number("priority_age_rate", std::int64_t{*job.priority_age_rate});
    count(writer, "attempt", job.attempt);
    count(writer, "fence", job.fence);
    opaque(writer, "args", job.args);
    opaque(writer, "extra", job.extra);
    retry(writer, job.retry);
    time(writer, "created_at", job.created_at_ms);
    time(writer, "enqueued_at", job.enqueued_at_ms);
    time(writer, "scheduled_at", job.scheduled_at_ms);
    time(writer, "expires_at", job.expires_at_ms);
    time(writer, "started_at", job.started_at_ms);
    time(writer, "completed_at", job.completed_at_ms);
    time(writer, "cancelled_at", job.cancelled_at_ms);
    time(writer, "discarded_at", job.discarded_at_ms);
    time(writer, "next_attempt_at", job.next_attempt_at_ms);
    count(writer, "retry_delay_ms", job.retry_delay_ms);
    count(writer, "timeout_ms", job.timeout_ms);
    count(writer, "visibility_timeout_ms", job.lease_ms);
    count(writer, "enqueue_ttl", job.enqueue_ttl_s);
    count(writer, "total_timeout", job.total_timeout_s);
    count(writer, "grace_period", job.grace_period_s);
    if (job.previous_state)
      writer.text("previous_state",
                  engine::name_of(static_cast<engine::JobState>(*job.previous_state)));
    if (job.dead_letter) writer.boolean("dead_letter", true);
    if (exported.expired) writer.boolean("expired", true);
    // One that was dropped comes back as expired.
    if (exported.expired && job.discard_reason != "expired" && job.discard_reason != "dropped")
      writer.text("discard_reason", job.discard_reason);
    internal::write_exported_progress(writer, job);
    opaque(writer, "result", job.result);
    errors(writer, job.errors);
  });
}

Result<ExportLine> read_export_line(std::string_view text) {
  if (Status valid = json::check(text); !valid) return valid.error();
  const std::string_view line = json::trim(text);
  const std::vector<Member> members =
      json::kind_of(line) == json::Kind::kObject ? json::members_of(line) : std::vector<Member>();
  if (!members.empty() && members.front().name == "ojs_shm_export")
    return read_head(line, members.front().value);
  if (members.size() == 1) {
    const auto& [name, value] = members.front();
    if (name == "job") return read_one<ExportedJob>(value, "job", kJobFields);
    if (name == "aging") {
      const Result<QueueSettings> settings = parse_queue_settings(line);
      if (!settings) return settings.error();
      return ExportLine(ExportedAging{*settings->aging});
    }
    if (name == "queue") return read_one<ExportedQueue>(value, "queue", kQueueFields);
    if (name == "pool") return read_exported_pool(value);
    if (name == "limit") return read_exported_limit(value);
    if (name == "cron") return ExportLine(ExportedCron{std::string(value)});
    if (name == "workflow") return read_exported_workflow(value);
    if (name == "default_priority")
      return read_one<ExportedDefault>(value, "default_priority", kDefaultFields);
  }
  constexpr const char* kNames =
      "a line of an export is an object with one member: job, workflow, queue, pool, limit, cron, "
      "aging or default_priority";
  return Error{Code::kInvalid, kNames}.about("json");
}

}  // namespace ojs_shm
