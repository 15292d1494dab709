// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/enqueue/batches.hpp"

namespace ojs_shm::engine {

using shm::Point;

Actor::Share::Share(Actor& actor, std::span<const NewJob> batch, std::size_t at, std::size_t count)
    : actor_(actor),
      batch_(batch),
      specs_(batch.subspan(at, count)),
      at_(at),
      q_(specs_.front().queue),
      queue_(actor.store_.queue(q_)),
      mine_(actor.tally(q_)),
      flags_(queue_.flags.load()) {}

Outcome Actor::Share::measure() {
  parts_.assign(specs_.size(), 0);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const NewJob& spec = specs_[i];
    // In one line, also when the number of shards changes meanwhile: else its order would be lost.
    if (i != 0 && !spec.age_rate && !specs_.front().age_rate)
      parts_[i] = parts_[0];
    else if (const Outcome chosen = actor_.order().choose_part(spec, queue_, parts_[i]);
             chosen != Outcome::kOk)
      return chosen;
    const std::uint64_t size = spec.size();
    if (size > actor_.store_.max_body()) return Outcome::kTooLarge;
    cost_ += charge(1, size);
    if ((flags_ & kTenants) == 0) continue;
    if (charge_of(spec.tenant) == charges_.end())
      charges_.push_back({spec.tenant, 0, static_cast<std::uint32_t>(at_ + i)});
    charge_of(spec.tenant)->cost += charge(1, size);
  }
  return Outcome::kOk;
}

Outcome Actor::Share::admit() {
  actor_.refusing_ = q_;
  actor_.intend<Op::kAdmit>(q_, kNoIndex, mine_);
  Outcome outcome = actor_.admit_all(queue_, mine_, q_, flags_, cost_, charges_);
  if (outcome == Outcome::kMustDrop) {
    // A job of this queue may be replaced by one of another.
    actor_.foresee_leavers(batch_, q_, leavers_);
    outcome = actor_.admit_by_dropping(queue_, mine_, q_, cost_, charges_, leavers_, victims_);
  }
  if (outcome == Outcome::kOk) {
    actor_.intend_further(Op::kBatch, q_, kNoIndex);
    return outcome;
  }
  actor_.intend_nothing();
  if (outcome == Outcome::kQueueFull && actor_.tellings_.on())
    actor_.count_refusals(q_, specs_.size(), specs_.front().type);
  keep_victims();
  return outcome;
}

bool Actor::Share::all_leave(const Rivals& rivals) const {
  return std::ranges::all_of(leavers_, [&rivals](const Leaver& leaver) {
    const auto rival = std::ranges::find(rivals, leaver.slot, &Rival::slot);
    return rival != rivals.end() && rival->found.state() != kSlotActive;
  });
}

Outcome Actor::Share::fill(std::size_t i, JobId& id, std::uint32_t& slot) {
  const NewJob& spec = specs_[i];
  std::uint64_t filling = 0;
  slot = actor_.slots_.take(filling);
  if (slot == kNoIndex) return Outcome::kNoSlots;
  JobRecord& job = actor_.store_.job(slot);
  Outcome outcome =
      actor_.fill<false>(spec, JobForm(spec, parts_[i]), slot, job, actor_.store_.now_ms(), id);
  const unsigned ring = normal_ring(spec.rank);
  if (outcome == Outcome::kOk &&
      actor_.rings_.ensure(actor_.store_.rings_of(q_, parts_[i]), ring) == kNoIndex)
    outcome = Outcome::kNoRings;
  // NO CRASH POINT: the slot is held exclusively
  job.signals.store(place_in_batch(i) | (job.signals.load() & kAnnexed), Point::kNone);
  job.control.store(Control(filling).to(kSlotFilling, ring, actor_.owner_).word,
                    Point::kSlotFilling);
  return outcome;
}

void Actor::Share::mark_account(std::size_t i, JobRecord& job) const {
  const auto charge = std::ranges::find(charges_, specs_[i].tenant, &TenantCharge::tenant);
  if (charge == charges_.end()) return;
  // NO CRASH POINT: the slot is held exclusively
  job.account.store(AccountMark(job.generation.get(), charge->account).word, Point::kNone);
}

void Actor::Share::take_back_admission() { actor_.take_back_admission(mine_, q_, cost_, charges_); }

void Actor::Share::keep_victims() {
  actor_.end_refused_drop(queue_, q_, victims_);
  victims_.clear();
}

bool Actor::Share::settings_moved() {
  const std::uint64_t now = queue_.flags.load_seq_cst();
  if (now != flags_) queue_.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
  return (now & ~flags_ & kTenants) != 0;
}

void Actor::Share::wake() {
  for (std::size_t i = 0; i < specs_.size() && actor_.bell_.wake_one(queue_); ++i) {}
}

}  // namespace ojs_shm::engine
