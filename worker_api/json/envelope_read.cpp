// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "engine/rules/names.hpp"
#include "engine/rules/uuid.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/id_text.hpp"
#include "worker_api/json/result_ttl.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/json/timeout_fields.hpp"
#include "worker_api/json/unique_key.hpp"
#include "worker_api/roles/limit_rule.hpp"

namespace ojs_shm {
namespace {

using json::Kind;
using json::Member;
using json::settle;

// The system's own members: a client that sends a job back as it received it must not change them.
// clang-format off
constexpr std::string_view kManaged[] = {
    "dead_letter", "discard_reason", "state", "attempt", "created_at", "enqueued_at",
    "started_at", "completed_at", "cancelled_at", "discarded_at", "next_attempt_at",
    "next_retry_at", "worker_id", "result", "error", "errors", "progress", "progress_message",
    "progress_data", "progress_at", "retry_delay_ms", "last_checkpoint", "previous_state",
    "workflow_id", "parent_results", "cron_name", "result_stored_at", "result_expires_at",
    "result_size_bytes", "result_pruned", "activated_at", "re_enqueued_at", "deduplicated",
    "unique_key", "unique_policy", "unique_until"};
// clang-format on

// Members that mean something to clients and stay with the job as they are.
constexpr std::array<std::string_view, 1> kMeaningful = {"traceparent"};

class EnvelopeReader {
 public:
  EnvelopeReader(std::uint64_t now_ms, PriorityNames names)
      : now_ms_(static_cast<std::int64_t>(now_ms)), names_(names == PriorityNames::kTaken) {}

  static std::vector<std::string_view> names() {
    std::vector<std::string_view> names;
    for (const auto fields : {top_level_fields(), option_fields()})
      for (const Field& field : fields) names.push_back(field.name);
    names.insert(names.end(), kMeaningful.begin(), kMeaningful.end());
    return names;
  }

  Result<Envelope> read(std::string_view object) {
    for (const Member& member : json::members_of(object)) {
      read_top_level(member);
      if (complaint_.raised()) return complaint_.error();
    }
    Envelope envelope = assemble();
    if (complaint_.raised()) return complaint_.error();
    return envelope;
  }

 private:
  using Take = void (EnvelopeReader::*)(const Member&);
  struct Field {
    std::string_view name;
    Take take;
  };
  static std::span<const Field> top_level_fields() {
    static constexpr Field kFields[] = {
        {"type", &EnvelopeReader::take_type},       {"args", &EnvelopeReader::take_args},
        {"id", &EnvelopeReader::take_id},           {"specversion", &EnvelopeReader::take_version},
        {"options", &EnvelopeReader::take_options}, {"workflow", &EnvelopeReader::take_workflow},
    };
    return kFields;
  }

  // These may stand at the top as well.
  static std::span<const Field> option_fields() {
    static constexpr Field kFields[] = {
        {"queue", &EnvelopeReader::take_queue},
        {"priority", &EnvelopeReader::take_priority},
        {"priority_age_rate", &EnvelopeReader::take_age_rate},
        {"timeout_ms", &EnvelopeReader::take_timeouts},
        {"timeout", &EnvelopeReader::take_timeouts},
        {"visibility_timeout_ms", &EnvelopeReader::take_timeouts},
        {"visibility_timeout", &EnvelopeReader::take_timeouts},
        {"enqueue_ttl", &EnvelopeReader::take_timeouts},
        {"total_timeout", &EnvelopeReader::take_timeouts},
        {"grace_period", &EnvelopeReader::take_timeouts},
        {"heartbeat_timeout", &EnvelopeReader::take_timeouts},
        {"scheduled_at", &EnvelopeReader::take_scheduled_at},
        {"delay_until", &EnvelopeReader::take_scheduled_at},
        {"expires_at", &EnvelopeReader::take_expires_at},
        {"retry", &EnvelopeReader::take_retry},
        {"retry_policy", &EnvelopeReader::take_retry},
        {"max_attempts", &EnvelopeReader::take_max_attempts},
        {"pending", &EnvelopeReader::take_pending},
        {"meta", &EnvelopeReader::take_meta},
        {"metadata", &EnvelopeReader::take_meta},
        {"tags", &EnvelopeReader::take_tags},
        {"unique", &EnvelopeReader::take_unique},
        {"rate_limit", &EnvelopeReader::take_rate_limit},
        {"result_ttl", &EnvelopeReader::take_result_ttl},
        {"schema", &EnvelopeReader::take_schema},
    };
    return kFields;
  }

  /// An optional member that is null is as good as absent (ojs-json-format 14.2).
  bool take_if_known(std::span<const Field> fields, const Member& member) {
    for (const Field& field : fields) {
      if (field.name != member.name) continue;
      const bool is_needed = member.name == "type" || member.name == "args";
      if (is_needed || json::kind_of(member.value) != Kind::kNull) (this->*field.take)(member);
      return true;
    }
    return false;
  }

  void read_top_level(const Member& member) {
    if (take_if_known(top_level_fields(), member) || take_if_known(option_fields(), member)) return;
    if (std::ranges::find(kManaged, member.name) != std::end(kManaged)) return;
    if (std::ranges::find(kMeaningful, member.name) == kMeaningful.end())
      unknown_.push_back(member.name);
    keep(member);
  }

  void take_options(const Member& member) {
    if (!is_object(member)) return;
    for (const Member& option : json::members_of(member.value)) {
      if (!take_if_known(option_fields(), option)) {
        unknown_.push_back("options." + option.name);
        unknown_options_.add(option.name, option.value, complaint_);
      }
      if (complaint_.raised()) return;
    }
  }

  // --- What only the top level has ---
  void take_type(const Member& member) {
    const auto type = json::text(member.name, member.value, complaint_);
    if (type) check_length("type", *type, engine::kMaxTypeLength);
    if (type && !engine::valid_type(*type))
      complaint_.wrong_kind("type", "lower-case words joined by dots, such as email.send",
                            member.value);
    settle(type_, type, "type", complaint_);
  }

  void take_args(const Member& member) {
    if (json::kind_of(member.value) != Kind::kArray)
      return complaint_.wrong_kind("args", "an array", member.value);
    settle(args_, std::optional(json::compact(member.value)), "args", complaint_);
  }

  void take_id(const Member& member) {
    const auto id = json::text(member.name, member.value, complaint_);
    if (id && !engine::parse_id(*id))
      complaint_.raise(Error{Code::kInvalid, internal::not_an_id_text(*id)}.about("id"));
    settle(id_, id, "id", complaint_);
  }

  /// One that is older or newer in its last parts says the same. Source: ojs-json-format 3.1.
  void take_version(const Member& member) {
    const auto version = json::text(member.name, member.value, complaint_);
    if (version && *version != "1" && !version->starts_with("1."))
      complaint_.wrong_kind("specversion", "\"1.0\"", member.value);
  }

  // --- What may also stand in `options` ---
  void take_queue(const Member& member) {
    const auto queue = json::text(member.name, member.value, complaint_);
    if (queue) check_length("queue", *queue, engine::kMaxQueueNameLength);
    if (queue && !engine::valid_queue_name(*queue))
      complaint_.wrong_kind("queue", "lower-case letters, digits, hyphens and dots", member.value);
    settle(queue_, queue, "queue", complaint_);
  }

  void take_age_rate(const Member& member) {
    settle(age_rate_, json::whole_number("priority_age_rate", member.value, 255, complaint_),
           "priority_age_rate", complaint_);
  }
  void take_priority(const Member& member) {
    if (const auto name = json::string_of(member.value);
        names_ && name && !name->empty() && std::isalpha((*name)[0]) != 0)
      return settle(priority_name_, name, "priority", complaint_);
    const auto priority = json::integer_of(member.value);
    if (!priority) return complaint_.wrong_kind("priority", "an integer", member.value);
    using Limits = std::numeric_limits<std::int64_t>;
    const bool limit = *priority == Limits::min() || *priority == Limits::max();
    const std::string written = json::compact(member.value);
    if (limit && written != std::to_string(*priority)) vast_priority_ = written;
    settle(priority_, priority, "priority", complaint_);
  }

  void take_timeouts(const Member& member) {
    if (timeouts_.take(member, complaint_)) keep(member);
  }

  void take_scheduled_at(const Member& member) {
    take_time(member, "scheduled_at", scheduled_at_ms_);
  }
  void take_expires_at(const Member& member) { take_time(member, "expires_at", expires_at_ms_); }

  void take_time(const Member& member, std::string_view name, std::optional<std::uint64_t>& slot) {
    const auto written = json::text(member.name, member.value, complaint_);
    if (!written) return;
    const ParsedMs parsed = parse_time(*written, now_ms_);
    if (parsed.fault == TimeFault::kSyntax)
      return complaint_.wrong_kind(
          member.name, "a time such as \"2026-01-27T12:00:00Z\" or \"+PT2S\"", member.value);
    if (!parsed) return complaint_.about(member.name, text_of(parsed.fault));
    const bool said_before = slot.has_value();
    // Unix time 0 would mean that nothing was said; whatever lies before it is past as well.
    const std::uint64_t unix_ms = parsed.ms < 1 ? 1 : static_cast<std::uint64_t>(parsed.ms);
    settle(slot, std::optional(unix_ms), member.name, complaint_);
    // A lower-case T or Z and a leap second, which RFC 3339 has, no strict reader takes: they go
    // back as the time that they mean.
    const bool prints_alike = written->starts_with('+') || *written == print_timestamp(unix_ms) ||
                              written->find_first_of("tz") != std::string::npos ||
                              written->find(":60") != std::string::npos;
    if (!said_before && !prints_alike) kept_.add(name, member.value, complaint_);
  }

  void take_retry(const Member& member) {
    retry_.read(member.value, complaint_);
    if (!complaint_.raised()) kept_.add("retry", member.value, complaint_);
  }

  void take_max_attempts(const Member& member) {
    retry_.read_max_attempts("retry.max_attempts", member.value, complaint_);
  }

  void take_pending(const Member& member) {
    settle(pending_, json::boolean(member.name, member.value, complaint_), member.name, complaint_);
  }

  void take_meta(const Member& member) {
    if (!is_object(member)) return;
    for (const Member& entry : json::members_of(member.value)) {
      meta_.add(entry.name, entry.value, complaint_);
      if (entry.name != "tenant_id") continue;
      const auto tenant = json::string_of(entry.value);
      if (!tenant) return complaint_.wrong_kind("meta.tenant_id", "a text", entry.value);
      if (tenant->empty()) return complaint_.about("meta.tenant_id", "must not be empty");
      tenant_ = *tenant;
    }
  }

  void take_tags(const Member& member) {
    if (json::check_texts("tags", member.value, complaint_)) keep(member);
  }

  void take_schema(const Member& member) {
    if (json::kind_of(member.value) != Kind::kString)
      return complaint_.wrong_kind("schema", "the URI of a schema", member.value);
    keep(member);
  }

  void take_unique(const Member& member) {
    if (!is_object(member)) return;
    unique_ = member.value;
    kept_.add(member.name, json::usual_unique(member.value), complaint_);
  }
  void take_rate_limit(const Member& member) {
    wants_rate_limit_ = keep_object(member);
    if (wants_rate_limit_) rate_limit_ = member.value;
  }
  void take_result_ttl(const Member& member) {
    const auto seconds = json::integer_of(member.value);
    if (!seconds || !is_result_ttl(*seconds))
      return complaint_.wrong_kind(
          "result_ttl", fmt::format("a whole number of seconds from -1 to {}", kLongestResultTtlS),
          member.value);
    keep(member);
  }
  void take_workflow(const Member& member) { wants_workflow_ = keep_object(member); }

  // --- Common steps ---
  bool is_object(const Member& member) {
    if (json::kind_of(member.value) == Kind::kObject) return true;
    complaint_.wrong_kind(member.name, "an object", member.value);
    return false;
  }

  bool keep_object(const Member& member) {
    if (!is_object(member)) return false;
    keep(member);
    return true;
  }

  void keep(const Member& member) { kept_.add(member.name, member.value, complaint_); }

  void check_length(std::string_view member, std::string_view text, std::size_t most) {
    if (text.size() > most) complaint_.too_large(member, text.size(), most);
  }

  JobLimit read_limit() {
    JobLimit limit = internal::read_limit(rate_limit_, queue_.value_or("default"), complaint_);
    if (Status checked = internal::check_limit(limit.key, limit.limit, false); !checked)
      complaint_.raise(checked.error());
    return limit;
  }

  void read_unique(Envelope& envelope) {
    if (unique_.empty() || complaint_.raised()) return;
    envelope.unique = unique_of(envelope.spec(), unique_, complaint_);
  }

  Envelope assemble() {
    if (!type_) complaint_.about("type", "is missing");
    if (!args_) complaint_.about("args", "is missing");
    if (priority_name_ && priority_)
      complaint_.about("priority", "is given twice, with different values");
    std::optional<JobLimit> limit;
    if (wants_rate_limit_) limit = read_limit();
    timeouts_.check(complaint_);
    std::string extra;
    if (!meta_.empty()) {
      const std::string meta = meta_.object();
      check_length("meta", meta, kMaxMetaBytes);
      kept_.add("meta", meta, complaint_);
    }
    if (!unknown_options_.empty()) kept_.add("options", unknown_options_.object(), complaint_);
    if (!kept_.empty()) extra = kept_.object();
    unknown_.insert(unknown_.end(), retry_.unknown().begin(), retry_.unknown().end());
    Envelope envelope = {.type = type_.value_or(""),
                         .queue = queue_.value_or("default"),
                         .id = id_.value_or(""),
                         .args = args_.value_or(""),
                         .extra = std::move(extra),
                         .priority = priority_,
                         .vast_priority = vast_priority_,
                         .priority_name = priority_name_.value_or(""),
                         .unknown = std::move(unknown_),
                         .priority_age_rate = age_rate_,
                         .scheduled_at_ms = scheduled_at_ms_.value_or(0),
                         .expires_at_ms = expires_at_ms_.value_or(0),
                         .timeout_ms = timeouts_.timeout_ms(),
                         .lease_ms = timeouts_.lease_ms(),
                         .enqueue_ttl_s = timeouts_.enqueue_ttl_s(),
                         .total_timeout_s = timeouts_.total_timeout_s(),
                         .grace_period_s = timeouts_.grace_period_s(),
                         .pending = pending_.value_or(false),
                         .retry = retry_.policy(),
                         .limit = std::move(limit),
                         .tenant = tenant_,
                         .wants_rate_limit = wants_rate_limit_,
                         .wants_workflow = wants_workflow_};
    read_unique(envelope);
    const auto& ignored = complaint_.ignored();
    envelope.unknown.insert(envelope.unknown.end(), ignored.begin(), ignored.end());
    return envelope;
  }

  std::int64_t now_ms_;
  bool names_;  ///< a priority may be a name
  json::Complaint complaint_;
  std::optional<std::string> type_, args_, id_, queue_;
  std::optional<std::int64_t> priority_;
  std::optional<std::string> priority_name_;
  std::string vast_priority_, tenant_;
  std::vector<std::string> unknown_;
  std::string_view rate_limit_, unique_;
  std::optional<std::uint64_t> scheduled_at_ms_, expires_at_ms_;
  std::optional<std::uint32_t> age_rate_;
  json::TimeoutFields timeouts_;
  std::optional<bool> pending_;
  json::RetryFields retry_;
  json::MemberList meta_, kept_, unknown_options_;
  bool wants_rate_limit_ = false, wants_workflow_ = false;
};

}  // namespace

JobSpec Envelope::spec() const {
  return {.type = type,
          .args = args,
          .queue = queue,
          .id = id,
          .extra = extra,
          .priority = priority,
          .scheduled_at_ms = scheduled_at_ms,
          .expires_at_ms = expires_at_ms,
          .timeout_ms = timeout_ms,
          .lease_ms = lease_ms,
          .pending = pending,
          .retry = retry,
          .priority_age_rate = priority_age_rate,
          .limit = limit ? &*limit : nullptr,
          .tenant = tenant,
          .unique = unique ? &*unique : nullptr,
          .enqueue_ttl_s = enqueue_ttl_s,
          .total_timeout_s = total_timeout_s,
          .grace_period_s = grace_period_s};
}

Result<Envelope> parse_envelope(std::string_view json, std::uint64_t now_ms, PriorityNames names) {
  if (Status status = json::check(json); !status) return status.error();
  return parse_checked_envelope(json, now_ms, names);
}

Result<Envelope> parse_checked_envelope(std::string_view json, std::uint64_t now_ms,
                                        PriorityNames names) {
  if (json::kind_of(json) != Kind::kObject)
    return Error{Code::kInvalid, "a job must be a JSON object"}.about("job");
  return EnvelopeReader(now_ms, names).read(json);
}

std::span<const std::string_view> envelope_members() {
  static const std::vector<std::string_view> kNames = EnvelopeReader::names();
  return kNames;
}

Result<std::string> args_of_input(std::string_view json) {
  if (Status status = json::check(json); !status) return status.error();
  const std::string value = json::compact(json);
  return json::kind_of(json) == Kind::kArray ? value : "[" + value + "]";
}

}  // namespace ojs_shm
