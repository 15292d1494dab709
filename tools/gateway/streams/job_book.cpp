// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/streams/job_book.hpp"

#include <utility>

#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::gateway {
namespace {

bool may_have_trace(std::string_view extra) {
  return extra.find("trace_id") != extra.npos || extra.find("traceparent") != extra.npos;
}

/// The trace of a `traceparent`; empty: it is none. Source: W3C Trace Context, 3.2.
std::string trace_in(std::string_view parent) {
  constexpr std::string_view kForm = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-00";
  constexpr std::size_t kBegin = 3, kDigits = 32;
  if (parent.size() < kForm.size() || parent.starts_with("ff")) return {};
  // a later version may go on behind another hyphen
  if (parent.size() > kForm.size() && (parent.starts_with("00") || parent[kForm.size()] != '-'))
    return {};
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit =
        (parent[i] >= '0' && parent[i] <= '9') || (parent[i] >= 'a' && parent[i] <= 'f');
    if (kForm[i] == '-' ? parent[i] != '-' : !digit) return {};
  }
  const std::string_view trace = parent.substr(kBegin, kDigits);
  if (trace.find_first_not_of('0') == trace.npos) return {};
  return "\"" + std::string(trace) + "\"";
}

/// What any job may have here is kept of very many jobs.
bool is_trace(std::string_view value) {
  constexpr std::size_t kLongestTrace = 128;
  const auto text = json::string_of(value);
  return text && text->size() <= kLongestTrace;
}

/// `meta.trace_id` of a job's members as JSON, else that of its `traceparent`; empty: it has none.
std::string trace_of(std::string_view extra) {
  if (!may_have_trace(extra) || !json::check(extra) ||
      json::kind_of(json::trim(extra)) != json::Kind::kObject)
    return {};
  std::string by_parent;
  for (const json::Member& member : json::members_of(json::trim(extra))) {
    if (member.name != "meta" || json::kind_of(member.value) != json::Kind::kObject) continue;
    for (const json::Member& meta : json::members_of(member.value)) {
      if (meta.name == "trace_id" && is_trace(meta.value)) return json::compact(meta.value);
      if (meta.name == "traceparent")
        by_parent = trace_in(json::string_of(meta.value).value_or(""));
    }
  }
  return by_parent;
}

}  // namespace

KnownJob& JobBook::place_of(const std::string& id) {
  const auto [place, anew] = jobs_.try_emplace(id);
  if (anew) {
    order_.push_back(id);
    if (order_.size() > kMost) {
      jobs_.erase(order_.front());
      order_.pop_front();
    }
  }
  return place->second;
}

void JobBook::note(std::string_view id, std::string_view type, std::string_view extra) {
  if (extra.find("tenant_id") == extra.npos && !may_have_trace(extra)) return;
  KnownJob job{.type = std::string(type), .tenant = tenant_of(extra), .trace = trace_of(extra)};
  if (job.tenant.empty() && job.trace.empty()) return;
  const std::lock_guard lock(mutex_);
  KnownJob& place = place_of(std::string(id));
  job.state = place.state;
  job.dead_letter = place.dead_letter;
  place = std::move(job);
}

KnownJob JobBook::find(const Observer& observer, const std::string& id) {
  if (auto there = known(id); there && !there->type.empty()) return std::move(*there);
  const auto job = observer.get(id);
  if (!job) return {};
  KnownJob found{job->type, tenant_of(job->extra), trace_of(job->extra)};
  const std::lock_guard lock(mutex_);
  KnownJob& place = place_of(id);
  found.state = place.state;
  found.dead_letter = place.dead_letter;
  return place = std::move(found);
}

std::optional<KnownJob> JobBook::known(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<State> JobBook::change_state(const std::string& id, State state) {
  const std::lock_guard lock(mutex_);
  return std::exchange(place_of(id).state, state);
}

bool JobBook::change_dead_letter(const std::string& id, bool is_one) {
  const std::lock_guard lock(mutex_);
  return std::exchange(place_of(id).dead_letter, is_one);
}

void JobBook::forget_states() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, job] : jobs_) job.state.reset();
}

}  // namespace ojs_shm::gateway
