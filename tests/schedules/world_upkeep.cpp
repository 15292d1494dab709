// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: what supervisors and tidy lanes do to rings and slots.

#include <algorithm>

#include "engine/tables/hint_lives.hpp"
#include "shm/ring_splice.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

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
        shm::splice(actor(self).rings(), ring, engine::any_lives);
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

}  // namespace ojs_shm::test
