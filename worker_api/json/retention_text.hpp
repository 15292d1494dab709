// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/observer.hpp>

namespace ojs_shm {

/// `{"max_age": "P180D", "max_count": 10000, "next_prune_at"}`, null where there is no limit.
/// Source: ojs-dead-letter 10.1.
std::string print_dead_retention(const SegmentInfo& info);

}  // namespace ojs_shm
