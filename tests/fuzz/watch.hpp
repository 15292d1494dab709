// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tests/fuzz/damage.hpp"

namespace ojs_shm::fuzz {

/// While it lives, sees each access of this thread to a shared word: an operation that goes in
/// circles ends the run, and a blow can fall between any two accesses. One at a time.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;

  void begin_operation();
  /// Falls after so many accesses of the operations to come.
  void order(const Blow& blow, std::uint64_t accesses, std::byte* segment);
};

}  // namespace ojs_shm::fuzz
