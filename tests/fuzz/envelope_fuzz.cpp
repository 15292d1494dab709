// SPDX-License-Identifier: Apache-2.0
// A client's text: an envelope, an id, a time. Refused with an error that names a member, or
// understood; what was understood and printed reads the same again.
//
// Input: the text, read as each of them.
#include <string>
#include <vector>

#include "engine/rules/uuid.hpp"
#include "tests/fuzz/input.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::fuzz {
namespace {

constexpr std::int64_t kNowMs = 1'800'000'000'000;
constexpr std::int64_t kYear10000Ms = 253'402'300'800'000;

/// The job that an envelope makes, without what only a segment adds.
JobInfo job_of(const Envelope& envelope) {
  JobInfo job;
  job.id = envelope.id.empty() ? "0199461a-0000-7000-8000-000000000000" : envelope.id;
  job.type = envelope.type;
  job.queue = envelope.queue;
  job.args = envelope.args;
  job.extra = envelope.extra;
  job.priority = envelope.priority.value_or(0);
  job.retry = envelope.retry;
  job.scheduled_at_ms = envelope.scheduled_at_ms;
  job.expires_at_ms = envelope.expires_at_ms;
  job.timeout_ms = envelope.timeout_ms;
  job.lease_ms = envelope.lease_ms;
  return job;
}

bool alike(const Retry& a, const Retry& b) {
  return a.max_attempts == b.max_attempts && a.initial_ms == b.initial_ms && a.max_ms == b.max_ms &&
         a.coefficient == b.coefficient && a.backoff == b.backoff && a.jitter == b.jitter &&
         a.dead_letter == b.dead_letter;
}

/// Later times print as the end of year 9999.
bool prints_in_full(const Envelope& envelope) {
  return envelope.scheduled_at_ms < kYear10000Ms && envelope.expires_at_ms < kYear10000Ms;
}

void read_envelope(std::string_view text) {
  const Result<Envelope> first = parse_envelope(text, kNowMs);
  if (!first.ok()) {
    require(!first.error().message.empty() && !first.error().subject.empty(),
            "a refusal that says nothing");
    require(first.code() == Code::kInvalid || first.code() == Code::kTooLarge,
            "a refusal of another kind");
    return;
  }
  require(json::check(first->args).ok() && json::kind_of(first->args) == json::Kind::kArray,
          "args are no array");
  require(first->extra.empty() || json::check(first->extra).ok(), "extra is no JSON");
  (void)forbids_retry(first->extra, "some.error");
  const std::string printed = print_job(job_of(*first));
  require(json::check(printed).ok(), "printed as something that is no JSON");
  if (!prints_in_full(*first)) return;
  const Result<Envelope> second = parse_envelope(printed, kNowMs + 60'000);
  require(second.ok(),
          "what was printed is refused: " + (second.ok() ? "" : second.error().message));
  require(second->type == first->type && second->queue == first->queue, "another type or queue");
  require(second->args == first->args, "other args");
  require(first->id.empty() || second->id == first->id, "another id");
  require(second->priority == first->priority.value_or(0), "another priority");
  require(second->scheduled_at_ms == first->scheduled_at_ms, "another scheduled_at");
  require(second->expires_at_ms == first->expires_at_ms, "another expires_at");
  require(second->timeout_ms == first->timeout_ms && second->lease_ms == first->lease_ms,
          "another timeout or lease");
  require(alike(second->retry, first->retry), "another retry policy");
  require(second->unique.has_value() == first->unique.has_value() &&
              second->wants_rate_limit == first->wants_rate_limit &&
              second->wants_workflow == first->wants_workflow,
          "another wish");
  require(print_job(job_of(*second)) ==
              print_job(job_of(*parse_envelope(print_job(job_of(*second)), kNowMs))),
          "printed differently each time");
}

/// Whatever a crash or a native client left in a job's texts.
void print_anything(Input input) {
  JobInfo job;
  for (std::string* text : {&job.args, &job.extra, &job.result, &job.type, &job.id, &job.queue})
    *text = input.bytes(input.byte());
  job.state = static_cast<State>(input.byte() % 8);
  job.retry.backoff = static_cast<RetryBackoff>(input.byte());
  job.scheduled_at_ms = input.number(8);
  job.created_at_ms = input.number(8);
  job.progress = static_cast<double>(input.number(2)) / 1000;
  job.errors.push_back({.attempt = 1,
                        .code = std::string(input.bytes(input.byte())),
                        .details = std::string(input.rest())});
  require(json::check(print_job(job)).ok(), "a job was printed as something that is no JSON");
}

void read_json(std::string_view text) {
  if (!json::check(text).ok()) return;
  const std::string compact = json::compact(text);
  require(json::check(compact).ok() && json::compact(compact) == compact,
          "compacted again it is shorter");
  require(json::kind_of(text) == json::kind_of(compact), "another kind");
  if (const auto string = json::string_of(text)) {
    std::string quoted;
    json::append_quoted(quoted, *string);
    require(json::string_of(quoted) == string, "another string");
  }
  (void)json::number_of(text);
  (void)json::integer_of(text);
  require(args_of_input(text).ok(), "no args though it is JSON");
}

void read_id(std::string_view text) {
  if (const auto id = engine::parse_id(text)) require(engine::to_string(*id) == text, "another id");
}

void read_times(std::string_view text) {
  if (const ParsedMs time = parse_timestamp(text); time && time.ms >= 0 && time.ms < kYear10000Ms)
    require(parse_timestamp(print_timestamp(static_cast<std::uint64_t>(time.ms))).ms == time.ms,
            "another time");
  if (const ParsedMs span = parse_duration(text)) {
    require(span.ms >= 0, "a negative duration");
    require(parse_duration(print_duration(static_cast<std::uint64_t>(span.ms))).ms == span.ms,
            "another duration");
  }
  const ParsedMs time = parse_time(text, kNowMs);
  require(time || !text_of(time.fault).empty(), "a refusal that says nothing");
}

}  // namespace
}  // namespace ojs_shm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ojs_shm::fuzz;
  const Input input(data, size);
  // Of exactly its length, so that a look behind its end is seen.
  const std::vector<char> text(input.rest().begin(), input.rest().end());
  const std::string_view view(text.data(), text.size());
  read_envelope(view);
  read_json(view);
  read_id(view);
  read_times(view);
  print_anything(input);
  return 0;
}
