// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/event_choice.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "worker_api/roles/told_events.hpp"

namespace ojs_shm {
namespace {

/// "job.*" names all types that begin with "job.".
bool is_of(std::string_view wanted, std::string_view type) {
  return wanted == type ||
         (wanted.ends_with('*') && type.starts_with(wanted.substr(0, wanted.size() - 1)));
}

}  // namespace

namespace internal {

bool is_chosen(const Event& event, const EventOptions& options) {
  const auto among = [](const std::vector<std::string>& wanted, const std::string& text) {
    return wanted.empty() || std::ranges::find(wanted, text) != wanted.end();
  };
  return (options.types.empty() ||
          std::ranges::any_of(options.types,
                              [&](const std::string& type) { return is_of(type, event.type); })) &&
         among(options.queues, event.queue) && among(options.jobs, event.job_id) &&
         among(options.job_types, event.job_type) &&
         (options.tenant.empty() || event.tenant == options.tenant ||
          event.workflow_tenant == options.tenant);
}

}  // namespace internal

Status check(const EventOptions& options) {
  const std::vector<std::string_view> known = event_types();
  for (const std::string& type : options.types)
    if (std::ranges::none_of(known, [&](std::string_view each) { return is_of(type, each); })) {
      std::string all;
      for (const std::string_view each : known) all.append(all.empty() ? "" : ", ").append(each);
      return Error{.code = Code::kInvalid,
                   .message = "there is no event of type '" + type + "'; there are " + all};
    }
  if (!options.after.empty() && !internal::is_event_id(options.after))
    return Error{.code = Code::kInvalid,
                 .message = "'" + options.after + "' is no event's id: \"evt_\" and a UUIDv7"};
  return {};
}

}  // namespace ojs_shm
