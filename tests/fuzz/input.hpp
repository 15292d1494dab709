// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ojs_shm::fuzz {

/// The bytes of one run, read from the front, so that the same beginning means the same steps.
/// Behind the end there are zeros.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  std::string_view bytes(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  /// Little-endian, of so many bytes.
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    const std::string_view taken = bytes(size);
    for (std::size_t i = 0; i < taken.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }
  unsigned byte() { return static_cast<unsigned>(number(1)); }
  std::size_t below(std::size_t bound) {
    return number(bound > 256 ? 4 : 1) % std::max<std::size_t>(bound, 1);
  }

 private:
  std::string_view rest_;
};

/// Ends the run with a message, as a crash does.
[[noreturn]] void broken(std::string_view what);
inline void require(bool holds, std::string_view what) {
  if (!holds) broken(what);
}

}  // namespace ojs_shm::fuzz
