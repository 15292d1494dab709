// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: a limit on a key, and keys that jobs bring.

#include <algorithm>

#include "engine/limits/limit_setter.hpp"
#include "engine/limits/limit_turn.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

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

}  // namespace ojs_shm::test
