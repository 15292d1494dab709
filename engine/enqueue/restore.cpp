// SPDX-License-Identifier: Apache-2.0
#include "engine/enqueue/restore.hpp"

#include <algorithm>

#include "engine/enqueue/filler.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/tables/own_times.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

/// A job that is to wait here: it is charged to its queue, a finished one is not.
bool waits(const PastJob& past) { return !is_finished(slot_state(past.state)); }

Policy past_policy(const PastJob& past, Policy fresh) {
  fresh = past.previous ? fresh.with_previous(slot_state(*past.previous)) : fresh;
  if (past.expired) fresh = fresh.with_previous(static_cast<unsigned>(past.time_up));
  return {fresh.word | (past.expired ? Policy::kExpired : 0) | (past.dead ? Policy::kDead : 0)};
}

}  // namespace

/// An enqueue that remembers: 1. the charge, which no bound refuses, for the job was accepted once;
/// 2. a slot, filled in private with the job and its past: a death frees it; 3. the publication in
/// the state that it had, which a death undoes or finishes. So a killed import leaves the whole job
/// or nothing of it.
Outcome Filler::restore(const PastJob& past) {
  const NewJob& spec = past.job;
  const LimitsHold hold(store_, limits_held(), std::span(&spec, 1));
  if (!hold.stand()) return Outcome::kLimitsMoved;
  QueueRecord& queue = store_.queue(spec.queue);
  QueueTally& mine = tally(spec.queue);
  const std::uint64_t size = spec.size();
  if (std::max<std::uint64_t>({size, past.result.size(), past.errors.size()}) > store_.max_body())
    return Outcome::kTooLarge;
  const std::uint64_t cost = charge(1, size);
  const std::uint64_t flags = queue.flags.load();
  unsigned part = 0;
  if (const Outcome chosen = order().choose_part(spec, queue, part); chosen != Outcome::kOk)
    return chosen;
  intend<Op::kAdmit>(spec.queue, kNoIndex, mine);
  TenantCharge tenant{spec.tenant, cost};
  std::uint64_t used = 0;
  if (waits(past) && (flags & kTenants) != 0) charge_account(spec.queue, tenant, {}, 0, used);
  if (waits(past)) charge_return(queue, spec.queue, cost);  // 1
  intend_further(Op::kEnqueue, spec.queue, kNoIndex);
  std::uint64_t word = 0;
  const std::uint32_t slot = slots_.take(word);  // 2
  if (slot == kNoIndex) {
    take_back_admission(mine, spec.queue, cost, std::span(&tenant, 1));
    intend_nothing();
    return Outcome::kNoSlots;
  }
  JobRecord& job = store_.job(slot);
  Control filling(word);
  if (past.fence > filling.tag()) {
    filling = Control(kSlotFilling, 0, owner_, past.fence);
    job.control.store(filling.word, Point::kSlotFilling);
  }
  JobId id;
  Outcome outcome = fill<false>(spec, JobForm(spec, part), slot, job, store_.now_ms(), id);
  if (outcome == Outcome::kOk) outcome = remember(past, slot, job);
  if (outcome == Outcome::kOk && spec.unique())
    outcome = claim_past_key(*spec.annex, waits(past), slot);
  // NO CRASH POINT: the slot is held exclusively
  job.account.store(AccountMark(job.generation.get(), tenant.account).word, Point::kNone);
  intend_further(Op::kEnqueue, spec.queue, slot);
  const bool available = (past.state == JobState::kScheduled ||
                          past.state == JobState::kAvailable || past.state == JobState::kActive) &&
                         job.birth_state() == JobState::kAvailable;
  if (outcome == Outcome::kOk) {
    if (waits(past)) mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
    outcome = publish_past(past, store_.rings_of(spec.queue, part), slot, job, filling);  // 3
  }
  if (outcome == Outcome::kOk) {
    const std::uint64_t now_flags = queue.flags.load_seq_cst();
    if (waits(past) && now_flags != flags) settings_moved(queue, flags, now_flags);
    intend_nothing();
    if (available) count_backlog(queue, 1);
    if (waits(past)) bell_.wake_one(queue);
    return outcome;
  }
  take_back_admission(mine, spec.queue, cost, std::span(&tenant, 1));
  slots_.free(slot, Control(job.control.load()));
  intend_nothing();
  return outcome;
}

/// What fill() could not know.
Outcome Filler::remember(const PastJob& past, std::uint32_t slot, JobRecord& job) {
  job.policy.set(past_policy(past, job.flags()).word);
  job.attempt.set(past.attempt);
  if (past.created_at != 0) job.created_at.set(past.created_at);
  if (past.available_at != 0) job.available_at.set(past.available_at);
  job.started_at.set(past.started_at);
  job.finished_at.set(past.finished_at);
  job.retry_delay_ms.set(past.retry_delay_ms);
  job.due_at.set(past.state == JobState::kScheduled   ? past.job.scheduled_at
                 : past.state == JobState::kRetryable ? past.retry_at
                                                      : 0);
  ReportWord signals(job.signals.load() & kAnnexed);
  if (past.progress || !past.report.empty()) {
    std::uint32_t texts = kNoIndex;
    if (!past.report.empty()) {
      texts = slots_.write(slots_.texts().next_made_word(slot, job.generation.get()),
                           encode_report(past.report));
      if (texts == kNoIndex) return Outcome::kNoBlocks;
    }
    signals =
        signals.with(past.progress ? ReportWord::parts_of(*past.progress) : 0, past.attempt, texts);
  }
  // NO CRASH POINT: the slot is held exclusively; its record is judged by the control word
  job.signals.store(signals.word, Point::kNone);
  if (job.timed()) set_end(job, past.attempt != 0);
  // what has not ended has none
  const std::string_view result = waits(past) ? std::string_view() : past.result;
  for (const auto& [text, block, length] :
       {std::tuple(result, &job.result_block, &job.result_length),
        std::tuple(past.errors, &job.errors_block, &job.errors_length)}) {
    if (text.empty()) continue;
    const std::uint32_t first = slots_.write(slot, job.generation.get(), text);
    if (first == kNoIndex) return Outcome::kNoBlocks;
    block->set(first);                                     // NO CRASH POINT: as above
    length->set(static_cast<std::uint32_t>(text.size()));  // NO CRASH POINT: as above
  }
  return Outcome::kOk;
}

Outcome Filler::publish_past(const PastJob& past, shm::RingSet& rings, std::uint32_t slot,
                             JobRecord& job, Control filling) {
  const unsigned number = normal_ring(past.job.rank);
  if (waits(past) && past.state != JobState::kRetryable) {
    const JobState state = job.birth_state();
    const std::uint32_t generation = job.generation.get();
    const Outcome outcome = publish(store_.queue(past.job.queue).flags.load(), rings, slot, job,
                                    filling, number, state);
    if (outcome == Outcome::kOk)
      recorder_.note(slot, generation, kSlotFree, slot_state(state), store_.now_ms());
    return outcome;
  }
  const auto ensure = [&] { return rings_.ensure(rings, number) != kNoIndex; };
  // it must find its ring when it comes back
  if ((waits(past) || past.dead) && !ensure() && !relieved(ensure)) return Outcome::kNoRings;
  const Control held(kSlotFilling, number, owner_, filling.tag());
  Move move =
      waits(past) ? *move_of(Event::kPushScheduled, kSlotFree) : *move_of(Event::kAck, kSlotActive);
  move.to = slot_state(past.state);
  move.depth = Depth::kSame;
  land(move, slot, job, held, waits(past) ? 0 : store_.now_ms());
  return Outcome::kOk;
}

}  // namespace ojs_shm::engine
