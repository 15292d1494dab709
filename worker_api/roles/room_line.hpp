// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "worker_api/roles/event_bell.hpp"
#include "worker_api/roles/room_wait.hpp"

namespace ojs_shm::internal {

/// One of the enqueues that a RoomLine looks after.
class InLine {
 public:
  virtual ~InLine() = default;
  /// Tries it; true when it is decided.
  virtual bool look() = 0;

  std::optional<RoomWait> wait;
  std::uint64_t tag = 0;  ///< its user's name for it

 private:
  friend class RoomLine;
  std::uint64_t came = 0;                   ///< which one of the line it was; 0: not in it
  std::uint64_t decided = 0;                ///< which of the decided; 0: not yet, or told
  std::uint32_t ticket = engine::kNoIndex;  ///< under which it stands
};

/// The enqueues of one handle that wait for room, and that a bell tells of. A look at them asks the
/// segment whose turn it is in each of their queues, so that it costs the same for two and for ten
/// thousand. One thread.
class RoomLine {
 public:
  RoomLine(Handle& handle, std::shared_ptr<EventBell> bell);
  RoomLine(const RoomLine&) = delete;

  /// A new one, after its first look.
  void join(InLine& waiter, bool decided);
  void leave(InLine& waiter);
  /// Its user knows that it is decided.
  void told(InLine& waiter);
  bool look_at(InLine& waiter);
  /// The tags of those that are decided and not told, at most so many; these are told.
  std::vector<std::uint64_t> take_decided(std::size_t most);
  /// The bell has been hushed.
  void tell_decided();

 private:
  void list(InLine& waiter);
  void unlist(InLine& waiter);
  void note_decided(InLine& waiter) { decided_.emplace(waiter.decided = ++count_, &waiter); }
  void serve(std::uint32_t queue);
  void serve_late();
  void serve_unplaced();
  /// Says for how long the bell may sleep.
  void set_bell();

  Handle& handle_;
  std::shared_ptr<EventBell> bell_;
  std::uint64_t count_ = 0;
  std::map<std::uint32_t, std::map<std::uint64_t, InLine*>> queues_;  ///< as they came
  std::unordered_map<std::uint32_t, InLine*> by_ticket_;
  std::set<std::pair<std::uint64_t, InLine*>> ends_;  ///< by when their time is over
  /// without a place: another process is bringing a job of the same id
  std::set<InLine*> unplaced_;
  std::map<std::uint64_t, InLine*> decided_;  ///< and not told
};

}  // namespace ojs_shm::internal
