// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ojs_shm::gateway {

/// One look at something that is dear to look at, for all who ask within a short time. Those who
/// come while a look is taken wait for it. Thread-safe.
template <class T>
class SharedLook {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFresh{100};

  /// The last look, or what `take` returns when that began kFresh before `now` or earlier.
  template <class Take>
  std::shared_ptr<const T> get(Clock::time_point now, Take take) {
    const std::lock_guard lock(mutex_);
    if (look_ && now - begun_ < kFresh) return look_;
    look_ = std::make_shared<const T>(take());
    begun_ = now;
    return look_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const T> look_;
  Clock::time_point begun_ = {};
};

}  // namespace ojs_shm::gateway
