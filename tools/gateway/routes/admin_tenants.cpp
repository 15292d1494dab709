// SPDX-License-Identifier: Apache-2.0
//
// Tenants, as the jobs that are in the segment name them. Source: ojs-multi-tenancy.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::uint64_t kMinuteMs = 60'000, kDayMs = 24 * 60 * kMinuteMs;

/// What the jobs that are there say of one tenant.
struct Tally {
  std::string tenant;
  std::uint64_t by_state[8] = {};
  std::uint64_t enqueued_1m = 0, done_1m = 0, completed_24h = 0, failed_24h = 0;
  std::map<std::string, std::uint64_t> depths = {};  ///< by queue

  void add(const JobInfo& job, std::uint64_t now_ms) {
    ++by_state[static_cast<std::size_t>(job.state)];
    if (!is_terminal(job.state) && job.state != State::kActive) ++depths[job.queue];
    enqueued_1m += job.created_at_ms + kMinuteMs > now_ms ? 1 : 0;
    done_1m += job.completed_at_ms + kMinuteMs > now_ms ? 1 : 0;
    completed_24h += job.state == State::kCompleted && job.completed_at_ms + kDayMs > now_ms;
    failed_24h += job.state == State::kDiscarded && job.discarded_at_ms + kDayMs > now_ms;
  }
  std::uint64_t total() const {
    return std::accumulate(std::begin(by_state), std::end(by_state), 0ULL);
  }
  std::uint64_t unfinished() const {
    std::uint64_t jobs = 0;
    for (std::size_t state = 0; state < std::size(by_state); ++state)
      if (!is_terminal(static_cast<State>(state))) jobs += by_state[state];
    return jobs;
  }
};

Tally tally_of(Desk& desk, const std::string& tenant) {
  Tally tally{.tenant = tenant};
  for (const JobInfo& job : desk.observer.list({.tenant = tenant})) tally.add(job, desk.now_ms());
  return tally;
}

/// A limit, and what of it is in use.
struct Use {
  std::uint64_t limit = 0, current = 0;
};

/// What has been set for one tenant.
struct Share {
  std::optional<std::uint64_t> max_depth, weight;  ///< the least that any queue has
  std::optional<Use> depth;        ///< in the queue that is nearest to its bound for the tenant
  std::optional<Use> concurrency;  ///< of the limit `tenant:ID`
};

/// What names a tenant may say that it does.
std::string_view without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "tenant:";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}
bool names_tenant(std::string_view name, std::string_view tenant) {
  return name == tenant || without_prefix(name) == tenant;
}

Share share_of(Desk& desk, const Tally& tally) {
  Share share;
  const auto least = [](std::optional<std::uint64_t>& of, std::uint64_t value) {
    of = std::min(of.value_or(value), value);
  };
  for (const QueueInfo& queue : desk.observer.queues()) {
    for (const TenantBound& each : queue.tenant_bounds) {
      if (each.tenant != tally.tenant || !each.max_depth) continue;
      least(share.max_depth, *each.max_depth);
      if (*each.max_depth == 0) continue;  // unbounded
      const auto found = tally.depths.find(queue.name);
      const Use use{*each.max_depth, found == tally.depths.end() ? 0 : found->second};
      if (!share.depth || use.current * share.depth->limit > share.depth->current * use.limit)
        share.depth = use;
    }
    for (const auto& [name, weight] : queue.tenant_fairness.weights)
      if (names_tenant(name, tally.tenant)) least(share.weight, weight);
  }
  if (const auto limit = desk.observer.limit("tenant:" + tally.tenant);
      limit && limit->limit.concurrency)
    share.concurrency = Use{*limit->limit.concurrency, limit->active};
  return share;
}

void count(json::ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

void write_use(json::ObjectWriter& limits, std::string_view name, const std::optional<Use>& use) {
  if (!use) return;
  json::ObjectWriter writer(limits.open(name));
  count(writer, "limit", use->limit);
  count(writer, "current", use->current);
  writer.close();
}

/// As it is set, or with what is in use of it. Source: ojs-multi-tenancy 8.1, 10.2.
void write_share(json::ObjectWriter& writer, const Share& share, bool in_use) {
  if (share.max_depth || share.concurrency) {
    json::ObjectWriter limits(writer.open("limits"));
    if (in_use) {
      write_use(limits, "max_queue_depth", share.depth);
      write_use(limits, "max_concurrency", share.concurrency);
    } else {
      if (share.max_depth) count(limits, "max_queue_depth", *share.max_depth);
      if (share.concurrency) count(limits, "max_concurrency", share.concurrency->limit);
    }
    limits.close();
  }
  if (share.weight) count(writer, "fairness_weight", *share.weight);
}

/// Those whose jobs are there and those for whom something is set, by name.
std::map<std::string, Tally> all_tallies(Desk& desk) {
  std::map<std::string, Tally> tallies;
  const auto tally_for = [&](std::string_view tenant) -> Tally& {
    Tally& tally = tallies[std::string(tenant)];
    tally.tenant = std::string(tenant);
    return tally;
  };
  const std::uint64_t now_ms = desk.now_ms();
  for (const JobInfo& job : desk.observer.list({}))
    if (const std::string tenant = tenant_of(job.extra); !tenant.empty())
      tally_for(tenant).add(job, now_ms);
  for (const QueueInfo& queue : desk.observer.queues()) {
    for (const TenantBound& each : queue.tenant_bounds) tally_for(each.tenant);
    for (const auto& [name, weight] : queue.tenant_fairness.weights)
      tally_for(without_prefix(name));
  }
  for (const LimitInfo& limit : desk.observer.limits())
    if (const std::string_view tenant = without_prefix(limit.key);
        limit.by_operator && tenant != limit.key && is_tenant(tenant))
      tally_for(tenant);
  return tallies;
}

/// What part of the work the tenant is to get by its weight, and what it got in the last minute of
/// all that was done for tenants.
void write_fairness(Desk& desk, json::ObjectWriter& writer, const std::string& tenant) {
  std::map<std::string, Tally> tallies = all_tallies(desk);
  tallies.try_emplace(tenant);
  std::map<std::string_view, std::uint64_t> set;  // the least that any queue has
  const std::vector<QueueInfo> queues = desk.observer.queues();
  for (const QueueInfo& queue : queues)
    for (const auto& [name, weight] : queue.tenant_fairness.weights) {
      auto& least = set.try_emplace(without_prefix(name), weight).first->second;
      least = std::min<std::uint64_t>(least, weight);
    }
  const auto weight_of = [&set](std::string_view of) {
    const auto found = set.find(of);
    return found == set.end() ? 1 : found->second;  // as in ojs-multi-tenancy 8.1
  };
  std::uint64_t weights = 0, done = 0;
  for (const auto& [name, tally] : tallies) weights += weight_of(name), done += tally.done_1m;
  const auto share = [](std::uint64_t part, std::uint64_t of) {
    return of == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(of);
  };
  json::ObjectWriter fairness(writer.open("fairness"));
  count(fairness, "weight", weight_of(tenant));
  fairness.number("effective_share", share(weight_of(tenant), weights));
  fairness.number("actual_share", share(tallies[tenant].done_1m, done));
  fairness.close();
}

std::string tenant_text(const Tally& tally) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("tenant_id", tally.tenant);
    writer.text("id", tally.tenant);
    count(writer, "total_jobs", tally.total());
    json::ObjectWriter jobs(writer.open("jobs"));
    for (std::size_t state = 0; state < std::size(tally.by_state); ++state)
      count(jobs, state_name(static_cast<State>(state)), tally.by_state[state]);
    count(jobs, "completed_24h", tally.completed_24h);
    count(jobs, "failed_24h", tally.failed_24h);
    jobs.close();
    json::ObjectWriter throughput(writer.open("throughput"));
    count(throughput, "processed_per_minute", tally.done_1m);
    count(throughput, "enqueued_per_minute", tally.enqueued_1m);
    throughput.close();
  });
}

Reply list(Desk& desk, const Request& request) {
  const std::string_view own = request.header("x-ojs-tenant");
  std::vector<Tally> sorted;
  for (auto& [name, tally] : all_tallies(desk))
    if (own.empty() || own == name) sorted.push_back(std::move(tally));
  return ok(Page::of(request).list(sorted, tenant_text));
}

Reply shown(Desk& desk, const Request& request, bool in_use) {
  const std::string& tenant = named_tenant(request);
  const bool asks_for_all = request.header("x-ojs-tenant").empty();
  const Tally tally = tally_of(desk, tenant);
  return ok(joined(tenant_text(tally), object([&](json::ObjectWriter& writer) {
                     write_share(writer, share_of(desk, tally), in_use);
                     // Of the others' weights and work a tenant is told nothing.
                     if (in_use && asks_for_all) write_fairness(desk, writer, tenant);
                   })));
}

Reply get(Desk& desk, const Request& request) { return shown(desk, request, false); }

Reply stats(Desk& desk, const Request& request) { return shown(desk, request, true); }

/// What a request sets: a missing member stays as it is, null takes it away.
struct Change {
  bool sets_depth = false, sets_concurrency = false, sets_weight = false;
  std::optional<std::uint32_t> max_depth = {}, max_concurrency = {}, weight = {};
};

constexpr std::uint32_t kLargestDepth = 16'777'215, kLargestConcurrency = 8192,
                        kLargestWeight = 1000;

/// What the specification offers beyond that is refused by its name: the segment would not keep to
/// it.
void read_limits(const Body& limits, Change& change) {
  for (const json::Member& member : limits.members()) {
    if (member.name == "reason") continue;  // a note of the operator
    if (member.name == "max_queue_depth") {
      change.sets_depth = true;
      change.max_depth = limits.whole("max_queue_depth", 0, kLargestDepth);
    } else if (member.name == "max_concurrency") {
      change.sets_concurrency = true;
      change.max_concurrency = limits.whole("max_concurrency", 1, kLargestConcurrency);
    } else {
      throw unsupported(
          "a tenant has the limits max_queue_depth and max_concurrency here, and no " +
          member.name.substr(0, 64));
    }
  }
}

Change read_change(const Body& body, const std::string& tenant) {
  Change change;
  for (const json::Member& member : body.members()) {
    if (member.name == "limits") {
      if (const auto limits = body.object("limits")) read_limits(*limits, change);
    } else if (member.name == "fairness_weight") {
      change.sets_weight = true;
      change.weight = body.whole("fairness_weight", 1, kLargestWeight);
    } else if (member.name == "tenant_id" || member.name == "id") {
      if (body.text(member.name).value_or(tenant) != tenant)
        throw invalid_request(member.name + " is not the tenant of the path", member.name);
    } else if (member.name != "priority_boost" || body.number(member.name).value_or(0) != 0) {
      // A boost of 0 is none, and that there is here.
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
    std::erase_if(weights, [&](const auto& each) { return names_tenant(each.first, tenant); });
    if (change.weight) weights.emplace_back(tenant, *change.weight);
  }
  return settings;
}

/// The limit `tenant:ID`, whose other rules stay.
void set_concurrency(Desk& desk, const std::string& tenant, const Change& change) {
  const std::string key = "tenant:" + tenant;
  const auto there = desk.observer.limit(key);
  RateLimit limit = there ? there->limit : RateLimit();
  limit.concurrency = change.max_concurrency;
  const bool limits_nothing = !limit.concurrency && limit.rate == 0 && limit.throttle == 0;
  if (!limits_nothing)
    must(desk.admin.set_limit(key, limit, there ? there->expires_at_ms : 0));
  else if (there)
    must(desk.admin.clear_limit(key));
  desk.hall.jobs_came();
}

/// In each queue that there is, a weight in those that are fair; a bound where there is none, in
/// the one that jobs go to by themselves.
void set_in_queues(Desk& desk, const std::string& tenant, const Change& change) {
  std::vector<QueueInfo> queues = desk.observer.queues();
  if (queues.empty() && change.sets_depth) queues.emplace_back().name = "default";
  for (const QueueInfo& queue : queues)
    must(desk.admin.set_queue(queue.name, with_share(queue, tenant, change)));
}

Reply set_share(Desk& desk, const Request& request, const Change& change) {
  const std::string& tenant = named_tenant(request);
  if (change.sets_depth || change.sets_weight) set_in_queues(desk, tenant, change);
  if (change.sets_concurrency) set_concurrency(desk, tenant, change);
  return get(desk, request);
}

Reply set_tenant(Desk& desk, const Request& request) {
  return set_share(desk, request, read_change(Body(request), request.names[0]));
}

/// The same for clients that send the limits alone.
Reply set_limits(Desk& desk, const Request& request) {
  const Body body(request);
  Change change;
  if (body.raw("limits"))
    change = read_change(body, request.names[0]);
  else
    read_limits(body, change);
  return set_share(desk, request, change);
}

/// The settings of one queue without the tenant's; nothing: it has none.
std::optional<QueueSettings> without_share(const QueueInfo& queue, const std::string& tenant) {
  QueueSettings settings;
  auto bounds = queue.tenant_bounds;
  if (std::erase_if(bounds, [&](const auto& each) { return each.tenant == tenant; }) != 0)
    settings.tenant_bounds = std::move(bounds);
  TenantFairness fairness = queue.tenant_fairness;
  if (std::erase_if(fairness.weights,
                    [&](const auto& each) { return names_tenant(each.first, tenant); }) != 0)
    settings.tenant_fairness = std::move(fairness);
  if (!settings.tenant_bounds && !settings.tenant_fairness) return {};
  return settings;
}

/// Takes back what has been set for the tenant. Its jobs have ended, and stay.
Reply remove(Desk& desk, const Request& request) {
  const std::string& tenant = named_tenant(request);
  const Tally tally = tally_of(desk, tenant);
  std::vector<std::pair<std::string, QueueSettings>> changes;
  for (const QueueInfo& queue : desk.observer.queues())
    if (auto settings = without_share(queue, tenant))
      changes.emplace_back(queue.name, std::move(*settings));
  const std::string key = "tenant:" + tenant;
  const auto limit = desk.observer.limit(key);
  const bool is_limited = limit && limit->by_operator;
  if (tally.total() == 0 && changes.empty() && !is_limited) throw not_found("tenant", tenant);
  if (const std::uint64_t jobs = tally.unfinished(); jobs != 0) {
    Fault fault{.status = 409, .code = "conflict"};
    fault.message = "tenant " + tenant + " has " + std::to_string(jobs) +
                    " unfinished jobs; let them end or cancel them first";
    fault.details = {{"tenant_id", quoted(tenant)}, {"unfinished_jobs", std::to_string(jobs)}};
    throw fault;
  }
  for (const auto& [queue, settings] : changes) must(desk.admin.set_queue(queue, settings));
  if (is_limited) must(desk.admin.clear_limit(key));
  desk.hall.jobs_came();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("tenant_id", tenant);
    writer.boolean("deleted", true);
    count(writer, "jobs_kept", tally.total());
  }));
}

}  // namespace

std::span<const Route> admin_tenant_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/admin/tenants", Scope::kRead, &list, {"", "TenantPage"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{tenant}", Scope::kRead, &get, {"", "Tenant"}, Pace::kSlow},
      {"DELETE", "/ojs/v1/admin/tenants/{tenant}", Scope::kAdmin, &remove, {"", "RemovedTenant"}, Pace::kSlow},
      {"PUT", "/ojs/v1/admin/tenants/{tenant}", Scope::kAdmin, &set_tenant, {"TenantShare", "Tenant"}, Pace::kSlow},
      {"PUT", "/ojs/v1/admin/tenants/{tenant}/limits", Scope::kAdmin, &set_limits, {"TenantLimits", "Tenant"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/tenants/{tenant}/stats", Scope::kRead, &stats, {"", "TenantStats"}, Pace::kSlow},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
