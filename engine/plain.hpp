// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ojs_shm::engine {

/// How a plain operation (plain.cpp) ended.
enum class Straight : std::uint8_t {
  kDone,
  kEmpty,  ///< nothing to fetch
  kAside,  ///< nothing has happened: the general operation does it, or knows the error
};

/// Looks at a queue that is changed again and again, before the general way takes over.
constexpr unsigned kPlainLooks = 64;
/// Jobs of a plain batch; a longer one takes the general way.
constexpr unsigned kPlainBatch = 64;

}  // namespace ojs_shm::engine
