// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shm/layout.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/lived_in.hpp"

namespace ojs_shm::fuzz {

/// One word that a stranger overwrites.
struct Blow {
  std::size_t at = 0;  ///< bytes from the segment's start
  unsigned manner = 0;
  std::uint64_t value = 0;
  void strike(std::byte* segment) const;
};

/// Chooses words by table and place, so that small tables are hit as often as large ones, and words
/// that hold something as often as zeros.
class Aim {
 public:
  explicit Aim(const Image& image);
  Blow read(Input& input) const;

 private:
  struct Table {
    std::size_t begin = 0, words = 0;
    std::vector<std::size_t> used;  ///< words that are not zero
  };
  std::vector<Table> tables_;
  std::vector<std::uint64_t> links_;  ///< words that lead to the image's chunks, as in a ring
};

}  // namespace ojs_shm::fuzz
