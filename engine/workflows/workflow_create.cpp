// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "engine/enqueue/restore.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/workflows/workflows.hpp"

// A workflow comes into being by one store. 1. Its head and all of its members are filled in
// private: a death frees them. 2. Each member that waits for no other member, a root, is charged to
// its queue, and is then moving in this lane's hands: a death takes the charge back. 3. The store
// that makes the head a head. 4. Members wait, roots are published: a death leaves both to the
// repair. A queue that is full refuses its root and with it the workflow; nothing waits or is
// dropped for it. A member that is not published yet has no time at which it became available. Of a
// workflow that has lived elsewhere, 1. brings what its members went through; 2. charges those
// whose turn has come; 4. publishes those that have ended as well. A member that is being filled
// and has ended has a time at which it did, and in place of a due time the state in which it did.

namespace ojs_shm::engine {

using shm::Point;

Workflows& Actor::workflows() {
  if (!workflows_) workflows_ = std::make_unique<Workflows>(*this);
  return *workflows_;
}
void Actor::mark_member(const Membership& member, bool failed, std::uint64_t ran_ms) {
  workflows().mark_ended(member, failed, ran_ms);
}
void Actor::advance_workflow(const Membership& member) { workflows().advance(member); }
void Actor::drop_member(const Membership& member) { workflows().dropped(member); }
void Actor::workflow_begins(const Membership& member) { workflows().begins(member); }

Outcome Workflows::create(NewWorkflow& workflow, JobId& id) {
  const LimitsHold hold(store_, actor_.limits_held(), workflow.jobs);
  if (!hold.stand()) return Outcome::kLimitsMoved;
  std::vector<std::uint64_t> flags;
  flags.reserve(workflow.jobs.size());
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
  Outcome outcome = actor_.fill<false>(spec, JobForm(spec), head, record, store_.now_ms(), id);
  std::vector<std::uint32_t> slots;
  if (outcome == Outcome::kOk) outcome = fill_members(workflow, head, slots);
  if (outcome == Outcome::kOk) outcome = write_head(workflow, head);

  // 2. Room for its roots.
  for (std::uint16_t i = 0; i < slots.size() && outcome == Outcome::kOk; ++i)
    if (workflow.starts(i)) {
      workflow.refused = i;
      outcome = charge_root(workflow.jobs[i], slots[i], !workflow.past.empty());
    }
  if (outcome != Outcome::kOk) {
    for (const std::uint32_t slot : slots) {
      if (slot == kNoIndex) continue;
      if (Control(store_.job(slot).control.load()).state() == kSlotMoving)
        actor_.uncharge_unborn(slot);
      actor_.slots_.free(slot, Control(store_.job(slot).control.load()));
    }
    actor_.slots_.free(head, Control(record.control.load()));
    return outcome;
  }

  // 3. It is there.
  const std::uint32_t generation = record.generation.get();
  const Control born = Control(record.control.load())
                           .to(kSlotHead, static_cast<unsigned>(WorkflowState::kRunning), 0);
  record.control.store(born.word, Point::kWorkflowCommitted);  // PAIR workflow-head

  // 4. No root before all that wait stand where its end looks for them.
  for (std::uint16_t i = 0; i < slots.size(); ++i) {
    if (workflow.starts(i) || slots[i] == kNoIndex) continue;
    if (!workflow.past.empty() && workflow.past[i].is == PastMember::Is::kEnded) {
      publish_ended(slots[i]);
      continue;
    }
    Word& control = store_.job(slots[i]).control;
    const Control filling(control.load());
    control.store(filling.to(kSlotWaiting, filling.ring(), 0).word, Point::kSlotMoved);
  }
  for (std::uint16_t i = 0; i < slots.size(); ++i)
    if (workflow.starts(i)) actor_.publish_unborn(slots[i]);
  for (std::uint16_t i = 0; i < slots.size(); ++i) {
    if (!workflow.starts(i)) continue;
    QueueRecord& queue = store_.queue(workflow.jobs[i].queue);
    const std::uint64_t now_flags = queue.flags.load_seq_cst();
    if (now_flags != flags[i]) queue.flags.fetch_add(kFlagsEpoch, Point::kSetChanged);
    if ((now_flags & ~flags[i] & kTenants) != 0)
      actor_.gather_accounts(workflow.jobs[i].queue, kPatience);
  }
  // The last member to end elsewhere may have let other members run there, or not.
  if (!workflow.past.empty()) mend_one(head, generation);
  // Cancelled before all of it was there.
  sweep_cancelled(head, generation);
  return Outcome::kOk;
}

/// Slots with the members' jobs, which the graph names from then on. The place in the ring says
/// which level a member will stand in.
Outcome Workflows::fill_members(NewWorkflow& workflow, std::uint32_t head,
                                std::vector<std::uint32_t>& slots) {
  const std::uint64_t now = store_.now_ms();
  slots.reserve(workflow.jobs.size());
  for (std::uint16_t i = 0; i < workflow.jobs.size(); ++i)
    if (const Outcome filled = fill_member(workflow, head, i, now, slots); filled != Outcome::kOk)
      return filled;
  return Outcome::kOk;
}

Outcome Workflows::fill_member(NewWorkflow& workflow, std::uint32_t head, std::uint16_t member,
                               std::uint64_t now, std::vector<std::uint32_t>& slots) {
  WorkflowGraph::Member& at = workflow.graph->members[member];
  const PastMember past = workflow.past.empty() ? PastMember() : workflow.past[member];
  if (past.is == PastMember::Is::kGone) {
    slots.push_back(kNoIndex);
    return Outcome::kOk;
  }
  NewJob& spec = workflow.jobs[member];
  if (spec.size() > store_.max_body()) return Outcome::kTooLarge;
  QueueRecord& queue = store_.queue(spec.queue);
  unsigned part = 0;
  if ((queue.flags.load() & kSharded) != 0 || spec.age_rate)
    if (const Outcome chosen = actor_.order().choose_part(spec, queue, part);
        chosen != Outcome::kOk)
      return chosen;
  NewAnnex annex;
  annex.bits = kMember;
  annex.workflow = head;
  annex.workflow_generation = store_.job(head).generation.get();
  annex.node = member;
  spec.annex = &annex;
  std::uint64_t word = 0;
  const std::uint32_t slot = actor_.slots_.take(word);
  if (slot == kNoIndex) return Outcome::kNoSlots;
  slots.push_back(slot);
  JobRecord& job = store_.job(slot);
  JobId id;
  Outcome outcome = actor_.fill<false>(spec, JobForm(spec, part), slot, job, now, id);
  spec.annex = nullptr;
  std::uint64_t fence = Control(word).tag();
  if (past.past != nullptr && outcome == Outcome::kOk) {
    outcome = actor_.remember(*past.past, slot, job);
    fence = std::max(fence, past.past->fence);
    if (past.is == PastMember::Is::kEnded)
      job.due_at.set(slot_state(past.past->state));
    else
      job.finished_at.set(0);
  }
  job.available_at.set(0);
  const unsigned ring = normal_ring(spec.rank);
  job.control.store(Control(kSlotFilling, ring, actor_.owner_, fence).word, Point::kSlotFilling);
  if (outcome != Outcome::kOk) return outcome;
  at.slot = slot;
  at.generation = job.generation.get();
  return actor_.rings_.ensure(store_.rings_of(spec.queue, part), ring) == kNoIndex
             ? Outcome::kNoRings
             : Outcome::kOk;
}

/// Of a workflow that runs no lane uses such a slot again, so it was being filled for the first
/// time.
bool Workflows::ended_before(const JobRecord& job) const {
  if ((job.signals.load() & kMember) == 0 || job.finished_at.get() == 0) return false;
  const std::uint64_t state = job.due_at.get();
  return state <= kSlotHead && is_finished(static_cast<unsigned>(state)) &&
         runs(head_of(store_, membership(job)));
}

void Workflows::publish_ended(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const Control filling(job.control.load());
  const Control ended = filling.to(static_cast<unsigned>(job.due_at.get()), filling.ring(), 0);
  job.control.store(ended.word, Point::kSlotSettled);  // PAIR slot-settle
}

Outcome Workflows::write_head(const NewWorkflow& workflow, std::uint32_t slot) {
  std::string body(workflow.kind);
  body.reserve(body.size() + workflow.jobs.size() * 32 + workflow.description.size());
  workflow.graph->encode(body);
  const std::size_t graph = body.size() - workflow.kind.size();
  body.append(workflow.description);
  if (body.size() > store_.max_body()) return Outcome::kTooLarge;
  JobRecord& head = store_.job(slot);
  const std::uint32_t block = actor_.slots_.write(slot, head.generation.get(), body);
  if (block == kNoIndex) return Outcome::kNoBlocks;
  head.body_block.set(block);
  head.type_args.set(static_cast<std::uint32_t>(workflow.kind.size() << 24 | graph));
  head.extra_length.set(static_cast<std::uint32_t>(workflow.description.size()));
  head.attempt.set(static_cast<std::uint16_t>(workflow.jobs.size()));
  WorkflowBits& bits = bits_of(head);
  std::array<std::uint64_t, WorkflowBits::kWords> done{}, failed{};
  for (unsigned i = 0; i < workflow.past.size(); ++i) {
    const PastMember& member = workflow.past[i];
    if (member.is != PastMember::Is::kEnded && member.is != PastMember::Is::kGone) continue;
    done[i / 64] |= 1ULL << i % 64;
    if (member.failed) failed[i / 64] |= 1ULL << i % 64;
  }
  for (unsigned i = 0; i < WorkflowBits::kWords; ++i) {
    bits.done[i].store(done[i], Point::kNone);      // NO CRASH POINT: the slot is held exclusively
    bits.failed[i].store(failed[i], Point::kNone);  // NO CRASH POINT: as above
  }
  if (workflow.created_at != 0) head.created_at.set(workflow.created_at);
  return Outcome::kOk;
}

/// As an enqueue that ends with a job that this lane holds instead of a job that waits.
Outcome Workflows::charge_root(const NewJob& spec, std::uint32_t slot, bool past) {
  const std::uint32_t q = spec.queue;
  QueueRecord& queue = store_.queue(q);
  QueueTally& mine = actor_.tally(q);
  JobRecord& job = store_.job(slot);
  TenantCharge tenant{spec.tenant, charge(1, spec.size())};
  actor_.intend<Op::kAdmit>(q, kNoIndex, mine);
  const std::uint64_t flags = queue.flags.load();
  Outcome admitted = Outcome::kOk;
  if (past) {
    std::uint64_t used = 0;
    if ((flags & kTenants) != 0) actor_.charge_account(q, tenant, {}, 0, used);
    actor_.charge_return(queue, q, tenant.cost);
  } else {
    admitted = actor_.admit_all(queue, mine, q, flags, tenant.cost, std::span(&tenant, 1));
  }
  if (admitted != Outcome::kOk) {
    actor_.intend_nothing();
    if (admitted != Outcome::kMustDrop && admitted != Outcome::kMustWait) return admitted;
    return Outcome::kQueueFull;
  }
  actor_.intend_further(Op::kEnqueue, q, slot);
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

}  // namespace ojs_shm::engine
