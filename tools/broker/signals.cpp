// SPDX-License-Identifier: Apache-2.0
#include "tools/broker/signals.hpp"

#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <string.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <fstream>
#include <utility>

namespace ojs_shm::broker {
namespace {

constexpr int kEndOfWatch = SIGUSR2;  // from this very process only

sigset_t held_signals() {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, kEndOfWatch}) ::sigaddset(&held, signal);
  return held;
}

/// " (bash)", or nothing when the process is gone or hidden. Bytes that a terminal would obey
/// become `?`.
std::string name_of_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  if (!std::getline(file, name) || name.empty()) return {};
  for (char& c : name)
    if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
  return " (" + name + ")";
}

std::string origin_of(const siginfo_t& info) {
  const std::string name = std::string("SIG") + ::sigabbrev_np(info.si_signo);
  // The kernel itself sends those of a terminal's keys.
  if (info.si_code > 0) return name + " from the terminal";
  return fmt::format("{} from process {}{}", name, info.si_pid, name_of_process(info.si_pid));
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
    if (signal != kEndOfWatch) take_(signal, origin_of(info));
  }
}

}  // namespace ojs_shm::broker
