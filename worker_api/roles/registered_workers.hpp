// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/registered_worker.hpp>
#include <ojs_shm/worker.hpp>

#include "engine/workers/registry.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {

/// All of them, by id.
std::vector<RegisteredWorker> describe_workers(const engine::Store& store);
/// The registered worker that carries the key; nothing when there is none any more.
std::optional<RegisteredWorker> describe_worker(const engine::Store& store, engine::WorkerKey key);
Error no_worker(std::string_view id);
/// The worker is registered in that pool, and is to be of another as well.
Error other_pool(std::string_view id, std::string_view pool);
/// Errors: kInvalid, kInUse, kSegmentFull, kTimeout.
Result<engine::WorkerKey> report_worker(engine::Actor& actor, const WorkerReport& report,
                                        bool native);

/// The worker that a handle is. One thread fetches; other threads may beat and ask.
class Registration {
 public:
  Registration(const WorkerOptions& options, std::vector<std::string> queues);
  /// Registers the worker, or joins it.
  Status enter(engine::Actor& actor);
  /// A sign of life, at most one a second. False: the worker was ended meanwhile.
  bool beat(engine::Actor& actor);
  WorkerDirective directive(const engine::Store& store) const;
  /// By the thread of the handle: what the worker does, from now on and if it registers anew.
  Status say(engine::Actor& actor, WorkerDirective state);
  /// Before a fetch, by the thread of the handle. Registers it anew if it was ended. kOk, kEmpty,
  /// kClosed.
  Status may_fetch(engine::Actor& actor);
  /// The handle that made the worker ends it.
  void leave(engine::Actor& actor);

 private:
  engine::WorkerKey key() const {
    const std::lock_guard lock(mutex_);
    return key_;
  }

  WorkerReport report_;
  mutable std::mutex mutex_;  ///< guards the next two
  engine::WorkerKey key_;
  std::uint64_t beat_at_ms_ = 0;
  bool made_ = false;
};

}  // namespace ojs_shm::internal
