// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/event_choice.hpp"

#include <algorithm>

#include "worker_api/roles/told_events.hpp"

namespace ojs_shm {
namespace {

bool names(std::string_view wanted, std::string_view text) {
  return wanted == text ||
         (wanted.ends_with('*') && text.starts_with(wanted.substr(0, wanted.size() - 1)));
}

}  // namespace

namespace internal {

bool is_among(const std::vector<std::string>& wanted, std::string_view text) {
  return wanted.empty() || std::ranges::find(wanted, text) != wanted.end();
}

bool begins_among(const std::vector<std::string>& wanted, std::string_view text) {
  return wanted.empty() ||
         std::ranges::any_of(wanted, [&](const std::string& each) { return names(each, text); });
}

bool is_chosen(const Event& event, const EventOptions& options) {
  return begins_among(options.types, event.type) && is_among(options.queues, event.queue) &&
         is_among(options.jobs, event.job_id) && is_among(options.job_types, event.job_type) &&
         (options.tenant.empty() || event.tenant == options.tenant ||
          event.workflow_tenant == options.tenant);
}

}  // namespace internal

Status check(const EventOptions& options) {
  const std::vector<std::string_view> known = event_types();
  for (const std::string& type : options.types)
    if (std::ranges::none_of(known, [&](std::string_view each) { return names(type, each); })) {
      std::string all;
      for (const std::string_view each : known) all.append(all.empty() ? "" : ", ").append(each);
      return Error{Code::kInvalid, "no event has the type '" + type + "'; types are " + all};
    }
  if (!options.after.empty() && !internal::is_event_id(options.after))
    return Error{Code::kInvalid,
                 "'" + options.after + "' is not the id of an event: \"evt_\" and a UUIDv7"};
  return {};
}

}  // namespace ojs_shm
