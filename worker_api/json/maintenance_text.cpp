// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/maintenance_text.hpp"

#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {

std::string print_maintenance(const Maintenance& maintenance) {
  std::string out;
  json::ObjectWriter writer(out);
  writer.boolean("enabled", maintenance.enabled);
  writer.text("reason", maintenance.reason);
  if (maintenance.since_ms != 0) writer.text("since", print_timestamp(maintenance.since_ms));
  if (maintenance.estimated_end_ms != 0)
    writer.text("estimated_end", print_timestamp(maintenance.estimated_end_ms));
  writer.close();
  return out;
}

}  // namespace ojs_shm
