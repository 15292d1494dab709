// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: settings of the order in a queue, and pools.

#include "engine/pools/pools.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

void World::age() {
  actor(kJanitor).order().set_aging(
      0, engine::Aging(true, false, 3'600'000, 1, engine::Aging::kNoBest));
}

void World::share(std::uint32_t self, bool on, unsigned weight, bool across) {
  shares_ = true;  // before the call, in the middle of which it may be killed
  across_ = across_ || across;
  actor(self).set_fairness(0, engine::Fairness(on, false, across, weight));
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

}  // namespace ojs_shm::test
