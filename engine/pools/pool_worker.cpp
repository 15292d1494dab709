// SPDX-License-Identifier: Apache-2.0
#include "engine/pools/pool_worker.hpp"

#include <string>
#include <utility>

#include "engine/limits/limits.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/tables/lane_counters.hpp"
#include "engine/tables/patience.hpp"

// A fetch for a pool 1. reads which of its queues may have a job; 2. lets the strategy choose one;
// 3. takes the turn, by one cas on the pool's word, if turns are counted; 4. fetches from that
// queue. When it was empty after all, it chooses again without it. Turns are spent before the job
// is claimed, so workers that look at once get turns of their own; a worker that dies between the
// two has spent a turn, and nothing else.

namespace ojs_shm::engine {

using shm::Point;

namespace {

/// The pool's counter of jobs of one queue, made if need be.
Word* counter_of(PoolRecord& record, std::uint32_t queue) {
  using Queue = shm::Field<52, 12>;
  for (unsigned i = 0; i < kPoolQueues; ++i) {
    Word& word = record.dispatched[(queue + i) % kPoolQueues];
    std::uint64_t found = word.load();
    if (found == 0 && word.cas(found, Queue::put(queue + 1), Point::kPoolNamed)) return &word;
    if (Queue::get(found) == ((queue + 1) & Queue::kMax)) return &word;
  }
  return nullptr;
}

}  // namespace

PoolWorker::PoolWorker(const Store& store, shm::Lane& self) : store_(store), self_(self) {
  // at once, for workers that fetch once and go
  passed_.fill(kPassesBeforeQuiet - 1);
  // NO CRASH POINT: a seat means nothing without its lane
  self_.counters[kPoolSeat].set_ordered(0, Point::kNone);
}

void PoolWorker::join(std::uint32_t pool, std::uint32_t concurrency) {
  work_for(pool);
  // NO CRASH POINT: as above
  self_.counters[kPoolSeat].set_ordered(
      PoolSeat::Concurrency::put(concurrency) | PoolSeat::Pool::put(pool_), Point::kNone);
}

void PoolWorker::serve(std::uint32_t pool) {
  work_for(pool);
  leave();
}

void PoolWorker::work_for(std::uint32_t pool) {
  pool_ = pool + 1;
  pool_name_ = store_.pools[pool].name_hash.load();
  works_for_ = works_for_ - pool_of_word(works_for_) + pool_;
}

void PoolWorker::leave() {
  LaneWord& seat = self_.counters[kPoolSeat];
  // NO CRASH POINT: as above
  if (seat.get() != 0) seat.set_ordered(0, Point::kNone);
}

void PoolWorker::leave_if_gone() {
  if (pool_ != 0 && !see_pool()) leave();
}

void PoolWorker::work_as(WorkerKey worker, bool for_client) {
  works_for_ = (for_client ? kForClient : 0) | worker.word | pool_;
}

void PoolWorker::report_full(bool full) {
  LaneWord& seat = self_.counters[kPoolSeat];
  const std::uint64_t word = PoolSeat::Full::with(seat.get(), full);
  // NO CRASH POINT: as above
  if (word != seat.get()) seat.set_ordered(word, Point::kNone);
}

/// Reads the pool's setup anew if it has changed. False when it was removed.
[[gnu::noinline]] bool PoolWorker::see_pool() {
  const std::uint32_t pool = pool_ - 1;
  PoolRecord& record = store_.pools[pool];
  if (record.name_hash.load() != pool_name_) return false;
  if (view_.pool == pool && record.setup.load() == view_.setup.word) return view_.setup.used();
  auto plan = pool_plan(store_, pool);
  view_ = View();
  if (!plan) return false;
  view_.pool = pool;
  view_.setup = plan->setup;
  view_.interval_ms = plan->interval_ms;
  for (const std::uint32_t queue : plan->queues)
    view_.dispatched.push_back(counter_of(record, queue));
  view_.policy = {plan->setup.strategy(), static_cast<unsigned>(plan->queues.size()),
                  std::move(plan->cycle), plan->setup.prevents(), plan->setup.round()};
  for (const std::uint32_t queue : plan->queues) view_.backlogs.push_back(&store_.backlogs[queue]);
  view_.queues = std::move(plan->queues);
  limit_ = plan->concurrency == 0 ? kNoIndex : key_of_pool();
  return true;
}

std::uint32_t PoolWorker::key_of_pool() const {
  return find_limit(store_, std::string(kPoolLimit).append(pool_name(store_, pool_ - 1)));
}

/// A pool may have been given a limit since this lane's last fetch began: a lane that has claimed a
/// job either sees the limit here, or LimitSetter::adopt() sees its job.
std::uint32_t PoolWorker::limit_now() const {
  if (pool_ == 0 ||
      (view_.pool == pool_ - 1 && store_.pools[pool_ - 1].setup.load() == view_.setup.word))
    return limit_;
  const auto plan = pool_plan(store_, pool_ - 1);
  if (!plan || plan->concurrency == 0 || store_.pools[pool_ - 1].name_hash.load() != pool_name_)
    return kNoIndex;
  return key_of_pool();
}

Outcome PoolWorker::choose(PoolTour& tour, std::uint32_t& queue) {
  PoolRecord& record = store_.pools[pool_ - 1];
  while (tour.looks++ < kPatience) {
    if (!see_pool()) return Outcome::kNotFound;
    if (view_.setup.word != tour.setup) tour.setup = view_.setup.word, tour.tried.reset();
    if (limit_ != kNoIndex && !may_begin(store_, store_.limit_keys[limit_], store_.now_ms()))
      return Outcome::kEmpty;  // before a turn is spent
    const std::uint64_t version = PoolSetup::Version::get(tour.setup);
    const std::uint64_t word = record.turn.load();
    const PoolTurn turn =
        PoolTurn::Version::get(word) == version ? PoolTurn(word) : PoolTurn(version, 0, 0);
    const std::uint64_t now = view_.policy.prevents ? store_.now_ms() : 0;
    const Word* const* backlogs = view_.backlogs.data();
    const auto choice = view_.policy.choose(
        turn,
        [&](unsigned place) {
          const std::uint32_t q = view_.queues[place];
          return !tour.tried[place] &&
                 BusyWord::of(store_.busy_word(q).load(), q) != BusyWord::kQuiet;  // PAIR busy
        },
        [&](unsigned place) {
          const std::uint64_t served =
              store_.queue(view_.queues[place]).served_at.load() + view_.interval_ms;
          return now > served ? now - served : 0;
        },
        // A death may leave it below nothing.
        [backlogs](unsigned place) { return static_cast<std::int64_t>(backlogs[place]->load()); });
    if (choice.place == PoolPolicy::kNoPlace) return Outcome::kEmpty;
    const std::uint64_t next = PoolTurn(version, choice.done, choice.next).word;
    if (next != word && !record.turn.cas_once(word, next, Point::kPoolTurnTaken)) continue;
    if (word != tour.turn_now) tour.turn_before = word;
    tour.turn_now = next;
    tour.place = choice.place;
    queue = view_.queues[choice.place];
    return Outcome::kOk;
  }
  return Outcome::kEmpty;
}

void PoolWorker::give_turns_back(const PoolTour& tour) {
  if (tour.turn_now == tour.turn_before) return;
  store_.pools[pool_ - 1].turn.cas_once(tour.turn_now, tour.turn_before, Point::kPoolTurnTaken);
}

void PoolWorker::count_served(const PoolTour& tour) {
  if (Word* counter = view_.dispatched[tour.place]; counter != nullptr)
    counter->fetch_add(1, Point::kCounterMoved);
  if (!view_.policy.prevents) return;
  Word& served = store_.queue(view_.queues[tour.place]).served_at;
  if (const std::uint64_t now = store_.now_ms(); served.load() < now)
    served.store(now, Point::kCounterMoved);
}

bool PoolWorker::passed(PoolTour& tour) {
  tour.tried.set(tour.place);
  std::uint8_t& times = passed_[view_.queues[tour.place] % passed_.size()];
  if (++times != kPassesBeforeQuiet) return false;
  times = 0;
  return true;
}

}  // namespace ojs_shm::engine
