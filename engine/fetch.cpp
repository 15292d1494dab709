// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/actor.hpp"
#include "engine/crons.hpp"
#include "engine/look.hpp"
#include "engine/probes.hpp"
#include "engine/workflows.hpp"

namespace ojs_shm::engine {

using shm::Point;

Actor::Actor(Store& store, std::uint32_t lane)
    : Dropping(store, lane),
      waits_(store, lane),
      random_(shm::random_u64()),
      ranks_(store.convention()),
      default_rank_(ranks_.of(info(store.convention()).default_priority).value_or(0)) {
  near_ = {0, &store_.queue(0), tallies_};
}

Actor::~Actor() = default;

Outcome Actor::fetch(std::uint32_t q, std::uint32_t lease_ms, bool lease_owned, Fetched& out) {
  switch (fetch_plain(q, lease_ms, lease_owned, out)) {
    case Straight::kDone: return Outcome::kOk;
    case Straight::kEmpty: return Outcome::kEmpty;
    case Straight::kAside: break;
  }
  return fetch_in_order(q, lease_ms, lease_owned, out);
}

Outcome Actor::fetch_from_pool(std::uint32_t lease_ms, bool lease_owned, Fetched& out) {
  PoolTour tour;
  for (std::uint32_t q = 0;;) {
    if (const Outcome chosen = pool_worker_.choose(tour, q); chosen != Outcome::kOk) return chosen;
    if (fetch(q, lease_ms, lease_owned, out) == Outcome::kOk) {
      pool_worker_.count_served(tour);
      return Outcome::kOk;
    }
    if (pool_worker_.passed(tour)) settle_quiet(q);
  }
}

/// From a queue with options.
[[gnu::noinline]] Outcome Actor::fetch_in_order(std::uint32_t q, std::uint32_t lease_ms,
                                                bool lease_owned, Fetched& out) {
  come_near(q);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  Look& seen = begin_look();
  for (std::uint32_t left = rings_.longest_search();; --left) {
    if (left == 0 || !look(queue, seen)) {
      found_nothing(queue, q);
      return Outcome::kEmpty;
    }
    if (seen.turn != 0 && !take_turn(queue, seen)) [[unlikely]]
      continue;
    JobRecord& job = *seen.job;
    intend<Op::kFetch>(q, seen.slot, mine);
    const Control claimed = seen.expected.to(kSlotClaimed, owner_);
    if (!job.control.cas_once(seen.expected.word, claimed.word,
                              Point::kSlotClaimed)) {  // PAIR slot-publish
      // dead, and for ever: a failed claim moves head on by itself
      if (seen.leads) shm::Rings::retire(seen.found);
      intend_nothing();
      continue;
    }
    if (seen.leads) shm::Rings::retire(seen.found);  // else head meets it later, dead
    prefetch_behind(seen.found);
    if (seen.flow != kNoIndex) [[unlikely]]
      end_turn(queue, seen, job.tenant.get());
    // Of one look at the clock for both; a job that came since became available later than that.
    const std::uint64_t now =
        seen.now == 0 ? store_.now_ms() : std::max(seen.now, job.available_at.get());
    count_backlog(queue, ~0ULL);
    const std::uint64_t expires = job.expires_at.get();
    if ((expires != 0 && expires <= now) || limiting()) [[unlikely]]
      if (const Outcome end = end_of_claim(q, seen.slot, claimed, now); end != Outcome::kOk) {
        if (end == Outcome::kEmpty) return end;
        continue;
      }
    intend_attempt(job.attempt.get());
    out.slot = seen.slot;
    out.queue = q;
    take(job, claimed, mine, lease_ms, lease_owned, now, out);
    tidy_index(seen);
    after_dispatch();
    return Outcome::kOk;
  }
}

/// The body of a job that does not lie in its record.
[[gnu::noinline]] void Actor::read_blocks(std::uint32_t slot, const JobRecord& job,
                                          std::uint64_t size, std::string& body) const {
  body.clear();
  shm::Blocks::read(segment_, job.body_block.get(), slot, job.generation.get(), size, body);
  body.resize(std::min<std::uint64_t>(size, std::uint64_t{store_.max_body()} + kInlineBytes));
}

/// Of a workflow's first job also that the workflow begins. The lease may have been ended meanwhile, and
/// the slot used again.
[[gnu::noinline]] void Actor::tell_start(const Start& start, const JobRecord& job, Control active) {
  if ((job.signals.load() & kMember) != 0) {
    const Membership member = membership(job);
    if (job.control.load() == active.word) workflows().begins(member);
  }
  tellings_.started(start);
}

/// Completes a claim: the record first, then the control word that makes the job active. What is
/// copied out is read once, in the order in which it lies there.
void Actor::take(JobRecord& job, Control claimed, QueueTally& mine, std::uint32_t lease_ms,
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
