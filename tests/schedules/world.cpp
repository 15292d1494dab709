// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/world.hpp"
#include "engine/supervision/repairer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

#include "engine/limits/limit_setter.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/pools/pools.hpp"
#include "engine/straight/fetch_batch.hpp"
#include "engine/supervision/supervisor.hpp"
#include "engine/tables/hint_lives.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/make.hpp"
#include "tests/schedules/fibers.hpp"

namespace ojs_shm::test {

using engine::Outcome;

namespace {
constexpr std::uint64_t kNow = 1'750'000'000'000;  ///< ms
constexpr std::uint64_t kSalt = 0x0123'4567'89AB'CDEF;
}  // namespace

/// Nothing in it is drawn, and its clock stands: a schedule that is played again is the same to the
/// last access.
World::World(bool one_clock, std::uint32_t slots) : one_clock_(one_clock) {
  engine::Plan plan;
  plan.slots = slots;
  plan.max_queues = 4;
  plan.max_handles = kLanes;
  plan.max_tenants = 8;
  plan.max_body_bytes = 512;
  plan.size_bytes = 1024U << 10;
  shm::Opened opened = engine::make(folder_ / "world", plan);
  if (opened.code != shm::OpenCode::kOk) throw std::runtime_error("world: " + opened.detail);
  segment_ = std::move(opened.segment);
  segment_.header().salt = kSalt;
  // NO CRASH POINT: no other is there yet
  segment_.header().clock_offset_ms.store(shm::kStandingClock | kNow, shm::Point::kNone);
  segment_.process(0).live.store(1, shm::Point::kNone);  // NO CRASH POINT: as above
  segment_.header().lanes_high.store(kLanes, shm::Point::kNone);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane)
    segment_.lane(lane).process.store(1, shm::Point::kNone);
  store_ = std::make_unique<engine::Store>(segment_);
  // Where tags have three bits beside those that count moves, they wrap in the middle of a job's
  // life.
  for (std::uint32_t slot = 0; slot < store_->slots(); ++slot)
    // NO CRASH POINT: as above
    store_->job(slot).control.store(
        shm::Control(engine::kSlotFree, 0, 0, (3 + slot % 4) * shm::Control::kTransition).word,
        shm::Point::kNone);
  engine::Actor(*store_, kJanitor).ensure_queue("q");
  pages_ = std::make_unique<WorldPages>(&segment_.header(), segment_.size());
  for (unsigned job = 0; job < kJobs; ++job)  // some have no room in a slot
    texts_.push_back("[" + std::to_string(job) +
                     std::string(job % 4 == 1 && job > 5 ? 200 : 0, ' ') + "]");
}

void World::begin_anew() {
  pages_->begin_anew();
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    actors_[lane] = std::make_unique<engine::Actor>(*store_, lane);
    held_[lane] = engine::Fetched{};
    held_[lane].body = &bodies_[lane];
    holds_[lane] = 0;
  }
  books_.assign(kJobs, Books{});
  empties_.clear();
  max_depth_ = returned_ = tenant_depth_ = 0;
  tenants_counted_ = false;
  dropping_ = blocking_ = false;
  std::fill(std::begin(places_), std::end(places_), Place{});
  turns_ = shares_ = across_ = false;
  shardings_.assign(1, Sharding{});
  crossed_ = false;
  limit_ = 0;
  limited_since_ = 0;
  limited_.clear();
  rate_ = given_back_ = brought_ = accepted_ = unique_accepted_ = 0;
  unique_.clear();
  replaced_ = false;
  tells_ = workflow_ = false;
  std::fill(std::begin(works_), std::end(works_), false);
  pool_queues_ = 0;
  std::fill(std::begin(asleep_), std::end(asleep_), false);
  std::fill(std::begin(beaten_), std::end(beaten_), false);
  std::fill(std::begin(serves_), std::end(serves_), false);
  dead_.clear();
  batches_.clear();
  cron_jobs_.clear();
  registered_ = ends_workers_ = false;
  std::fill(std::begin(shares_taken_), std::end(shares_taken_), 0);
  for (auto* called : {&queues_, &types_, &tenants_}) called->clear();
  wrong_.clear();
}

engine::NewJob World::job_named(unsigned job, std::uint8_t rank) {
  engine::NewJob spec;
  spec.type = "t";
  spec.args = texts_[job];
  spec.rank = rank;
  spec.retry.jitter = false;
  spec.queue = pool_queues_ == 2 && rank == 3 ? 1 : 0;
  return spec;
}

unsigned World::number_of(const engine::Fetched& fetched) const {
  const std::string_view args =
      std::string_view(*fetched.body).substr(fetched.type_length, fetched.args_length);
  const auto found = std::find(texts_.begin(), texts_.end(), args);
  return static_cast<unsigned>(found - texts_.begin());
}

void World::put(std::uint32_t self, unsigned job, std::uint8_t rank) {
  put(self, job, job_named(job, rank));
}

void World::put_for(std::uint32_t self, unsigned job, std::uint8_t rank, unsigned tenant) {
  engine::NewJob spec = job_named(job, rank);
  spec.tenant = tenant;
  books_[job].tenant = tenant;
  put(self, job, spec);
}

void World::put_rated(std::uint32_t self, unsigned job, std::uint8_t rank, unsigned rate) {
  engine::NewJob spec = job_named(job, rank);
  spec.age_rate = static_cast<std::uint8_t>(rate);
  put(self, job, spec);
}

void World::put(std::uint32_t self, unsigned job, const engine::NewJob& spec) {
  Books& books = books_[job];
  books.rank = spec.rank;
  books.put_by = self;
  books.put_called = Fibers::now();
  const Outcome outcome = actor(self).enqueue(spec, books.id);
  if (outcome == Outcome::kOk)
    let_in(self, job);
  else if ((outcome != Outcome::kQueueFull || (max_depth_ == 0 && tenant_depth_ == 0)) &&
           (outcome != Outcome::kBusy || (!dropping_ && tenant_depth_ == 0)) && !no_slot(outcome))
    wrong_ += "an enqueue was refused; ";
  if (outcome == Outcome::kQueueFull && dropping_) note_a_refused_drop();
}

/// What it had in its hands stands in front again; one that fetched meanwhile has passed it over.
void World::note_a_refused_drop() {
  for (Books& books : books_) {
    const std::uint32_t slot =
        books.put_returned == 0 ? shm::kNoIndex : engine::find_job(*store_, books.id);
    if (slot == shm::kNoIndex) continue;
    const engine::Control control(store_->job(slot).control.load());
    if (control.state() == engine::kSlotAvailable && control.ring() % 2 == 0)
      books.passed_over = true;
  }
}

void World::put_limited(std::uint32_t self, unsigned job, std::uint8_t rank) {
  engine::NewJob spec = job_named(job, rank);
  spec.limit = static_cast<std::uint16_t>(engine::find_limit(*store_, "k") + 1);
  limited_.push_back(job);
  put(self, job, spec);
}

void World::limit(std::uint32_t concurrency, std::uint32_t self) {
  engine::LimitSettings settings;
  settings.concurrency = limit_ = concurrency;
  limited_since_ = ~0ULL;
  if (engine::LimitSetter(actor(self)).define("k", settings) != Outcome::kOk)
    wrong_ += "the limit was refused; ";
  limited_since_ = Fibers::now();
}

void World::name_limit() {
  if (engine::LimitSetter(actor(kJanitor)).define("k", {}) != Outcome::kOk)
    wrong_ += "the key was refused; ";
}

/// Only a sweep that was killed keeps it out for as long as it tries.
void World::put_brought(std::uint32_t self, unsigned job, std::uint8_t rank) {
  engine::NewJob spec = job_named(job, rank);
  Books& books = books_[job];
  books.rank = rank, books.put_by = self, books.put_called = Fibers::now();
  Outcome outcome = Outcome::kLimitsMoved;
  for (unsigned i = 0; i < 4 && outcome == Outcome::kLimitsMoved; ++i) {
    std::uint32_t key = engine::kNoIndex;
    spec.limits_turn = engine::limits_turn(*store_);
    if (engine::LimitSetter(actor(self)).bring("b", {.concurrency = 2}, key) != Outcome::kOk)
      continue;
    spec.limit = static_cast<std::uint16_t>(key + 1);
    outcome = actor(self).enqueue(spec, books.id);
  }
  if (outcome == Outcome::kOk) return let_in(self, job);
  if (outcome != Outcome::kLimitsMoved) wrong_ += "an enqueue under a key was refused; ";
}

void World::give_keys_up(std::uint32_t self) {
  engine::LimitSetter setter(actor(self));
  if (!setter.begin()) return;
  setter.sweep({});
  setter.end();
}

bool World::limited(unsigned job) const {
  return std::find(limited_.begin(), limited_.end(), job) != limited_.end();
}

/// From the return of its fetch to the call of its end, or to its holder's death, a job is surely
/// at work. What is fetched after the limit was set finds room under it.
void World::count_work(std::uint32_t self, bool works) {
  works_[self] = works && holds_[self] != 0 && limited(static_cast<unsigned>(holds_[self] - 1));
  if (limit_ == 0 || !works_[self]) return;
  const auto at_work = std::count(std::begin(works_), std::end(works_), true);
  const bool after =
      books_[static_cast<unsigned>(holds_[self] - 1)].takes.back().called >= limited_since_;
  if (after && at_work > limit_) wrong_ += std::to_string(at_work) + " of a key were at work; ";
}

void World::put_batch(std::uint32_t self, unsigned first, std::uint8_t rank) {
  batches_.push_back(first);
  const engine::NewJob jobs[] = {job_named(first, rank), job_named(first + 1, rank)};
  for (unsigned i = 0; i < 2; ++i) {
    books_[first + i].rank = rank;
    books_[first + i].put_by = self;
    books_[first + i].put_called = Fibers::now();
  }
  std::vector<engine::JobId> ids;
  if (const Outcome outcome = actor(self).enqueue_batch(jobs, ids); outcome != Outcome::kOk) {
    if ((outcome != Outcome::kQueueFull || max_depth_ == 0) &&
        (outcome != Outcome::kBusy || !dropping_) && !no_slot(outcome))
      wrong_ += "a batch was refused; ";
    if (outcome == Outcome::kQueueFull && dropping_) note_a_refused_drop();
    return;
  }
  for (unsigned i = 0; i < 2; ++i) {
    books_[first + i].id = ids[i];
    books_[first + i].put_returned = Fibers::now();
  }
}

namespace {
constexpr engine::JobId kBrought{0x0199'0000'0000'7000, 0x8000'0000'0000'0001};
}

void World::bring(unsigned job) {
  Books& books = books_[job];
  books.rank = 3;
  books.put_called = Fibers::now();
  engine::NewJob spec = job_named(job, books.rank);
  spec.id = kBrought;
  if (actor(kJanitor).enqueue(spec, books.id) != Outcome::kOk)
    wrong_ += "a brought id was refused; ";
  books.put_returned = Fibers::now();
}

void World::bring_beside(std::uint32_t self, unsigned job) {
  constexpr engine::JobId kBesideAnother{kBrought.hi, kBrought.lo + 1};
  engine::NewJob spec = job_named(job, 1);
  spec.id = kBesideAnother;
  Books& books = books_[job];
  books.rank = 1, books.put_by = self, books.put_called = Fibers::now();
  ++brought_;
  const Outcome outcome = actor(self).enqueue(spec, books.id);
  if (outcome == Outcome::kOk) ++accepted_, let_in(self, job);
  if (outcome != Outcome::kOk && outcome != Outcome::kDuplicate && outcome != Outcome::kQueueFull &&
      !no_slot(outcome))
    wrong_ += "an id was neither accepted nor refused; ";
}

void World::put_again(std::uint32_t self) {
  engine::NewJob spec = job_named(kJobs - 1, 0);
  spec.id = kBrought;
  engine::JobId id;
  const Outcome outcome = actor(self).enqueue(spec, id);
  if (outcome != Outcome::kDuplicate && outcome != Outcome::kQueueFull && !no_slot(outcome))
    wrong_ += "a duplicate was not refused; ";
}

bool World::take(std::uint32_t self) { return take(self, 0); }

namespace {

/// Receives two jobs.
struct Pair {
  std::array<engine::Fetched, 2> jobs;
  std::array<std::string, 2> bodies;
  engine::Fetched& at(std::size_t i) { return jobs[i].body = &bodies[i], jobs[i]; }
  static void took(std::size_t, const engine::Fetched&) {}
};

}  // namespace

void World::take_finish_twice(std::uint32_t self) {
  if (pool_queues_ != 0) {
    for (unsigned times = 2; times != 0; --times)
      if (take(self)) finish(self);
    return;
  }
  const std::uint64_t called = Fibers::now();
  Pair both{{held_[self], held_[self]}, {}};
  const std::size_t count = actor(self).fetch_batch_plain(0, 0, false, 2, both);
  std::vector<engine::Ack> acks;
  std::vector<unsigned> which;
  for (std::size_t i = 0; i < count; ++i) {
    held_[self] = both.jobs[i];
    held_[self].body = &bodies_[self];
    bodies_[self] = both.bodies[i];
    took(self, 0, Outcome::kOk, called);
    books_[static_cast<unsigned>(holds_[self] - 1)].end_called = true;
    acks.push_back({held_[self].word, held_[self].slot, false});
    which.push_back(static_cast<unsigned>(holds_[self] - 1));
  }
  count_work(self, false);
  actor(self).ack_batch(acks);
  for (std::size_t i = 0; i < count; ++i) ended(self, which[i], !acks[i].lost);
  for (std::size_t left = 2 - count; left != 0 && take(self); --left) finish(self);
}

Outcome World::fetch(std::uint32_t self, std::uint32_t queue) {
  if (pool_queues_ != 0) return actor(self).fetch_from_pool(0, false, held_[self]);
  return actor(self).fetch(queue, 0, false, held_[self]);
}

bool World::take(std::uint32_t self, std::uint32_t queue) {
  const std::uint64_t called = Fibers::now();
  return took(self, queue, fetch(self, queue), called);
}

bool World::took(std::uint32_t self, std::uint32_t queue, Outcome outcome, std::uint64_t called) {
  const std::uint64_t returned = Fibers::now();
  if (outcome != Outcome::kOk) {
    empties_.push_back({called, returned, self, queue});
    return false;
  }
  const unsigned job = number_of(held_[self]);
  if (job >= kJobs || books_[job].put_called == 0) {
    wrong_ += "a fetch returned a job that nobody put in; ";
    return true;
  }
  Books& books = books_[job];
  if (!books.takes.empty() && !books.may_return)
    wrong_ += "job " + std::to_string(job) + " was fetched twice; ";
  if (books.ended && books.ended_at < called)
    wrong_ += "job " + std::to_string(job) + " was fetched after its end; ";
  books.takes.push_back({called, returned, self});
  holds_[self] = static_cast<int>(job) + 1;
  count_work(self, true);
  return true;
}

void World::finish(std::uint32_t self) {
  if (holds_[self] == 0) return;
  count_work(self, false);
  Books& books = books_[static_cast<unsigned>(holds_[self] - 1)];
  books.end_called = true;
  ended(self, static_cast<unsigned>(holds_[self] - 1),
        actor(self).ack(held_[self].slot, held_[self].word, {}) == Outcome::kOk);
}

/// What became of an ack.
void World::ended(std::uint32_t self, unsigned job, bool accepted) {
  Books& books = books_[job];
  if (accepted) books.end(Fibers::now());
  // A cancel may take the job from its holder, and the supervisor its lease; no other may.
  if (!accepted && books.cancel_called == 0 && (!books.may_return || beaten_[self]))
    wrong_ += "an ack was refused; ";
  holds_[self] = 0;
}

void World::give_back(std::uint32_t self) {
  if (holds_[self] == 0) return;
  count_work(self, false);
  const auto job = static_cast<unsigned>(holds_[self] - 1);
  books_[job].may_return = true;
  given_back_ += limited(job) ? 1 : 0;
  ++returned_;
  actor(self).set_back(held_[self].slot, held_[self].word, engine::Setback::kRequeue, nullptr);
  holds_[self] = 0;
}

void World::leave(std::uint32_t self) {
  if (holds_[self] == 0) return;
  count_work(self, false);
  books_[static_cast<unsigned>(holds_[self] - 1)].may_return = true;
  ++returned_;
  actor(self).drain();
  holds_[self] = 0;
}

void World::fail(std::uint32_t self) {
  if (holds_[self] == 0) return;
  count_work(self, false);
  Books& books = books_[static_cast<unsigned>(holds_[self] - 1)];
  books.end_called = books.may_return = true;
  const engine::ErrorEntry error{1, 1, false, "boom", "boom", "it did not work", {}};
  if (actor(self)
          .set_back(held_[self].slot, held_[self].word, engine::Setback::kNack, &error)
          .outcome == Outcome::kOk)
    books.end(Fibers::now());
  holds_[self] = 0;
}

void World::beat(std::uint32_t self) {
  constexpr std::uint32_t kTenHours = 36'000'000;  // longer than tend() looks ahead
  std::uint64_t until = 0;
  beaten_[self] = holds_[self] != 0 && actor(self).heartbeat(held_[self].slot, held_[self].word,
                                                             kTenHours, until) == Outcome::kOk;
  // The first lane with texts, the others without.
  if (beaten_[self])
    actor(self).report(held_[self].slot, held_[self].word,
                       {.fraction = 0.5, .has_texts = self == 0, .message = "half"}, until);
}

void World::cancel(std::uint32_t self, unsigned job) {
  Books& books = books_[job];
  if (books.cancel_called == 0) books.cancel_called = Fibers::now();
  books.end_called = true;
  engine::JobState found{};
  if (actor(self).cancel(books.id, found) == Outcome::kOk) {
    if (books.ended) wrong_ += "job " + std::to_string(job) + " was cancelled after its end; ";
    books.end(Fibers::now());
  }
}

void World::move(std::uint32_t self, unsigned job, std::uint8_t rank) {
  Books& books = books_[job];
  if (books.move_called == 0) books.move_called = Fibers::now();
  std::uint8_t previous = 0;
  engine::JobState found{};
  const std::uint64_t called = Fibers::now();
  if (actor(self).reprioritize(books.id, rank, previous, found) == Outcome::kOk)
    books.moves.push_back({called, Fibers::now(), rank});
}

std::vector<shm::RingSet*> World::ring_sets() const {
  unsigned lines = 1;
  for (const Sharding& sharding : shardings_)
    if (sharding.returned != kNever) lines = std::max(lines, sharding.shards);
  std::vector<shm::RingSet*> sets;
  for (unsigned line = 0; line < lines; ++line) sets.push_back(&store_->rings_of(0, line));
  return sets;
}

void World::pack(std::uint32_t self) {
  for (const shm::RingSet* set : ring_sets())
    for (unsigned number = 0; number < 8; ++number)
      if (const std::uint32_t ring = shm::Rings::find(*set, number); ring != shm::kNoIndex)
        actor(self).rings().splice(ring, engine::any_lives);
  if (actor(self).rings().has_leaks()) actor(self).collect_leaks();
}

void World::pass_dead(std::uint32_t self) {
  for (const shm::RingSet* set : ring_sets())
    for (unsigned number = 0; number < 8; ++number)
      if (const std::uint32_t ring = shm::Rings::find(*set, number); ring != shm::kNoIndex)
        actor(self).rings().reap(ring, engine::any_lives, 100);
}

void World::tend(std::uint32_t self) {
  const std::uint64_t later = store_->now_ms() + 3 * 3'600'000;
  for (Books& books : books_) books.may_return = true;
  std::uint32_t ended = 0;
  actor(self).end_leases(0, store_->slots(), later, ended);
  for (std::uint32_t slot = 0; slot < store_->slots(); ++slot)
    actor(self).tend(slot, store_->job(slot).generation.get(), later);
}

/// All that has finished by now has been kept long enough.
void World::drop_expired(std::uint32_t self) {
  actor(self).slots().drop_expired(store_->now_ms() + 2 * store_->header().retention_ms);
}

void World::close_levels(std::uint32_t self) {
  for (shm::RingSet* set : ring_sets())
    for (unsigned number = 0; number < 8; ++number)
      if (const std::uint32_t ring = shm::Rings::find(*set, number); ring != shm::kNoIndex)
        if (const shm::Peeked head = actor(self).rings().peek(ring); head.empty())
          shm::Rings::close(*set, number, *head.cell, head.value);
}

void World::forget_fetches() {
  for (Books& books : books_)
    if (!books.ended) books.takes.clear(), books.may_return = false;
}

void World::age() {
  actor(kJanitor).order().set_aging(
      0, engine::Aging(true, false, 3'600'000, 1, engine::Aging::kNoBest));
}

void World::share(std::uint32_t self, bool on, unsigned weight, bool across) {
  actor(self).set_fairness(0, engine::Fairness(on, false, across, weight));
  shares_ = true;
  across_ = across_ || across;
}

void World::shard(std::uint32_t self, unsigned shards) {
  for (const Sharding& other : shardings_) crossed_ = crossed_ || other.returned == kNever;
  const std::size_t at = shardings_.size();
  shardings_.push_back({shards, Fibers::now(), kNever, self});
  if (actor(self).order().set_shards(0, shards) != Outcome::kOk)
    wrong_ += "the shards were refused; ";
  shardings_[at].returned = Fibers::now();
}

void World::take_turns() {
  const engine::QueueOrder::LevelWeight even[] = {{1, 1}, {3, 1}};
  if (actor(kJanitor).order().set_level_weights(0, even) != Outcome::kOk)
    wrong_ += "the weights were refused; ";
  turns_ = true;
}

void World::serve_a_pool(unsigned queues) {
  pool_queues_ = queues;
  turns_ = queues == 2;
  engine::PoolSpec spec;
  for (unsigned q = 0; q < queues; ++q)
    spec.queues.push_back(actor(kJanitor).ensure_queue(q == 0 ? "q" : "r"));
  bool made = false;
  if (engine::Pools(actor(kJanitor)).define("p", spec, made) != Outcome::kOk)
    wrong_ += "the pool was refused; ";
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) actor(lane).pool_worker().serve(0);
}

void World::lie_down(std::uint32_t self) {
  store_->queue(0).waiters[0].fetch_or(1ULL << self, shm::Point::kWaiterSet);  // PAIR idle
  parked_[self] = segment_.lane(self).park.load();
  asleep_[self] = !actor(self).sees_work(0);
}

bool World::was_dead(std::uint32_t lane) const {
  return std::find(dead_.begin(), dead_.end(), lane) != dead_.end();
}

void World::repair() { engine::Repairer::repair(*store_, dead_); }

/// Whether the lane was killed behind the commit of several fetches.
bool World::committed_fetches(std::uint32_t lane) const {
  const shm::Lane& words = segment_.lane(lane);
  return words.intent.get() >> 60 == static_cast<std::uint64_t>(engine::Op::kFetchBatch) &&
         words.intent_data[3].get() != 0;
}

/// What the dead hold comes again; also what a fetch took that never returned.
void World::note_what_the_dead_hold() {
  for (std::uint32_t slot = 0; slot < store_->slots(); ++slot) {
    const engine::JobRecord& job = store_->job(slot);
    const engine::Control control(job.control.load());
    if (control.owner() == 0 || !was_dead(control.owner() - 1)) continue;
    for (Books& books : books_)
      if (books.id == job.id()) {
        returned_ += books.may_return ? 0 : 1;
        books.may_return = true;
        books.died_with = books.died_with || control.state() != engine::kSlotClaimed ||
                          committed_fetches(control.owner() - 1);
        books.half_fetched = !books.died_with && books.takes.empty();
        books.undelivered = control.state() == engine::kSlotActive &&
                            serves_[control.owner() - 1] && books.takes.size() <= 1;
      }
  }
}

}  // namespace ojs_shm::test
