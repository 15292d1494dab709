// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// The end of a queue. Its place stays its own: a deleted queue is one into which nothing has come
/// since, and the next job makes it a new one. So nothing has to look whether a queue is deleted,
/// and of an enqueue beside the deletion one can say that it came later. Source: ojs-queue-config
/// 5.3.
class QueueEnd {
 public:
  explicit QueueEnd(Actor& actor) : actor_(actor), store_(actor.store()) {}

  /// Before its settings are taken back. kWrongState: `jobs` in it are not finished; members of a
  /// workflow that wait for other members count.
  Outcome begin(std::uint32_t queue, std::uint64_t& jobs);
  /// Discards all that has not ended, also what is at work. The same as begin() afterwards; kBusy:
  /// jobs keep coming.
  Outcome empty(std::uint32_t queue, std::uint64_t& discarded, std::uint64_t& left);
  /// One store hides it, unless something came since it began.
  void finish(std::uint32_t queue, std::uint64_t discarded);

 private:
  std::uint64_t count_unfinished(std::uint32_t queue) const;

  Actor& actor_;
  Store& store_;
  std::uint64_t mark_ = 0;  ///< for QueueRecord::deleted
};

}  // namespace ojs_shm::engine
