// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "tools/shell/exit_code.hpp"
#include "tools/top/browser.hpp"
#include "tools/top/options.hpp"
#include "tools/top/screen.hpp"

namespace ojs_shm::top {
namespace {

volatile std::sig_atomic_t ending = 0;

void end(int) { ending = 1; }

/// Until the next look, in steps so short that a signal does not wait.
int patience(Clock::time_point next) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 200));
}

}  // namespace

int watch(const Options& options) {
  Sampler sampler(open_observer(options));
  Browser browser(options, sampler);
  std::signal(SIGTERM, end);
  std::signal(SIGHUP, end);
  const char* no_color = std::getenv("NO_COLOR");
  Screen screen(!options.no_color && (no_color == nullptr || *no_color == '\0'));
  Clock::time_point next = Clock::now();
  while (!browser.over() && ending == 0) {
    if (Clock::now() >= next) {
      browser.look();
      next = Clock::now() + std::chrono::milliseconds(browser.interval_ms());
    }
    screen.show(browser.picture(screen.width(), screen.height()));
    if (const Stroke stroke = screen.wait(patience(next)); stroke.key != Key::kNone)
      browser.press(stroke, screen.height());
  }
  return shell::kExitOk;
}

}  // namespace ojs_shm::top
