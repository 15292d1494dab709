// SPDX-License-Identifier: Apache-2.0
//
// Tenants, as the jobs that are in the segment name them. Source: ojs-multi-tenancy.
#include <algorithm>
#include <map>
#include <optional>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {
namespace {

struct Tally {
  std::string tenant;
  std::uint64_t by_state[8] = {};
};

/// What the queues say of one tenant.
struct Share {
  std::optional<std::uint64_t> max_depth, weight;  ///< the least of those that are set
};

/// The least bound and weight that any queue has for this tenant by its name.
Share share_of(Desk& desk, const std::string& tenant) {
  Share share;
  const auto least = [](std::optional<std::uint64_t>& of, std::uint64_t value) {
    of = std::min(of.value_or(value), value);
  };
  for (const QueueInfo& queue : desk.observer.queues()) {
    for (const TenantBound& each : queue.tenant_bounds)
      if (each.tenant == tenant && each.max_depth) least(share.max_depth, *each.max_depth);
    for (const auto& [name, weight] : queue.tenant_fairness.weights)
      if (name == tenant || name == "tenant:" + tenant) least(share.weight, weight);
  }
  return share;
}

void write_share(json::ObjectWriter& writer, const Share& share) {
  if (share.max_depth) {
    json::ObjectWriter limits(writer.open("limits"));
    limits.number("max_queue_depth", static_cast<std::int64_t>(*share.max_depth));
    limits.close();
  }
  if (share.weight) writer.number("fairness_weight", static_cast<std::int64_t>(*share.weight));
}

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
  return ok(joined(tenant_text(tally), object([&](json::ObjectWriter& writer) {
                     write_share(writer, share_of(desk, tally.tenant));
                   })));
}

/// What a request sets: a missing member stays as it is, null takes it away.
struct Change {
  bool sets_depth = false, sets_weight = false;
  std::optional<std::uint32_t> max_depth = {}, weight = {};
};

constexpr std::uint32_t kLargestDepth = 16'777'215, kLargestWeight = 1000;

/// What the specification offers beyond that is refused by its name: the segment would not keep to it.
void read_limits(const Body& limits, Change& change) {
  for (const json::Member& member : limits.members()) {
    if (member.name == "reason") continue;  // a note of the operator
    if (member.name != "max_queue_depth")
      throw unsupported("of a tenant's limits only max_queue_depth is kept here, not " +
                        member.name.substr(0, 64));
    change.sets_depth = true;
    change.max_depth = limits.whole("max_queue_depth", 0, kLargestDepth);
  }
}

Change read_change(const Body& body) {
  Change change;
  for (const json::Member& member : body.members()) {
    if (member.name == "limits") {
      if (const auto limits = body.object("limits")) read_limits(*limits, change);
    } else if (member.name == "fairness_weight") {
      change.sets_weight = true;
      change.weight = body.whole("fairness_weight", 1, kLargestWeight);
    } else if (member.name != "tenant_id" && member.name != "id") {
      throw unsupported("a tenant has limits and a fairness_weight here, and no " +
                        member.name.substr(0, 64));
    }
  }
  return change;
}

/// The settings of one queue with the tenant's share in it.
QueueSettings with_share(const QueueInfo& queue, const std::string& tenant, const Change& change) {
  QueueSettings settings;
  if (change.sets_depth) {
    auto& bounds = settings.tenant_bounds.emplace(queue.tenant_bounds);
    const auto own = std::ranges::find(bounds, tenant, &TenantBound::tenant);
    if (own != bounds.end())
      own->max_depth = change.max_depth;
    else if (change.max_depth)
      bounds.push_back({.tenant = tenant, .max_depth = change.max_depth});
    std::erase_if(bounds,
                  [](const TenantBound& each) { return !each.max_depth && !each.max_size_bytes; });
  }
  if (change.sets_weight && queue.tenant_fairness.enabled) {
    auto& weights = settings.tenant_fairness.emplace(queue.tenant_fairness).weights;
    std::erase_if(weights, [&](const auto& each) {
      return each.first == tenant || each.first == "tenant:" + tenant;
    });
    if (change.weight) weights.emplace_back(tenant, *change.weight);
  }
  return settings;
}

Reply set_share(Desk& desk, const Request& request, const Change& change) {
  const std::string& tenant = request.names[0];
  if (!is_tenant(tenant))
    throw invalid_request(
        "a tenant is letters, digits and . _ : -, with a letter or a digit in front", "tenant_id");
  for (const QueueInfo& queue : desk.observer.queues())
    must(desk.admin.set_queue(queue.name, with_share(queue, tenant, change)));
  return stats(desk, request);
}

Reply set_tenant(Desk& desk, const Request& request) {
  return set_share(desk, request, read_change(Body(request)));
}

/// The same for clients that send the limits alone.
Reply set_limits(Desk& desk, const Request& request) {
  const Body body(request);
  Change change;
  if (body.raw("limits"))
    change = read_change(body);
  else
    read_limits(body, change);
  return set_share(desk, request, change);
}

}  // namespace

std::span<const Route> admin_tenant_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/tenants", Scope::kRead, &list, {"", "TenantPage"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{tenant}", Scope::kRead, &stats, {"", "Tenant"}, Pace::kSlow},
      {"PUT", "/ojs/v1/admin/tenants/{tenant}", Scope::kAdmin, &set_tenant, {"TenantShare", "Tenant"}, Pace::kSlow},
      {"PUT", "/ojs/v1/admin/tenants/{tenant}/limits", Scope::kAdmin, &set_limits, {"TenantLimits", "Tenant"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{tenant}/stats", Scope::kRead, &stats, {"", "Tenant"}, Pace::kSlow},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
