// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/probes.hpp"
#include "engine/straight_way.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// The body of a job that does not lie in its record.
[[gnu::noinline]] void StraightWay::read_blocks(std::uint32_t slot, const JobRecord& job,
                                                std::uint64_t size, std::string& body) const {
  body.clear();
  shm::Blocks::read(segment_, job.body_block.get(), slot, job.generation.get(), size, body);
  body.resize(std::min<std::uint64_t>(size, std::uint64_t{store_.max_body()} + kInlineBytes));
}

/// Of a workflow's first job also that the workflow begins. The lease may have been ended meanwhile, and
/// the slot used again.
[[gnu::noinline]] void StraightWay::tell_start(const Start& start, const JobRecord& job,
                                               Control active) {
  if ((job.signals.load() & kMember) != 0) {
    const Membership member = membership(job);
    if (job.control.load() == active.word) workflow_begins(member);
  }
  tellings_.started(start);
}

/// Completes a claim: the record first, then the control word that makes the job active. What is
/// copied out is read once, in the order in which it lies there.
void StraightWay::take(JobRecord& job, Control claimed, QueueTally& mine, std::uint32_t lease_ms,
                       bool lease_owned, std::uint64_t now, Fetched& out) {
  const Control active = claimed.to(kSlotActive, lease_owned ? shm::kLeaseOwner : owner_);
  out.word = active.word;
  if (job.pool_word.get() != pool_worker_.pool_word()) [[unlikely]]
    job.pool_word.set(pool_worker_.pool_word());
  out.id = job.id();
  out.rank = rank_of_ring(claimed.ring());
  out.attempt = static_cast<std::uint16_t>(job.attempt.get() + 1);
  job.attempt.set(out.attempt);
  out.available_at = job.available_at.get();
  out.created_at = job.created_at.get();
  out.started_at = now;
  job.started_at.set(now);
  out.max_attempts = job.flags().max_attempts();
  const std::uint32_t type_args = job.type_args.get();
  out.type_length = type_args >> 24;
  out.args_length = type_args & 0xFF'FFFF;
  const std::uint64_t size =
      std::uint64_t{out.type_length} + out.args_length + job.extra_length.get();
  std::uint32_t lease = lease_ms;
  if (lease == 0) lease = job.lease_ms.get();
  if (lease == 0) lease = store_.default_lease_ms();
  job.lease_in_force_ms.set(lease);
  std::uint64_t deadline = now + lease;
  out.timeout_ms = job.timeout_ms.get();
  if (out.timeout_ms != 0) [[unlikely]]
    deadline = std::min(deadline, now + out.timeout_ms);
  out.deadline = deadline;
  // NO CRASH POINT: means nothing before the slot is active
  job.deadline.store(Deadline(deadline, active.tag()).word, Point::kNone);
  if (job.body_block.get() == kNoIndex && size <= kInlineBytes) [[likely]] {
    out.body->resize(size);
    shm::copy_out(out.body->data(), job.inline_bytes, size);
  } else {
    read_blocks(out.slot, job, size, *out.body);
    const auto whole = static_cast<std::uint32_t>(out.body->size());
    if (std::uint64_t{out.type_length} + out.args_length > whole) {  // a stranger's lengths
      out.type_length = std::min(out.type_length, whole);
      out.args_length = whole - out.type_length;
    }
  }
  uncharge_tenant(out.slot, job);
  mine.out.set_ordered(mine.out.get() + charge(1, size), Point::kTallyOut);
  mine.dispatched.set_ordered(mine.dispatched.get() + 1, Point::kCounterMoved);
  recorder_.note(out.slot, job.generation.get(), kSlotAvailable, kSlotActive, now);
  job.control.store(active.word, Point::kSlotActive);  // PAIR slot-active
  intend_nothing();
  ++taken_;
  waits_.count(out.queue, out.rank, now, out.created_at, out.available_at);
  OJS_SHM_PROBE6(fetch, out.id.hi, out.id.lo, out.queue, out.rank,
                 now - std::min(now, out.available_at), out.slot);
  if (tellings_.on()) [[unlikely]]
    // a copy, so that the usual way keeps what it fetched in registers
    tell_start({now, active.tag(), out.id, out.queue, out.attempt, out.max_attempts, out.rank,
                WorkerKey(pool_worker_.pool_word())},
               job, active);
  note_lease(deadline - now, now);
  if (near_.queue->attention.load() != 0) [[unlikely]]
    room_made(*near_.queue, near_.number);
}

}  // namespace ojs_shm::engine
