// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "engine/tables/new_job.hpp"
#include "engine/tables/store.hpp"
#include "engine/workers/worker_record.hpp"

namespace ojs_shm::engine {

/// The queues of its pool at which one fetch has looked.
struct PoolTour {
  std::uint64_t setup = 0;  ///< the pool's, under which they were tried
  std::bitset<kPoolQueues> tried;
  unsigned looks = 0;
  unsigned place = 0;                           ///< of the last one
  std::uint64_t turn_before = 0, turn_now = 0;  ///< the pool's, around the turns that it has taken
};

/// A lane as a worker: for whom it takes jobs, at which queue of its pool it looks next, and under
/// which limit it takes them.
class PoolWorker {
 public:
  PoolWorker(const Store& store, shm::Lane& self);

  // ---- for whom
  /// From now on this lane works for the pool: also its isolated queues have jobs for it.
  void join(std::uint32_t pool, std::uint32_t concurrency);
  void serve(std::uint32_t pool);  ///< without a seat, to look in the name of a worker
  /// A pool that was removed has this lane for a worker no longer.
  void leave_if_gone();
  void work_as(WorkerKey worker, bool for_client = false);  ///< for whom it takes from now on
  /// What this worker has in hand has become as much as it may have, or less.
  void report_full(bool full);
  /// Whether an isolated queue is that of its pool.
  bool owns(const QueueRecord& queue) const { return queue.isolated.load() == pool_; }
  std::uint32_t pool_word() const { return works_for_; }  ///< for JobRecord::pool_word

  // ---- whose turn it is
  /// The queue at which the fetch looks next; kEmpty: none has a job; kNotFound: the pool is gone.
  Outcome choose(PoolTour& tour, std::uint32_t& queue);
  /// Nothing was found for which turns are to be spent, unless others have moved on meanwhile.
  void give_turns_back(const PoolTour& tour);
  /// The chosen queue had a job: counts it for monitors, and for the choice of the next queue.
  void count_served(const PoolTour& tour);
  /// It had none. Whether that has been so often enough to ask if the queue is quiet.
  bool passed(PoolTour& tour);

  // ---- the limit
  /// The key on what this lane takes, as it was when a fetch last chose, or kNoIndex.
  std::uint32_t limit() const { return limit_; }
  /// The same as it stands now.
  std::uint32_t limit_now() const;

 private:
  /// The pool as its setup was when it was last read.
  struct View {
    std::uint32_t pool = kNoIndex;
    PoolSetup setup{0};
    PoolPolicy policy;
    std::uint64_t interval_ms = 0;
    std::vector<std::uint32_t> queues;
    std::vector<Word*> dispatched;      ///< counters, by place; null when the pool has none left
    std::vector<const Word*> backlogs;  ///< by place: a fetch may look at all of them
  };
  void work_for(std::uint32_t pool);
  void leave();
  bool see_pool();
  std::uint32_t key_of_pool() const;

  const Store& store_;
  shm::Lane& self_;
  std::uint32_t pool_ = 0;       ///< plus one; 0: none
  std::uint32_t works_for_ = 0;  ///< worker and pool
  std::uint32_t limit_ = kNoIndex;
  std::uint64_t pool_name_ = 0;  ///< its hash: another may stand in its place
  View view_;
  static constexpr std::uint8_t kPassesBeforeQuiet = 8;
  std::array<std::uint8_t, 64> passed_{};  ///< by queue: fetches that found nothing
};

}  // namespace ojs_shm::engine
