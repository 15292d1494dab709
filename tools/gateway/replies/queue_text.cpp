// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/replies/queue_text.hpp"

#include <algorithm>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/limit_rules.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::uint64_t in_state(const QueueInfo& queue, State state) {
  return queue.by_state[static_cast<std::size_t>(state)];
}

void count(json::ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

}  // namespace

std::string_view status_of(const QueueInfo& queue) { return queue.paused ? "paused" : "active"; }

void write_counts(json::ObjectWriter& writer, const QueueInfo& queue) {
  for (const State state :
       {State::kAvailable, State::kActive, State::kScheduled, State::kRetryable, State::kPending})
    count(writer, state_name(state), in_state(queue, state));
  count(writer, "completed", queue.completed_total);
  count(writer, "discarded", queue.discarded_total);
  count(writer, "cancelled", queue.cancelled_total);
}

void write_created(json::ObjectWriter& writer, const QueueInfo& queue) {
  if (queue.created_at_ms != 0) writer.text("created_at", print_timestamp(queue.created_at_ms));
}

std::string queue_text(const QueueInfo& queue) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("name", queue.name);
    writer.text("status", status_of(queue));
    writer.text("state", status_of(queue));  // by either name
    writer.boolean("paused", queue.paused);
    write_counts(writer, queue);
    count(writer, "depth", queue.depth);
    count(writer, "max_depth", queue.max_depth);
    count(writer, "dead", queue.dead_letters);
    count(writer, "waiting", queue.waiting);
    count(writer, "enqueued_total", queue.enqueued_total);
    writer.number("pressure", queue.pressure);
    write_created(writer, queue);
  });
}

namespace {

void write_limit(json::ObjectWriter& writer, const LimitInfo& limit) {
  if (limit.limit.concurrency) writer.number("concurrency", std::int64_t{*limit.limit.concurrency});
  if (limit.limit.rate == 0 && limit.limit.throttle == 0) return;
  const auto write = [](json::ObjectWriter& to, std::uint32_t most, std::uint64_t period_ms) {
    to.number("limit", std::int64_t{most});
    to.text("period", print_duration(period_ms));
  };
  json::ObjectWriter rules(writer.open("rate_limit"));
  if (limit.limit.rate != 0) write(rules, limit.limit.rate, limit.limit.rate_period_ms);
  if (limit.limit.throttle != 0) {
    json::ObjectWriter throttle(rules.open("throttle"));
    write(throttle, limit.limit.throttle, limit.limit.throttle_period_ms);
    throttle.close();
  }
  rules.close();
}

}  // namespace

std::string settings_text(Desk& desk, const QueueInfo& queue) {
  return joined(print_queue_policy(queue), object([&](json::ObjectWriter& writer) {
                  const auto limit = desk.observer.limit("queue:" + queue.name);
                  if (limit) write_limit(writer, *limit);
                }));
}

std::string config_text(Desk& desk, const QueueInfo& queue) {
  const std::string bound = object([&](json::ObjectWriter& writer) {
    if (queue.max_depth != 0) count(writer, "max_size", queue.max_depth);
    if (queue.max_size_bytes != 0) count(writer, "max_size_bytes", queue.max_size_bytes);
    writer.text("overflow_policy", strategy_name(queue.strategy));
  });
  return "{\"config\":" + joined(settings_text(desk, queue), bound) + "}";
}

QueueInfo queue_of(Desk& desk, const std::string& name) {
  auto queue = desk.observer.queue(name);
  if (!queue && queue.code() == Code::kNotFound) throw not_found("queue", name);
  return must(std::move(queue));
}

namespace {

/// What the queue says of one tenant's jobs alone, and of its own bound and weight.
void narrow_to(Desk& desk, const std::string& tenant, QueueInfo& queue) {
  std::fill(std::begin(queue.by_state), std::end(queue.by_state), 0);
  queue.dead_letters = 0;
  for (auto& [priority, jobs] : queue.available_by_priority) jobs = 0;
  for (const JobInfo& job : desk.observer.list({.queue = queue.name, .tenant = tenant})) {
    ++queue.by_state[static_cast<std::size_t>(job.state)];
    queue.dead_letters += job.dead_letter ? 1 : 0;
    const auto level = std::ranges::find(queue.available_by_priority, job.priority,
                                         [](const auto& each) { return each.first; });
    if (job.state == State::kAvailable && level != queue.available_by_priority.end())
      ++level->second;
  }
  std::erase_if(queue.available_by_priority, [](const auto& level) { return level.second == 0; });
  queue.completed_total = in_state(queue, State::kCompleted);
  queue.discarded_total = in_state(queue, State::kDiscarded);
  queue.cancelled_total = in_state(queue, State::kCancelled);
  queue.depth = in_state(queue, State::kAvailable) + in_state(queue, State::kScheduled) +
                in_state(queue, State::kRetryable) + in_state(queue, State::kPending);
  queue.enqueued_total = 0;
  for (const std::uint64_t jobs : queue.by_state) queue.enqueued_total += jobs;
  queue.waiting = 0;
  std::erase_if(queue.tenant_bounds, [&](const auto& each) { return each.tenant != tenant; });
  std::erase_if(queue.tenant_fairness.weights, [&](const auto& each) {
    return each.first != tenant && each.first != "tenant:" + tenant;
  });
  const auto own = queue.tenant_bounds.empty() ? std::nullopt : queue.tenant_bounds[0].max_depth;
  queue.max_depth = own ? *own : queue.tenant_max_depth;
  queue.pressure =
      queue.max_depth == 0
          ? 0
          : std::min(1.0, static_cast<double>(queue.depth) / static_cast<double>(queue.max_depth));
}

}  // namespace

void narrow_to_tenant(Desk& desk, const Request& request, QueueInfo& queue) {
  if (const std::string tenant(request.header("x-ojs-tenant")); !tenant.empty())
    narrow_to(desk, tenant, queue);
}

QueueInfo queue_seen(Desk& desk, const Request& request) {
  QueueInfo queue = queue_of(desk, request.names[0]);
  narrow_to_tenant(desk, request, queue);
  return queue;
}

void pause_queue(Desk& desk, const std::string& name, bool paused) {
  must(desk.admin.set_queue(name, {.paused = paused}));
}

namespace {

/// What is to be set of a queue, gathered from both spellings.
struct NewSettings {
  std::string own = "{}";       ///< as the library reads it
  std::string pressure = "{}";  ///< its member backpressure, from the words of ojs-queue-config 6.1
  std::optional<RateLimit> limit = {};  ///< at first what there is
  bool limited = false;

  void read(const Body& body);
  /// Under the library's name. What is said by both names must be the same.
  void join_pressure();

 private:
  RateLimit& rule() {
    limited = true;
    return limit ? *limit : limit.emplace();
  }
  void read_limit(const Body& body);
};

/// What ojs-queue-config offers and no queue here has.
constexpr std::string_view kUnsupported[] = {
    "dead_letter_queue", "dead_letter_ttl",      "dead_letter_max_size", "visibility_timeout",
    "default_timeout",   "default_retry",        "default_priority",     "allowed_job_types",
    "producers",         "visibility_timeout_ms"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string member_text(std::string_view name, std::string_view value) {
  return object([&](json::ObjectWriter& writer) { writer.value(name, value); });
}

void NewSettings::join_pressure() {
  const Body mine(own, ""), named(pressure, "");
  std::string others = "{}", both = pressure;
  for (const json::Member& member : mine.members())
    if (member.name != "backpressure")
      others = joined(others, member_text(member.name, member.value));
  const auto given = mine.object("backpressure");
  for (const json::Member& member : given ? given->members() : std::vector<json::Member>()) {
    const auto same = named.raw(member.name);
    if (same && json::compact(*same) != json::compact(member.value))
      throw invalid_request("backpressure and max_size say the same; give one of them",
                            "backpressure");
    if (!same) both = joined(both, member_text(member.name, member.value));
  }
  own = joined(others, member_text("backpressure", both));
}

void NewSettings::read_limit(const Body& body) {
  const auto inner = body.object("rate_limit");
  if (!inner) {  // null
    rule().rate = rule().throttle = 0;
    return;
  }
  const std::string rules = usual_rules(*inner);
  RateLimit said = must(parse_limit(rules, true)).limit;
  keep_unnamed_rules(said, rule(), Body(rules, "rate_limit."));
  limit = said;
}

void NewSettings::read(const Body& body) {
  for (const json::Member& member : body.members()) {
    if (among(kUnsupported, member.name))
      throw unsupported(member.name + " of a queue is not supported; say it with each job");
    if (member.name == "config") {
      if (const auto config = body.object("config")) read(*config);
    } else if (member.name == "concurrency") {
      rule().concurrency = body.whole("concurrency", 1, 8192);
    } else if (member.name == "rate_limit") {
      read_limit(body);
    } else if (member.name == "max_size") {
      const std::uint32_t most = body.whole("max_size", 0, 16'777'215).value_or(0);
      pressure = joined(pressure, member_text("max_depth", std::to_string(most)));
    } else if (member.name == "max_size_bytes") {
      pressure = joined(pressure, member_text("max_size_bytes", member.value));
    } else if (member.name == "overflow_policy") {
      pressure = joined(pressure, member_text("strategy", member.value));
    } else if (member.name != "name") {
      own = joined(own, member_text(member.name, member.value));
    }
  }
}

}  // namespace

void configure_queue(Desk& desk, const std::string& name, std::string_view settings) {
  const Body body(settings, "");
  NewSettings wanted;
  const std::string key = "queue:" + name;
  const auto there = desk.observer.limit(key);
  if (there) wanted.limit = there->limit;
  wanted.read(body);
  if (wanted.pressure != "{}") wanted.join_pressure();
  must(desk.admin.set_queue(name, must(parse_queue_settings(wanted.own))));
  if (!wanted.limited) return;
  const RateLimit& limit = *wanted.limit;
  if (limit.concurrency || limit.rate != 0 || limit.throttle != 0)
    must(desk.admin.set_limit(key, limit, there ? there->expires_at_ms : 0));
  else if (there)
    must(desk.admin.clear_limit(key));
}

}  // namespace ojs_shm::gateway
