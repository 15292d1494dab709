// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/turns.hpp"

#include "tools/gateway/routes/fault.hpp"

namespace ojs_shm::gateway {

std::vector<std::uint32_t> read_weights(const Body& body, const std::vector<std::string>& queues) {
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
  for (const std::string& queue : queues)
    weights.push_back(given->whole(queue, 1, 1000).value_or(1));
  return weights;
}

}  // namespace ojs_shm::gateway
