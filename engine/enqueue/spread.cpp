// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "engine/enqueue/batches.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/workflows/workflows.hpp"

// A batch over several queues comes into being by one store, as a workflow does. 1. All of it is
// filled in private, and has its keys: a death frees it. 2. Each queue is charged for its share,
// and the intent that says so is then exchanged for the share's slots: they are moving in this
// lane's hands, each with the mark of an unborn job, and a death takes their charges back one by
// one. 3. The store that commits: the lane's counter kSpread. 4. The jobs are published, victims
// dropped, rivals replaced; a death leaves that to the repair, for which each job says what it is:
// unborn, a rival, or else a victim.

namespace ojs_shm::engine {

using shm::Point;

Actor::Spread::Spread(Actor& actor, std::span<const NewJob> specs)
    : actor_(actor), places_(specs.size()) {
  std::iota(places_.begin(), places_.end(), std::size_t{0});
  // By the numbers of the queues, so that no two lanes wait for each other at their seats.
  std::ranges::stable_sort(places_, {}, [&specs](std::size_t at) { return specs[at].queue; });
  specs_.reserve(specs.size());
  for (const std::size_t at : places_) specs_.push_back(specs[at]);
  for (std::size_t begin = 0, end = 0; begin < specs_.size(); begin = end) {
    while (end < specs_.size() && specs_[end].queue == specs_[begin].queue) ++end;
    shares_.emplace_back(actor, specs_, begin, end - begin);
  }
}

Outcome Actor::Spread::enter(std::vector<JobId>& ids) {
  ids.clear();
  const LimitsHold hold(actor_.store_, actor_.limits_held(), specs_);
  if (!hold.stand()) return Outcome::kLimitsMoved;
  for (Share& share : shares_)
    if (const Outcome measured = share.measure(); measured != Outcome::kOk) return measured;
  std::vector<JobId> made(specs_.size());
  Outcome outcome = fill(made);
  if (outcome == Outcome::kOk) outcome = actor_.claim_keys(specs_, slots_, rivals_);
  if (outcome == Outcome::kClash) actor_.conflicts_.at = places_[actor_.conflicts_.at];
  if (outcome == Outcome::kOk) outcome = admit();
  if (outcome == Outcome::kOk && (!all_leave() || !actor_.seize_rivals(rivals_)))
    outcome = Outcome::kRivalMoved;
  if (outcome != Outcome::kOk) {
    take_back();
    return outcome;
  }
  commit();
  ids.resize(made.size());
  for (std::size_t n = 0; n < made.size(); ++n) ids[places_[n]] = made[n];
  return outcome;
}

Outcome Actor::Spread::fill(std::vector<JobId>& ids) {
  slots_.reserve(ids.size());
  for (Share& share : shares_)
    for (std::size_t i = 0; i < share.specs().size(); ++i) {
      std::uint32_t slot = kNoIndex;
      const Outcome outcome = share.fill(i, ids[slots_.size()], slot);
      if (slot != kNoIndex) slots_.push_back(slot);
      if (outcome != Outcome::kOk) return outcome;
    }
  return Outcome::kOk;
}

Outcome Actor::Spread::admit() {
  std::size_t first = 0;
  for (Share& share : shares_) {
    const Outcome outcome = share.admit();
    if (outcome == Outcome::kQueueFull) actor_.refused_at(places_);
    if (outcome != Outcome::kOk) return outcome;
    hand_over(share, first);
    first += share.specs().size();
  }
  return Outcome::kOk;
}

/// From the intent, which says that the queue is charged, to the slots. Until the intent is over a
/// repair undoes the whole charge, and so lets no slot keep its own.
void Actor::Spread::hand_over(const Share& share, std::size_t first) {
  for (std::size_t i = 0; i < share.specs().size(); ++i) {
    JobRecord& job = actor_.store_.job(slots_[first + i]);
    share.mark_account(i, job);
    job.policy.set(job.flags().with_previous(kSlotFilling).word);
    job.available_at.set(places_[first + i] + 1);  // its turn, for a repair
    const Control filling(job.control.load());
    job.control.store(filling.to(kSlotMoving, filling.ring(), actor_.owner_).word,
                      Point::kSlotMoving);
  }
  actor_.intend_nothing();
}

bool Actor::Spread::all_leave() const {
  return std::ranges::all_of(shares_,
                             [this](const Share& share) { return share.all_leave(rivals_); });
}

void Actor::Spread::take_back() {
  for (const std::uint32_t slot : slots_) {
    const Word& control = actor_.store_.job(slot).control;
    if (Control(control.load()).state() == kSlotMoving) actor_.uncharge_unborn(slot);
    actor_.slots_.free(slot, Control(control.load()));
  }
  for (const Rival& rival : rivals_)
    if (actor_.is_our_rival(rival.slot)) actor_.end_rival(rival.slot);
  for (Share& share : shares_) share.keep_victims();
}

/// The one store that counts, and what it promises.
void Actor::Spread::commit() {
  std::vector<std::uint32_t> as_given(slots_.size());
  for (std::size_t n = 0; n < slots_.size(); ++n) as_given[places_[n]] = slots_[n];
  LaneWord& committed = actor_.self_.counters[kSpread];
  committed.set(1, Point::kSpreadCommitted);
  for (const Rival& rival : rivals_) actor_.mark_replaced(rival.slot);
  for (const std::uint32_t slot : as_given) actor_.publish_unborn(slot);
  bool dropped = false;
  for (Share& share : shares_) {
    if (!share.victims().empty()) actor_.drop_apart(share.queue(), share.victims());
    dropped = dropped || !share.victims().empty();
  }
  for (const Rival& rival : rivals_) {
    if (rival.by != kNoIndex) actor_.count_conflict(rival.by);
    actor_.end_rival(rival.slot);
  }
  for (Share& share : shares_) actor_.dropper(share.record()).leave_if_ours();
  committed.set(0, Point::kSpreadCommitted);
  if (dropped) actor_.workflows().advance_dropped();
  for (Share& share : shares_)
    if (share.settings_moved()) actor_.gather_accounts(share.queue(), kPatience);
}

}  // namespace ojs_shm::engine
