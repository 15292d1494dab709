// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/turns.hpp"

#include <spdlog/fmt/fmt.h>

#include <ojs_shm/proxy.hpp>
#include <ojs_shm/registered_worker.hpp>

#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"

namespace ojs_shm::gateway {

namespace {

/// Each queue is looked for among all weights.
void check_count(std::size_t count, std::string_view name) {
  if (count > kMostFetchQueues)
    throw invalid_request(fmt::format("{} name at most {} queues", name, kMostFetchQueues), name);
}

}  // namespace

std::optional<std::string> worker_in(const Body& body) {
  auto id = body.text("worker_id");
  if (id && id->size() > kLongestWorkerId)
    throw invalid_request(fmt::format("worker_id must have at most {} bytes", kLongestWorkerId),
                          "worker_id");
  return id;
}

std::vector<std::uint32_t> read_weights(const Body& body, const std::vector<std::string>& queues) {
  check_count(queues.size(), "queues");
  const auto strategy = body.text("strategy");
  std::vector<std::uint32_t> weights;
  if (strategy && *strategy == "round-robin") return std::vector<std::uint32_t>(queues.size(), 1);
  if (strategy && *strategy != "weighted") {
    if (*strategy == "strict") return {};
    throw invalid_request(
        "strategy must be strict, weighted or round-robin; other strategies belong "
        "to pools",
        "strategy");
  }
  const auto given = body.object("weights");
  if (!given) {
    if (strategy) throw invalid_request("the weighted strategy needs weights", "weights");
    return {};
  }
  check_count(given->members().size(), "weights");
  for (const std::string& queue : queues)
    weights.push_back(given->whole(queue, 1, 1000).value_or(1));
  return weights;
}

namespace {

constexpr std::string_view kTurns = "ojs.turns";

bool is_object(std::string_view text) {
  return json::check(text) && json::kind_of(json::trim(text)) == json::Kind::kObject;
}

/// A JSON object; empty: the labels have none.
std::string turns_text(std::string_view labels) {
  if (!is_object(labels)) return {};
  const auto found = Body(json::trim(labels), "").raw(kTurns);
  return found && is_object(*found) ? json::compact(*found) : std::string();
}

}  // namespace

std::string labels_with_turns(const Body& body, std::string_view before) {
  // ojs-admin-api 9.1 has them as metadata.
  const auto given = body.raw("labels") ? body.raw("labels") : body.raw("metadata");
  const std::string labels = json::compact(given.value_or(""));
  std::string turns = turns_text(before);
  if (body.raw("strategy") || body.raw("weights")) {
    (void)read_weights(body, body.texts("queues").value_or(std::vector<std::string>()));
    turns = object([&](json::ObjectWriter& writer) {
      for (const std::string_view name : {"strategy", "weights"})
        if (const auto value = body.raw(name)) writer.value(name, json::compact(*value));
    });
  }
  if (turns.empty() || (!labels.empty() && !is_object(labels))) return labels;
  return joined(labels.empty() ? "{}" : labels,
                object([&](json::ObjectWriter& writer) { writer.value(kTurns, turns); }));
}

std::vector<std::uint32_t> turns_in(std::string_view labels,
                                    const std::vector<std::string>& queues) try {
  const std::string turns = turns_text(labels);
  return turns.empty() ? std::vector<std::uint32_t>() : read_weights(Body(turns, ""), queues);
} catch (const Fault&) {
  return {};  // another program's words
}

}  // namespace ojs_shm::gateway
