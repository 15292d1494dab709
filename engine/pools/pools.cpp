// SPDX-License-Identifier: Apache-2.0
#include "engine/pools/pools.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/limits/limit_setter.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/rules/smooth.hpp"
#include "engine/tables/queue_flags.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

/// Whether a removed pool still has workers, or jobs in hand: another in its place would seem to
/// have them.
bool left_behind(const Store& store, std::uint32_t pool) {
  return pool_crew(store, pool).workers != 0 || pool_load(store, pool, {}).active != 0;
}

/// Dispatches in which each queue has one turn of its own, so that none has less than its share of
/// any so many.
std::uint64_t round_of(const PoolSpec& spec) {
  if (!spec.prevents || !(spec.ratio > 0)) return 0;
  return static_cast<std::uint64_t>(std::clamp(
      std::floor(1 / spec.ratio), static_cast<double>(spec.queues.size()), 16'777'215.0));
}

/// The turns among the queues, where the strategy has any.
std::vector<std::uint16_t> cycle_of(const PoolSpec& spec) {
  if (spec.strategy == PoolStrategy::kRoundRobin)
    return smooth_schedule(std::vector<std::uint32_t>(spec.queues.size(), 1));
  return spec.strategy == PoolStrategy::kWeighted ? smooth_schedule(spec.weights)
                                                  : std::vector<std::uint16_t>();
}

/// Where the pool is, or where it can be: in a place that no pool has had, or that a removed pool
/// has left for good. kQueueIsolated: another isolated pool has one of its queues.
Outcome find_place(const Store& store, std::uint64_t hash, const PoolSpec& spec,
                   std::uint32_t& at) {
  at = kNoIndex;
  for (std::uint32_t i = 0; i < kPools; ++i) {
    const std::uint64_t found = store.pools[i].name_hash.load();
    const auto plan = pool_plan(store, i);
    if (found == hash || (at == kNoIndex && !plan && (found == 0 || !left_behind(store, i))))
      at = i;
    if (!plan || found == hash || !(plan->setup.isolated() && spec.isolated)) continue;
    for (const std::uint32_t queue : spec.queues)
      if (std::ranges::find(plan->queues, queue) != plan->queues.end())
        return Outcome::kQueueIsolated;
  }
  return at == kNoIndex ? Outcome::kNoPools : Outcome::kOk;
}

void write_name(PoolRecord& record, std::string_view name, std::uint64_t hash) {
  record.name_length.store(0, Point::kPoolNamed);
  for (Word& counter : record.dispatched) counter.store(0, Point::kPoolNamed);
  shm::copy_in(record.name, name.data(),
               name.size());  // NO CRASH POINT: without its length a name is none
  record.name_hash.store(hash, Point::kPoolNamed);
  record.name_length.store(name.size(), Point::kPoolNamed);  // PAIR pool-name
}

void fill_bank(PoolBank& bank, const PoolSpec& spec, const std::vector<std::uint16_t>& cycle) {
  bank.concurrency.set(spec.concurrency);
  bank.interval_ms.set(spec.interval_ms);
  bank.ratio.set(std::bit_cast<std::uint64_t>(spec.ratio));
  for (std::size_t i = 0; i < spec.queues.size(); i += 4) {
    std::uint64_t four = 0;
    for (std::size_t k = 0; k < 4 && i + k < spec.queues.size(); ++k)
      four |= std::uint64_t{spec.queues[i + k] & 0xFFFF} << (k * 16);
    bank.queue[i / 4].set(four);
  }
  for (std::size_t i = 0; i < cycle.size(); i += 8) {
    std::uint64_t eight = 0;
    for (std::size_t k = 0; k < 8 && i + k < cycle.size(); ++k)
      eight |= std::uint64_t{cycle[i + k]} << (k * 8);
    bank.turn[i / 8].set(eight);
  }
}

/// How many jobs the pool works at, at most.
Outcome set_limit(LimitSetter& limits, std::string_view name, const PoolSpec& spec) {
  const std::string key = std::string(kPoolLimit).append(name);
  const Outcome set =
      spec.concurrency != 0
          ? limits.define(key, {.concurrency = static_cast<std::uint32_t>(spec.concurrency)})
          : limits.clear(key);
  return set == Outcome::kNotFound ? Outcome::kOk : set;
}

/// Of queues that were not watched for starvation until now an interval begins.
void begin_intervals(const Store& store, const PoolSpec& spec, PoolSetup before) {
  const std::uint64_t now = store.now_ms();
  for (const std::uint32_t queue : spec.queues)
    if (Word& served = store.queue(queue).served_at; served.load() == 0 || !before.prevents())
      served.store(now, Point::kCounterMoved);
}

}  // namespace

void recount_backlog(const Store& store, std::uint32_t q) {
  std::uint64_t waiting = 0;
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot)
    if (const JobRecord& job = store.job(slot);
        Control(job.control.load()).state() == kSlotAvailable && job.queue.get() == q &&
        !store.parked(job))
      ++waiting;
  store.backlogs[q].store(waiting, Point::kBacklogCounted);
}

/// One writer at a time changes pools. The repair of a writer that dies ends its change.
/// 1. the name; 2. the bank that is not read; 3. the setup, by one store; 4. the jobs at work,
/// which count for its limit; 5. what queues know of pools, which follows from the setups of all.
Outcome Pools::define(std::string_view name, const PoolSpec& spec, bool& made) {
  const std::vector<std::uint16_t> cycle = cycle_of(spec);
  if (spec.queues.size() > kPoolQueues || cycle.size() > kPoolTurns) return Outcome::kTooLarge;

  if (!seat().take()) return Outcome::kBusy;
  const std::uint64_t hash = Store::hash_name(name);
  std::uint32_t at = kNoIndex;
  Outcome outcome = find_place(store_, hash, spec, at);
  LimitSetter limits(actor_);
  // The limit comes before the pool: a lane that sees the pool sees it.
  if (outcome == Outcome::kOk) outcome = set_limit(limits, name, spec);
  if (outcome != Outcome::kOk) {
    seat().leave();
    return outcome;
  }
  PoolRecord& record = store_.pools[at];
  const PoolSetup before(record.setup.load());
  const auto previous = pool_plan(store_, at);
  made = !before.used();
  if (record.name_hash.load() != hash || pool_name(store_, at) != name)  // 1
    write_name(record, name, hash);
  const unsigned bank_number = before.used() ? 1 - before.bank() : 0;
  fill_bank(record.bank[bank_number], spec, cycle);  // 2
  if (spec.prevents) begin_intervals(store_, spec, before);
  const std::uint64_t setup =
      PoolSetup::Used::put(1) | PoolSetup::Bank::put(bank_number) |
      PoolSetup::Isolated::put(spec.isolated) | PoolSetup::Prevents::put(spec.prevents) |
      PoolSetup::Strategy::put(static_cast<std::uint64_t>(spec.strategy)) |
      PoolSetup::Queues::put(spec.queues.size()) | PoolSetup::Turns::put(cycle.size()) |
      PoolSetup::Round::put(round_of(spec)) |
      PoolSetup::Version::put(PoolSetup::Version::get(before.word) + 1);
  record.setup.store(setup, Point::kPoolSet);  // 3
  const bool counted =                         // 4
      spec.concurrency == 0 || (previous && previous->concurrency != 0) || limits.count_at_work(at);
  settle();                             // 5
  if (!counted) return Outcome::kBusy;  // it stands, and counts what begins from now on

  const bool reweighted =
      spec.strategy == PoolStrategy::kWeighted && previous &&
      (previous->queues != spec.queues ||
       !std::equal(cycle.begin(), cycle.end(), previous->cycle.begin(), previous->cycle.end()));
  if (previous && (reweighted || previous->setup.strategy() != spec.strategy)) {
    record.rebalanced.fetch_add(1, Point::kCounterMoved);
    if (actor_.tellings().on())
      actor_.tellings().rebalanced(at, previous->setup.strategy(), spec.strategy);
  }
  return Outcome::kOk;
}

Outcome Pools::remove(std::string_view name) {
  if (!seat().take()) return Outcome::kBusy;
  const std::uint32_t pool = find_pool(store_, name);
  if (pool != kNoIndex) {
    Word& setup = store_.pools[pool].setup;
    setup.store(PoolSetup::Version::put(PoolSetup::Version::get(setup.load()) + 1),
                Point::kPoolSet);
  }
  settle();
  if (pool == kNoIndex) return Outcome::kNotFound;
  // Last: a limit without a pool bounds no job, and the next pool of that name sets it or clears
  // it.
  const Outcome cleared = LimitSetter(actor_).clear(std::string(kPoolLimit).append(name));
  return cleared == Outcome::kNotFound ? Outcome::kOk : cleared;
}

void Pools::end_change() {
  if (!seat().ours()) return;
  for (std::uint32_t pool = 0; pool < kPools; ++pool)
    if (const auto plan = pool_plan(store_, pool); plan && plan->concurrency != 0)
      LimitSetter(actor_).count_at_work(pool);
  settle();
}

/// The end of every change.
void Pools::settle() {
  follow();
  seat().leave();
}

/// Makes every queue know its isolating pool and whether its jobs are counted, and wakes the
/// workers that this may concern.
void Pools::follow() {
  std::vector<std::uint32_t> isolated(store_.max_queues(), 0);
  std::vector<bool> counted(store_.max_queues(), false), listed(store_.max_queues(), false);
  for (std::uint32_t i = 0; i < kPools; ++i)
    if (const auto plan = pool_plan(store_, i))
      for (const std::uint32_t q : plan->queues) {
        listed[q] = true;
        if (plan->setup.isolated()) isolated[q] = i + 1;
        if (plan->setup.strategy() == PoolStrategy::kLeastLoaded) counted[q] = true;
      }
  for (std::uint32_t q = 0; q < store_.queue_count(); ++q) {
    QueueRecord& queue = store_.queue(q);
    const std::uint64_t wanted = (isolated[q] != 0 ? kIsolated : 0) | (counted[q] ? kCounted : 0);
    const std::uint64_t flags = queue.flags.load();
    const bool moves =
        (flags & (kIsolated | kCounted)) != wanted || queue.isolated.load() != isolated[q];
    queue.isolated.store(isolated[q], Point::kSetChanged);
    if (moves) set_flags(queue, kIsolated | kCounted, wanted);
    if (counted[q] && (flags & kCounted) == 0) recount_backlog(store_, q);
    if (moves || listed[q]) actor_.bell().wake_all(queue);
  }
}

}  // namespace ojs_shm::engine
