// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace ojs_shm::cli {

/// On a terminal, a line on stderr that tells how far something is, drawn again ten times a second;
/// elsewhere nothing.
class ProgressBar {
 public:
  /// `total` 0: unknown, so only the text is shown.
  explicit ProgressBar(std::uint64_t total);
  void draw(std::uint64_t done, std::string_view text, bool final);
  /// Makes room for another line.
  void clear() const;

 private:
  bool shown_;
  std::uint64_t total_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace ojs_shm::cli
