// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: bounds, and who waits or drops because of them.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/bounds/account_look.hpp"
#include "engine/tables/job_look.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

void World::bound(std::uint64_t max_depth) {
  max_depth_ = max_depth;
  actor(kJanitor).set_bounds(0, max_depth, 0);
}

void World::bound_known(std::uint64_t max_depth) {
  bound(max_depth);
  actor(kJanitor).set_backpressure(
      0, engine::Backpressure(engine::Strategy::kReject, false, engine::Backpressure::kWhole));
  put(0, 4, 1), put(1, 5, 1);
}

void World::older(unsigned job, std::uint64_t ms) {
  auto& available_at = store_->job(engine::find_job(*store_, books_[job].id)).available_at;
  available_at.set(available_at.get() - ms);
}

void World::drop_at(std::uint64_t max_depth) {
  bound(max_depth);
  actor(kJanitor).set_backpressure(
      0, engine::Backpressure(engine::Strategy::kDropOldest, false, 8'000));
  dropping_ = true;
}

void World::block_at(std::uint64_t max_depth) {
  bound(max_depth);
  actor(kJanitor).set_backpressure(0, engine::Backpressure(engine::Strategy::kBlock, false, 8'000));
  blocking_ = true;
}

/// No lane is let in after one who already had a place when he came, and still has it.
void World::let_in(std::uint32_t self, unsigned job) {
  Books& books = books_[job];
  books.put_returned = Fibers::now();
  for (std::uint32_t other = 0; other < kLanes; ++other)
    if (other != self && places_[other].held() && !was_dead(other) &&
        places_[other].since < books.put_called)
      wrong_ += "job " + std::to_string(job) + " passed one who waits; ";
}

void World::put_patiently(std::uint32_t self, unsigned job, std::uint8_t rank) {
  constexpr std::uint64_t kForEver = ~0ULL >> 1;
  const engine::NewJob spec = job_named(job, rank);
  Books& books = books_[job];
  books.rank = rank;
  books.put_by = self;
  books.put_called = Fibers::now();
  Place& place = places_[self];
  actor(self).be_patient(true);
  Outcome outcome = actor(self).enqueue(spec, books.id);
  if (outcome == Outcome::kMustWait) {
    engine::RoomPlace in_line;
    if (actor(self).await_room(0, kForEver, in_line) != Outcome::kOk)
      wrong_ += "no place to wait; ";
    place = {in_line, Fibers::now(), job};
    actor(self).attend(in_line.ticket);
    actor(self).be_patient(true, in_line.ticket);
    outcome = actor(self).enqueue(spec, books.id);
  }
  actor(self).be_patient(false);
  if (outcome == Outcome::kOk) {
    let_in(self, job);
    give_up(self);
  } else if (outcome != Outcome::kMustWait) {
    wrong_ += "one who would wait was refused; ";
  }
}

/// From its call on the place is free.
void World::give_up(std::uint32_t self) {
  const Place place = std::exchange(places_[self], Place{});
  if (place.held()) actor(self).leave_room(0, place.in_line);
}

void World::rest(std::uint32_t self) {
  constexpr std::uint64_t kForEver = engine::RoomRest::Until::kMax, kDepthForOne = 16;
  store_->tickets[places_[self].in_line.ticket].rest.store(
      engine::RoomRest(kForEver, kDepthForOne).word, shm::Point::kTicketCalled);
  places_[self].rests = true;
}

/// Dropped is what is gone and was neither fetched nor cancelled: exactly as many as the bound
/// asked for.
std::string World::drop_text() {
  if (!dropping_) return {};
  std::uint64_t dropped = 0, gone = 0, accepted = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane)
    dropped += store_->tally(0, lane).dropped.get();
  bool others = !dead_.empty();
  for (Books& books : books_) {
    others = others || books.end_called || !books.takes.empty();
    if (books.put_returned == 0 || books.ended) continue;
    if (books.queue == 0) ++accepted;  // the bounded one
    const std::uint32_t slot = engine::find_job(*store_, books.id);
    const bool there =
        slot != shm::kNoIndex &&
        !engine::is_finished(engine::Control(store_->job(slot).control.load()).state());
    const auto number = static_cast<int>(&books - books_.data()) + 1;
    const bool held = std::find(std::begin(holds_), std::end(holds_), number) != std::end(holds_);
    if (there || held || (!books.takes.empty() && !books.may_return)) continue;
    books.may_return = books.end_called = books.ended = true;
    ++gone;
  }
  std::string text;
  if (dead_.empty() && gone != dropped)
    text += std::to_string(dropped) + " are said to be dropped, and " + std::to_string(gone) +
            " are gone; ";
  if (!others && dropped != accepted - std::min(accepted, max_depth_))
    text += std::to_string(dropped) + " of " + std::to_string(accepted) + " were dropped; ";
  return text;
}

/// None has a place, and room, and was not called. All that can are let in now, and the others give
/// up.
std::string World::room_text() {
  std::string text;
  engine::JobId id;
  for (std::uint32_t turn = 0; turn < kLanes * kLanes; ++turn) {
    const std::uint32_t lane = turn % kLanes;
    Place& place = places_[lane];
    if (!place.held() || was_dead(lane)) continue;
    const bool one_left =
        place.rests && engine::charged_jobs(store_->depth_charge(0)) + 1 >= max_depth_;
    const bool called = one_left || store_->tickets[place.in_line.ticket].called.load() != 0;
    actor(lane).be_patient(true, place.in_line.ticket);
    const Outcome outcome =
        actor(lane).enqueue(job_named(place.job, books_[place.job].rank), books_[place.job].id);
    actor(lane).be_patient(false);
    if (outcome != Outcome::kOk) continue;
    if (!called) text += "a producer sleeps beside room; ";
    books_[place.job].put_returned = Fibers::now();
    give_up(lane);
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane)
    if (!was_dead(lane)) give_up(lane);
  for (std::uint32_t i = 0; i < store_->tickets.size(); ++i)
    if (engine::TicketControl(store_->tickets[i].control.load()).taken())
      text += "a ticket is nobody's; ";
  if (blocking_ || dropping_) actor(kJanitor).set_backpressure(0, engine::Backpressure(0));
  return text;
}

void World::bound_tenants(std::uint32_t self, std::uint64_t max_depth) {
  tenant_depth_ = max_depth;
  tenants_counted_ = self == kJanitor;
  actor(self).set_tenant_bounds(0, {max_depth, 0});
}

void World::give_all_accounts() {
  engine::NewJob spec = job_named(kJobs - 1, 1);
  engine::JobId id;
  for (spec.tenant = 1'000; spec.tenant < 1'000 + store_->accounts.size(); ++spec.tenant) {
    engine::Actor& one = actor(kJanitor);
    engine::Fetched& job = held_[kJanitor];
    if (one.enqueue(spec, id) != Outcome::kOk || one.fetch(0, 0, false, job) != Outcome::kOk ||
        one.ack(job.slot, job.word, {}) != Outcome::kOk)
      wrong_ += "an account was not given; ";
  }
}

unsigned World::next_to(unsigned tenant) const {
  const std::uint32_t at = engine::find_account(*store_, engine::mix_key(0, tenant));
  unsigned other = 2'000;
  while (engine::account_place(*store_, engine::mix_key(0, other), 0) != at) ++other;
  return other;
}

/// No tenant has more waiting than its bound and what came back.
std::string World::tenants_text() const {
  if (tenant_depth_ == 0 || !tenants_counted_) return {};
  std::unordered_map<std::uint64_t, std::uint64_t> waiting;
  for (std::uint32_t slot = 0; slot < store_->slots(); ++slot) {
    const engine::JobRecord& job = store_->job(slot);
    if (engine::Control(job.control.load()).state() == engine::kSlotAvailable)
      ++waiting[job.tenant.get()];
  }
  std::string text;
  for (const auto& [tenant, jobs] : waiting)
    if (jobs > tenant_depth_ + returned_)
      text += std::to_string(jobs) + " of tenant " + std::to_string(tenant) + " wait; ";
  return text;
}

/// When nothing is left, exactly so many of a tenant fit as its bound says.
std::string World::tenant_bound_text() {
  if (tenant_depth_ == 0) return {};
  // a lane that switched it on may have died before
  actor(kJanitor).set_tenant_bounds(0, {tenant_depth_, 0});
  std::string text;
  engine::NewJob spec = job_named(kJobs - 1, 1);
  engine::JobId id;
  for (spec.tenant = 1; spec.tenant <= 2; ++spec.tenant) {
    std::uint64_t fitted = 0;
    for (std::uint32_t turn = 0; turn < 2 * kFibers * (tenant_depth_ + 1); ++turn)
      if (const std::uint32_t lane = turn % kFibers;
          !was_dead(lane) && actor(lane).enqueue(spec, id) == Outcome::kOk)
        ++fitted;
    if (fitted != tenant_depth_)
      text += std::to_string(fitted) + " jobs of a tenant fit where its bound is " +
              std::to_string(tenant_depth_) + "; ";
  }
  return text;
}

/// When all is quiet and nothing is left, exactly so many jobs fit as the bound says; and one that
/// still keeps sums of before brings nothing above it.
std::string World::bound_text() {
  if (max_depth_ == 0) return {};
  std::uint64_t fitted = 0;
  engine::JobId id;
  for (std::uint32_t turn = 0; turn < 2 * kFibers * (max_depth_ + 1); ++turn) {
    const std::uint32_t lane = turn % kFibers;
    if (!was_dead(lane) && actor(lane).enqueue(job_named(kJobs - 1, 1), id) == Outcome::kOk)
      ++fitted;
  }
  return fitted == max_depth_ ? ""
                              : std::to_string(fitted) + " jobs fit where the bound is " +
                                    std::to_string(max_depth_) + "; ";
}

}  // namespace ojs_shm::test
