// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/limits/limits.hpp"
#include "engine/moves/moves.hpp"
#include "engine/moves/places.hpp"
#include "engine/observing/recorder.hpp"
#include "engine/observing/tellings.hpp"
#include "engine/tables/prefetch.hpp"
#include "engine/unique/unique.hpp"
#include "engine/workflows/workflow.hpp"

namespace ojs_shm::engine {

/// The one way to move a job, by the rows of moves.hpp: hold() takes its slot exclusively, the
/// caller writes the record, land() does the rest and stores the word that makes it so. Killed
/// before the intent names that word, the move has not happened; killed after it, it has.
class Mover : protected Places {
 protected:
  Mover(Store& store, std::uint32_t lane);
  ~Mover() = default;

  // ---- holding
  /// Takes a slot that was seen as `before`. False: it has changed, or the event cannot happen to
  /// it.
  bool hold(Event event, std::uint32_t slot, Control before, Control& held);
  /// Of a job that this lane has claimed and that will not begin.
  Control hold_claimed(std::uint32_t slot, Control claimed);
  /// Says again what is done to a slot that this lane holds already, and what it was before.
  void hold_on(Op op, std::uint32_t slot, unsigned before);
  template <Op kOp>
  OJS_SHM_INLINE void hold_on(std::uint32_t slot, unsigned before) {
    const std::uint32_t q = store_.job(slot).queue.get();
    intend<kOp>(q, slot, tally(q));
    intend_back_to(before);
  }

  // ---- landing
  /// `now`: 0 when nothing has happened to the job, so nothing is told. `key`: the limit's key, if
  /// a limit holds it back.
  void land(const Move& move, std::uint32_t slot, JobRecord& job, Control held, std::uint64_t now,
            std::uint32_t key = 0);
  /// Of an event that can happen to what was `before`.
  void land(Event event, unsigned before, std::uint32_t slot, JobRecord& job, Control held,
            std::uint64_t now, std::uint32_t key = 0) {
    land(*move_of(event, before), slot, job, held, now, key);
  }
  /// To the state from which the lane took it.
  void put_back(std::uint32_t slot, JobRecord& job, Control held, unsigned before);
  /// A dead letter goes for good.
  /// `told`: the event that says so.
  void drop_held(std::uint32_t slot, Control held, EventKind told = EventKind::kNone);
  /// The end of an acknowledged job.
  void finish(std::uint32_t slot, JobRecord& job, Control held);
  /// Pushes the hints of a waiting job again, or lists a finished one.
  void republish(std::uint32_t slot);
  void list_ended(std::uint32_t slot, Control settled, const Kept& kept);

  // ---- charges
  QueueTally& tally(std::uint32_t queue) {
    return tallies_[std::size_t{queue < store_.max_queues() ? queue : 0} * store_.lanes()];
  }
  void charge_return(QueueRecord& queue, std::uint32_t q, std::uint64_t cost);
  void charge_return(std::uint32_t q, JobRecord& job);
  void charge_leaving(std::uint32_t slot, JobRecord& job);
  /// Available jobs of a queue that is counted have become more, or fewer.
  OJS_SHM_INLINE void count_backlog(QueueRecord& queue, std::uint64_t change) {
    if ((queue.flags.load() & kCounted) != 0) [[unlikely]]
      store_.backlogs[store_.number_of(queue)].fetch_add(change, shm::Point::kBacklogCounted);
  }
  OJS_SHM_INLINE bool limiting() const { return store_.header().limiting.load_seq_cst() != 0; }

  QueueTally* tallies_;  ///< of this lane in the first queue; those of the next are lanes() further
  Recorder recorder_;
  Tellings tellings_;

  /// A door to what limits do when a job of these keys has moved.
  virtual void let_begin(const LimitList& keys, std::uint32_t queue) = 0;

 private:
  void tell(const Move& move, const JobRecord& job, Control to, std::uint64_t now,
            std::uint32_t key);

  // ---- doors to what options do when a job moves
  virtual LimitList give_limits(std::uint32_t slot, JobRecord& job, bool held) = 0;
  virtual void room_made(QueueRecord& queue, std::uint32_t q) = 0;
  virtual void mark_member(const Membership& member, bool failed, std::uint64_t ran_ms) = 0;
  virtual void advance_workflow(const Membership& member) = 0;
};

}  // namespace ojs_shm::engine
