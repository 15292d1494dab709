// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/limit.hpp>

#include "tools/gateway/intake/body.hpp"

namespace ojs_shm::gateway {

/// The same with {"limit", "period", "window"} at the top, as some clients have a rate, as its
/// rate. Throws a Fault where there is another one.
std::string usual_rules(const Body& given);

/// A change says of some rules what they are from now on, and the others stay: gives `said` those
/// of `before` that `named`, which it was read from, does not name. null names one, and takes it
/// away.
/// Source: ojs-rate-limiting 10.2, ojs-queue-config 6.2.
void keep_unnamed_rules(RateLimit& said, const RateLimit& before, const Body& named);

}  // namespace ojs_shm::gateway
