// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <system_error>

#include "bench/peers/ojs_shm.hpp"

namespace ojs_shm::bench {

namespace {

[[noreturn]] void supervise(const SegmentName& name, const SegmentOptions& options, int ready) {
  const auto tell = [ready](std::string_view text) {
    const ssize_t ignored = ::write(ready, text.data(), text.size());
    static_cast<void>(ignored);
  };
  auto broker = Broker::start(name, options);
  if (!broker.ok()) {
    tell(broker.error().message);
    ::_exit(1);
  }
  tell("+");
  ::close(ready);
  static_cast<void>(broker->run([](std::string_view) {}));
  ::_exit(0);
}

}  // namespace

BrokerProcess::BrokerProcess(SegmentName name, const SegmentOptions& options)
    : name_(std::move(name)) {
  // of an earlier run of this pid that was killed
  static_cast<void>(remove_segment(name_, Removal::kForced));
  int ready[2];
  if (::pipe(ready) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ready[0]);
    supervise(name_, options, ready[1]);
  }
  ::close(ready[1]);
  char answer[512];
  const ssize_t got = ::read(ready[0], answer, sizeof answer);
  ::close(ready[0]);
  if (got == 1 && answer[0] == '+') return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  throw std::runtime_error("broker: " +
                           std::string(answer, got > 0 ? static_cast<std::size_t>(got) : 0));
}

BrokerProcess::~BrokerProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  static_cast<void>(remove_segment(name_, Removal::kForced));
}

}  // namespace ojs_shm::bench
