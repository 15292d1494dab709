// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/intake.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "worker_api/json/unique_key.hpp"

namespace ojs_shm::gateway {

bool is_tenant(std::string_view name) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._:-").find(c) != std::string_view::npos;
  };
  constexpr std::size_t kLongest = 128;
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, fits) &&
         std::isalnum(static_cast<unsigned char>(name.front())) != 0;
}

void check_tenant(std::string_view name, std::string_view where) {
  if (!is_tenant(name))
    throw invalid_request(
        fmt::format("{} must be letters, digits and . _ : - behind the first, 128 at most", where),
        where);
}

bool is_anothers_key(std::string_view asking, std::string_view key) {
  constexpr std::string_view kOfTenant = "tenant:";
  return !asking.empty() && key.starts_with(kOfTenant) && key.substr(kOfTenant.size()) != asking;
}

void check_limit_key(std::string_view asking, const Envelope& envelope) {
  if (!envelope.limit || !is_anothers_key(asking, envelope.limit->key)) return;
  Fault fault{.status = 403, .code = "forbidden"};
  fault.message = "the key of the job's limit is another tenant's";
  fault.details = {{"field", "\"rate_limit.key\""}};
  throw fault;
}

void give_tenant(const Request& request, Envelope& envelope) {
  const std::string tenant(request.header("x-ojs-tenant"));
  for (const auto& [name, where] :
       {std::pair<std::string_view, std::string_view>(tenant, "X-OJS-Tenant"),
        {envelope.tenant, "meta.tenant_id"}})
    if (!name.empty()) check_tenant(name, where);
  if (tenant.empty()) return;
  check_limit_key(tenant, envelope);
  if (!envelope.tenant.empty() && envelope.tenant != tenant)
    throw invalid_request("X-OJS-Tenant and meta.tenant_id name different tenants",
                          "meta.tenant_id");
  if (envelope.tenant.empty()) envelope.extra = with_tenant(envelope.extra, tenant);
  envelope.tenant = tenant;
  // Another tenant's job is neither told of nor replaced.
  if (envelope.unique) envelope.unique = must(unique_in_tenant(envelope.spec()));
}

void check_priority(Desk& desk, const Envelope& envelope) {
  if (envelope.vast_priority.empty()) return;
  const SegmentInfo info = desk.observer.segment_settings();
  throw fault_of(Error{Code::kInvalid,
                       fmt::format("priority {} is out of range: the minimum is {} and the "
                                   "maximum is {}",
                                   envelope.vast_priority, info.priority_min, info.priority_max)}
                     .about("priority")
                     .at_most(static_cast<std::uint64_t>(info.priority_max)));
}

void check_members(Desk& desk, shell::Document kind, std::span<const std::string> unknown) {
  if (unknown.empty() || !desk.observer.segment_settings().strict_envelopes) return;
  const Error error = shell::refuse_unknown(kind, unknown).error();
  throw invalid_request(error.message, error.subject);
}

}  // namespace ojs_shm::gateway
