// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/pools/pool_look.hpp"
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
  /// Names. Queues that do not exist yet are looked for again and again, and what the queues of a
  /// pool are.
  struct Wanted {
    std::vector<std::string> queues = {}, pools = {};
    Listener::Wanted news = {};
  };
  /// While `rests` it tells nothing; asked by its thread.
  EventBell(std::unique_ptr<Handle> handle, std::vector<std::uint32_t> queues, Wanted wanted,
            std::function<bool()> rests = {})
      : handle_(std::move(handle)),
        queues_(std::move(queues)),
        wanted_(std::move(wanted)),
        rests_(std::move(rests)),
        listener_(handle_->actor()),
        fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    listener_.listen_to(wanted_.news);
    name_each_once(queues_);
    thread_ = std::thread([this] { serve(); });
  }
  ~EventBell() {
    if (handle_->closed()) {
      abandon(thread_);
    } else {
      stop_.set();
      hush();
      kick();
      thread_.join();
    }
    ::close(fd_);
  }
  /// Other queues from now on; none: it rests. Their jobs from now on are told, and those that are
  /// there.
  void look_after(Wanted wanted) {
    {
      const std::lock_guard lock(mutex_);
      next_ = std::move(wanted);
      hush();  // before its thread sees that, and tells
    }
    kick();
  }
  /// Fills the descriptor, from the thread that reads it.
  void tell() { ::eventfd_write(fd_, kFull); }
  /// Fills it in a moment, whatever there is.
  void tell_soon() {
    soon_.set();
    kick();
  }
  /// Enqueues that wait for room have places of this lane. The first of them gives up then, ms of
  /// the steady clock; 0: none waits.
  void await_room(std::uint64_t first_end_ms) {
    const std::lock_guard lock(mutex_);
    first_end_ms_ = first_end_ms;
  }
  /// Ends are awaited: then it tells each second as well, for a process may be stopped or killed
  /// between an end and its ring.
  void await_ends(bool any) { awaits_ends_.set(any); }
  /// What it rested for may be over.
  void look_again() { kick(); }
  std::uint32_t lane() const { return handle_->lane(); }
  int fd() const { return fd_; }
  void hush() {
    eventfd_t count = 0;
    ::eventfd_read(fd_, &count);
  }

 private:
  static constexpr std::uint64_t kSoonMs = 1, kLookMs = 100, kEndsMs = 1000;
  static constexpr eventfd_t kFull = 0xFFFF'FFFF'FFFF'FFFEULL;

  shm::Half& park() { return handle_->store().segment().lane(handle_->lane()).park; }
  void kick() {
    {
      const std::lock_guard lock(mutex_);
      park().fetch_add(1, shm::Point::kParkSet);
      ++kicks_;
    }
    shm::futex_wake(park(), 1);
  }
  /// How often other processes called.
  std::uint32_t calls() {
    const std::lock_guard lock(mutex_);
    return park().load() - kicks_;
  }
  std::uint64_t first_end_ms() {
    const std::lock_guard lock(mutex_);
    return first_end_ms_;
  }
  /// How long it may sleep while enqueues wait.
  std::uint64_t patience_for_room_ms() {
    const std::uint64_t end = first_end_ms(), now = shm::steady_ms();
    return end == 0 ? ~0ULL : end <= now ? 0 : std::min(end - now, kLookMs);
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
  /// Those from which its user gets jobs: an isolated queue is for its pool alone. A pool that is
  /// gone changes nothing.
  void look_up_queues() {
    const engine::Store& store = handle_->store();
    std::vector<std::uint32_t> found;
    bool known = false;
    const auto add = [&](const std::vector<std::uint32_t>& queues, std::uint64_t pool) {
      for (const std::uint32_t q : queues)
        if (const std::uint64_t own = store.queue(q).isolated.load(); own == 0 || own == pool)
          found.push_back(q);
      known = known || !queues.empty();
    };
    add(found_queues(handle_->store(), wanted_.queues), 0);
    for (const std::string& name : wanted_.pools) {
      const std::uint32_t pool = engine::find_pool(store, name);
      const auto plan = pool == engine::kNoIndex ? std::nullopt : engine::pool_plan(store, pool);
      if (plan) add(plan->queues, pool + 1);
    }
    if (!known) return;
    handle_->actor().look_for_pools(!wanted_.pools.empty());
    name_each_once(found);
    queues_ = std::move(found);
  }
  /// A call may be for an enqueue that waits for room: then all that came since the last ring
  /// count.
  void serve() {
    Sleeper sleeper(handle_->actor(), queues_);
    std::uint32_t heard = 0;  // of the calls, before the last ring
    std::uint64_t ends_told = shm::steady_ms(), soons = 0;
    while (!stop_.get()) {
      const std::uint32_t before = park().load();
      take_next(sleeper);
      if (rests_ && rests_()) {
        hush();
        shm::futex_wait(park(), before, kLookMs);
        continue;
      }
      if (!wanted_.pools.empty() || queues_.size() < wanted_.queues.size()) look_up_queues();
      const bool for_jobs = !queues_.empty() || !wanted_.queues.empty() || !wanted_.pools.empty();
      sleeper.lie_down();
      listener_.lie_down();
      bool tells = sleeper.sees_work();
      tells = listener_.sees_news() || tells;
      tells = (first_end_ms() != 0 && calls() != heard) || tells;
      tells = (awaits_ends_.get() && shm::steady_ms() - ends_told >= kEndsMs) || tells;
      const bool sleeps = !tells && !stop_.get(), soon = sleeps && soon_.get();
      if (sleeps) {
        soon_.set(false);
        const std::uint64_t patience =
            std::min(soon ? kSoonMs : listener_.patience_ms(), patience_for_room_ms());
        shm::futex_wait(park(), before, for_jobs ? std::min(patience, kLookMs) : patience);
      }
      tells = sleeper.get_up() || tells || soon;
      listener_.get_up();
      const bool for_room = first_end_ms() != 0;
      const bool looks = sleeps && (!soon || ++soons % kLookMs == 0);
      if (looks && (wanted_.news.ends || for_room) && park().load() == before)
        handle_->attachment().repair_the_dead();  // one may have had the job or the turn
      if (!tells && !(sleeps && for_room)) continue;
      heard = calls();
      ends_told = shm::steady_ms();
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
  std::optional<Wanted> next_;      ///< what `wanted_` becomes; guarded
  std::uint64_t first_end_ms_ = 0;  ///< of enqueues that wait for room; guarded
  std::uint32_t kicks_ = 0;         ///< of its own process; guarded
  std::vector<std::uint32_t> queues_;
  Wanted wanted_;
  std::function<bool()> rests_;
  Listener listener_;
  int fd_;
  shm::LocalFlag stop_, soon_, awaits_ends_;
  std::thread thread_;
};

}  // namespace ojs_shm::internal
