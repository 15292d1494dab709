// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/world.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "engine/straight/fetch_batch.hpp"
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
  revival_ = Revival::kNone;
  tells_ = workflow_ = checkpoint_kept_ = false;
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

void World::put_batch(std::uint32_t self, unsigned first, std::uint8_t rank) {
  put_together(self, first, {job_named(first, rank), job_named(first + 1, rank)});
}

void World::put_spread(std::uint32_t self, unsigned first) {
  std::array jobs{job_named(first, 1), job_named(first + 1, 1)};
  jobs[1].queue = books_[first + 1].queue = queue_named(self, "r");
  put_together(self, first, jobs);
}

void World::put_together(std::uint32_t self, unsigned first,
                         const std::array<engine::NewJob, 2>& jobs) {
  batches_.push_back(first);
  for (unsigned i = 0; i < 2; ++i) {
    books_[first + i].rank = jobs[i].rank;
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

void World::raise(std::uint32_t self, unsigned job, std::uint8_t rank) {
  Books& books = books_[job];
  if (books.move_called == 0) books.move_called = Fibers::now();
  std::uint8_t previous = 0;
  engine::JobState found{};
  if (actor(self).reprioritize(books.id, rank, previous, found, true) == Outcome::kOk)
    books.raised_to = std::min(books.raised_to, rank);
}

}  // namespace ojs_shm::test
