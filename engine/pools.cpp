// SPDX-License-Identifier: Apache-2.0
#include "engine/pools.hpp"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>

#include "engine/actor.hpp"
#include "engine/limit_setter.hpp"
#include "engine/look.hpp"
#include "engine/smooth.hpp"

// Pools of workers. A fetch for a pool 1. reads which of its queues may have a job; 2. lets the
// strategy choose one; 3. takes the turn, by one cas on the pool's word, if turns are counted; 4.
// fetches from that queue. When it was empty after all, it chooses again without it. Turns are
// spent before the job is claimed, so workers that look at once get turns of their own; who dies
// between the two has spent a turn, and nothing else.

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

/// Whether a removed pool still has workers, or jobs in hand: another in its place would seem to
/// have them.
bool left_behind(const Store& store, std::uint32_t pool) {
  return store.pool_crew(pool).workers != 0 || store.pool_load(pool, {}).active != 0;
}

/// Dispatches in which each queue has one turn of its own, so that none has less than its share of
/// any so many.
std::uint64_t round_of(const PoolSpec& spec) {
  if (!spec.prevents || !(spec.ratio > 0)) return 0;
  return static_cast<std::uint64_t>(std::clamp(
      std::floor(1 / spec.ratio), static_cast<double>(spec.queues.size()), 16'777'215.0));
}

}  // namespace

void Actor::join_pool(std::uint32_t pool, std::uint32_t concurrency) {
  serve_pool(pool);
  // NO CRASH POINT: a seat means nothing without its lane
  self_.counters[kPoolSeat].set_ordered(
      PoolSeat::Concurrency::put(concurrency) | PoolSeat::Pool::put(pool_), Point::kNone);
}

void Actor::serve_pool(std::uint32_t pool) {
  pool_ = pool + 1;
  pool_name_ = store_.pool(pool).name_hash.load();
  works_for_ = (works_for_ & kForClient) | worker_.word | pool_;
}

void Actor::work_as(WorkerKey worker, bool for_client) {
  worker_ = worker;
  works_for_ = (for_client ? kForClient : 0) | worker.word | pool_;
}

void Actor::seem_laden(bool laden) {
  LaneWord& seat = self_.counters[kPoolSeat];
  const std::uint64_t word = PoolSeat::Laden::with(seat.get(), laden);
  // NO CRASH POINT: as above
  if (word != seat.get()) seat.set_ordered(word, Point::kNone);
}

/// Reads the pool's setup anew if it has changed. False when it was removed.
[[gnu::noinline]] bool Actor::see_pool(std::uint32_t pool) {
  if (!pool_view_) pool_view_ = std::make_unique<PoolView>();
  PoolView& view = *pool_view_;
  PoolRecord& record = store_.pool(pool);
  if (record.name_hash.load() != pool_name_) return false;
  if (view.pool == pool && record.setup.load() == view.setup.word) return view.setup.used();
  auto plan = store_.pool_plan(pool);
  view = PoolView();
  if (!plan) return false;
  view.pool = pool;
  view.setup = plan->setup;
  view.interval_ms = plan->interval_ms;
  for (const std::uint32_t queue : plan->queues)
    view.dispatched.push_back(counter_of(record, queue));
  view.policy = {plan->setup.strategy(), static_cast<unsigned>(plan->queues.size()),
                 std::move(plan->cycle), plan->setup.prevents(), plan->setup.round()};
  for (const std::uint32_t queue : plan->queues) view.backlogs.push_back(&store_.backlog(queue));
  view.queues = std::move(plan->queues);
  take_under(plan->concurrency == 0
                 ? kNoIndex
                 : find_limit(store_, std::string(kPoolLimit).append(store_.pool_name(pool))));
  return true;
}

/// The limit on what this lane's worker takes. A pool may have been given one since its last fetch
/// began: who has claimed a job either sees that here, or its job is seen by LimitSetter::adopt().
std::uint32_t Actor::limit_of_worker() const {
  if (pool_ == 0 || (pool_view_ && pool_view_->pool == pool_ - 1 &&
                     store_.pool(pool_ - 1).setup.load() == pool_view_->setup.word))
    return worker_limit();
  const auto plan = store_.pool_plan(pool_ - 1);
  if (!plan || plan->concurrency == 0 || store_.pool(pool_ - 1).name_hash.load() != pool_name_)
    return kNoIndex;
  return find_limit(store_, std::string(kPoolLimit).append(store_.pool_name(pool_ - 1)));
}

Outcome Actor::fetch_from_pool(std::uint32_t pool, std::uint32_t lease_ms, bool lease_owned,
                               Fetched& out) {
  PoolRecord& record = store_.pool(pool);
  std::bitset<kPoolQueues> tried;
  std::uint64_t seen = 0;
  for (unsigned look = 0; look < kPatience; ++look) {
    if (!see_pool(pool)) return Outcome::kNotFound;
    const PoolView& view = *pool_view_;
    if (view.setup.word != seen) seen = view.setup.word, tried.reset();
    if (worker_limit() != kNoIndex &&
        !may_begin(store_, store_.limit_key(worker_limit()), store_.now_ms()))
      return Outcome::kEmpty;  // before a turn is spent
    const std::uint64_t version = PoolSetup::Version::get(seen);
    const std::uint64_t word = record.turn.load();
    const PoolTurn turn =
        PoolTurn::Version::get(word) == version ? PoolTurn(word) : PoolTurn(version, 0, 0);
    const std::uint64_t now = view.policy.prevents ? store_.now_ms() : 0;
    const Word* const* backlogs = view.backlogs.data();
    const auto choice = view.policy.choose(
        turn,
        [&](unsigned place) {
          const std::uint32_t q = view.queues[place];
          return !tried[place] &&
                 BusyWord::of(store_.busy_word(q).load(), q) != BusyWord::kQuiet;  // PAIR busy
        },
        [&](unsigned place) {
          const std::uint64_t served =
              store_.queue(view.queues[place]).served_at.load() + view.interval_ms;
          return now > served ? now - served : 0;
        },
        // A death may leave it below nothing.
        [backlogs](unsigned place) { return static_cast<std::int64_t>(backlogs[place]->load()); });
    if (choice.place == PoolPolicy::kNobody) return Outcome::kEmpty;
    const std::uint64_t next = PoolTurn(version, choice.done, choice.next).word;
    if (next != word && !record.turn.cas_once(word, next, Point::kPoolTurnTaken)) continue;
    const std::uint32_t q = view.queues[choice.place];
    if (fetch(q, lease_ms, lease_owned, out) == Outcome::kOk) {
      count_served(q, choice.place);
      return Outcome::kOk;
    }
    tried.set(choice.place);
    if (std::uint8_t& passed = found_quiet_[q % found_quiet_.size()];
        ++passed == kPassesBeforeQuiet) {
      passed = 0;
      settle_quiet(q);
    }
  }
  return Outcome::kEmpty;
}

/// Counts for people, and for who is to be served next.
void Actor::count_served(std::uint32_t q, unsigned place) {
  PoolView& view = *pool_view_;
  if (Word* counter = view.dispatched[place]; counter != nullptr)
    counter->fetch_add(1, Point::kCounterMoved);
  if (!view.policy.prevents) return;
  Word& served = store_.queue(q).served_at;
  if (const std::uint64_t now = store_.now_ms(); served.load() < now)
    served.store(now, Point::kCounterMoved);
}

/// After a fetch found nothing: 1. announce it; 2. look, with all that a fetch does; 3. say that
/// the queue is quiet, unless anything in the word has moved. A lane that makes a job available after
/// our look finds the announcement, or what we say then, and takes it back; the look sees a job that
/// was made available before. A queue that is shut is left alone: others may see it. Returns whether
/// it may have a job.
[[gnu::noinline]] bool Actor::settle_quiet(std::uint32_t q) {
  Word& word = store_.busy_word(q);
  std::uint64_t found = word.load_seq_cst();
  if (BusyWord::of(found, q) == BusyWord::kQuiet) return false;
  if (BusyWord::of(found, q) == BusyWord::kBusy) {  // 1
    const std::uint64_t quieting = BusyWord::with(found, q, BusyWord::kQuieting);
    if (!word.cas_once(found, quieting, Point::kBusyCleared)) return true;
    found = quieting;
  }
  // a limit that has no room hides no job for ever
  const bool has_job =
      shut(store_.queue(q), store_.queue(q).flags.load()) || sees_work_past_gates(q);  // 2
  if (has_job) {
    Bell::set_busy(word, q);
    return true;
  }
  word.cas_once(found, BusyWord::with(found, q, BusyWord::kQuiet),
                Point::kBusyCleared);  // 3. PAIR busy
  return false;
}

// ---- changes ------------------------------------------------------------------------------------

/// One writer at a time changes pools; who dies at it is relieved by its repair. 1. the name; 2.
/// the bank that is not read;
/// 3. the setup, by one store; 4. what is at work counts for its limit; 5. what queues know of
///    pools, which follows from the
/// setups of all.
Outcome Actor::set_pool(std::string_view name, const PoolSpec& spec, bool& made) {
  // The limit comes first: who sees the pool sees it.
  const std::string key = std::string(kPoolLimit).append(name);
  const Outcome limited =
      spec.concurrency != 0
          ? set_limit(key, {.concurrency = static_cast<std::uint32_t>(spec.concurrency)})
          : clear_limit(key);
  if (limited != Outcome::kOk && limited != Outcome::kNotFound) return limited;
  const std::vector<std::uint16_t> cycle =
      spec.strategy == PoolStrategy::kRoundRobin
          ? smooth_schedule(std::vector<std::uint32_t>(spec.queues.size(), 1))
      : spec.strategy == PoolStrategy::kWeighted ? smooth_schedule(spec.weights)
                                                 : std::vector<std::uint16_t>();
  if (spec.queues.size() > kPoolQueues || cycle.size() > kPoolTurns) return Outcome::kTooLarge;
  const Seat<Word> seat = settler(store_.header().pools_settler);
  if (!seat.take()) return Outcome::kBusy;
  const auto done = [&](Outcome outcome) {
    seat.leave();
    return outcome;
  };
  const std::uint64_t hash = Store::hash_name(name);
  std::uint32_t at = kNoIndex;
  for (std::uint32_t i = 0; i < kPools; ++i) {
    const std::uint64_t found = store_.pool(i).name_hash.load();
    const auto plan = store_.pool_plan(i);
    if (found == hash || (at == kNoIndex && !plan && (found == 0 || !left_behind(store_, i))))
      at = i;
    if (!plan || found == hash || !(plan->setup.isolated() && spec.isolated)) continue;
    for (const std::uint32_t queue : spec.queues)
      if (std::find(plan->queues.begin(), plan->queues.end(), queue) != plan->queues.end())
        return done(Outcome::kQueueIsolated);
  }
  if (at == kNoIndex) return done(Outcome::kNoPools);
  PoolRecord& record = store_.pool(at);
  const PoolSetup before(record.setup.load());
  made = !before.used();
  const auto previous = store_.pool_plan(at);
  if (record.name_hash.load() != hash || store_.pool_name(at) != name) {  // 1
    record.name_length.store(0, Point::kPoolNamed);
    for (Word& counter : record.dispatched) counter.store(0, Point::kPoolNamed);
    shm::copy_in(record.name, name.data(),
                 name.size());  // NO CRASH POINT: without its length a name is none
    record.name_hash.store(hash, Point::kPoolNamed);
    record.name_length.store(name.size(), Point::kPoolNamed);  // PAIR pool-name
  }
  const unsigned bank_number = before.used() ? 1 - before.bank() : 0;
  PoolBank& bank = record.bank[bank_number];  // 2
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
  if (spec.prevents) {  // an interval begins now
    const std::uint64_t now = store_.now_ms();
    for (const std::uint32_t queue : spec.queues)
      if (Word& served = store_.queue(queue).served_at; served.load() == 0 || !before.prevents())
        served.store(now, Point::kCounterMoved);
  }
  const std::uint64_t setup =
      PoolSetup::Used::put(1) | PoolSetup::Bank::put(bank_number) |
      PoolSetup::Isolated::put(spec.isolated) | PoolSetup::Prevents::put(spec.prevents) |
      PoolSetup::Strategy::put(static_cast<std::uint64_t>(spec.strategy)) |
      PoolSetup::Queues::put(spec.queues.size()) | PoolSetup::Turns::put(cycle.size()) |
      PoolSetup::Round::put(round_of(spec)) |
      PoolSetup::Version::put(PoolSetup::Version::get(before.word) + 1);
  record.setup.store(setup, Point::kPoolSet);  // 3
  const bool counted =                         // 4
      spec.concurrency == 0 || (previous && previous->concurrency != 0) ||
      LimitSetter{*this, store_}.count_at_work(at);
  settle_pools();                       // 5
  if (!counted) return Outcome::kBusy;  // it stands, and counts what begins from now on
  const bool reweighted =
      spec.strategy == PoolStrategy::kWeighted && previous &&
      (previous->queues != spec.queues ||
       !std::equal(cycle.begin(), cycle.end(), previous->cycle.begin(), previous->cycle.end()));
  if (previous && (reweighted || previous->setup.strategy() != spec.strategy)) {
    record.rebalanced.fetch_add(1, Point::kCounterMoved);
    if (tellings_.on()) tellings_.rebalanced(at, previous->setup.strategy(), spec.strategy);
  }
  return Outcome::kOk;
}

Outcome Actor::remove_pool(std::string_view name) {
  if (!settler(store_.header().pools_settler).take()) return Outcome::kBusy;
  const std::uint32_t pool = store_.find_pool(name);
  if (pool != kNoIndex) {
    Word& setup = store_.pool(pool).setup;
    setup.store(PoolSetup::Version::put(PoolSetup::Version::get(setup.load()) + 1),
                Point::kPoolSet);
  }
  settle_pools();
  if (pool == kNoIndex) return Outcome::kNotFound;
  // Last: a limit without a pool bounds no job, and the next pool of that name sets it or clears
  // it.
  const Outcome cleared = clear_limit(std::string(kPoolLimit).append(name));
  return cleared == Outcome::kNotFound ? Outcome::kOk : cleared;
}

void Actor::recount_backlog(std::uint32_t q) {
  std::uint64_t waiting = 0;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
    if (const JobRecord& job = store_.job(slot);
        Control(job.control.load()).state() == kSlotAvailable && job.queue.get() == q)
      ++waiting;
  store_.backlog(q).store(waiting, Point::kBacklogCounted);
}

/// The end of every change, and what a repair does after one that was cut off.
void Actor::settle_pools() {
  follow_pools();
  settler(store_.header().pools_settler).leave();
}

/// Makes every queue know whose it is and whether it is counted, and wakes who may be concerned.
void Actor::follow_pools() {
  std::vector<std::uint32_t> isolated(store_.max_queues(), 0);
  std::vector<bool> counted(store_.max_queues(), false), listed(store_.max_queues(), false);
  for (std::uint32_t i = 0; i < kPools; ++i)
    if (const auto plan = store_.pool_plan(i))
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
    if (counted[q] && (flags & kCounted) == 0) recount_backlog(q);
    if (moves || listed[q]) bell_.wake_all(queue);
  }
}

}  // namespace ojs_shm::engine
