// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/unknown_members.hpp"

#include <spdlog/fmt/fmt.h>

#include <string_view>
#include <vector>

#include "tools/shell/nearest.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

/// ", did you mean `max_attempts`?" or nothing.
std::string meant(std::string_view name) {
  name.remove_prefix(name.rfind('.') + 1);  // of "options." or "retry."
  const std::string nearest = shell::nearest(name, envelope_members());
  return nearest.empty() ? "" : fmt::format(", did you mean `{}`?", nearest);
}

}  // namespace

Status UnknownMembers::judge(const Envelope& envelope) {
  if (envelope.unknown.empty()) return {};
  if (strict_) {
    const std::string& name = envelope.unknown.front();
    Error error = shell::invalid(fmt::format("a job has no member `{}`{}", name, meant(name)));
    error.subject = name;
    return error;
  }
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
    names.push_back(fmt::format("`{}` ({}){}", shell::printable(name), times, meant(name)));
  }
  shell::say("warning: {} {} members that mean nothing here and stay with the job: {}\n", jobs_,
             jobs_ == 1 ? "job has" : "jobs have", fmt::join(names, "; "));
}

}  // namespace ojs_shm::cli
