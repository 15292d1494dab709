// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/replies/queue_text.hpp"

#include "tools/gateway/intake/body.hpp"
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

namespace {

/// What is to be set of a queue, gathered from both spellings.
struct NewSettings {
  std::string own = "{}";       ///< as the library reads it
  std::string pressure = "{}";  ///< its member backpressure, from the words of ojs-queue-config 6.1
  std::optional<RateLimit> limit = {};
  bool limited = false;

  void read(const Body& body);

 private:
  RateLimit& rule() {
    limited = true;
    return limit ? *limit : limit.emplace();
  }
  void read_limit(const Body& body);
};

std::string member_text(std::string_view name, std::string_view value) {
  return object([&](json::ObjectWriter& writer) { writer.value(name, value); });
}

void NewSettings::read_limit(const Body& body) {
  const auto inner = body.object("rate_limit");
  if (!inner) return;
  RateLimit& made = rule();
  // Either {"limit","period"}, or all that a limit can say.
  const std::string given(*body.raw("rate_limit"));
  const JobLimit parsed =
      must(parse_limit(inner->raw("limit") ? member_text("rate", given) : given, true));
  const auto concurrency = made.concurrency;
  made = parsed.limit;
  if (!made.concurrency) made.concurrency = concurrency;
}

void NewSettings::read(const Body& body) {
  for (const json::Member& member : body.members()) {
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
    } else if (member.name == "retention") {
      throw unsupported(
          "retention belongs to the segment: the broker's --retention sets it for all "
          "queues, and PUT dead-letter/retention that of dead letters");
    } else if (member.name != "name") {
      own = joined(own, member_text(member.name, member.value));
    }
  }
}

}  // namespace

void configure_queue(Desk& desk, const std::string& name, std::string_view settings) {
  const Body body(settings, "");
  NewSettings wanted;
  wanted.read(body);
  if (wanted.pressure != "{}") {
    if (Body(wanted.own, "").raw("backpressure"))
      throw invalid_request("backpressure and max_size say the same; give one of them",
                            "backpressure");
    wanted.own = joined(wanted.own, member_text("backpressure", wanted.pressure));
  }
  must(desk.admin.set_queue(name, must(parse_queue_settings(wanted.own))));
  if (wanted.limited) must(desk.admin.set_limit("queue:" + name, *wanted.limit));
}

}  // namespace ojs_shm::gateway
