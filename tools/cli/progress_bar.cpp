// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress_bar.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "tools/shell/output.hpp"

namespace ojs_shm::cli {

ProgressBar::ProgressBar(std::uint64_t total)
    : shown_(::isatty(STDERR_FILENO) == 1), total_(total) {}

void ProgressBar::draw(std::uint64_t done, std::string_view text, bool final) {
  if (!shown_) return;
  constexpr std::uint64_t kWidth = 40;
  const std::uint64_t permille =
      total_ == 0 ? 0 : std::min<std::uint64_t>(1000, done * 1000 / total_);
  const auto now = std::chrono::steady_clock::now();
  if (!final && now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  std::string bar;
  if (total_ != 0) {
    const std::uint64_t filled = permille * kWidth / 1000;
    bar = fmt::format("[{}{}] {:3d} %  ", std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), permille / 10);
  }
  shell::say("\r\x1b[K{}{}{}", bar, text, final ? "\n" : "");
}

void ProgressBar::clear() const {
  if (shown_) shell::say("\r\x1b[K");
}

}  // namespace ojs_shm::cli
