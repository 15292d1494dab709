// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "engine/audit/audit_book.hpp"
#include "engine/limits/limits.hpp"
#include "engine/pools/pool_look.hpp"

// What keeps jobs from workers must have a reason: limits, and pools.

namespace ojs_shm::engine {
namespace {

class LimitAudit {
 public:
  explicit LimitAudit(AuditBook& book) : book_(book), store_(book.store()) {}

  void run() {
    const std::uint64_t settler = store_.header().limit_settler.load();
    if (settler != 0 && !book_.lane_taken(static_cast<std::uint32_t>(settler)))
      book_.say(14, "limits are being set by lane " +
                        std::to_string(static_cast<std::uint32_t>(settler) - 1) + ", and is free");
    if (settler == 0 && store_.header().limit_turn.load() % 2 != 0)
      book_.say(14, "keys of limits are being given up by no lane");
    const Permits permits(store_);
    std::map<std::pair<std::uint32_t, std::uint32_t>, unsigned> held;  // by key and slot
    for (std::uint32_t at = 0; at < store_.limit_keys.size(); ++at) {
      const LimitKey& key = store_.limit_keys[at];
      if (key.name_hash.load() <= kLimitGone) continue;
      if (hash_limit(limit_name(store_, at)) != key.name_hash.load())
        book_.say(12, "limit '" + limit_name(store_, at) + "' has a name that is not its own");
      const std::uint64_t high = std::min<std::uint64_t>(key.permits.high.load(), kMostPermits);
      for (std::uint32_t i = 0; i < high; ++i) {
        const Permit permit(permits.at(key.permits, i).load());
        if (permit.free() || (permit.is_adopted() && !permits.holds(permit))) continue;
        if (!permits.holds(permit))
          book_.say(18, "limit '" + limit_name(store_, at) + "' has a permit of " +
                            AuditBook::slot_name(permit.slot()) + ", whose job is not held");
        else if (++held[{at, permit.slot()}] > 1)
          book_.say(18, AuditBook::slot_name(permit.slot()) + " has two permits of limit '" +
                            limit_name(store_, at) + "'");
      }
    }
    // keys and queues in which a job may be fetched
    std::set<std::pair<std::uint32_t, std::uint32_t>> candidates;
    for (const bool parked : {false, true})
      for (std::uint32_t slot = 0; slot < store_.slots() && store_.header().limiting.load() != 0;
           ++slot)
        limits_of_slot(slot, parked, held, candidates);
  }

 private:
  void limits_of_slot(std::uint32_t slot, bool parked,
                      const std::map<std::pair<std::uint32_t, std::uint32_t>, unsigned>& held,
                      std::set<std::pair<std::uint32_t, std::uint32_t>>& candidates) {
    const JobRecord& job = store_.job(slot);
    const unsigned state = Control(job.control.load()).state();
    if (state == kSlotActive && !parked) {
      const LimitList keys = limits_of(store_, slot, job, true);
      for (unsigned i = 0; i < keys.count; ++i)
        if (PermitSet::limit_of(store_.limit_keys[keys.key[i]].permits.limit.load()) !=
                PermitSet::kNone &&
            !held.contains({keys.key[i], slot}))
          book_.say(18, AuditBook::slot_name(slot) + " is active without a permit of limit '" +
                            limit_name(store_, keys.key[i]) + "'");
    }
    if (const std::uint32_t own = own_limit(job.limits.get());
        !parked && holds_job(state) && (!is_finished(state) || job.flags().has(Policy::kDead)) &&
        own < store_.limit_keys.size() && store_.limit_keys[own].name_hash.load() <= kLimitGone)
      book_.say(12, AuditBook::slot_name(slot) + " names a limit that was given up");
    if (state != kSlotAvailable) return;
    const std::uint32_t number = second_limit(job.limits.get());
    if ((number != second_limit(0)) != parked) return;
    const LimitList keys = limits_of(store_, slot, job, false);
    if (!parked) {
      for (unsigned i = 0; i < keys.count; ++i) candidates.emplace(keys.key[i], job.queue.get());
      return;
    }
    const ParkingLot& lot = store_.lots[number];
    const std::uint32_t at = lot.key();
    if (number >= store_.lots.size() || at >= store_.limit_keys.size() ||
        lot.queue() != job.queue.get() ||
        std::find(keys.key.begin(), keys.key.begin() + keys.count, at) ==
            keys.key.begin() + keys.count) {
      book_.say(19, AuditBook::slot_name(slot) +
                        " stands in a lot that is not of its queue and its limits");
      return;
    }
    const LimitKey& key = store_.limit_keys[at];
    if (key.rate.load() == 0 && key.throttle.load() == 0 && key.closed_until.load() == 0 &&
        permits_free(key) && !candidates.contains({at, job.queue.get()}))
      book_.say(19, AuditBook::slot_name(slot) + " is held back by limit '" +
                        limit_name(store_, at) + "', which has room");
  }
  bool permits_free(const LimitKey& key) const { return Permits(store_).has_room(key.permits); }

  AuditBook& book_;
  const Store& store_;
};

}  // namespace

void audit_limits(AuditBook& book) { LimitAudit(book).run(); }

void audit_pools(AuditBook& book) {
  const Store& store = book.store();
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    const std::uint32_t q = job.queue.get();
    if (Control(job.control.load()).state() == kSlotAvailable && q < store.max_queues() &&
        !store.parked(job) &&
        BusyWord::of(store.busy_word(q).load(), q) == BusyWord::kQuiet)  // PAIR busy
      book.say(21, AuditBook::slot_name(slot) + " is available, but queue '" + store.queue_name(q) +
                       "' is said to have no job");
  }
  if (const std::uint64_t settler = store.header().pools_settler.load();
      settler != 0 && !book.lane_taken(settler))
    book.say(22,
             "pools are being changed by lane " + std::to_string(settler - 1) + ", and is free");
  for (std::uint32_t q = 0; q < store.queue_count(); ++q) {
    const QueueRecord& queue = store.queue(q);
    if ((queue.flags.load() & kIsolated) == 0) continue;
    const std::uint64_t pool = queue.isolated.load();
    const auto plan = pool == 0 || pool > kPools
                          ? std::nullopt
                          : pool_plan(store, static_cast<std::uint32_t>(pool - 1));
    if (!plan || !plan->setup.isolated() ||
        std::find(plan->queues.begin(), plan->queues.end(), q) == plan->queues.end())
      book.say(22, "queue '" + store.queue_name(q) + "' is isolated, and no pool isolates it");
  }
}

}  // namespace ojs_shm::engine
