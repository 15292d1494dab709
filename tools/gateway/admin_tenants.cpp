// SPDX-License-Identifier: Apache-2.0
//
// Tenants, as the jobs that are in the segment name them. Source: ojs-multi-tenancy.
#include <map>

#include "tools/gateway/fault.hpp"
#include "tools/gateway/handlers.hpp"
#include "tools/gateway/job_reply.hpp"
#include "tools/gateway/json_text.hpp"
#include "tools/gateway/paging.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {
namespace {

struct Tally {
  std::string tenant;
  std::uint64_t by_state[8] = {};
};

std::string tenant_text(const Tally& tally) {
  std::uint64_t total = 0;
  for (const std::uint64_t jobs : tally.by_state) total += jobs;
  return object([&](json::ObjectWriter& writer) {
    writer.text("tenant_id", tally.tenant);
    writer.text("id", tally.tenant);
    writer.number("total_jobs", static_cast<std::int64_t>(total));
    json::ObjectWriter jobs(writer.open("jobs"));
    for (std::size_t state = 0; state < std::size(tally.by_state); ++state)
      jobs.number(state_name(static_cast<State>(state)),
                  static_cast<std::int64_t>(tally.by_state[state]));
    jobs.close();
  });
}

Reply list(Desk& desk, const Request& request) {
  std::map<std::string, Tally> tallies;
  for (const JobInfo& job : desk.observer.list({})) {
    const std::string tenant = tenant_of(job.extra);
    if (tenant.empty()) continue;
    Tally& tally = tallies[tenant];
    tally.tenant = tenant;
    ++tally.by_state[static_cast<std::size_t>(job.state)];
  }
  std::vector<Tally> sorted;
  for (auto& [name, tally] : tallies) sorted.push_back(std::move(tally));
  return ok(Page::of(request).list(sorted, tenant_text));
}

Reply stats(Desk& desk, const Request& request) {
  Tally tally{.tenant = request.names[0]};
  for (const JobInfo& job : desk.observer.list({.tenant = tally.tenant}))
    ++tally.by_state[static_cast<std::size_t>(job.state)];
  return ok(tenant_text(tally));
}

Reply jobs(Desk& desk, const Request& request) {
  const Page page = Page::of(request);
  const JobPage found = desk.observer.page({.filter = {.tenant = request.names[0]},
                                            .falls = false,
                                            .offset = page.begin(),
                                            .limit = page.per_page});
  return ok(page.list(found, [&](const JobInfo& job) { return job_text(desk, job); }));
}

}  // namespace

std::span<const Route> admin_tenant_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/tenants", Scope::kRead, &list, {"", "TenantPage"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{id}", Scope::kRead, &stats, {"", "Tenant"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{id}/stats", Scope::kRead, &stats, {"", "Tenant"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{id}/jobs", Scope::kRead, &jobs, {"", "JobPage"}, Pace::kSlow},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
