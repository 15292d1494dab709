// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include <ojs_shm/resilience.hpp>

namespace ojs_shm::cli {

/// What --on-full asks for.
struct OnFull {
  ResilienceOptions options;
  /// how long the end waits for what is still in the buffer
  std::chrono::milliseconds flush{60'000};
};

/// "retry=5,max=60s,breaker=5,cooldown=10s,buffer=1000,flush=60s"; empty: nothing. Throws
/// shell::Refusal.
OnFull on_full_of(const std::string& text, const Segment& segment);

}  // namespace ojs_shm::cli
