// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/retention_text.hpp"

#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {

std::string print_dead_retention(const SegmentInfo& info) {
  std::string out;
  json::ObjectWriter writer(out);
  if (info.dead_max_age_ms != 0)
    writer.text("max_age", print_duration(info.dead_max_age_ms));
  else
    writer.value("max_age", "null");
  if (info.dead_max_count != 0)
    writer.number("max_count", static_cast<std::int64_t>(info.dead_max_count));
  else
    writer.value("max_count", "null");
  writer.text("next_prune_at", print_timestamp(info.next_prune_at_ms));
  writer.close();
  return out;
}

}  // namespace ojs_shm
