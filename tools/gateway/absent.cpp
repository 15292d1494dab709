// SPDX-License-Identifier: Apache-2.0
//
// Services of the specification that the segment does not have: they are refused by name, so that a
// client learns it here and not from a job that never runs.
#include "tools/gateway/fault.hpp"
#include "tools/gateway/handlers.hpp"

namespace ojs_shm::gateway {
namespace {

Reply no_cron(Desk&, const Request&) {
  throw unsupported("cron jobs are not offered by this server");
}

}  // namespace

std::span<const Route> absent_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/cron", Scope::kRead, &no_cron},
      {"POST", "/ojs/v1/cron", Scope::kWrite, &no_cron},
      {"GET", "/ojs/v1/cron/{name}", Scope::kRead, &no_cron},
      {"PATCH", "/ojs/v1/cron/{name}", Scope::kWrite, &no_cron},
      {"DELETE", "/ojs/v1/cron/{name}", Scope::kWrite, &no_cron},
      {"POST", "/ojs/v1/cron/{name}/trigger", Scope::kWrite, &no_cron},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
