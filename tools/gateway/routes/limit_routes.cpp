// SPDX-License-Identifier: Apache-2.0
//
// Limits of keys: what jobs brought, and what an operator sets over it. Source: ojs-rate-limiting
// 9.
#include <algorithm>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/intake.hpp"
#include "tools/gateway/intake/limit_rules.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

/// When the window begins anew, Unix ms; 0: a sliding window that has room. Fixed windows begin at
/// whole periods of Unix time.
std::uint64_t window_end(const LimitInfo& limit, std::uint64_t now_ms) {
  const std::uint64_t period = limit.limit.rate_period_ms;
  if (!limit.limit.sliding && period != 0) return (now_ms / period + 1) * period;
  return limit.begun < limit.limit.rate ? 0 : limit.next_at_ms;
}

/// With one more time, if there is one.
std::string with_time(std::string_view object_text, std::string_view name, std::uint64_t at_ms) {
  if (at_ms == 0) return std::string(object_text);
  return joined(std::string(object_text), object([&](json::ObjectWriter& writer) {
                  writer.text(name, print_timestamp(at_ms));
                }));
}

/// As ojs-rate-limiting 10.1 has it.
std::string limit_text(const LimitInfo& limit, std::uint64_t now_ms) {
  const std::string own = print_limit(limit);
  return object([&](json::ObjectWriter& writer) {
    for (const json::Member& member : json::members_of(own)) {
      if (member.name == "rate")
        writer.value("rate",
                     with_time(member.value, "window_resets_at", window_end(limit, now_ms)));
      else if (member.name == "throttle")
        writer.value("throttle", with_time(member.value, "next_allowed_at", limit.next_at_ms));
      else if (member.name != "concurrency")
        writer.value(member.name, member.value);
    }
    json::ObjectWriter concurrency(writer.open("concurrency"));
    if (limit.limit.concurrency) {
      concurrency.number("limit", std::int64_t{*limit.limit.concurrency});
      concurrency.number("available",
                         std::int64_t{*limit.limit.concurrency -
                                      std::min(*limit.limit.concurrency, limit.active)});
    }
    concurrency.number("active", std::int64_t{limit.active});
    concurrency.close();
  });
}

LimitInfo limit_of(Desk& desk, const std::string& key) {
  auto limit = desk.observer.limit(key);
  if (!limit && limit.code() == Code::kNotFound) throw not_found("rate_limit", key);
  return must(std::move(limit));
}

bool is_anothers(const Request& request, std::string_view key) {
  return is_anothers_key(request.header("x-ojs-tenant"), key);
}

Reply list(Desk& desk, const Request& request) {
  auto limits = desk.observer.limits();
  std::erase_if(limits, [&](const LimitInfo& limit) { return is_anothers(request, limit.key); });
  const auto text = [now_ms = desk.now_ms()](const LimitInfo& limit) {
    return limit_text(limit, now_ms);
  };
  const Names names = {"items", "rate_limits"};
  const bool by_page = Page::is_asked(request);
  if (by_page || request.path.starts_with("/ojs/v1/admin/"))
    return ok(Page::of(request).list(limits, text, names));
  // By the words of ojs-rate-limiting 10.3 too.
  const Slice slice = Slice::of(request);
  const std::string pagination = object([&](json::ObjectWriter& writer) {
    writer.number("page", static_cast<std::int64_t>(slice.offset / slice.limit + 1));
    writer.number("per_page", static_cast<std::int64_t>(slice.limit));
  });
  return ok(slice.list(names, limits, text, pagination));
}

/// The key in the path, or that of the queue in the path (ojs-rate-limiting 7.2).
std::string key_of(const Request& request) {
  const std::string& name = request.names[0];
  if (is_anothers(request, name)) throw not_found("rate_limit", name);
  return request.path.starts_with("/ojs/v1/admin/queues/") ? "queue:" + name : name;
}

Reply get(Desk& desk, const Request& request) {
  return ok(limit_text(limit_of(desk, key_of(request)), desk.now_ms()));
}

Reply put(Desk& desk, const Request& request) {
  const std::string rules = usual_rules(Body(request));
  const Body body(rules, "");
  JobLimit limit = must(parse_limit(rules, true));
  const auto there = desk.observer.limit(key_of(request));
  if (there && request.path.ends_with("/override")) {  // ojs-rate-limiting 10.2
    keep_unnamed_rules(limit.limit, there->limit, body);
    const auto ends = [](const json::Member& member) { return member.name == "expires_at"; };
    if (std::ranges::none_of(body.members(), ends)) limit.expires_at_ms = there->expires_at_ms;
  }
  must(desk.admin.set_limit(key_of(request), limit.limit, limit.expires_at_ms));
  desk.hall.jobs_came();
  return get(desk, request);
}

Reply remove(Desk& desk, const Request& request) {
  const std::string key = key_of(request);
  limit_of(desk, key);
  must(desk.admin.clear_limit(key));
  desk.hall.jobs_came();
  return ok(object([&](json::ObjectWriter& writer) {
    writer.text("key", key);
    writer.boolean("deleted", true);
  }));
}

}  // namespace

std::span<const Route> limit_routes() {
  // clang-format off
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/rate-limits", Scope::kRead, &list, {"", "LimitList"}, Pace::kSlow},
      {"GET", "/ojs/v1/rate-limits/{key}", Scope::kRead, &get, {"", "Limit"}},
      {"PUT", "/ojs/v1/rate-limits/{key}", Scope::kAdmin, &put, {"LimitSettings", "Limit"}},
      {"PUT", "/ojs/v1/rate-limits/{key}/override", Scope::kAdmin, &put, {"LimitSettings", "Limit"}},
      {"DELETE", "/ojs/v1/rate-limits/{key}/override", Scope::kAdmin, &remove, {"", "Deleted"}},
      {"GET", "/ojs/v1/admin/rate-limits", Scope::kRead, &list, {"", "LimitPage"}, Pace::kSlow},
      {"GET", "/ojs/v1/admin/rate-limits/{key}", Scope::kRead, &get, {"", "Limit"}},
      {"PUT", "/ojs/v1/admin/rate-limits/{key}", Scope::kAdmin, &put, {"LimitSettings", "Limit"}},
      {"PUT", "/ojs/v1/admin/rate-limits/{key}/override", Scope::kAdmin, &put, {"LimitSettings", "Limit"}},
      {"DELETE", "/ojs/v1/admin/rate-limits/{key}/override", Scope::kAdmin, &remove, {"", "Deleted"}},
      {"GET", "/ojs/v1/admin/queues/{name}/rate-limit", Scope::kRead, &get, {"", "Limit"}},
      {"PUT", "/ojs/v1/admin/queues/{name}/rate-limit", Scope::kAdmin, &put, {"LimitSettings", "Limit"}},
      {"DELETE", "/ojs/v1/admin/queues/{name}/rate-limit", Scope::kAdmin, &remove, {"", "Deleted"}},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace ojs_shm::gateway
