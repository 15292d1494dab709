// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shm/parking.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/sleeper.hpp"

namespace ojs_shm::internal {

/// Serves an event descriptor: a thread with a lane of its own sleeps among the waiters and fills
/// the descriptor to the brim when there is work; it becomes writable again when it has been
/// read.
class EventBell {
 public:
  /// Names. Queues that do not exist yet are looked for again and again, and what the queues of a pool
  /// are.
  struct Wanted {
    std::vector<std::string> queues = {}, pools = {};
    bool empty() const { return queues.empty() && pools.empty(); }
  };
  EventBell(std::unique_ptr<Handle> handle, std::vector<std::uint32_t> queues, Wanted wanted)
      : handle_(std::move(handle)),
        queues_(std::move(queues)),
        wanted_(std::move(wanted)),
        fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~EventBell() {
    stop_.set();
    hush();
    kick();
    thread_.join();
    ::close(fd_);
  }
  /// Other queues from now on; none: it rests. Their jobs from now on are told, and those that are
  /// there.
  void look_after(Wanted wanted) {
    {
      const std::lock_guard lock(mutex_);
      next_ = std::move(wanted);
    }
    hush();
    kick();
  }
  int fd() const { return fd_; }
  void hush() {
    eventfd_t count = 0;
    ::eventfd_read(fd_, &count);
  }

 private:
  void kick() {
    shm::Half& park = handle_->store().segment().lane(handle_->lane()).park;
    park.fetch_add(1, shm::Point::kParkSet);
    shm::futex_wake(park, 1);
  }
  /// What this one was told, and is not looked for here any more, is told to another.
  void take_next(Sleeper& sleeper) {
    const std::lock_guard lock(mutex_);
    if (!next_) return;
    sleeper.wake_another();
    wanted_ = std::move(*next_);
    next_.reset();
    queues_.clear();
  }
  /// A pool that is gone changes nothing.
  void look_up_queues() {
    const engine::Store& store = handle_->store();
    std::vector<std::uint32_t> found = found_queues(handle_->store(), wanted_.queues);
    for (const std::string& name : wanted_.pools) {
      const std::uint32_t pool = store.find_pool(name);
      const auto plan = pool == engine::kNoIndex ? std::nullopt : store.pool_plan(pool);
      if (plan) found.insert(found.end(), plan->queues.begin(), plan->queues.end());
    }
    if (!found.empty()) queues_ = std::move(found);
  }
  void serve() {
    Sleeper sleeper(handle_->actor(), queues_);
    const shm::Half& park = handle_->store().segment().lane(handle_->lane()).park;
    while (!stop_.get()) {
      const std::uint32_t before = park.load();
      take_next(sleeper);
      if (!wanted_.pools.empty() || queues_.size() < wanted_.queues.size()) look_up_queues();
      sleeper.lie_down();
      const bool work = sleeper.sees_work();
      const bool rests = wanted_.empty() && queues_.empty();
      if (!work && !stop_.get()) shm::futex_wait(park, before, rests ? 60'000 : 100);
      sleeper.get_up();
      if (rests || (!work && park.load() == before)) continue;
      ::eventfd_write(fd_, 0xFFFF'FFFF'FFFF'FFFEULL);
      pollfd read_by_user{fd_, POLLOUT, 0};
      while (!stop_.get() && !changes() && ::poll(&read_by_user, 1, 100) == 0) {}
    }
  }
  bool changes() {
    const std::lock_guard lock(mutex_);
    return next_.has_value();
  }
  std::unique_ptr<Handle> handle_;
  std::mutex mutex_;
  std::optional<Wanted> next_;  ///< what `wanted_` becomes; guarded
  std::vector<std::uint32_t> queues_;
  Wanted wanted_;
  int fd_;
  shm::LocalFlag stop_;
  std::thread thread_;
};

}  // namespace ojs_shm::internal
