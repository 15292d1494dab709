// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "engine/straight/straight_way.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tables/probes.hpp"

// How a claimed job begins. What is read of it goes into a Fetched, or into whatever has places of
// the same names.

namespace ojs_shm::engine {

/// Writes into the record of a claimed job all but its attempt. What is copied out is read once, in
/// the order in which it lies there. Returns the size of the body.
template <class Out>
OJS_SHM_INLINE std::uint64_t StraightFetch::begin(JobRecord& job, Control active,
                                                  std::uint32_t lease_ms, std::uint64_t now,
                                                  Out& out) {
  out.word = active.word;
  if (job.pool_word.get() != pool_worker_.pool_word()) [[unlikely]]
    job.pool_word.set(pool_worker_.pool_word());
  out.id = job.id();
  out.rank = rank_of_ring(active.ring());
  out.attempt = static_cast<std::uint16_t>(job.attempt.get() + 1);
  out.available_at = job.available_at.get();
  out.created_at = job.created_at.get();
  out.started_at = now;
  job.started_at.set(now);
  out.max_attempts = job.flags().max_attempts();
  const std::uint32_t type_args = job.type_args.get();
  const std::uint32_t type_length = type_args >> 24, args_length = type_args & 0xFF'FFFF;
  out.type_length = type_length;
  out.args_length = args_length;
  const std::uint64_t size = std::uint64_t{type_length} + args_length + job.extra_length.get();
  std::uint32_t lease = lease_ms;
  if (lease == 0) lease = job.lease_ms.get();
  if (lease == 0) lease = store_.default_lease_ms();
  job.lease_in_force_ms.set(lease);
  std::uint64_t deadline = now + lease;
  const std::uint32_t timeout = job.timeout_ms.get();
  out.timeout_ms = timeout;
  if (timeout != 0) [[unlikely]]
    deadline = std::min(deadline, now + longest_run_ms(job));
  out.deadline = deadline;
  // NO CRASH POINT: means nothing before the slot is active
  job.deadline.store(Deadline(deadline, active.tag()).word, shm::Point::kNone);
  if (job.body_block.get() == kNoIndex && size <= kInlineBytes) [[likely]] {
    out.body->resize(size);
    shm::copy_out(out.body->data(), job.inline_bytes, size);
  } else {
    read_blocks(out.slot, job, size, *out.body);
    const auto whole = static_cast<std::uint32_t>(out.body->size());
    if (std::uint64_t{type_length} + args_length > whole) {  // a stranger's lengths
      out.type_length = std::min(type_length, whole);
      out.args_length = whole - std::min(type_length, whole);
    }
  }
  return size;
}

/// Completes a claim: the record first, then the control word that makes the job active.
template <class Out>
void StraightFetch::take(JobRecord& job, Control claimed, QueueTally& mine, std::uint32_t lease_ms,
                         bool lease_owned, std::uint64_t now, Out& out) {
  const Control active = claimed.to(kSlotActive, lease_owned ? shm::kLeaseOwner : owner_);
  const std::uint64_t size = begin(job, active, lease_ms, now, out);
  job.attempt.set(out.attempt);
  uncharge_tenant(out.slot, job);
  mine.out.set_ordered(mine.out.get() + charge(1, size), shm::Point::kTallyOut);
  mine.dispatched.set_ordered(mine.dispatched.get() + 1, shm::Point::kCounterMoved);
  recorder_.note(out.slot, job.generation.get(), kSlotAvailable, kSlotActive, now);
  job.control.store(active.word, shm::Point::kSlotActive);  // PAIR slot-active
  intend_nothing();
  ++taken_;
  waits_.count(out.queue, out.rank, now, out.created_at, out.available_at);
  const JobId id = out.id;
  OJS_SHM_PROBE6(fetch, id.hi, id.lo, out.queue, out.rank, now - std::min(now, out.available_at),
                 out.slot);
  if (tellings_.on()) [[unlikely]]
    // a copy, so that the usual way keeps what it fetched in registers
    tell_start({now, active.tag(), id, out.queue, out.attempt, out.max_attempts, out.rank,
                WorkerKey(pool_worker_.pool_word())},
               job, active);
  note_lease(out.deadline - now, now);
  if (current_.queue->attention.load() != 0) [[unlikely]]
    room_made(*current_.queue, current_.number);
}

}  // namespace ojs_shm::engine
