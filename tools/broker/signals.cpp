// SPDX-License-Identifier: Apache-2.0
#include "tools/broker/signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tools/shell/signals.hpp"

namespace ojs_shm::broker {
namespace {

constexpr int kEndOfWatch = SIGUSR2;  // from this very process only

sigset_t held_signals() {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, kEndOfWatch}) ::sigaddset(&held, signal);
  return held;
}

}  // namespace

void hold_signals() {
  const sigset_t held = held_signals();
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

SignalWatch::SignalWatch(Take take) : take_(std::move(take)), thread_([this] { run(); }) {}

SignalWatch::~SignalWatch() {
  ::pthread_kill(thread_.native_handle(), kEndOfWatch);
  thread_.join();
}

void SignalWatch::run() const {
  const sigset_t held = held_signals();
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&held, &info);
    if (signal < 0 && errno == EINTR) continue;
    if (signal < 0 || (signal == kEndOfWatch && info.si_pid == ::getpid())) return;
    if (signal != kEndOfWatch)
      take_(signal, shell::signal_origin(signal, info.si_code, info.si_pid));
  }
}

}  // namespace ojs_shm::broker
