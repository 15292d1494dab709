// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

/// What a lane rings when a sleeper may go on: a sleeping worker, a producer that waits for room or
/// for a job's end, the supervisor. A ring decides nothing: the sleeper looks for itself.
class Bell {
 public:
  explicit Bell(const Store& store) : store_(store) {}

  // ---- workers
  /// Says that the queue may have a job, and wakes one worker that sleeps for a job of it. False:
  /// none sleeps.
  bool wake_one(QueueRecord& queue) const { return wake_one(queue, store_.number_of(queue)); }
  bool wake_one(QueueRecord& queue, std::uint32_t number) const;
  void wake_all(QueueRecord& queue) const;
  /// Says that the queue may have a job, before the lane that made one available is done.
  OJS_SHM_INLINE void mark_busy(std::uint32_t queue) const {
    Word& word = store_.busy_word(queue);
    if (BusyWord::of(word.load_seq_cst(), queue) != BusyWord::kBusy) [[unlikely]]  // PAIR busy
      set_busy(word, queue);
  }
  static void set_busy(Word& word, std::uint32_t queue);

  // ---- producers
  /// Wakes all threads that sleep on the lane with that owner's number.
  void call(std::uint32_t owner) const;
  /// Wakes all that wait for the end of the job in the slot.
  void ring_completion(std::uint32_t slot) const;
  /// Wakes all that wait for the end of any job: a dead lane may have ended a job without a ring.
  void ring_completions() const;

  // ---- listeners
  /// Wakes the lanes that sleep until an event is told.
  void ring_listeners() const;

  // ---- the supervisor
  void ring_supervisor() const;
  /// Rings if it would sleep beyond that time, Unix ms.
  OJS_SHM_INLINE void ring_supervisor_for(std::uint64_t at) const {
    if (at < store_.segment().header().sleeping_until_ms.load_seq_cst()) ring_supervisor();
  }

 private:
  using Sleepers = Word[shm::kMaxLanes / 64];
  bool wake_among(QueueRecord& queue, std::uint32_t word) const;
  void wake_every(Sleepers& sleepers) const;

  const Store& store_;
};

}  // namespace ojs_shm::engine
