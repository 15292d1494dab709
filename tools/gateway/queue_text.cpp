// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/queue_text.hpp"

#include <spdlog/fmt/fmt.h>

#include "tools/gateway/body.hpp"
#include "tools/gateway/fault.hpp"
#include "tools/gateway/json_text.hpp"
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

QueueInfo queue_of(Desk& desk, const std::string& name) {
  auto queue = desk.observer.queue(name);
  if (!queue && queue.code() == Code::kNotFound) throw not_found("queue", name);
  return must(std::move(queue));
}

void pause_queue(Desk& desk, const std::string& name, bool paused) {
  must(desk.admin.set_queue(name, {.paused = paused}));
}

void configure_queue(Desk& desk, const std::string& name, std::string_view settings) {
  const Body body(settings, "");
  std::string own = "{";
  std::optional<RateLimit> limit;
  bool limited = false;
  const auto rule = [&]() -> RateLimit& {
    limited = true;
    return limit ? *limit : limit.emplace();
  };
  for (const json::Member& member : body.members()) {
    if (member.name == "concurrency") {
      rule().concurrency = body.whole("concurrency", 1, 8192);
    } else if (member.name == "rate_limit") {
      const auto inner = body.object("rate_limit");
      if (!inner) continue;
      RateLimit& made = rule();
      // Either {"limit","period"}, or all that a limit can say.
      const std::string text = inner->raw("limit")
                                   ? "{\"rate\":" + std::string(*body.raw("rate_limit")) + "}"
                                   : std::string(*body.raw("rate_limit"));
      const JobLimit parsed = must(parse_limit(text, true));
      const auto concurrency = made.concurrency;
      made = parsed.limit;
      if (!made.concurrency) made.concurrency = concurrency;
    } else if (member.name == "max_size") {
      own = joined(own + "}", fmt::format("{{\"backpressure\":{{\"max_depth\":{}}}}}",
                                          body.whole("max_size", 0, 16'777'215).value_or(0)));
      own.pop_back();
    } else if (member.name == "retention") {
      throw unsupported(
          "retention belongs to the segment: the broker's --retention sets it for all "
          "queues, and PUT dead-letter/retention that of dead letters");
    } else if (member.name != "name") {
      if (own.size() > 1) own += ',';
      json::append_quoted(own, member.name);
      own.append(":").append(member.value);
    }
  }
  must(desk.admin.set_queue(name, must(parse_queue_settings(own + "}"))));
  if (limited) must(desk.admin.set_limit("queue:" + name, *limit));
}

}  // namespace ojs_shm::gateway
