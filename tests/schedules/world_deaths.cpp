// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: the dead, and what they held.

#include <algorithm>

#include "engine/supervision/repairer.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

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
