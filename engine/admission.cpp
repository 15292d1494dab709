// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// What a bounded queue holds, as far as it does not stand in `reserved`.
std::uint64_t Actor::used_beside_reserved(const QueueRecord& queue, std::uint32_t q) const {
  std::uint64_t sum = 0 - queue.written_off.load();
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), store_.lanes());
  for (std::uint32_t l = 0; l < high; ++l) sum += store_.tally(q, l).in.get_ordered();
  for (std::uint32_t l = 0; l < high; ++l) sum -= store_.tally(q, l).out.get_ordered();
  return sum;
}

/// Charges the queue for a job. The charge stands in this lane's tally when it returns kOk. In a bounded queue the sum
/// of `reserved` decides, by one cas: 1. what we know of the other sums says that it fits: reserve; 2. it seems full:
/// read the sums again; 3. still full, and nobody was let in meanwhile: turn it away. A sum that grew too old only makes us
/// read again.
/// Where producers wait, 4. nobody passes one that came before. The cas fails if anybody was let in since `reserved` was
/// read: so at the instant of that look there was room, and the turn was ours.
Outcome Actor::admit(QueueRecord& queue, QueueTally& mine, std::uint32_t q, std::uint64_t flags, std::uint64_t cost) {
  met_.fullness.bound = 0;
  if ((flags & kBounded) == 0) {
    mine.in.set_ordered(mine.in.get() + cost, Point::kTallyIn);
    return Outcome::kOk;
  }
  if (queue.refill.load() != 0) settle_reserved(q);
  DepthCache& cache = depth_cache_[q];
  bool fresh = false;
  std::uint64_t used = 0;
  for (;;) {
    const std::uint64_t reserved = queue.reserved.load();
    if (cache.flags != flags || fresh) {
      cache.flags = flags;
      cache.in_minus_out = used_beside_reserved(queue, q);
    }
    used = reserved + cache.in_minus_out + cost;
    const Backpressure policy(queue.backpressure.load());
    const std::uint64_t max_depth = queue.max_depth.load(), max_bytes = queue.max_bytes.load();
    if ((max_depth != 0 && charged_jobs(used) > max_depth) || (max_bytes != 0 && charged_bytes(used) > max_bytes)) {
      if (!fresh) {
        fresh = true;  // 2
        continue;
      }
      if (queue.reserved.load() != reserved) continue;  // the sums may lack what has left since then, and seem endless
      return turn_away(queue, q, used - cost, cost, policy);  // 3
    }
    if (policy.strategy() == Strategy::kBlock && !may_pass(queue))  // 4
      return turn_away(queue, q, used - cost, cost, policy);
    if (queue.reserved.cas_once(reserved, reserved + cost, Point::kCreditReserved)) break;  // 1
    flags = queue.flags.load();
  }
  mine.in_reserved.set_ordered(mine.in_reserved.get() + cost, Point::kTallyReserved);
  const Backpressure policy(queue.backpressure.load());
  if (Fullness::of(used, queue.max_depth.load(), queue.max_bytes.load()).above(policy)) [[unlikely]]
    notice_pressure(queue, q, used, fresh, policy);
  return Outcome::kOk;
}

/// What becomes of a job that finds no room: it waits, others go for it, or it is refused, with the reasons in met_.
/// `used`: what the queue holds.
[[gnu::noinline]] Outcome Actor::turn_away(QueueRecord& queue, std::uint32_t q, std::uint64_t used, std::uint64_t cost,
                                           Backpressure policy) {
  const std::uint64_t max_depth = queue.max_depth.load(), max_bytes = queue.max_bytes.load();
  const bool never =
      (max_depth != 0 && charged_jobs(cost) > max_depth) || (max_bytes != 0 && charged_bytes(cost) > max_bytes);
  if (!never && policy.strategy() == Strategy::kBlock && patient_) return Outcome::kMustWait;
  if (!never && policy.strategy() == Strategy::kDropOldest) return Outcome::kMustDrop;
  return refuse(queue, q, used, cost, policy);
}

/// The dimension that speaks is the one in which there is no room; when others come first, the fuller one.
Outcome Actor::refuse(QueueRecord& queue, std::uint32_t q, std::uint64_t used, std::uint64_t cost,
                      Backpressure policy) {
  const std::uint64_t max_depth = queue.max_depth.load(), max_bytes = queue.max_bytes.load();
  const bool by_jobs = max_depth != 0 && charged_jobs(used + cost) > max_depth;
  const bool by_bytes = max_bytes != 0 && charged_bytes(used + cost) > max_bytes;
  met_.fullness = by_jobs    ? Fullness{charged_jobs(used), max_depth, false}
                  : by_bytes ? Fullness{charged_bytes(used), max_bytes, true}
                             : Fullness::of(used, max_depth, max_bytes);
  met_.strategy = policy.strategy();
  met_.retry_after_ms = recommended_delay(queue, q, used + cost, policy);
  queue.rejected.fetch_add(charged_jobs(cost), Point::kCounterMoved);
  return Outcome::kQueueFull;
}

/// Undoes admit(). `reserved` only grows, so that whoever counts it again can tell that it has not moved; a charge on it
/// leaves as if its job had been taken out. A slot that is being filled is freed by the caller, or after its death.
[[gnu::noinline]] void Actor::take_back_admission(QueueTally& mine, std::uint32_t q, std::uint64_t cost) {
  intend_further(Op::kEnqueue, q, kNoIndex);
  if (mine.in_reserved.get() != self_.intent_data[1].get()) {
    self_.intent_data[3].set(mine.out.get() + cost, Point::kIntentSet);
    intend_further(Op::kGiveBack, q, kNoIndex);
    mine.out.set_ordered(self_.intent_data[3].get(), Point::kTallyOut);
    call_next(store_.queue(q));
  }
  mine.in.set_ordered(self_.intent_data[0].get(), Point::kTallyIn);
  mine.enqueued.set_ordered(self_.intent_data[2].get(), Point::kCounterMoved);
}

/// `reserved` is what the lanes reserved and what the dead took with them between the two. 1. no lane is in the middle of
/// a charge; 2. sum up; 3. `reserved` has not moved meanwhile, so the difference is theirs: write it off. Else somebody
/// tries again later.
[[gnu::noinline]] void Actor::settle_reserved(std::uint32_t q) {
  QueueRecord& queue = store_.queue(q);
  const std::uint64_t deaths = queue.refill.load();
  const std::uint64_t written_off = queue.written_off.load();
  const std::uint64_t reserved = queue.reserved.load();
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), store_.lanes());
  for (std::uint32_t l = 0; l < high; ++l) {                             // 1
    const std::uint64_t intent = segment_.lane(l).intent.get_ordered();  // PAIR intent
    const auto op = static_cast<Op>(OpBits::get(intent));
    if (l != lane_ && (op == Op::kAdmit || op == Op::kReturn) && OpQueue::get(intent) == (q & OpQueue::kMax)) return;
  }
  std::uint64_t sum = 0;
  for (std::uint32_t l = 0; l < high; ++l) sum += store_.tally(q, l).in_reserved.get_ordered();  // 2
  if (queue.reserved.load() != reserved) return;                                                 // 3
  if (!queue.written_off.cas_once(written_off, reserved - sum, Point::kCreditSettled)) return;
  queue.refill.cas_once(deaths, 0, Point::kCreditSettled);
  call_next(queue);
}

}  // namespace ojs_shm::engine
