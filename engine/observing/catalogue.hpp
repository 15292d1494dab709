// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/tables/store.hpp"
#include "shm/catalogue.hpp"

namespace ojs_shm::engine {

/// Of what a number of the catalogue is told: CatalogueRow::subject.
enum class Subject : std::uint32_t { kSegment = 0, kQueue = 1 };

/// Describes everything that the engine counts, in a segment that is being made.
void write_catalogue(const Store& store);

}  // namespace ojs_shm::engine
