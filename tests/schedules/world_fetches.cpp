// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: fetches, and what becomes of the job that a fiber holds.

#include <array>

#include "engine/moves/report.hpp"
#include "engine/straight/fetch_batch.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

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
    wrong_ += "a fetch returned a job that no lane put in; ";
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

void World::say(std::uint32_t self) {
  const engine::Fetched& job = held_[kFibers - 1];
  std::uint64_t until = 0;
  actor(self).report(job.slot, job.word, {.fraction = 0.5, .has_texts = true, .message = "half"},
                     until);
}

void World::keep_checkpoint(std::uint32_t self) {
  const engine::Fetched& job = held_[kFibers - 1];
  std::uint64_t until = 0;
  if (actor(self).report(job.slot, job.word, {.fraction = 0.5, .checkpoint = "[7]"}, until) ==
      Outcome::kOk)
    checkpoint_kept_ = true;
}

std::string World::checkpoint_text() const {
  if (!checkpoint_kept_) return "";
  const std::uint32_t slot = held_[kFibers - 1].slot;
  const engine::JobRecord& job = store_->job(slot);
  const auto texts =
      engine::read_report(segment_, engine::ReportWord(job.signals.load()).first_block(), slot,
                          job.generation.get(), store_->max_body());
  return texts && texts->checkpoint == "[7]" ? "" : "a checkpoint was lost; ";
}

void World::forget_fetches() {
  for (Books& books : books_)
    if (!books.ended) books.takes.clear(), books.may_return = false;
}

void World::lie_down(std::uint32_t self) {
  store_->queue(0).waiters[0].fetch_or(1ULL << self, shm::Point::kWaiterSet);  // PAIR idle
  parked_[self] = segment_.lane(self).park.load();
  asleep_[self] = !actor(self).sees_work(0);
}

}  // namespace ojs_shm::test
