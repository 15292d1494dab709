// SPDX-License-Identifier: Apache-2.0
#include "engine/enqueue/filler.hpp"

#include "engine/tables/own_times.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

/// The bits that make it one come last.
[[gnu::noinline]] void write_annex(const NewAnnex& spec, JobRecord& job) {
  Annex& annex = job.annex();
  annex.key_hi.set(spec.key_hi);
  annex.key_lo.set(spec.key_lo);
  annex.uniqueness.set(spec.uniqueness);
  annex.workflow.set(spec.workflow);
  annex.workflow_generation.set(spec.workflow_generation);
  annex.node.set(spec.node);
  annex.cron.set(spec.cron);
  annex.cron_life.set(spec.cron_life);
  // NO CRASH POINT: the slot is held exclusively
  job.signals.store(spec.bits, Point::kNone);
}

/// Behind the annex.
[[gnu::noinline]] void write_times(const NewTimes& spec, JobRecord& job) {
  OwnTimes& times = job.own_times();
  times.expires_at.set(job.expires_at.get());
  times.enqueue_ttl_s.set(spec.enqueue_ttl_s);
  times.total_timeout_s.set(spec.total_timeout_s);
  times.grace_s.set(spec.grace_s);
  times.reserved.set(0);
  // NO CRASH POINT: the slot is held exclusively
  job.signals.store(job.signals.load() | kOwnTimes, Point::kNone);
  set_end(job, false);
}

}  // namespace

OJS_SHM_INLINE JobId Filler::next_id(std::uint64_t now, std::uint32_t slot,
                                     std::uint32_t generation) {
  const IdClock::Stamp stamp = clock_.next(now);
  return make_id(stamp.unix_ms, stamp.seq, slot, generation, segment_.header().salt);
}

template <bool kPlain, class Spec>
Outcome Filler::fill(const Spec& spec, const JobForm& form, std::uint32_t slot, JobRecord& job,
                     std::uint64_t now, JobId& id, std::uint64_t signals) {
  const std::uint32_t generation = job.generation.get() + 1;
  if constexpr (kPlain)
    id = next_id(now, slot, generation);
  else
    id = spec.id ? *spec.id : next_id(now, slot, generation);
  // In pairs where two stand side by side: half as many stores.
  // NO CRASH POINT: the slot is held exclusively; its record is judged by the control word
  job.deadline.store(0, Point::kNone);
  // NO CRASH POINT: as above
  job.signals.store(signals, Point::kNone);
  job.generation.set(generation);
  job.queue.set(static_cast<std::uint16_t>(spec.queue));
  job.attempt.set(0);
  job.started_at.set(0);
  job.finished_at.set(0);
  shm::set_both(job.lease_in_force_ms, job.pool_word, 0);
  job.available_at.set(now);
  job.id_hi.set(id.hi);
  job.id_lo.set(id.lo);
  job.expires_at.set(spec.expires_at);
  job.created_at.set(now);
  shm::set_both(job.timeout_ms, job.lease_ms, form.times);
  shm::set_both(job.type_args, job.extra_length,
                shm::both(static_cast<std::uint32_t>(spec.type.size() << 24 | spec.args.size()),
                          static_cast<std::uint32_t>(spec.extra.size())));
  shm::set_both(job.body_block, job.policy, form.policy);
  if constexpr (kPlain)
    job.limits.set(0), job.tenant.set(0);
  else
    job.limits.set(spec.limit), job.tenant.set(spec.tenant);
  // NO CRASH POINT: as above
  job.account.store(AccountMark(generation, kNoIndex).word, Point::kNone);
  job.due_at.set(spec.scheduled_at);
  job.scheduled_at.set(spec.scheduled_at);
  shm::set_both(job.initial_ms, job.max_ms, form.pauses);
  shm::set_both(job.coefficient, job.retry_delay_ms, form.growth);
  shm::set_both(job.result_block, job.errors_block, shm::both(kNoIndex, kNoIndex));
  shm::set_both(job.result_length, job.errors_length, 0);
  bool is_short = true;
  if constexpr (!kPlain) is_short = spec.size() <= spec.inline_room();
  if (is_short) {
    // NO CRASH POINT: as above
    shm::copy_in<kInlineBytes>(job.inline_bytes, spec.type, spec.args, spec.extra);
  } else if constexpr (!kPlain) {
    const std::uint32_t block = write_body(slot, generation, spec);
    if (block == kNoIndex) return Outcome::kNoBlocks;
    job.body_block.set(block);
  }
  if constexpr (!kPlain) {
    if (spec.annex != nullptr) write_annex(*spec.annex, job);
    if (spec.times.any()) write_times(spec.times, job);
    if (spec.id) return slots_.add_id(id, slot);
  }
  return Outcome::kOk;
}

[[gnu::noinline]] std::uint32_t Filler::write_body(std::uint32_t slot, std::uint32_t generation,
                                                   const NewJob& spec) {
  std::string bytes;
  bytes.reserve(spec.size());
  bytes.append(spec.type).append(spec.args).append(spec.extra);
  return slots_.write(slot, generation, bytes);
}

template Outcome Filler::fill<true>(const PlainJob&, const JobForm&, std::uint32_t, JobRecord&,
                                    std::uint64_t, JobId&, std::uint64_t);
template Outcome Filler::fill<true>(const NewJob&, const JobForm&, std::uint32_t, JobRecord&,
                                    std::uint64_t, JobId&, std::uint64_t);
template Outcome Filler::fill<false>(const NewJob&, const JobForm&, std::uint32_t, JobRecord&,
                                     std::uint64_t, JobId&, std::uint64_t);

Outcome Filler::publish(std::uint64_t flags, shm::RingSet& rings, std::uint32_t slot,
                        JobRecord& job, Control filling, unsigned number, JobState state) {
  const Control published = filling.to(slot_state(state), number, 0);
  const std::uint64_t timer = timer_of(job, published.state());
  const std::uint32_t generation = timer != 0 ? job.generation.get() : 0;
  // also of one that waits: it must find it when it is due
  std::uint32_t ring = rings_.ensure(rings, number);
  const auto ensure = [&] { return (ring = rings_.ensure(rings, number)) != kNoIndex; };
  if (ring == kNoIndex && !relieved(ensure)) [[unlikely]]
    return Outcome::kNoRings;
  intend_word(published);
  if (state == JobState::kPending)
      [[unlikely]]  // needs no hint: a full barrier between our charge and the look at the bounds
    job.control.exchange(published.word, Point::kSlotPublished);
  else
    job.control.store(published.word, Point::kSlotPublished);  // PAIR slot-publish
  if (state == JobState::kAvailable && !stand_in_line(flags, rings, ring, slot, published))
      [[unlikely]] {
    intend_undo();  // it is no longer to be finished
    if (job.control.cas_once(published.word, published.to(kSlotFilling, number, owner_).word,
                             Point::kSlotFilling))
      return Outcome::kNoChunks;
  }
  if (timer != 0) [[unlikely]]
    push_timer(slot, generation, timer);
  return Outcome::kOk;
}

Outcome Filler::fill_aside(const NewJob& spec, std::uint32_t slot, JobId& id) {
  return fill<false>(spec, JobForm(spec), slot, store_.job(slot), store_.now_ms(), id);
}

/// The settings changed while an enqueue was on its way: cached sums are read again, and its jobs
/// come into accounts if tenants are bounded now.
[[gnu::noinline]] void Filler::settings_moved(QueueRecord& queue, std::uint64_t before,
                                              std::uint64_t now) {
  queue.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
  intend_nothing();
  if ((now & ~before & kTenants) != 0) gather_accounts(store_.number_of(queue), kPatience);
}

}  // namespace ojs_shm::engine
