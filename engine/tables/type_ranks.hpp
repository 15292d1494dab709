// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/tables/store.hpp"

// The priorities of jobs that name none, by their type.

namespace ojs_shm::engine {

/// Nothing: the convention's.
std::optional<std::uint8_t> type_rank(const Store& store, std::string_view type);
/// False when the table is full.
bool set_type_rank(const Store& store, std::uint64_t type_hash, std::optional<std::uint8_t> rank);

}  // namespace ojs_shm::engine
