// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace ojs_shm::internal {

/// Something that one thread, or a signal handler, rings and another one sees. Rung it stays until
/// it is hushed. An eventfd, because write(2) is what a signal handler may call and poll(2) can
/// wait for it beside a time.
class Bell {
 public:
  Bell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// False when the process had no descriptor left.
  bool valid() const noexcept { return descriptor_ >= 0; }
  int descriptor() const noexcept { return descriptor_; }

  /// Async-signal-safe. The only way it can fail is that it already rings 2^64-2 times over. In the
  /// child of a fork it does nothing: the descriptor is also the parent's.
  void ring() const noexcept {
    if (::getpid() != process_) return;
    const int saved = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
    errno = saved;
  }

  void hush() const noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(descriptor_, &count, sizeof count);
  }

 private:
  int descriptor_;
  const pid_t process_ = ::getpid();
};

}  // namespace ojs_shm::internal
