// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {

/// One enqueue that may wait for room: of one job, or of a batch that keeps together. A batch over
/// several queues stands in the line of the one that was full at its last look. One thread.
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
  std::uint64_t until_ms() const { return until_ms_; }    ///< of the steady clock
  std::uint32_t queue() const { return queue_; }          ///< in whose line it stands
  std::uint32_t ticket() const { return place_.ticket; }  ///< kNoIndex: it has no place
  void leave();

 private:
  engine::Outcome attempt(std::vector<engine::JobId>& ids);

  Handle& handle_;
  std::span<const engine::NewJob> jobs_;
  std::uint64_t until_ms_;
  std::uint32_t queue_;
  engine::RoomPlace place_;
};

/// Errors: kInvalid.
Status check_block_timeout(std::chrono::milliseconds timeout);

}  // namespace ojs_shm::internal
