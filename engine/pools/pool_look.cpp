// SPDX-License-Identifier: Apache-2.0
#include "engine/pools/pool_look.hpp"

#include <algorithm>
#include <bit>

#include "engine/tables/lane_counters.hpp"

namespace ojs_shm::engine {

std::uint32_t find_pool(const Store& store, std::string_view name) {
  return find_pool(store, Store::hash_name(name));
}

std::uint32_t find_pool(const Store& store, std::uint64_t hash) {
  for (std::uint32_t i = 0; i < kPools; ++i)
    if (store.pools[i].name_hash.load() == hash)
      return PoolSetup(store.pools[i].setup.load()).used() ? i : kNoIndex;
  return kNoIndex;
}

std::string pool_name(const Store& store, std::uint32_t i) {
  const PoolRecord& record = store.pools[i];
  std::string name(std::min<std::uint64_t>(record.name_length.load(), sizeof record.name),
                   '\0');  // PAIR pool-name
  shm::copy_out(name.data(), record.name, name.size());
  return name;
}

std::optional<PoolPlan> pool_plan(const Store& store, std::uint32_t i) {
  const PoolRecord& record = store.pools[i];
  for (unsigned look = 0; look < 1024; ++look) {
    PoolPlan plan;
    plan.setup = PoolSetup(record.setup.load());
    if (!plan.setup.used()) return std::nullopt;
    const PoolBank& bank = record.bank[plan.setup.bank()];
    plan.concurrency = bank.concurrency.get();
    plan.interval_ms = bank.interval_ms.get();
    plan.ratio = std::bit_cast<double>(bank.ratio.get());
    for (unsigned place = 0; place < plan.setup.queues(); ++place)
      plan.queues.push_back(
          static_cast<std::uint16_t>(bank.queue[place / 4].get() >> (place % 4 * 16)));
    for (unsigned turn = 0; turn < plan.setup.turns(); ++turn)
      plan.cycle.push_back(static_cast<std::uint8_t>(bank.turn[turn / 8].get() >> (turn % 8 * 8)));
    if (record.setup.load() != plan.setup.word) continue;
    // What a stranger wrote leads to another queue, never outside.
    for (std::uint32_t& queue : plan.queues) queue = queue < store.max_queues() ? queue : 0;
    for (std::uint8_t& place : plan.cycle) place = place < plan.queues.size() ? place : 0;
    if (plan.queues.empty()) plan.cycle.clear();
    return plan;
  }
  return std::nullopt;
}

/// Handles that sit in the pool, and registered workers for whom another process fetches.
PoolCrew pool_crew(const Store& store, std::uint32_t pool) {
  PoolCrew crew;
  for (std::uint32_t lane = 0; lane < store.lanes(); ++lane) {
    const shm::Lane& taken = store.segment().lane(lane);
    const PoolSeat seat(taken.process.load() != 0 ? taken.counters[kPoolSeat].get_ordered() : 0);
    if (!seat.at(pool)) continue;
    const std::uint64_t concurrency = PoolSeat::Concurrency::get(seat.word);
    ++crew.workers;
    crew.concurrency += concurrency;
    crew.all_declared = crew.all_declared && concurrency != 0;
    crew.full = crew.full && PoolSeat::Full::get(seat.word) != 0;
  }
  const std::uint64_t name = store.pools[pool].name_hash.load();
  for (std::uint32_t place = 0; place < store.workers.size(); ++place) {
    const WorkerControl control(store.worker_marks[place].control.load());
    if (!control.lives()) continue;
    const WorkerRecord& worker = store.workers[place];
    if (worker.pool.load() != name || worker.lane.load() != 0) continue;
    const WorkerLoad load(worker.load.load());
    ++crew.workers;
    crew.concurrency += load.most();
    crew.all_declared = crew.all_declared && load.most() != 0;
    crew.full = crew.full && load.active() >= load.most();
  }
  return crew;
}

PoolLoad pool_load(const Store& store, std::uint32_t pool, const PoolPlan& plan) {
  PoolLoad load;
  std::vector<bool> listed(store.max_queues(), false);
  for (const std::uint32_t queue : plan.queues) listed[queue] = true;
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& record = store.job(slot);
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
