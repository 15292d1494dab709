// SPDX-License-Identifier: Apache-2.0
#include "engine/store.hpp"

// Who works for a pool, and what there is for them.

namespace ojs_shm::engine {

/// Handles that sit in the pool, and registered workers for whom another process fetches.
Store::PoolCrew Store::pool_crew(std::uint32_t pool) const {
  PoolCrew crew;
  for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
    const shm::Lane& taken = segment_.lane(lane);
    const PoolSeat seat(taken.process.load() != 0 ? taken.counters[kPoolSeat].get_ordered() : 0);
    if (!seat.at(pool)) continue;
    const std::uint64_t concurrency = PoolSeat::Concurrency::get(seat.word);
    ++crew.workers;
    crew.concurrency += concurrency;
    crew.all_declared = crew.all_declared && concurrency != 0;
    crew.laden = crew.laden && PoolSeat::Laden::get(seat.word) != 0;
  }
  const std::uint64_t name = this->pool(pool).name_hash.load();
  for (std::uint32_t place = 0; place < worker_count_; ++place) {
    const WorkerControl control(worker_marks_[place].control.load());
    if (!control.lives()) continue;
    const WorkerRecord& worker = workers_[place];
    if (worker.pool.load() != name || worker.lane.load() != 0) continue;
    const WorkerLoad load(worker.load.load());
    ++crew.workers;
    crew.concurrency += load.most();
    crew.all_declared = crew.all_declared && load.most() != 0;
    crew.laden = crew.laden && load.active() >= load.most();
  }
  return crew;
}

Store::PoolLoad Store::pool_load(std::uint32_t pool, const PoolPlan& plan) const {
  PoolLoad load;
  std::vector<bool> listed(max_queues_, false);
  for (const std::uint32_t queue : plan.queues) listed[queue] = true;
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    const JobRecord& record = job(slot);
    const unsigned state = Control(record.control.load()).state();
    const std::uint32_t q = record.queue.get();
    if (state == kSlotAvailable && q < listed.size() && listed[q]) ++load.waiting;
    if ((state == kSlotActive || state == kSlotSettling) &&
        pool_of_word(record.pool_word.get()) == pool + 1)
      ++load.active;
  }
  return load;
}

}  // namespace ojs_shm::engine
