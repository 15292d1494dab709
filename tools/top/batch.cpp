// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <ctime>

#include "tools/shell/exit_code.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/top/options.hpp"

namespace ojs_shm::top {
namespace {

/// Wide enough for everything: a script cuts for itself.
constexpr std::size_t kWidth = 400;

/// Waits for the time of the next sample; false when the program is to end.
bool wait_for(std::uint64_t ms) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  const timespec time{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
  return ::sigtimedwait(&ends, nullptr, &time) < 0;
}

std::string text_of(const Options& options, const Observer& observer, const Sample& sample) {
  EventLog log;
  if (options.view == View::kEvents) {
    EventReader reader = observer.events({.from_start = true, .settle_ms = 0});
    for (Event event; reader.next(event);) log.events.push_back(event);
  }
  Grid grid = grid_of(options.view, observer, sample, options.subject, log, false);
  Look look;
  return plain_text(header_of(sample, "", kWidth)) + plain_text(draw(grid, look, kWidth, 0, false));
}

}  // namespace

int print_samples(const Options& options) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  Sampler sampler(open_observer(options));
  const std::uint64_t most = options.once ? 1 : options.samples;
  for (std::uint64_t n = 1; most == 0 || n <= most; ++n) {
    if (sampler.last().removed && options.post_mortem.empty()) sampler.follow(options.where);
    const Sample& sample = sampler.take();
    const std::string text =
        options.json ? print_sample(sample) + "\n"
                     : text_of(options, sampler.observer(), sample) + (n == most ? "" : "\n");
    std::fwrite(text.data(), 1, text.size(), stdout);
    shell::note_output();
    if (const Status flushed = shell::flush_output(); !flushed)
      return flushed.code() == Code::kClosed ? shell::kExitFailed
                                             : shell::report(flushed.error(), options.json);
    if (n != most && !wait_for(options.interval_ms)) break;
  }
  return shell::kExitOk;
}

}  // namespace ojs_shm::top
