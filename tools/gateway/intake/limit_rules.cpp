// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/limit_rules.hpp"

#include <algorithm>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"

namespace ojs_shm::gateway {

std::string usual_rules(const Body& given) {
  if (given.raw("limit") && (given.raw("rate") || given.raw("max_per_second")))
    throw invalid_request("limit is a rate by itself; give one of limit, rate and max_per_second",
                          "limit");
  const auto is_of_rate = [&](std::string_view name) {
    return given.raw("limit") && (name == "limit" || name == "period" || name == "window");
  };
  return object([&](json::ObjectWriter& writer) {
    for (const json::Member& member : given.members())
      if (!is_of_rate(member.name)) writer.value(member.name, member.value);
    if (!given.raw("limit")) return;
    json::ObjectWriter rate(writer.open("rate"));
    for (const json::Member& member : given.members())
      if (is_of_rate(member.name)) rate.value(member.name, member.value);
    rate.close();
  });
}

void keep_unnamed_rules(RateLimit& said, const RateLimit& before, const Body& named) {
  const auto names = [&](std::string_view name) {
    return std::ranges::find(named.members(), name, &json::Member::name) != named.members().end();
  };
  if (!names("concurrency")) said.concurrency = before.concurrency;
  if (!names("rate") && !names("max_per_second")) {
    said.rate = before.rate;
    said.rate_period_ms = before.rate_period_ms;
    said.sliding = before.sliding;
  }
  if (!names("throttle")) {
    said.throttle = before.throttle;
    said.throttle_period_ms = before.throttle_period_ms;
    said.burst = before.burst;
  }
  if (!names("on_limit")) said.on_limit = before.on_limit;
}

}  // namespace ojs_shm::gateway
