// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: what comes into being with the first use of its name.
#include <algorithm>

#include "engine/pools/pool_look.hpp"
#include "engine/pools/pools.hpp"
#include "engine/tables/type_ranks.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

/// Of one name all get one number, and no other name has it.
std::uint32_t World::queue_named(std::uint32_t self, std::string_view name) {
  const std::size_t at = queues_.size();
  queues_.push_back({name, engine::kNoIndex, self});
  const std::uint32_t number = actor(self).ensure_queue(name);
  if (number == engine::kNoIndex) wrong_ += "a queue was refused; ";
  queues_[at].value = number, queues_[at].returned = true;
  for (const Called& other : queues_)
    if (other.returned && (other.name == name) != (other.value == number))
      wrong_ += "names of queues are mixed up; ";
  return number;
}

void World::put_into(std::uint32_t self, unsigned job, std::string_view queue) {
  engine::NewJob spec = job_named(job, 1);
  spec.queue = books_[job].queue = queue_named(self, queue);
  if (spec.queue != engine::kNoIndex) put(self, job, spec);
}

void World::take_from(std::uint32_t self, std::string_view queue) {
  if (const std::uint32_t number = queue_named(self, queue); number != engine::kNoIndex)
    take(self, number);
}

void World::age_by_default(std::uint32_t self) {
  actor(self).order().set_default_aging(
      engine::Aging(true, false, 3'600'000, 1, engine::Aging::kNoBest));
}

void World::rank_type(std::uint32_t self, std::string_view type, std::uint8_t rank) {
  const std::size_t at = types_.size();
  types_.push_back({type, rank, self});
  if (!engine::set_type_rank(actor(self).store(), engine::Store::hash_name(type), rank))
    wrong_ += "a type was refused; ";
  types_[at].returned = true;
}

void World::weigh_tenant(std::uint32_t self, std::string_view tenant, std::uint32_t weight) {
  const std::size_t at = tenants_.size();
  tenants_.push_back({tenant, weight, self});
  if (!engine::set_tenant_weight(actor(self).store(), 0, tenant, weight))
    wrong_ += "a tenant was refused; ";
  tenants_[at].returned = true;
}

void World::set_pool(std::uint32_t self, std::string_view pool) {
  engine::PoolSpec spec;
  spec.queues = {0};
  bool made = false;
  const Outcome outcome = engine::Pools(actor(self)).define(pool, spec, made);
  if (outcome == Outcome::kOk ? engine::find_pool(*store_, pool) == engine::kNoIndex
                              : outcome != Outcome::kBusy)
    wrong_ += "a pool was refused; ";
}

/// What is there under a name is what a lane set; and something is, once a call for it has
/// returned.
std::string World::settings_text(
    const std::vector<Called>& settings,
    const std::function<std::uint64_t(std::string_view)>& found) const {
  std::string text;
  for (const Called& one : settings) {
    const std::uint64_t value = found(one.name);
    const bool set = std::any_of(settings.begin(), settings.end(), [&](const Called& other) {
      return other.name == one.name && other.value == value;
    });
    if (!set && (value != 0 || one.returned))
      text += "a setting of '" + std::string(one.name) + "' is lost; ";
  }
  return text;
}

/// A lane that comes last finds each of them by its name.
std::string World::names_text() {
  std::string text;
  for (const Called& queue : queues_) {
    const std::uint32_t number = actor(kJanitor).ensure_queue(queue.name);
    if (number == engine::kNoIndex || (queue.returned && queue.value != number) ||
        store_->queue_name(number) != queue.name)
      text += "the queue '" + std::string(queue.name) + "' is not found; ";
  }
  text += settings_text(types_, [this](std::string_view type) {
    return engine::type_rank(*store_, type).value_or(0);
  });
  return text + settings_text(tenants_, [this](std::string_view tenant) -> std::uint64_t {
           const engine::TenantRule* rule =
               engine::find_tenant_rule(*store_, engine::mix_key(0, engine::hash_tenant(tenant)));
           return rule == nullptr ? 0 : rule->weight.load();
         });
}

}  // namespace ojs_shm::test
