// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/actor.hpp"
#include "engine/crons.hpp"
#include "engine/look.hpp"
#include "engine/pools.hpp"
#include "engine/probes.hpp"
#include "engine/workflows.hpp"

// The promise of a fetch, for one queue. There is an instant inside the call at which the job it
// returns was available and no better one was: none at a smaller rank, none that stood before it at
// the same rank. And when it returns nothing, there was an instant at which nothing was available.
// It is kept by looking twice: 1. collect what proves that every better ring is empty (a clear
// index bit, or the empty cell at its head); 2. find the first live hint; 3. look at every proof
// again; 4. claim by one cas on the control word, which fails if the job changed meanwhile.

namespace ojs_shm::engine {

using shm::Point;

Actor::Actor(Store& store, std::uint32_t lane)
    : Mover(store, lane),
      waits_(store, lane),
      random_(shm::random_u64()),
      ranks_(store.convention()),
      default_rank_(ranks_.of(info(store.convention()).default_priority).value_or(0)),
      depth_cache_(store.max_queues()),
      look_(std::make_unique<Look>()) {
  near_ = {0, &store_.queue(0), tallies_};
  // at once, for workers that fetch once and go
  found_quiet_.fill(kPassesBeforeQuiet - 1);
  self_.counters[kPoolSeat].set_ordered(
      0, Point::kNone);  // NO CRASH POINT: a seat means nothing without its lane
}

Actor::~Actor() = default;

bool Actor::unchanged(const QueueRecord& queue, const Look& look) const {
  if (queue.flags.load() != look.flags) return false;
  for (unsigned i = 0; i < look.words; ++i)
    if (queue.rings.index[i].load() != look.index[i]) return false;
  return look.witnesses_stand();
}

/// Among what was given back to a rank, the job that became available first. The head leads; at
/// most 64 are compared.
[[gnu::noinline]] shm::Peeked Actor::oldest_in_front(std::uint32_t ring, unsigned number,
                                                     shm::Peeked head) {
  shm::Peeked best = head;
  std::uint64_t best_time = store_.job(head.hint().index()).available_at.get();
  unsigned seen = 0;
  shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
    const shm::Hint hint(value);
    if (++seen > 64 || hint.index() >= store_.slots() || hint.hint_first()) return;
    const JobRecord& job = store_.job(hint.index());
    if (job.control.load() != Control(kSlotAvailable, number, 0, hint.tag()).word) return;
    if (const std::uint64_t time = job.available_at.get(); time < best_time) {
      best_time = time;
      best.value = value;
    }
  });
  return best;
}

/// Finds the best available job and fills `look` with it and with the proofs; false when there is
/// none. The proofs have been looked at twice when it returns.
bool Actor::look(QueueRecord& queue, Look& look) {
  look.queue = &queue;
  std::uint32_t left = rings_.longest_search();
  while (left > 0) {
    look.begin(queue.flags.load());
    if (((look.flags & kLimited) != 0 || worker_limit_ != kNoIndex) && !past_gates_ &&
        !gate_open(queue)) [[unlikely]]
      return false;
    if (!is_plain(look.flags)) [[unlikely]]
      return survey(queue, look, left);
    bool restart = false;
    for (unsigned i = 0; i < (shut(queue, look.flags) ? 0 : shm::kIndexWords) && !restart; ++i) {
      look.index[i] = queue.rings.index[i].load();  // PAIR ring-index
      look.words = i + 1;
      for (std::uint64_t bits = look.index[i] & 0xFFFF'FFFF; bits != 0; bits &= bits - 1) {
        const unsigned number = i * 32 + static_cast<unsigned>(std::countr_zero(bits));
        Live live;
        if (!first_live<true>(queue.rings, number, look, left, live)) continue;
        if (!unchanged(queue, look)) {
          restart = true;
          break;
        }
        choose(look, live);
        return true;
      }
    }
    if (!restart && unchanged(queue, look)) return false;
  }
  return false;
}

bool Actor::sees_work(std::uint32_t q) {
  QueueRecord& queue = store_.queue(q);
  Look& seen = *look_;
  seen.holds_turn = false;
  for (std::uint32_t left = rings_.longest_search(); left > 0 && look(queue, seen); --left) {
    if (seen.job->control.load_seq_cst() == seen.expected.word) return true;
    if (seen.leads) shm::Rings::retire(seen.found);
  }
  return false;
}

Outcome Actor::fetch(std::uint32_t q, std::uint32_t lease_ms, bool lease_owned, Fetched& out) {
  switch (fetch_plain(q, lease_ms, lease_owned, out)) {
    case Straight::kDone: return Outcome::kOk;
    case Straight::kEmpty: return Outcome::kEmpty;
    case Straight::kAside: break;
  }
  return fetch_in_order(q, lease_ms, lease_owned, out);
}

/// From a queue with options.
[[gnu::noinline]] Outcome Actor::fetch_in_order(std::uint32_t q, std::uint32_t lease_ms,
                                                bool lease_owned, Fetched& out) {
  come_near(q);
  QueueRecord& queue = *near_.queue;
  QueueTally& mine = *near_.tally;
  Look& seen = *look_;
  seen.holds_turn = false;
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
    if (!pending_lots_.empty()) [[unlikely]]
      follow_dispatch();
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

/// Completes a claim: the record first, then the control word that makes the job active. What is
/// copied out is read once, in the order in which it lies there.
void Actor::take(JobRecord& job, Control claimed, QueueTally& mine, std::uint32_t lease_ms,
                 bool lease_owned, std::uint64_t now, Fetched& out) {
  const Control active = claimed.to(kSlotActive, lease_owned ? shm::kLeaseOwner : owner_);
  out.word = active.word;
  if (job.pool_word.get() != works_for_) [[unlikely]]
    job.pool_word.set(works_for_);
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
    tellings_.started(out, active.tag(), now);
  note_lease(deadline - now, now);
  if (near_.queue->attention.load() != 0) [[unlikely]]
    room_made(*near_.queue, near_.number);
}

/// A lease shorter than any before must be known to the supervisor, who looks at leases only as
/// often as needed.
void Actor::note_lease(std::uint64_t lease_ms, std::uint64_t now) {
  shm::Header& header = segment_.header();
  std::uint64_t shortest = header.shortest_lease_ms.load_relaxed();  // relaxed: it only ever falls
  while (lease_ms < shortest) {
    if (!header.shortest_lease_ms.cas(shortest, lease_ms, Point::kLeaseMoved)) continue;
    return bell_.ring_supervisor_for(now + lease_ms);
  }
}

void Actor::tidy_index(const Look& look) {
  for (unsigned i = 0; i < look.witnesses.size(); ++i) {
    const auto& witness = look.witnesses[i];
    tidy_ring(*witness.rings, witness.number, *witness.cell, witness.empty, look.witnesses.size());
  }
}

}  // namespace ojs_shm::engine
