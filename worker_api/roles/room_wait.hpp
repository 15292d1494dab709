// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <thread>
#include <vector>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {

/// One enqueue that may wait for room in its queue: of one job, or of a batch that keeps together.
/// One thread.
class RoomWait {
 public:
  /// `jobs` stays where it is for as long as this lives.
  RoomWait(Handle& handle, std::span<const engine::NewJob> jobs, std::chrono::milliseconds timeout);
  /// Gives the place up.
  ~RoomWait() { leave(); }
  RoomWait(const RoomWait&) = delete;

  /// Tries it; kMustWait while its turn has not come and its time is not over. The first time takes
  /// a place.
  engine::Outcome look(std::vector<engine::JobId>& ids);
  /// look() until it is decided; sleeps in between.
  engine::Outcome wait(std::vector<engine::JobId>& ids);
  std::uint64_t until_ms() const { return until_ms_; }  ///< of the steady clock
  void leave();

 private:
  engine::Outcome attempt(std::vector<engine::JobId>& ids);

  Handle& handle_;
  std::span<const engine::NewJob> jobs_;
  std::uint64_t until_ms_;
  std::uint32_t ticket_ = engine::kNoIndex;
};

/// Makes a descriptor readable when an enqueue of its handle may have got its turn. A thread of its
/// own.
class RoomBell {
 public:
  explicit RoomBell(Handle& handle);
  ~RoomBell();
  RoomBell(const RoomBell&) = delete;

  int fd() const { return fd_; }
  void hush();
  /// Whether anything waits at all; a new one is looked after at once.
  void waiting(bool any, bool anew);

 private:
  void serve();
  void kick();

  Handle& handle_;
  int fd_;
  shm::LocalFlag stop_, waiting_, anew_;
  std::thread thread_;
};

/// Errors: kInvalid.
Status check_block_timeout(std::chrono::milliseconds timeout);

}  // namespace ojs_shm::internal
