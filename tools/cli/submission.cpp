// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/submission.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "tools/cli/view.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

/// What --retry calls a member, and what the envelope calls it.
struct RetryName {
  std::string_view flag, member;
  bool text;  ///< the envelope has it as a string
};
constexpr RetryName kRetryNames[] = {
    {"max_attempts", "max_attempts", false},       {"backoff", "backoff_strategy", true},
    {"initial", "initial_interval", true},         {"max", "max_interval", true},
    {"coefficient", "backoff_coefficient", false}, {"jitter", "jitter", false},
    {"on_exhaustion", "on_exhaustion", true}};

/// "max_attempts=5,backoff=linear" -> {"max_attempts":5,"backoff_strategy":"linear"}.
std::string retry_object(const std::string& text) {
  return object([&](json::ObjectWriter& writer) {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      const auto equals = part.find('=');
      const RetryName* name = nullptr;
      for (const RetryName& known : kRetryNames) {
        if (equals != std::string::npos && std::string_view(part).substr(0, equals) == known.flag)
          name = &known;
      }
      if (name == nullptr) {
        shell::refuse(
            Code::kInvalid,
            fmt::format("--retry: \"{}\" is none of max_attempts=, backoff=, initial=, max=, "
                        "coefficient=, jitter=, on_exhaustion=",
                        part));
      }
      const std::string value = part.substr(equals + 1);
      if (name->text) {
        writer.text(name->member, value);
      } else if (json::check(value)) {
        writer.value(name->member, value);
      } else {
        shell::refuse(Code::kInvalid,
                      fmt::format("--retry: {}={} is not a value", name->flag, value));
      }
    }
  });
}

/// "api,concurrency=5,rate=100/minute" ->
/// {"key":"api","concurrency":5,"rate":{"limit":100,"period":"minute"}}.
std::string limit_object(const std::string& text) {
  return object([&](json::ObjectWriter& writer) {
    std::istringstream parts(text);
    std::string part;
    std::getline(parts, part, ',');
    if (part.empty() || part.find('=') != std::string::npos)
      shell::refuse(Code::kInvalid,
                    fmt::format("--rate-limit: \"{}\" begins without a key; for example "
                                "--rate-limit api,concurrency=5",
                                text));
    writer.text("key", part);
    while (std::getline(parts, part, ',')) {
      const auto equals = std::min(part.find('='), part.size());
      const std::string name = part.substr(0, equals),
                        value = part.substr(std::min(equals + 1, part.size()));
      const auto slash = value.find('/');
      if (name == "on_limit") {
        writer.text(name, value);
      } else if (name == "concurrency" && json::check(value)) {
        writer.value(name, value);
      } else if ((name == "rate" || name == "throttle") && slash != std::string::npos &&
                 json::check(value.substr(0, slash))) {
        writer.open(name) += object([&](json::ObjectWriter& pace) {
          pace.value("limit", value.substr(0, slash));
          pace.text("period", value.substr(slash + 1));
        });
      } else {
        shell::refuse(Code::kInvalid,
                      fmt::format("--rate-limit: \"{}\" is none of concurrency=N, rate=N/PERIOD, "
                                  "throttle=N/PERIOD, on_limit=WHAT",
                                  part));
      }
    }
  });
}

void write_names(json::ObjectWriter& writer, std::string_view member, const std::string& text) {
  if (text.empty()) return;
  std::string& names = writer.open(member) += '[';
  std::istringstream parts(text);
  for (std::string name; std::getline(parts, name, ',');) {
    if (names.back() != '[') names += ',';
    json::append_quoted(names, name);
  }
  names += ']';
}

/// "type,args" and the flags beside it -> {"keys":["type","args"],...}; or the object itself.
std::string unique_object(const SubmissionFlags& flags) {
  const bool whole = flags.unique.starts_with('{');
  const bool more = !(flags.unique_args + flags.unique_meta + flags.unique_period +
                      flags.unique_states + flags.on_conflict)
                         .empty() ||
                    flags.raise_priority;
  if (whole && more)
    shell::refuse(Code::kInvalid,
                  "give --unique as a JSON object or the flags beside it, not both");
  if (whole && !json::check(flags.unique)) shell::refuse(Code::kInvalid, "--unique is not JSON");
  if (whole) return flags.unique;
  if (flags.unique.empty())
    shell::refuse(Code::kInvalid, "what makes a job unique needs --unique, such as --unique args");
  return object([&](json::ObjectWriter& writer) {
    write_names(writer, "keys", flags.unique);
    write_names(writer, "args_keys", flags.unique_args);
    write_names(writer, "meta_keys", flags.unique_meta);
    write_names(writer, "states", flags.unique_states);
    if (!flags.unique_period.empty())
      writer.text("period", print_duration(must(shell::parse_duration_ms(flags.unique_period))));
    if (!flags.on_conflict.empty()) writer.text("on_conflict", flags.on_conflict);
    if (flags.raise_priority) writer.boolean("raise_priority", true);
  });
}

bool wants_unique(const SubmissionFlags& flags) {
  return flags.raise_priority || !(flags.unique + flags.unique_args + flags.unique_meta +
                                   flags.unique_period + flags.unique_states + flags.on_conflict)
                                      .empty();
}

void write_duration(json::ObjectWriter& writer, std::string_view member, const std::string& text) {
  if (!text.empty())
    writer.number(member, static_cast<std::int64_t>(must(shell::parse_duration_ms(text))));
}

/// "1h" -> 3600; what is left of a second counts as one.
std::int64_t whole_seconds(const std::string& text) {
  return static_cast<std::int64_t>((must(shell::parse_duration_ms(text)) + 999) / 1000);
}

void write_seconds(json::ObjectWriter& writer, std::string_view member, const std::string& text) {
  if (!text.empty()) writer.number(member, whole_seconds(text));
}

/// What a flag becomes in the job, where the two have different names.
constexpr std::pair<std::string_view, std::string_view> kFlagOfMember[] = {
    {"timeout_ms", "--timeout"},        {"visibility_timeout_ms", "--lease"},
    {"enqueue_ttl", "--enqueue-ttl"},   {"total_timeout", "--total-timeout"},
    {"grace_period", "--grace-period"}, {"result_ttl", "--result-ttl"},
};

/// An error about a member that a flag became is about that flag.
Error about_the_flag(Error error) {
  for (const auto& [member, flag] : kFlagOfMember)
    if (error.subject == member && error.message.starts_with(member))
      error.message.replace(0, member.size(), flag);
  return error;
}

std::int64_t result_ttl_seconds(const std::string& text) {
  return text == "never" ? -1 : whole_seconds(text);
}

}  // namespace

Envelope envelope_of(const SubmissionFlags& flags, const Observer& observer) {
  if (!flags.delay.empty() && !flags.at.empty())
    shell::refuse(Code::kInvalid, "give --delay or --at, not both");
  const std::uint64_t now = shell::unix_now_ms();
  const std::string text = object([&](json::ObjectWriter& writer) {
    writer.text("type", flags.type);
    writer.value("args", flags.input.empty() ? "[]" : must(args_of_input(flags.input)));
    if (!flags.queue.empty()) writer.text("queue", flags.queue);
    if (!flags.id.empty()) writer.text("id", flags.id);
    if (!flags.priority.empty())
      writer.number("priority", parse_priority(observer, flags.priority));
    if (flags.priority_age_rate)
      writer.number("priority_age_rate", std::int64_t{*flags.priority_age_rate});
    if (!flags.delay.empty()) {
      writer.text("scheduled_at",
                  print_timestamp(now + must(shell::parse_duration_ms(flags.delay))));
    }
    if (!flags.at.empty())
      writer.text("scheduled_at", print_timestamp(must(shell::parse_time_ms(flags.at))));
    if (!flags.expires.empty())
      writer.text("expires_at", print_timestamp(must(shell::parse_time_ms(flags.expires))));
    write_duration(writer, "timeout_ms", flags.timeout);
    write_duration(writer, "visibility_timeout_ms", flags.lease);
    write_seconds(writer, "enqueue_ttl", flags.enqueue_ttl);
    write_seconds(writer, "total_timeout", flags.total_timeout);
    write_seconds(writer, "grace_period", flags.grace_period);
    if (!flags.result_ttl.empty())
      writer.number("result_ttl", result_ttl_seconds(flags.result_ttl));
    if (!flags.retry.empty()) writer.open("retry") += retry_object(flags.retry);
    if (!flags.rate_limit.empty()) writer.open("rate_limit") += limit_object(flags.rate_limit);
    if (wants_unique(flags)) writer.value("unique", unique_object(flags));
    if (!flags.meta.empty()) {
      if (!json::check(flags.meta)) shell::refuse(Code::kInvalid, "--meta is not JSON");
      writer.value("meta", flags.meta);
    }
    if (flags.pending) writer.boolean("pending", true);
  });
  Result<Envelope> envelope = parse_envelope(text, now);
  if (!envelope) throw shell::Refusal{about_the_flag(envelope.error())};
  return std::move(envelope).value();
}

Status settle_priority(Envelope& envelope, const Observer& observer) {
  if (envelope.priority_name.empty()) return {};
  const auto number = observer.priority_by_name(envelope.priority_name);
  if (!number) return number.error();
  envelope.priority = number.value();
  envelope.priority_name.clear();
  return {};
}

Status check_supported(const Envelope& envelope) {
  const std::string_view wanted = envelope.wants_workflow ? "workflow" : "";
  if (wanted.empty()) return {};
  Error error;
  error.code = Code::kInvalid;
  error.subject = wanted;
  error.message = wanted == "workflow"
                      ? "a job with a workflow is enqueued by `ojs-shm workflow run`"
                      : fmt::format("{} is not supported by this version", wanted);
  return error;
}

}  // namespace ojs_shm::cli
