// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/signals.hpp"

#include <spdlog/fmt/fmt.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace ojs_shm::shell {
namespace {

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

volatile sig_atomic_t stop_signals = 0;

}  // namespace

void note_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_signals = 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}
bool stop_signalled() { return stop_signals != 0; }

std::string signal_origin(int signal, int code, pid_t pid) {
  const std::string name = std::string("SIG") + ::sigabbrev_np(signal);
  // The kernel itself sends those of a terminal's keys.
  if (code > 0) return name + " from the terminal";
  return fmt::format("{} from process {}{}", name, pid, name_of_process(pid));
}

SignalDescriptor::SignalDescriptor(std::initializer_list<int> signals) {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : signals) ::sigaddset(&held, signal);
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  fd_ = ::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

SignalDescriptor::~SignalDescriptor() { ::close(fd_); }

SignalDescriptor::Signal SignalDescriptor::take() const {
  signalfd_siginfo info{};
  ssize_t got = 0;
  do got = ::read(fd_, &info, sizeof info);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof info)) return {};
  const int number = static_cast<int>(info.ssi_signo);
  return {number, signal_origin(number, info.ssi_code, static_cast<pid_t>(info.ssi_pid))};
}

}  // namespace ojs_shm::shell
