// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
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
#include "worker_api/roles/listener.hpp"
#include "worker_api/roles/sleeper.hpp"

namespace ojs_shm::internal {

/// Serves an event descriptor: a thread with a lane of its own sleeps among the waiters and fills
/// the descriptor to the brim when there is work, or what else it listens to; it becomes writable
/// again when it has been read.
class EventBell {
 public:
  /// Names. Queues that do not exist yet are looked for again and again, and what the queues of a pool
  /// are.
  struct Wanted {
    std::vector<std::string> queues = {}, pools = {};
    Listener::Wanted news = {};
  };
  EventBell(std::unique_ptr<Handle> handle, std::vector<std::uint32_t> queues, Wanted wanted)
      : handle_(std::move(handle)),
        queues_(std::move(queues)),
        wanted_(std::move(wanted)),
        listener_(handle_->actor()),
        fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    listener_.listen_to(wanted_.news);
    name_each_once(queues_);
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
  /// Fills the descriptor, from the thread that reads it.
  void tell() { ::eventfd_write(fd_, kFull); }
  /// Fills it in a moment, whatever there is.
  void tell_soon() {
    soon_.set();
    kick();
  }
  int fd() const { return fd_; }
  void hush() {
    eventfd_t count = 0;
    ::eventfd_read(fd_, &count);
  }

 private:
  static constexpr std::uint64_t kSoonMs = 1, kLookMs = 100;
  static constexpr eventfd_t kFull = 0xFFFF'FFFF'FFFF'FFFEULL;

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
    listener_.listen_to(wanted_.news);
  }
  /// One that is named twice would look as if another lane had chosen this one for it.
  static void name_each_once(std::vector<std::uint32_t>& queues) {
    std::ranges::sort(queues);
    queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
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
    name_each_once(found);
    if (!found.empty()) queues_ = std::move(found);
  }
  void serve() {
    Sleeper sleeper(handle_->actor(), queues_);
    const shm::Half& park = handle_->store().segment().lane(handle_->lane()).park;
    while (!stop_.get()) {
      const std::uint32_t before = park.load();
      take_next(sleeper);
      if (!wanted_.pools.empty() || queues_.size() < wanted_.queues.size()) look_up_queues();
      const bool for_jobs = !queues_.empty() || !wanted_.queues.empty() || !wanted_.pools.empty();
      const bool soon = soon_.get();
      soon_.set(false);
      sleeper.lie_down();
      listener_.lie_down();
      bool tells = sleeper.sees_work();
      tells = listener_.sees_news() || tells;
      const bool sleeps = !tells && !stop_.get();
      if (sleeps) {
        const std::uint64_t patience = soon ? kSoonMs : listener_.patience_ms();
        shm::futex_wait(park, before, for_jobs ? std::min(patience, kLookMs) : patience);
      }
      tells = sleeper.get_up() || tells || soon;
      listener_.get_up();
      if (sleeps && !soon && wanted_.news.ends && park.load() == before)
        handle_->attachment().repair_the_dead();  // one of them may have had the job in its hands
      if (!tells) continue;
      tell();
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
  Listener listener_;
  int fd_;
  shm::LocalFlag stop_, soon_;
  std::thread thread_;
};

}  // namespace ojs_shm::internal
