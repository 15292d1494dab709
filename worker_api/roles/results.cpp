// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/results.hpp"

#include <algorithm>

#include "engine/tables/job_look.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "worker_api/json/result_ttl.hpp"

namespace ojs_shm::internal {

[[gnu::noinline]] Error no_job(const engine::Store& store, std::string_view id) {
  const auto parsed = engine::parse_id(id);
  if (parsed && engine::gave_away(store, *parsed))
    return Error{
        Code::kNotFound,
        "job " + std::string(id) + " is gone: it ended and its room was needed, or it was deleted"}
        .about("id")
        .in_state("gone");
  return Error{Code::kNotFound, "no job with id " + std::string(id)}.about("id");
}

Error wrong_state(std::string_view id, engine::JobState found, std::string_view wanted) {
  return Error{Code::kWrongState, "job " + std::string(id) + " is " +
                                      std::string(engine::name_of(found)) + ", not " +
                                      std::string(wanted)}
      .about(std::string(engine::name_of(found)));
}

void tell_result(const engine::Store& store, const engine::Snapshot& s, JobInfo& info) {
  info.result = s.result;
  info.result_ttl_s = result_ttl_in(info.extra);
  if (!info.result_ttl_s || *info.result_ttl_s < 0 || info.state != State::kCompleted) return;
  const engine::Membership member{s.annex.workflow, s.annex.workflow_generation, s.annex.node};
  if ((s.signals & engine::kMember) != 0 && engine::runs(engine::head_of(store, member)))
    return;  // other jobs of its workflow may want it
  info.result_expires_at_ms = s.finished_at + static_cast<std::uint64_t>(*info.result_ttl_s) * 1000;
  if (store.now_ms() < info.result_expires_at_ms) return;
  info.result_pruned = true;
  info.result.clear();
}

namespace {

/// Source: ojs-timeouts 8.
std::string_view expiry_name(unsigned time_up) {
  switch (static_cast<engine::TimeUp>(time_up)) {
    case engine::TimeUp::kEnqueueTtl: return "enqueue_ttl_expired";
    case engine::TimeUp::kTotalTimeout: return "total_timeout";
    case engine::TimeUp::kExpired: break;
  }
  return "expired";
}

}  // namespace

/// A limit drops a job without a mark: the job never began, and has no error.
std::string_view discard_reason(const engine::Snapshot& s) {
  if (s.state() != engine::JobState::kDiscarded) return "";
  if (s.policy.has(engine::Policy::kExpired)) return expiry_name(s.policy.previous());
  if (s.policy.previous() != 0 || (s.attempt == 0 && s.errors.empty())) return "dropped";
  return "failed";
}

[[gnu::noinline]] std::string_view result_to_keep(std::string_view result, std::string_view extra,
                                                  bool member) {
  return !member && result_ttl_in(extra) == 0 ? std::string_view() : result;
}

Error wrong_result_ttl(const JobSpec& spec) {
  const bool no_place = spec.result_ttl_s && is_result_ttl(*spec.result_ttl_s);
  return Error{Code::kInvalid, no_place
                                   ? "result_ttl is kept in extra, which must be a JSON object"
                                   : "result_ttl must be a whole number of seconds from -1 to " +
                                         std::to_string(kLongestResultTtlS)}
      .about("result_ttl")
      .at_most(static_cast<std::uint64_t>(kLongestResultTtlS));
}

[[gnu::noinline]] void keep_result_ttl(JobSpec& spec, std::deque<std::string>& texts) {
  if (!spec.result_ttl_s) return;
  std::string kept = with_result_ttl(spec.extra, *spec.result_ttl_s);
  if (result_ttl_in(kept) != spec.result_ttl_s) return;
  spec.extra = texts.emplace_back(std::move(kept));
  spec.result_ttl_s.reset();
}

[[gnu::noinline]] KeptSpecs::KeptSpecs(std::span<const JobSpec> given) : all_(given) {
  if (std::ranges::none_of(given,
                           [](const JobSpec& spec) { return spec.result_ttl_s.has_value(); }))
    return;
  own_.assign(given.begin(), given.end());
  for (JobSpec& spec : own_) keep_result_ttl(spec, texts_);
  all_ = own_;
}

}  // namespace ojs_shm::internal
