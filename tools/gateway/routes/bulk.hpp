// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tools/gateway/intake/body.hpp"

/// What all requests about many jobs have in common. Source: ojs-bulk-operations.
namespace ojs_shm::gateway {

inline constexpr std::size_t kMostInBulk = 1000;
inline constexpr char kBatchSize[] = "X-OJS-Batch-Size";

/// Throws a Fault, 413, which tells the most.
void check_bulk_size(std::size_t items, std::size_t most = kMostInBulk);
/// Whether all or none is asked for. Throws a Fault.
bool is_atomic(const Body& body);
/// `all`: the status when nothing failed.
unsigned bulk_status(std::size_t succeeded, std::size_t failed, unsigned all);

}  // namespace ojs_shm::gateway
