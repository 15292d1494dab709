// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/limits/rates.hpp"
#include "engine/moves/changer.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tables/probes.hpp"
#include "engine/workflows/workflows.hpp"

namespace ojs_shm::engine {

using shm::Point;

Changer::Changer(Store& store, std::uint32_t lane)
    : Holder(store, lane), waits_(store, lane), random_(shm::random_u64()) {}

/// Adds one entry; the oldest go when there are more than 16 or when they would outgrow a body.
void Changer::append_error(std::uint32_t slot, JobRecord& job, const ErrorEntry& error) {
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
  if (old != kNoIndex) slots_.texts().free(old, slot, generation);
}

/// Keeps other jobs of the job's own limit from beginning until then. After a death in between the
/// key is closed all the same.
void Changer::close_limit(const JobRecord& job, Control held, std::uint64_t until) {
  const std::uint32_t own = own_limit(job.limits.get());
  if (until == 0 || own >= store_.limit_keys.size()) return;
  Rates::close(store_.limit_keys[own], until);
  if (tellings_.on()) tellings_.limit_closed(job, held, own, until);
}

namespace {

/// What the end of an attempt is: the last one, or one after which another may follow.
struct Ending {
  Setback why;
  Event last, again;
};
constexpr Ending kEndings[] = {
    {Setback::kNack, Event::kNackDiscard, Event::kNackRetry},
    {Setback::kRequeue, Event::kRequeue, Event::kRequeue},
    {Setback::kHolderDeath, Event::kHolderDeathExhausted, Event::kHolderDeath},
    {Setback::kLeaseExpiry, Event::kLeaseExpiryExhausted, Event::kLeaseExpiry},
    {Setback::kExecutionTimeout, Event::kExecutionTimeoutExhausted, Event::kExecutionTimeout},
    // it ran too long, whatever the retries
    {Setback::kTotalTimeout, Event::kExecutionTimeoutExhausted, Event::kExecutionTimeoutExhausted},
    {Setback::kDrain, Event::kRequeue, Event::kRequeue},
};

/// Whether another attempt, from then on, could not be done within the job's total timeout. Source:
/// ojs-timeouts 9.1.
bool comes_too_late(const JobRecord& job, std::uint64_t when) {
  const std::uint64_t end = total_end(job);
  return end != 0 && end < when + job.timeout_ms.get();
}

/// Whether a job that ends so is kept as a dead letter.
bool is_buried(Policy policy, const ErrorEntry* error) {
  const Exhaustion exhaustion = error == nullptr ? Exhaustion::kByPolicy : error->exhaustion;
  return exhaustion == Exhaustion::kByPolicy ? policy.has(Policy::kDeadLetter)
                                             : exhaustion == Exhaustion::kDeadLetter;
}

}  // namespace

Settled Changer::set_back(std::uint32_t slot, std::uint64_t word, Setback why,
                          const ErrorEntry* error) {
  JobRecord& job = store_.job(slot);
  const Control active(word);
  const std::uint32_t q = job.queue.get();
  hold_on(Op::kReturn, slot, kSlotActive);
  const Control held = active.to(kSlotSettling, active.ring(), owner_);
  // A job that a lane changes just now is set back by that lane alone, or by its repairer.
  const bool ours = active.state() == kSlotActive ||
                    ((active.state() == kSlotSettling || active.state() == kSlotClaimed) &&
                     active.owner() == owner_);
  if (!ours || !job.control.cas_once(word, held.word, Point::kSlotSettling)) {
    intend_nothing();
    return {Outcome::kLost, JobState::kActive, 0, 0};
  }
  const std::uint64_t now = store_.now_ms();
  const Policy policy = job.flags();
  const std::uint16_t attempt = job.attempt.get();
  const std::uint8_t rank = rank_of_ring(active.ring());
  if (error != nullptr) {
    append_error(slot, job, *error);
    close_limit(job, held, error->close_limit_until);
  }
  if (why == Setback::kNack || why == Setback::kExecutionTimeout)
    waits_.count_run(q, rank, now, job.started_at.get());

  const bool exhausted = attempt >= std::max<std::uint16_t>(policy.max_attempts(), 1) ||
                         ((job.signals.load() & kMember) != 0 && !workflow_runs(store_, job));
  const bool again = !exhausted && (error == nullptr || error->retryable);
  const Ending& ending = *std::ranges::find(kEndings, why, &Ending::why);
  const Move* next = move_of(again ? ending.again : ending.last, kSlotActive);
  std::uint32_t delay = 0;
  if (next->to == kSlotRetryable) {
    random_ = random_ * 0x5851F42D4C957F2DULL + 0x14057B7EF767814FULL;
    delay = retry_delay_ms(retry_of(job), attempt, random_);
  }
  if (job.timed()) [[unlikely]] {
    if (comes_too_late(job, now + delay)) next = move_of(ending.last, kSlotActive);
    set_end(job, true);
  }
  const Move& move = *next;
  if (move.to != kSlotDiscarded && (policy.word & Policy::kEndMarks) != 0) [[unlikely]]
    job.policy.set(policy.word & ~Policy::kEndMarks);  // of an end that a death undid
  if (move.to == kSlotDiscarded) {
    job.finished_at.set(now);
    if (is_buried(policy, error)) job.policy.set(policy.word | Policy::kDead);
  } else if (move.to == kSlotRetryable) {
    job.retry_delay_ms.set(delay);
    job.due_at.set(now + delay);
  } else if (move.event == Event::kRequeue) {
    withdraw_report(job);
    if (attempt > 0) job.attempt.set(static_cast<std::uint16_t>(attempt - 1));
  }
  if (tellings_.on() && (why == Setback::kExecutionTimeout || why == Setback::kLeaseExpiry))
    tellings_.timed_out(job, held.to(move.to), now, why == Setback::kExecutionTimeout);
  if (tellings_.on() && why == Setback::kTotalTimeout)
    tellings_.time_is_up(job, held, now, TimeUp::kTotalTimeout);
  if (move.to == kSlotAvailable)
    OJS_SHM_PROBE4(return, job.id_hi.get(), job.id_lo.get(), q, static_cast<unsigned>(why));
  else
    OJS_SHM_PROBE4(nack, job.id_hi.get(), job.id_lo.get(), q, attempt);
  land(move, slot, job, held, now);
  return {Outcome::kOk, job_state(move.to), delay, move.to == kSlotRetryable ? now + delay : 0};
}

}  // namespace ojs_shm::engine
