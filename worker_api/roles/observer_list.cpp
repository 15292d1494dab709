// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include <ojs_shm/observer.hpp>

#include "engine/rules/aging.hpp"
#include "engine/tables/hint_lives.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/ring_look.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/observer_info.hpp"

namespace ojs_shm {

namespace {

using engine::Snapshot;

/// A snapshot and where it stands.
struct Listed {
  Snapshot job;
  std::uint64_t place = 0;  ///< in its ring; in a front lane the time since which it is available
  std::tuple<std::int64_t, std::uint64_t, unsigned, unsigned> standing =
      {};  ///< among the rings: the smallest goes first

  bool available() const { return job.state() == engine::JobState::kAvailable; }
  unsigned ring() const { return available() ? job.control.ring() : 0; }
  unsigned part() const { return available() ? job.policy.part() : 0; }
  bool same_ring(const Listed& other) const {
    return job.queue == other.job.queue && part() == other.part() && ring() == other.ring();
  }
};

/// For each slot the number of its hint in its ring.
std::vector<std::uint32_t> places_of(const engine::Store& store) {
  std::vector<std::uint32_t> place(store.slots(), 0);
  const auto walk = [&](std::uint32_t ring) {
    std::uint32_t at = 0;
    shm::Rings::walk(store.segment(), ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
      const shm::Hint hint(value);
      if (++at; engine::hint_lives(store.segment(), hint)) place[hint.index()] = at;
    });
  };
  for (const shm::RingSet* set : engine::ring_sets(store))
    for (unsigned n = 0; n < shm::kRingsPerSet; ++n)
      if (const std::uint32_t ring = shm::Rings::find(*set, n); ring != engine::kNoIndex)
        walk(ring);
  engine::each_flow(store, [&](std::uint32_t, std::uint32_t ring) { walk(ring); });
  return place;
}

/// A fetch compares the heads of rings, so a job's turn comes no sooner than that of those before
/// it. `jobs` are in the order of their rings.
void compare_rings(const engine::Store& store, std::vector<Listed>& jobs) {
  const std::uint64_t now = store.now_ms();
  for (std::size_t i = 0; i < jobs.size() && jobs[i].available(); ++i) {
    Listed& each = jobs[i];
    const engine::QueueRecord& queue = store.queue(each.job.queue);
    const engine::Aging aging = store.aging(queue);
    const std::uint64_t flags = queue.flags.load(), since = each.job.available_at;
    const bool sharded = (flags & engine::kSharded) != 0;
    const unsigned ring = each.ring(), part = each.job.policy.part();
    if (aging.enabled()) {
      const std::uint8_t rate = engine::Store::age_rate(queue, sharded ? 0 : part, aging);
      const std::uint64_t age = now > since ? now - since : 0;
      each.standing = {aging.effective(engine::rank_of_ring(ring), age, rate), since, ring, part};
    } else if ((flags & engine::kParted) != 0 && !sharded) {
      each.standing = {ring, since, ring, part};
    } else {
      each.standing = {ring, 0, 0, 0};
    }
    if (i != 0 && each.same_ring(jobs[i - 1]))
      each.standing = std::max(each.standing, jobs[i - 1].standing);
  }
}

/// What can be told of a whole copy alone.
bool fits(const engine::Store& store, const JobFilter& filter, const engine::Snapshot& job) {
  if (!internal::ended_as_wanted(filter, job.state(), job.finished_at) ||
      !internal::failed_as_wanted(filter, job))
    return false;
  if (filter.waiting && !engine::counts_as_depth(job.state())) return false;
  if (filter.unique && !((job.signals & engine::kUnique) != 0 &&
                         internal::keeps_others_out({job.annex.uniqueness}, job.state(),
                                                    job.created_at, store.now_ms())))
    return false;
  if (filter.priority &&
      engine::priority_of(store.convention(), engine::rank_of_ring(job.control.ring())) !=
          *filter.priority)
    return false;
  return !filter.tenant || tenant_of(internal::info_of(store, job).extra) == *filter.tenant;
}

}  // namespace

std::vector<JobInfo> Observer::list(const JobFilter& filter) const {
  const engine::Store& store = segment_.attachment()->store();
  const std::uint32_t q = filter.queue.empty() ? engine::kNoIndex : store.find_queue(filter.queue);
  if (!filter.queue.empty() && q == engine::kNoIndex) return {};
  // Of a part of the list the texts are read once it is known which jobs are in it.
  const bool later =
      filter.limit != 0 && filter.type.empty() && !filter.tenant && filter.error_type.empty();
  std::vector<Listed> found;
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const engine::JobRecord& job = store.job(slot);
    const engine::Control control(job.control.load());
    if (control.state() == engine::kSlotFree || control.state() == engine::kSlotFilling) continue;
    if (q != engine::kNoIndex && job.queue.get() != q) continue;
    if (filter.state && engine::holds_job(control.state()) &&
        engine::job_state(control.state()) != static_cast<engine::JobState>(*filter.state))
      continue;
    if (filter.dead_letter && !job.flags().has(engine::Policy::kDead)) continue;
    if (filter.created_before_ms != 0 && job.created_at.get() >= filter.created_before_ms) continue;
    auto snapshot = engine::snapshot(store, slot, !later);
    if (!snapshot) continue;
    if (filter.state && snapshot->state() != static_cast<engine::JobState>(*filter.state)) continue;
    if (filter.dead_letter && !snapshot->policy.has(engine::Policy::kDead)) continue;
    if (!filter.type.empty() &&
        std::string_view(snapshot->body).substr(0, snapshot->type_length) != filter.type)
      continue;
    if (!fits(store, filter, *snapshot)) continue;
    found.push_back({std::move(*snapshot)});
  }
  const std::vector<std::uint32_t> places = places_of(store);
  for (Listed& each : found) {
    const bool front = each.ring() % 2 == 0;
    each.place = !each.available() ? each.job.created_at
                 : front           ? each.job.available_at
                                   : places[each.job.slot];
  }
  const auto sort_by = [&found](const auto& key) {
    std::sort(found.begin(), found.end(),
              [&key](const Listed& a, const Listed& b) { return key(a) < key(b); });
  };
  sort_by([](const Listed& each) {
    return std::tuple(!each.available(), each.job.queue, each.part(), each.ring(), each.place,
                      each.job.id);
  });
  compare_rings(store, found);
  sort_by([](const Listed& each) {
    return std::tuple(!each.available(), each.job.queue, each.standing, each.place, each.job.id);
  });
  if (filter.limit != 0 && found.size() > filter.limit) found.resize(filter.limit);
  std::vector<JobInfo> infos;
  infos.reserve(found.size());
  for (Listed& each : found) {
    if (later) {
      auto whole = engine::snapshot(store, each.job.slot);
      // what has ended or moved on meanwhile is in the next look
      if (!whole || whole->id != each.job.id ||
          (filter.state && whole->state() != each.job.state()))
        continue;
      each.job = std::move(*whole);
    }
    infos.push_back(internal::info_of(store, each.job));
  }
  return infos;
}

}  // namespace ojs_shm
