// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/actor.hpp"
#include "engine/probes.hpp"
#include "engine/workflows.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// Puts the slot of a job that has ended where it is used again, at once or when new ones of its key
/// no longer mind it.
void Actor::list_ended(std::uint32_t slot, Control settled, const Kept& kept) {
  if (kept.until == 0) [[likely]]
    slots_.list(slot, settled);
  else if (kept.until != Uniqueness::kForEver)
    push_timer(slot, kept.generation, kept.until);
}

/// The last store of every ending. `recyclable`: the slot may be used again once its turn comes.
void Actor::finish(std::uint32_t slot, JobRecord& job, Control settled, bool recyclable) {
  const std::uint64_t signals = job.signals.load();
  if ((signals & (kWaited | kMember | kUnique)) != 0 || limiting() || tellings_.on()) [[unlikely]]
    return finish_with_options(slot, job, settled, recyclable, signals);
  intend_word(settled);
  recorder_.note(slot, job.generation.get(), Control(job.control.load()).state(), settled.state(),
                 job.finished_at.get());
  job.control.store(settled.word, Point::kSlotSettled);  // PAIR slot-settle
  if (recyclable) slots_.list(slot, settled);
  intend_nothing();
}

/// Of a job that is unique, waited for or a member of a workflow, or while there are limits or
/// events are told.
[[gnu::noinline]] void Actor::finish_with_options(std::uint32_t slot, JobRecord& job,
                                                  Control settled, bool recyclable,
                                                  std::uint64_t signals) {
  const Membership member = (signals & kMember) != 0 ? membership(job) : Membership();
  const std::uint32_t q = job.queue.get();
  const unsigned held = Control(job.control.load()).state();
  LimitList limits;
  if (limiting()) [[unlikely]]
    limits = give_limits(slot, job, held != kSlotMoving);
  intend_word(settled);
  recorder_.note(slot, job.generation.get(), held, settled.state(), job.finished_at.get());
  if (tellings_.on()) [[unlikely]]
    tellings_.ended(job, settled);
  const Kept kept = (signals & kUnique) != 0 ? kept_for(job, settled.state()) : Kept();
  job.control.store(settled.word, Point::kSlotSettled);  // PAIR slot-settle
  if ((signals & kMember) != 0) [[unlikely]]
    workflows().mark(member, settled.state() != kSlotCompleted);
  else if (recyclable)
    list_ended(slot, settled, kept);
  intend_nothing();
  if (!limits.empty()) [[unlikely]]
    let_begin(limits, q);
  if ((signals & (kWaited | kMember)) == 0) [[likely]]
    return;
  if ((signals & kMember) != 0) workflows().advance(member);
  if ((signals & kWaited) != 0) bell_.ring_completion(slot);
}

void Actor::retire() {
  slots_.close();
  if (rings_.has_leaks()) collect_leaks();
  rings_.release();
  tellings_.close();
  if (self_.counters[kLimitsHeld].get() != 0)
    self_.counters[kLimitsHeld].set_ordered(0, Point::kLimitsHeld);
}

/// Adds one entry; the oldest go when there are more than 16 or when they would outgrow a body.
void Actor::append_error(std::uint32_t slot, JobRecord& job, const ErrorEntry& error) {
  const std::uint32_t generation = job.generation.get();
  std::string bytes;
  shm::Blocks::read(segment_, job.errors_block.get(), slot, generation, job.errors_length.get(),
                    bytes);
  std::string kept;
  const std::vector<ErrorEntry> before = decode_errors(bytes);
  for (std::size_t i = before.size() > 15 ? before.size() - 15 : 0; i < before.size(); ++i)
    kept += encode_error(before[i]);
  const std::string fresh = encode_error(error);
  if (kept.size() + fresh.size() > store_.max_body()) kept.clear();
  kept += fresh;
  const std::uint32_t block = slots_.write(slot, generation, kept);
  if (block == kNoIndex) return;  // no memory for the text: the transition goes on without it
  const std::uint32_t old = job.errors_block.get();
  job.errors_block.set(block);
  job.errors_length.set(static_cast<std::uint32_t>(kept.size()));
  if (old != kNoIndex) slots_.free_text(old, slot, generation);
}

/// A job that comes back is never refused, so a bounded queue may stand above its bound by the jobs
/// that were active.
void Actor::charge_return(QueueRecord& queue, std::uint32_t q, std::uint64_t cost) {
  QueueTally& mine = tally(q);
  if ((queue.flags.load() & kBounded) == 0) {
    mine.in.set_ordered(mine.in.get() + cost, Point::kTallyIn);
    return;
  }
  queue.reserved.fetch_add(cost, Point::kCreditReserved);
  mine.in_reserved.set_ordered(mine.in_reserved.get() + cost, Point::kTallyReserved);
}

void Actor::charge_return(QueueRecord& queue, std::uint32_t q, JobRecord& job, std::uint64_t cost) {
  if ((queue.flags.load() & kTenants) != 0 || AccountMark(job.account.load()).marked()) [[unlikely]]
    charge_return_to_tenant(queue, q, job, cost);
  charge_return(queue, q, cost);
}

/// From exclusively held to available. Without a chunk for its hint the job stays where the next
/// mending finds it.
void Actor::make_available(QueueRecord& queue, std::uint32_t slot, JobRecord& job, Control held,
                           unsigned ring, std::uint64_t now, bool keeps_place) {
  if (!keeps_place) job.available_at.set(now);
  const bool was_held = held.state() == kSlotClaimed || held.state() == kSlotSettling;
  LimitList limits;
  if (limiting()) [[unlikely]]
    limits = give_limits(slot, job, was_held);
  // The ring from which the job once came exists; its front ring may be the one too many.
  shm::RingSet& rings = store_.rings_of(job);
  std::uint32_t place = rings_.ensure(rings, ring);
  if (place == kNoIndex) place = rings_.ensure(rings, ring = normal_ring(rank_of_ring(ring)));
  const Control available = held.to(kSlotAvailable, ring, 0);
  intend_word(available);
  recorder_.note(slot, job.generation.get(), held.state(), kSlotAvailable,
                 now != 0 ? now : store_.now_ms());
  if (tellings_.on() && now != 0) [[unlikely]]  // a repair only puts back what was there
    tellings_.tell(EventKind::kJobEnqueued, job, available);
  job.control.store(available.word, Point::kSlotPublished);
  if (!stand_in_line(queue.flags.load(), rings, place, slot, available)) announce_lost_hint();
  intend_nothing();
  count_backlog(queue, 1);
  bell_.wake_one(queue);
  if (was_held && !limits.empty()) [[unlikely]]
    let_begin(limits, job.queue.get());
}

Settled Actor::set_back(std::uint32_t slot, std::uint64_t word, Setback why,
                        const ErrorEntry* error) {
  JobRecord& job = store_.job(slot);
  const Control active(word);
  const std::uint32_t q = job.queue.get();
  QueueRecord& queue = store_.queue(q);
  intend<Op::kReturn>(q, slot, tally(q));
  const Control held = active.to(kSlotSettling, active.ring(), owner_);
  if ((active.state() != kSlotActive && active.state() != kSlotSettling &&
       active.state() != kSlotClaimed) ||
      !job.control.cas_once(word, held.word, Point::kSlotSettling)) {
    intend_nothing();
    return {Outcome::kLost, JobState::kActive, 0, 0};
  }
  const std::uint64_t now = store_.now_ms();
  const Policy policy = job.flags();
  const std::uint16_t attempt = job.attempt.get();
  const std::uint64_t cost = charge(1, job.body_length());
  const unsigned rank = rank_of_ring(active.ring());
  if (error != nullptr) append_error(slot, job, *error);
  if (tellings_.on() && (why == Setback::kExecutionTimeout || why == Setback::kLeaseExpiry))
    tellings_.timed_out(job, held, now, why == Setback::kExecutionTimeout);
  if (why == Setback::kNack || why == Setback::kExecutionTimeout)
    waits_.count_run(q, static_cast<std::uint8_t>(rank), now, job.started_at.get());

  if (why == Setback::kRequeue || why == Setback::kDrain) {
    if (attempt > 0) job.attempt.set(static_cast<std::uint16_t>(attempt - 1));
    charge_return(queue, q, job, cost);
    queue.returned.fetch_add(1, Point::kCounterMoved);
    OJS_SHM_PROBE4(return, job.id_hi.get(), job.id_lo.get(), q, static_cast<unsigned>(why));
    make_available(queue, slot, job, held, front_ring(rank), now, true);
    return {Outcome::kOk, JobState::kAvailable, 0, 0};
  }
  const bool exhausted = attempt >= std::max<std::uint16_t>(policy.max_attempts(), 1) ||
                         ((job.signals.load() & kMember) != 0 && !workflow_runs(store_, job));
  if (exhausted || (error != nullptr && !error->retryable)) {
    job.finished_at.set(now);
    if (policy.has(Policy::kDeadLetter)) job.policy.set(policy.word | Policy::kDead);
    queue.discarded.fetch_add(1, Point::kCounterMoved);
    OJS_SHM_PROBE4(nack, job.id_hi.get(), job.id_lo.get(), q, attempt);
    finish(slot, job, held.to(kSlotDiscarded), !policy.has(Policy::kDeadLetter));
    return {Outcome::kOk, JobState::kDiscarded, 0, 0};
  }
  if (why == Setback::kHolderDeath || why == Setback::kLeaseExpiry) {
    charge_return(queue, q, job, cost);
    queue.returned.fetch_add(1, Point::kCounterMoved);
    OJS_SHM_PROBE4(return, job.id_hi.get(), job.id_lo.get(), q, static_cast<unsigned>(why));
    const bool front = why == Setback::kHolderDeath;
    if (tellings_.on()) [[unlikely]]
      tellings_.failed(job, held, now);
    make_available(queue, slot, job, held, front ? front_ring(rank) : normal_ring(rank), now,
                   front);
    return {Outcome::kOk, JobState::kAvailable, 0, 0};
  }
  const RetryPolicy retry{policy.max_attempts(),
                          job.initial_ms.get(),
                          job.max_ms.get(),
                          std::bit_cast<float>(job.coefficient.get()),
                          policy.backoff(),
                          policy.has(Policy::kJitter),
                          policy.has(Policy::kDeadLetter)};
  random_ = random_ * 0x5851F42D4C957F2DULL + 0x14057B7EF767814FULL;
  const std::uint32_t delay = retry_delay_ms(retry, attempt, random_ >> 1);
  job.retry_delay_ms.set(delay);
  job.due_at.set(now + delay);
  charge_return(queue, q, job, cost);
  queue.retried.fetch_add(1, Point::kCounterMoved);
  OJS_SHM_PROBE4(nack, job.id_hi.get(), job.id_lo.get(), q, attempt);
  const std::uint32_t generation = job.generation.get();
  LimitList limits;
  if (limiting()) [[unlikely]]
    limits = give_limits(slot, job, true);
  intend_word(held.to(kSlotRetryable));
  recorder_.note(slot, generation, kSlotSettling, kSlotRetryable, now);
  if (tellings_.on()) [[unlikely]] {
    tellings_.failed(job, held, now);
    tellings_.tell(EventKind::kJobRetrying, job, held.to(kSlotRetryable), now + delay);
  }
  job.control.store(held.to(kSlotRetryable).word, Point::kSlotSettled);
  push_timer(slot, generation, now + delay);
  intend_nothing();
  if (!limits.empty()) [[unlikely]]
    let_begin(limits, q);
  return {Outcome::kOk, JobState::kRetryable, delay, now + delay};
}

Outcome Actor::heartbeat(std::uint32_t slot, std::uint64_t word, std::uint32_t lease_ms,
                         std::uint64_t& until) {
  JobRecord& job = store_.job(slot);
  const std::uint64_t now = store_.now_ms();
  std::uint64_t found = job.deadline.load();
  for (;;) {
    if (job.control.load() != word || !Deadline(found).belongs_to(Control(word).tag()) ||
        Deadline(found).ms() == 0)
      return Outcome::kLost;
    const std::uint32_t lease = lease_ms != 0 ? lease_ms : job.lease_in_force_ms.get();
    until = now + lease;
    if (const std::uint32_t timeout = job.timeout_ms.get(); timeout != 0)
      until = std::min(until, job.started_at.get() + timeout);
    // The supervisor ends a lease by a cas on this very word, so either it sees the longer lease or
    // we see its end.
    if (job.deadline.cas(found, Deadline(until, Control(word).tag()).word,
                         Point::kLeaseMoved)) {  // PAIR lease
      note_lease(lease, now);
      if (tellings_.on()) [[unlikely]]
        tellings_.held(EventKind::kJobHeartbeat, job, Control(word), until);
      return job.control.load() == word ? Outcome::kOk : Outcome::kLost;
    }
  }
}

/// The tag stays: it is the fence by which the client names its attempt.
Outcome Actor::hand_over(std::uint32_t slot, std::uint64_t word) {
  const Control active(word);
  const Control leased(kSlotActive, active.ring(), shm::kLeaseOwner, active.tag());
  const bool held = active.state() == kSlotActive && active.owner() != shm::kLeaseOwner;
  return held && store_.job(slot).control.cas_once(word, leased.word, Point::kSlotHandedOver)
             ? Outcome::kOk
             : Outcome::kLost;
}

Outcome Actor::progress(std::uint32_t slot, std::uint64_t word, double fraction) {
  JobRecord& job = store_.job(slot);
  const auto value = static_cast<std::uint64_t>(std::clamp(fraction, 0.0, 1.0) * 10'000) + 1;
  std::uint64_t found = job.signals.load();
  for (;;) {
    if (job.control.load() != word) return Outcome::kLost;
    if ((found & kProgressMask) >= value) return Outcome::kOk;  // never backwards
    if (!job.signals.cas(found, (found & ~kProgressMask) | value, Point::kProgressSet)) continue;
    if (tellings_.on()) [[unlikely]]
      tellings_.held(EventKind::kJobProgress, job, Control(word), value - 1);
    return Outcome::kOk;
  }
}

}  // namespace ojs_shm::engine
