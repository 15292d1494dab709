// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::internal {

/// A line of an export: {"NAME":{...}}, of which `fill` writes the inner members.
template <class Fill>
std::string export_line(std::string_view name, Fill fill) {
  std::string out;
  json::ObjectWriter line(out);
  json::ObjectWriter writer(line.open(name));
  fill(writer);
  writer.close();
  line.close();
  return out;
}

}  // namespace ojs_shm::internal
