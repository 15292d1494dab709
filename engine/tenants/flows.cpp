// SPDX-License-Identifier: Apache-2.0
#include "engine/tenants/flows.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "engine/tables/hint_lives.hpp"
#include "engine/tables/queue_flags.hpp"
#include "engine/tables/ring_look.hpp"
#include "engine/tenants/tenant_line.hpp"

// Tenants that share a queue fairly, within each level: deficit round robin over the flows that
// have jobs. The ring of the level is their line. A flow in line has one live hint there; the flow
// at the head of the line gives its first job, and goes to the end when it has given as many as its
// weight says. So a turn costs the same however many tenants there are, and a flow without a job is
// in no line.
//
// Into the line: 1. the job's hint into the flow's ring; 2. if the flow is not in line: its hint,
// with the next tag, into the line; 3. the flow's control says so. One that meets it before 3 does
// so. Out of the line: 1. a fetch that finds no job announces the end; 2. it looks again; 3.
// the flow is idle. A lane that puts a job into it after that look finds the announcement, and
// takes it back, or finds the flow idle, and puts it in line again. An announcement that was taken
// back is never made with the same word again: else a slow lane that looked for the first
// announcement would end the flow by the second.
// (FlowLine::list, end, end_turn.)

namespace ojs_shm::engine {

using shm::Hint;
using shm::Point;

// ---- into the line ------------------------------------------------------------------------------

/// False when there is no flow, no room, or the flow has gone to another tenant: the job then
/// stands in the level's line by itself.
bool Flows::join_flow(shm::RingSet& rings, std::uint32_t ring, std::uint32_t slot,
                      Control available) {
  const JobRecord& job = store_.job(slot);
  if (store_.parked(job)) return false;  // lots have an order of their own
  const std::uint32_t q = job.queue.get();
  const std::uint64_t tenant = job.tenant.get();
  const bool across = (store_.queue(q).flags.load() & kAcross) != 0;
  if (available.ring() % 2 == 0) {  // what was given back stands before all flows of its level
    if (!across || !push_hint(rings, ring, slot, available)) return false;
    TenantLine{rings_, store_}.list(q, tenant);
    return true;
  }
  const std::uint64_t key =
      mix_key(place_of_flows(q, job.flags().part(), available.ring()), tenant);
  // One that is there already may have gone on, and what was read be of the slot's next job.
  const std::uint64_t ahead = (job.control.load() - available.tag()) & shm::kTagMask;
  if (ahead != 0 && ahead < shm::kTagMask / 2) return true;
  const std::uint32_t flow = take_flow(store_, key);
  if (flow == kNoIndex) return false;
  const Hint hint(slot, available.tag());
  const auto push = [&] {
    const std::uint32_t own = rings_.ensure_unindexed(store_.flows[flow].ring);
    return own != kNoIndex && rings_.push(own, hint, nullptr, 0);
  };
  if ((!push() && !relieved(push)) ||
      !FlowLine{store_, rings_, ring, &rings, available.ring()}.list(flow, key))
    return false;
  if (across) [[unlikely]]
    TenantLine{rings_, store_}.list(q, tenant);
  return true;
}

// ---- settings -----------------------------------------------------------------------------------

/// On: from now on jobs join flows, and those that wait are brought into theirs, by the first to
/// meet them. Off: from now on jobs stand in line by themselves, and so do those that wait. A
/// death in between leaves some of the backlog in flows: it is served by turns.
void Flows::set_fairness(std::uint32_t q, Fairness fairness) {
  QueueRecord& queue = store_.queue(q);
  queue.fairness.store(fairness.word, Point::kSetChanged);
  set_flags(queue, kFair | kAcross,
            (fairness.on() ? kFair | kFlows : 0) | (fairness.across() ? kAcross : 0));
  if (fairness.on()) {
    gather_flows(q);
    if (fairness.across()) gather_tenants(q);
  } else if ((queue.flags.load() & kFlows) != 0)
    dissolve_flows(q);
  bell_.wake_all(queue);
}

void Flows::gather_tenants(std::uint32_t q) { TenantLine{rings_, store_}.gather(q); }

/// Brings the jobs at the head of each line into their flows, up to the first flow.
void Flows::gather_flows(std::uint32_t q) {
  for (const QueuePart& part : all_parts(store_)) {
    if (part.queue != q) continue;
    for (unsigned number = 1; number < shm::kRingsPerSet; number += 2) {
      const std::uint32_t ring = shm::Rings::find(*part.rings, number);
      if (ring == kNoIndex) continue;
      for (std::uint32_t left = rings_.longest_search(); left > 0; --left) {
        const shm::Peeked head = rings_.peek(ring);
        if (head.empty() || head.hint().leads_to_line() || head.hint().hint_first()) break;
        const std::uint32_t slot = head.hint().index();
        const Control expected(kSlotAvailable, number, 0, head.hint().tag());
        const bool live = slot < store_.slots() && store_.job(slot).control.load() == expected.word;
        if (live && !join_flow(*part.rings, ring, slot, expected)) break;
        shm::Rings::retire(head);
      }
    }
  }
}

/// 1. Announces the end of every flow that has a job of the queue; 2. gives each of its jobs a
/// place of its own, in the order in which they came, also one of another queue, which came while
/// the flow was given to another tenant; 3. the flows are idle, but for those that got a job
/// meanwhile, or from which one was taken: again, for these. What stays in line after all is served
/// by turns.
void Flows::dissolve_flows(std::uint32_t q) {
  struct Waiting {
    unsigned number;
    std::uint64_t available_at;
    JobId id;
    std::uint32_t slot;
    Control control;
  };
  for (unsigned look = 0; look < 100; ++look) {
    std::vector<Waiting> jobs;
    std::vector<std::pair<std::uint32_t, FlowControl>> ending;
    each_flow(store_, [&](std::uint32_t at, std::uint32_t ring) {
      Word& control = store_.flows[at].control;
      FlowControl found(control.load());
      if (!found.in_line()) return;
      const FlowControl announced = found.ending();
      // 1
      if (found.word != announced.word &&
          !control.cas_once(found.word, announced.word, Point::kFlowEnding))
        return;
      const std::size_t others = jobs.size();
      bool ours = false;
      shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
        const Hint hint(value);
        if (!hint_lives(segment_, hint)) return;
        const JobRecord& job = store_.job(hint.index());
        const Control available(job.control.load());
        if (available.state() != kSlotAvailable || available.tag() != hint.tag()) return;
        jobs.push_back(
            {available.ring(), job.available_at.get(), job.id(), hint.index(), available});
        ours = ours || job.queue.get() == q;
      });
      if (ours)
        ending.emplace_back(at, announced);
      else
        jobs.resize(others);
    });
    if (ending.empty()) return;
    const auto key = [](const Waiting& job) {
      return std::tuple(job.number, job.available_at, job.id);
    };
    std::sort(jobs.begin(), jobs.end(),
              [&key](const Waiting& a, const Waiting& b) { return key(a) < key(b); });
    for (const Waiting& job : jobs) {  // 2
      shm::RingSet& rings = store_.rings_of(store_.job(job.slot));
      if (!push_hint(rings, rings_.ensure(rings, job.number), job.slot, job.control)) return;
    }
    bool done = true;
    for (const auto& [at, announced] : ending)  // 3
      done = store_.flows[at].control.cas_once(
                 announced.word, FlowControl(FlowControl::kIdle, 0, announced.next_tag()).word,
                 Point::kFlowEnded) &&
             done;
    if (done) return;
  }
}

}  // namespace ojs_shm::engine
