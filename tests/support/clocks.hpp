// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include <ojs_shm/resilience.hpp>

namespace ojs_shm::test {

/// A process that waits has waited: time jumps to where they wanted it. For one thread.
class JumpingClock final : public Clock {
 public:
  time_point now() const override { return now_; }
  void wait(std::unique_lock<std::mutex>&, std::condition_variable&, time_point until) override {
    waits.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(until - now_));
    now_ = until;
    if (after_wait) after_wait();
  }
  void pass(std::chrono::milliseconds time) { now_ += time; }

  std::vector<std::chrono::milliseconds> waits;
  std::function<void()> after_wait;

 private:
  time_point now_ = time_point(std::chrono::hours(1));
};

/// Stands until a process lets it pass, and then wakes a process that waits.
class SteppedClock final : public Clock {
 public:
  time_point now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
            time_point until) override {
    const Waiter me{lock.mutex(), &changed};
    {
      const std::lock_guard mine(mutex_);
      if (now_ >= until) return;
      waiters_.insert(me);
      if (until != time_point::max()) until_.insert(until);
    }
    // its owner holds the lock from the look above until here, and pass() takes it
    changed.wait(lock);
    const std::lock_guard mine(mutex_);
    waiters_.erase(waiters_.find(me));
    if (until != time_point::max()) until_.erase(until_.find(until));
  }
  void pass(std::chrono::milliseconds time) {
    std::multiset<Waiter> waiters;
    {
      const std::lock_guard mine(mutex_);
      now_ += time;
      waiters = waiters_;
    }
    for (const auto& [mutex, changed] : waiters) {
      const std::lock_guard theirs(*mutex);
      changed->notify_all();
    }
  }
  /// Whether a process waits for just that long.
  bool awaited(std::chrono::milliseconds from_now) const {
    const std::lock_guard mine(mutex_);
    return until_.contains(now_ + from_now);
  }

 private:
  using Waiter = std::pair<std::mutex*, std::condition_variable*>;
  mutable std::mutex mutex_;
  time_point now_ = time_point(std::chrono::hours(1));
  std::multiset<Waiter> waiters_;
  std::multiset<time_point> until_;
};

}  // namespace ojs_shm::test
