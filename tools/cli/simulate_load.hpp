// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "worker_api/simulation/simulation.hpp"

namespace ojs_shm::cli {

/// "jobs=10000,rate=100,service=10ms,fixed,queues=a:3|b:1,priorities=0:1|2:4,tenants=x:9|y:1,
/// size=64", without blanks.
/// Throws shell::Refusal.
SyntheticLoad synthetic_load_of(const std::string& text, std::uint64_t seed);

/// A trace from a file, or from stdin for "-". Jobs without a service take `otherwise_us`. Throws
/// shell::Refusal, which names the line.
Trace read_trace(const std::string& path, std::int64_t otherwise_us);

/// As `record` would have written it. Errors: kInvalid, kPermission.
Status write_trace(const std::string& path, const Trace& trace);

/// Each dispatch as a dot: when it was, across; how long the job had waited, up; the colour is its
/// level. Below, the share and the waits of each queue, level, tenant and pool.
std::string picture_of(const Trace& trace, const SimulationOutcome& outcome,
                       const SimulationReport& report);

/// Errors: kInvalid, kPermission.
Status write_file(const std::string& path, const std::string& text);

}  // namespace ojs_shm::cli
