// SPDX-License-Identifier: Apache-2.0
// Out of the line: how a fetch finds the first job of a flow, and ends the flow's turn (flows.cpp).

#include "engine/fetch/look.hpp"
#include "engine/fetch/search.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "engine/tenants/tenant_turns.hpp"

namespace ojs_shm::engine {

using shm::Hint;

/// The first job of the flow to which the hint at the head of a level leads. False when there is
/// none, and the head has moved or is about to.
bool Search::first_of_flow(shm::RingSet& rings, unsigned number, std::uint32_t q,
                           const shm::Peeked& head, std::uint32_t& left, Live& live) {
  FlowControl found(0);
  const FlowLine line{store_, rings_, shm::Rings::find(rings, number), &rings, number};
  const std::uint32_t flow = line.led_to(head, found);
  return flow != kNoIndex && first_in_flow(line, flow, found, &head, q, left, live);
}

/// `head` is null when the flow need not stand at the head of the level: then its hint there, once
/// the flow has ended, is left to the lanes that meet it.
bool Search::first_in_flow(const FlowLine& line, std::uint32_t at, FlowControl found,
                           const shm::Peeked* head, std::uint32_t q, std::uint32_t& left,
                           Live& live) {
  FlowRecord& flow = store_.flows[at];
  const std::uint32_t own = flow.ring.load() - 1;
  for (; left > 1; --left) {  // the last one is the caller's to count
    const shm::Peeked first = rings_.peek(own);
    if (first.empty()) {
      line.end(flow, found, head, [&] { return rings_.peek(own).empty(); });
      return false;
    }
    const Hint job_hint = first.hint();
    if (job_hint.index() >= store_.slots()) {
      shm::Rings::retire(first);
      continue;
    }
    JobRecord& job = store_.job(job_hint.index());
    const Control control(job.control.load());
    live.available_at = job.available_at.get();
    if (control.state() != kSlotAvailable || control.tag() != job_hint.tag()) {
      shm::Rings::retire(first);
      continue;
    }
    if (control.ring() != line.number || job.queue.get() != q ||
        &store_.rings_of(job) != line.set) {
      // It came while the flow was given to another tenant.
      shm::RingSet& its = store_.rings_of(job);
      if (!push_hint(its, rings_.ensure(its, control.ring()), job_hint.index(), control))
        announce_lost_hint();
      shm::Rings::retire(first);
      continue;
    }
    if (job.control.load() != control.word) continue;
    live.head = first;
    live.job = &job;
    live.first = first.value;
    live.number = line.number;
    live.flow = at;
    return true;
  }
  return false;
}

/// After a job of the flow has been taken, which may stand at the head of its level.
[[gnu::noinline]] void Search::end_turn(QueueRecord& queue, const Look& look,
                                        std::uint64_t tenant) {
  shm::RingSet& rings = store_.rings_of(*look.job);
  const std::uint32_t own = store_.flows[look.flow].ring.load() - 1;
  const std::uint32_t ring = shm::Rings::find(rings, look.number);
  if (own == kNoIndex || ring == kNoIndex) return;
  const std::uint64_t weight = tenant_weight(store_, queue, tenant);
  FlowLine{store_, rings_, ring, &rings, look.number}.end_turn(
      look.flow, weight, [&] { return rings_.peek(own).empty(); });
  if (look.tenant_turn != kNoIndex) [[unlikely]]
    TenantTurns{*this, store_}.end(queue, look.tenant_turn, weight);
}

}  // namespace ojs_shm::engine
