// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/limit_turn.hpp"
#include "engine/workflows.hpp"

// A workflow comes into being by one store. 1. Its head and all of its members are filled in
// private: a death frees them. 2. Each member that waits for no other, a root, is charged to its
// queue, and is then moving in this lane's hands: a death takes the charge back. 3. The store that
// makes the head a head. 4. Members wait, roots are published: a death leaves both to the repair. A
// queue that is full refuses its root and with it the workflow; nothing waits or is dropped for it.
// A member that is not published yet has no time at which it became available.

namespace ojs_shm::engine {

using shm::Point;

Workflows::Workflows(Actor& actor) : actor_(actor), store_(actor.store_) {}

Workflows& Actor::workflows() {
  if (!workflows_) workflows_ = std::make_unique<Workflows>(*this);
  return *workflows_;
}

Outcome Workflows::create(NewWorkflow& workflow, JobId& id) {
  const LimitsHold hold(store_, actor_.self_.counters[kLimitsHeld], workflow.jobs);
  if (!hold.stand()) return Outcome::kLimitsMoved;
  WorkflowGraph& graph = *workflow.graph;
  std::vector<std::uint64_t> flags;
  for (const NewJob& job : workflow.jobs) flags.push_back(store_.queue(job.queue).flags.load());

  // 1. All of it, in private.
  std::uint64_t word = 0;
  const std::uint32_t head = actor_.slots_.take(word);
  if (head == kNoIndex) return Outcome::kNoSlots;
  JobRecord& record = store_.job(head);
  NewJob spec;
  spec.type = workflow.kind;
  spec.args = "";  // not null: memcpy takes no null pointer, whatever the length
  spec.queue = workflow.jobs.front().queue;
  spec.id = workflow.id;
  Outcome outcome = actor_.fill<false>(spec, spec.policy(), head, record, store_.now_ms(), id);
  std::vector<std::uint32_t> slots;
  if (outcome == Outcome::kOk) outcome = fill_members(workflow, head, slots);
  if (outcome == Outcome::kOk) outcome = write_head(workflow, head);

  // 2. Room for its roots.
  for (std::uint16_t i = 0; i < slots.size() && outcome == Outcome::kOk; ++i)
    if (graph.root(i)) {
      workflow.refused = i;
      outcome = charge_root(workflow.jobs[i], slots[i]);
    }
  if (outcome != Outcome::kOk) {
    for (const std::uint32_t slot : slots) {
      if (Control(store_.job(slot).control.load()).state() == kSlotMoving) uncharge_root(slot);
      actor_.slots_.free(slot, Control(store_.job(slot).control.load()));
    }
    actor_.slots_.free(head, Control(record.control.load()));
    return outcome;
  }

  // 3. It is there.
  const Control born = Control(record.control.load())
                           .to(kSlotHead, static_cast<unsigned>(WorkflowState::kRunning), 0);
  record.control.store(born.word, Point::kWorkflowCommitted);  // PAIR workflow-head

  // 4. No root before all that wait stand where its end looks for them.
  for (std::uint16_t i = 0; i < slots.size(); ++i) {
    if (graph.root(i)) continue;
    Word& control = store_.job(slots[i]).control;
    const Control filling(control.load());
    control.store(filling.to(kSlotWaiting, filling.ring(), 0).word, Point::kSlotMoved);
  }
  tell(EventKind::kWorkflowStarted, head, born);
  for (std::uint16_t i = 0; i < slots.size(); ++i)
    if (graph.root(i)) publish_root(slots[i]);
  for (std::uint16_t i = 0; i < slots.size(); ++i) {
    if (!graph.root(i)) continue;
    QueueRecord& queue = store_.queue(workflow.jobs[i].queue);
    const std::uint64_t now_flags = queue.flags.load_seq_cst();
    if (now_flags != flags[i]) queue.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
    if ((now_flags & ~flags[i] & kTenants) != 0)
      actor_.gather_accounts(workflow.jobs[i].queue, kPatience);
  }
  // Cancelled before all of it was there.
  if (!runs(Control(record.control.load()))) sweep_cancelled(head, record.generation.get());
  return Outcome::kOk;
}

/// Slots with the members' jobs, which the graph names from then on. The place in the ring says
/// which level a member will stand in.
Outcome Workflows::fill_members(NewWorkflow& workflow, std::uint32_t head,
                                std::vector<std::uint32_t>& slots) {
  const std::uint32_t generation = store_.job(head).generation.get();
  for (std::size_t i = 0; i < workflow.jobs.size(); ++i) {
    NewJob& spec = workflow.jobs[i];
    if (spec.size() > store_.max_body()) return Outcome::kTooLarge;
    unsigned part = 0;
    if (const Outcome chosen = actor_.choose_part(spec, store_.queue(spec.queue), part);
        chosen != Outcome::kOk)
      return chosen;
    NewAnnex annex;
    annex.bits = kMember;
    annex.workflow = head;
    annex.workflow_generation = generation;
    annex.node = static_cast<std::uint16_t>(i);
    spec.annex = &annex;
    std::uint64_t word = 0;
    const std::uint32_t slot = actor_.slots_.take(word);
    if (slot == kNoIndex) return Outcome::kNoSlots;
    slots.push_back(slot);
    JobRecord& job = store_.job(slot);
    JobId id;
    const Outcome filled = actor_.fill<false>(spec, spec.policy() | Policy::in_part(part), slot,
                                              job, store_.now_ms(), id);
    spec.annex = nullptr;
    job.available_at.set(0);
    const unsigned ring = normal_ring(spec.rank);
    job.control.store(Control(word).to(kSlotFilling, ring, actor_.owner_).word,
                      Point::kSlotFilling);
    if (filled != Outcome::kOk) return filled;
    if (actor_.rings_.ensure(store_.rings_of(spec.queue, part), ring) == kNoIndex)
      return Outcome::kNoRings;
    workflow.graph->members[i].slot = slot;
    workflow.graph->members[i].generation = job.generation.get();
  }
  return Outcome::kOk;
}

Outcome Workflows::write_head(const NewWorkflow& workflow, std::uint32_t slot) {
  const std::string graph = workflow.graph->encode();
  std::string body(workflow.kind);
  body.append(graph).append(workflow.description);
  if (body.size() > store_.max_body()) return Outcome::kTooLarge;
  JobRecord& head = store_.job(slot);
  const std::uint32_t block = actor_.slots_.write(slot, head.generation.get(), body);
  if (block == kNoIndex) return Outcome::kNoBlocks;
  head.body_block.set(block);
  head.type_args.set(static_cast<std::uint32_t>(workflow.kind.size() << 24 | graph.size()));
  head.extra_length.set(static_cast<std::uint32_t>(workflow.description.size()));
  head.attempt.set(static_cast<std::uint16_t>(workflow.jobs.size()));
  WorkflowBits& bits = bits_of(head);
  for (unsigned i = 0; i < WorkflowBits::kWords; ++i) {
    bits.done[i].store(0, Point::kNone);    // NO CRASH POINT: the slot is held exclusively
    bits.failed[i].store(0, Point::kNone);  // NO CRASH POINT: as above
  }
  return Outcome::kOk;
}

/// As an enqueue that ends with a job in this lane's hands instead of one that waits.
Outcome Workflows::charge_root(const NewJob& spec, std::uint32_t slot) {
  const std::uint32_t q = spec.queue;
  QueueRecord& queue = store_.queue(q);
  QueueTally& mine = actor_.tally(q);
  JobRecord& job = store_.job(slot);
  TenantCharge tenant{spec.tenant, charge(1, spec.size())};
  actor_.intend(Actor::Op::kAdmit, q, kNoIndex, mine.in.get(), mine.in_reserved.get(),
                mine.enqueued.get());
  const Outcome admitted =
      actor_.admit_all(queue, mine, q, queue.flags.load(), tenant.cost, std::span(&tenant, 1));
  if (admitted != Outcome::kOk) {
    actor_.intend_nothing();
    if (admitted != Outcome::kMustDrop && admitted != Outcome::kMustWait) return admitted;
    return Outcome::kQueueFull;
  }
  actor_.intend_further(Actor::Op::kEnqueue, q, slot);
  if (tenant.account != kNoIndex)
    // NO CRASH POINT: the slot is held exclusively
    job.account.store(AccountMark(job.generation.get(), tenant.account).word, Point::kNone);
  const Control filling(job.control.load());
  const Control charged = filling.to(kSlotMoving, filling.ring(), actor_.owner_);
  actor_.intend_word(charged);
  job.control.store(charged.word, Point::kSlotMoving);
  actor_.intend_nothing();
  return Outcome::kOk;
}

void Workflows::uncharge_root(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const std::uint32_t q = job.queue.get();
  QueueTally& mine = actor_.tally(q);
  const Control held(job.control.load());
  actor_.intend(Actor::Op::kMove, q, slot, mine.out.get());
  actor_.uncharge_tenant(slot, job);
  mine.out.set_ordered(mine.out.get() + charge(1, job.body_length()), Point::kTallyOut);
  const Control filling = held.to(kSlotFilling, 0, actor_.owner_);
  actor_.intend_word(filling);
  job.control.store(filling.word, Point::kSlotFilling);
  actor_.intend_nothing();
  if (store_.queue(q).attention.load() != 0) actor_.room_made(store_.queue(q), q);
}

void Workflows::publish_root(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const std::uint32_t q = job.queue.get();
  QueueTally& mine = actor_.tally(q);
  actor_.intend(Actor::Op::kEnqueue, q, slot, mine.in.get(), mine.in_reserved.get(),
                mine.enqueued.get());
  mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
  give_out(slot, job, Control(job.control.load()));
}

/// A member in this lane's hands and charged, to where a new job belongs. Its intent stands.
void Workflows::give_out(std::uint32_t slot, JobRecord& job, Control held) {
  const std::uint64_t now = store_.now_ms();
  const std::uint64_t due = job.due_at.get(), expires = job.expires_at.get();
  const std::uint32_t generation = job.generation.get();
  const unsigned ring = normal_ring(rank_of_ring(held.ring()));
  if (due <= now) {
    actor_.make_available(store_.queue(job.queue.get()), slot, job, held, ring, now, false);
    if (expires != 0) actor_.push_timer(slot, generation, expires);
    return;
  }
  job.available_at.set(now);
  const Control scheduled = held.to(kSlotScheduled, ring, 0);
  actor_.intend_word(scheduled);
  actor_.recorder_.note(slot, generation, held.state(), kSlotScheduled, now);
  if (actor_.tellings_.on()) actor_.tellings_.tell(EventKind::kJobScheduled, job, scheduled, due);
  job.control.store(scheduled.word, Point::kSlotPublished);
  actor_.push_timer(slot, generation, expires != 0 ? std::min(due, expires) : due);
  actor_.intend_nothing();
}

}  // namespace ojs_shm::engine
