// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/unknown_members.hpp"

#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "tools/shell/nearest.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/cron_members.hpp"
#include "worker_api/json/workflow_text.hpp"

namespace ojs_shm::shell {
namespace {

constexpr std::string_view kNames[] = {"job", "cron", "workflow"};

/// All that may stand in such a document; each may hold members of jobs.
std::vector<std::string_view> known_members(Document kind) {
  const auto of_jobs = envelope_members();
  std::vector<std::string_view> known(of_jobs.begin(), of_jobs.end());
  if (kind == Document::kCron) {
    known.insert(known.end(), json::kCronTimes.begin(), json::kCronTimes.end());
    known.insert(known.end(), json::kCronMembers.begin(), json::kCronMembers.end());
  } else if (kind == Document::kWorkflow) {
    const auto of_workflows = workflow_members();
    known.insert(known.end(), of_workflows.begin(), of_workflows.end());
  }
  return known;
}

/// ", did you mean `max_attempts`?" or nothing.
std::string meant(Document kind, std::string_view name) {
  name.remove_prefix(name.rfind('.') + 1);  // of "options.", "retry." or "$.steps[1]."
  const std::string near = kind == Document::kCron && name == "overlap"  // the flag's name
                               ? "overlap_policy"
                               : nearest(name, known_members(kind));
  return near.empty() ? "" : fmt::format(", did you mean `{}`?", near);
}

}  // namespace

std::string told_member(Document kind, const std::string& name) {
  return fmt::format("`{}`{}", printable(name), meant(kind, name));
}

Status refuse_unknown(Document kind, std::span<const std::string> unknown) {
  if (unknown.empty()) return {};
  Error error = invalid(fmt::format("a {} has no member {}", kNames[static_cast<int>(kind)],
                                    told_member(kind, unknown.front())));
  error.subject = unknown.front();
  return error;
}

Status UnknownMembers::judge(const Envelope& envelope) {
  if (strict_) return refuse_unknown(Document::kJob, envelope.unknown);
  if (envelope.unknown.empty()) return {};
  ++jobs_;
  for (const std::string& name : envelope.unknown) ++seen_[name];
  return {};
}

void UnknownMembers::warn() const {
  if (seen_.empty()) return;
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  for (const auto& [name, times] : seen_) {
    if (names.size() == kMost) {
      names.push_back(fmt::format("{} more", seen_.size() - kMost));
      break;
    }
    names.push_back(
        fmt::format("`{}` ({}){}", printable(name), times, meant(Document::kJob, name)));
  }
  say("warning: {} {} members that mean nothing here and stay with the job: {}\n", jobs_,
      jobs_ == 1 ? "job has" : "jobs have", fmt::join(names, "; "));
}

}  // namespace ojs_shm::shell
