// SPDX-License-Identifier: Apache-2.0
#include "engine/bounds/pressure.hpp"

#include <algorithm>

#include "engine/bounds/account_look.hpp"

// How full bounded queues are: which lane warns, and when. A bit of `attention` tells whether the
// queue has warned, and the lane whose cas changes it tells the event, so that a crossing is told
// once.
// No lane's progress depends on any of this.

namespace ojs_shm::engine {

using shm::Point;

namespace {
constexpr std::uint32_t kShortestDelayMs = 1'000, kLongestDelayMs = 30'000;
constexpr std::uint64_t kSampleMs = 1'000;
}  // namespace

std::uint64_t Pressure::used_beside_reserved(const QueueRecord& queue, std::uint32_t q) const {
  std::uint64_t sum = 0 - queue.written_off.load();
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), store_.lanes());
  for (std::uint32_t l = 0; l < high; ++l) sum += store_.tally(q, l).in.get_ordered();
  for (std::uint32_t l = 0; l < high; ++l) sum -= store_.tally(q, l).out.get_ordered();
  return sum;
}

/// After an admission that seems to lie above the threshold: looks again at what has gone out, then
/// says what is so.
[[gnu::noinline]] void Pressure::notice_pressure(QueueRecord& queue, std::uint32_t q,
                                                 std::uint64_t used, bool fresh,
                                                 Backpressure policy) {
  if (!fresh) {
    DepthCache& cache = depth_cache_[q];
    const std::uint64_t before = cache.in_minus_out;
    cache.in_minus_out = used_beside_reserved(queue, q);
    used += cache.in_minus_out - before;
  }
  const Fullness fullness = Fullness::of(used, queue.max_depth.load(), queue.max_bytes.load());
  if (fullness.above(policy)) {
    met_.fullness = fullness;
    met_.strategy = policy.strategy();
  }
  settle_pressure(queue, q, fullness, policy);
}

/// Warns, or says that the warning is over; neither between the two.
void Pressure::settle_pressure(QueueRecord& queue, std::uint32_t q, const Fullness& fullness,
                               Backpressure policy) {
  for (std::uint64_t word = queue.attention.load();;) {
    const bool warned = (word & Attention::kWarned) != 0;
    if (warned ? fullness.bound != 0 && !fullness.calm(policy) : !fullness.above(policy)) return;
    if (!queue.attention.cas(word, word ^ Attention::kWarned, Point::kAttentionSet)) continue;
    if (tellings_.on())
      tellings_.pressure(warned ? EventKind::kBackpressureCleared : EventKind::kBackpressureWarning,
                         q, fullness);
    // The supervisor has to see when it is over, even if no worker takes a job any more.
    if (!warned) bell_.ring_supervisor_for(store_.now_ms() + kWatchMs);
    return;
  }
}

/// While a queue has warned, a lane that takes a job out looks now and then whether that is over:
/// each lane after half its share of the jobs that are still to go.
[[gnu::noinline]] void Pressure::look_for_calm(QueueRecord& queue, std::uint32_t q) {
  const std::uint64_t used = queue.reserved.load() + used_beside_reserved(queue, q);
  const Backpressure policy(queue.backpressure.load());
  const Fullness fullness = Fullness::of(used, queue.max_depth.load(), queue.max_bytes.load());
  const double end = 1.0 * policy.clear_threshold() / Backpressure::kWhole;
  const double above = fullness.pressure() - end;
  const std::uint32_t lanes = std::max(segment_.header().lanes_high.load(), 1U);
  depth_cache_[q].removals_left =
      above <= 0 ? 0
                 : static_cast<std::uint64_t>(static_cast<double>(charged_jobs(used)) * above /
                                              fullness.pressure() / (2.0 * lanes));
  settle_pressure(queue, q, fullness, policy);
}

/// How long it takes at the present rate until the queue has come down to its threshold. The rate
/// is that between two refusals at least a second apart; without one, the shortest delay.
std::uint32_t Pressure::recommended_delay(QueueRecord& queue, std::uint32_t q, const Full& full,
                                          Backpressure policy) {
  const std::uint32_t account =
      full.tenant == nullptr ? kNoIndex : find_account(store_, mix_key(q, full.tenant->tenant));
  if (full.tenant != nullptr && account == kNoIndex) return kShortestDelayMs;
  Drain& drain = full.tenant == nullptr ? queue.drain : store_.accounts[account].drain;
  const std::uint64_t now = store_.now_ms();
  std::uint64_t at = drain.sampled_at.load();
  if (at == 0 || now < at || now - at >= kSampleMs) {
    if (drain.sampled_at.cas(at, now, Point::kPressureMeasured)) {
      std::uint64_t out = full.tenant == nullptr ? 0 : account_out(store_, account);
      const std::uint32_t high = std::min(segment_.header().lanes_high.load(), store_.lanes());
      for (std::uint32_t l = 0; l < high && full.tenant == nullptr; ++l)
        out += store_.tally(q, l).out.get_ordered();
      const std::uint64_t gone = charged_jobs(out - drain.sampled_out.load());
      drain.sampled_out.store(out, Point::kPressureMeasured);
      if (at != 0 && now > at)
        drain.rate.store(gone * 1'000'000 / (now - at) + 1, Point::kPressureMeasured);
    }
  }
  const std::uint64_t known = drain.rate.load();
  if (known == 0) return kShortestDelayMs;
  if (known == 1) return kLongestDelayMs;
  const std::uint64_t used = full.used + full.cost;
  const Fullness fullness = full.bounds.fullness(used);
  const double wanted =
      static_cast<double>(fullness.bound) * policy.threshold() / Backpressure::kWhole;
  const double share =
      std::max(1.0 - wanted / std::max(static_cast<double>(fullness.depth), 1.0), 0.0);
  const double jobs = std::max(static_cast<double>(charged_jobs(used)) * share, 1.0);
  const double ms = jobs * 1e6 / static_cast<double>(known - 1);
  return static_cast<std::uint32_t>(
      std::clamp(ms, static_cast<double>(kShortestDelayMs), static_cast<double>(kLongestDelayMs)));
}

/// One event for each refusal, or for several (Refusals). `type` of the last one.
[[gnu::noinline]] void Pressure::count_refusals(std::uint32_t q, std::uint64_t jobs,
                                                std::string_view type) {
  QueueRecord& queue = store_.queue(q);
  std::uint64_t tell = 0;
  for (std::uint64_t word = queue.refusals.load();;)
    if (queue.refusals.cas(word, Refusals(word).after(jobs, store_.now_ms(), tell).word,
                           Point::kPressureMeasured))
      break;
  if (tell == 0) return;
  if (jobs == 0) {
    const Backpressure policy(queue.backpressure.load());
    const std::uint64_t used = queue.reserved.load() + used_beside_reserved(queue, q);
    met_.fullness = Fullness::of(used, queue.max_depth.load(), queue.max_bytes.load());
  }
  tellings_.refused(q, tell, met_.fullness, type);
}

}  // namespace ojs_shm::engine
