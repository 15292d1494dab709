// SPDX-License-Identifier: Apache-2.0
#include "engine/workflows/workflow_progress.hpp"

#include <algorithm>
#include <utility>

// What follows from the end of a member. Two that end at once each set their own bit first and look
// at all bits afterwards, so at least one of them sees both. Everything after that may be done by
// both, or by a repair once more: a member that waits is taken by one cas of its control word, and
// the workflow is ended by one cas of its head's.

namespace ojs_shm::engine {

using shm::Point;

void WorkflowProgress::mark(const Membership& member, bool failed) {
  if (!is_head(head_of(store_, member))) return;  // a stranger's annex
  WorkflowBits& bits = bits_of(store_.job(member.head));
  const std::uint64_t bit = 1ULL << member.member % 64;
  // a process that sees `done` must see `failed`
  if (failed) bits.failed[member.member / 64].fetch_or(bit, Point::kMemberFailed);
  bits.done[member.member / 64].fetch_or(bit, Point::kMemberDone);  // PAIR member-done
}

void WorkflowProgress::begins(const Membership& member) {
  const Control head = head_of(store_, member);
  if (!is_head(head)) return;
  JobRecord& record = store_.job(member.head);
  if ((record.signals.load() & kBegan) != 0) return;
  // A lane that is stopped here until another head, or a job, has the slot, marks that: the head
  // is not told to begin, the job is a part of 10,000 further.
  // NO CRASH POINT: it says that this was told, as an event that a death leaves out is not
  if ((record.signals.fetch_or(kBegan, Point::kNone) & kBegan) != 0) return;
  actor_.tellings_.about_workflow(Tellings::of_workflow(EventKind::kWorkflowStarted, record, head));
}

/// Once its last bit is set, the head may be used again: what is told is read before. What has not
/// ended is counted after, so that the last one to end finds nothing left.
void WorkflowProgress::mark_ended(const Membership& member, bool failed, std::uint64_t ran_ms) {
  const Control head = head_of(store_, member);
  if (failed || !is_head(head) || !actor_.tellings_.on()) return mark(member, failed);
  const JobRecord& record = store_.job(member.head);
  EventFacts step = Tellings::of_workflow(EventKind::kWorkflowStepCompleted, record, head);
  mark(member, false);
  const unsigned left = members_left(record);
  step.attempt = member.member;
  step.max_attempts = static_cast<std::uint16_t>(is_head(head_of(store_, member)) ? left : 0);
  step.value = ran_ms;
  actor_.tellings_.about_workflow(step);
}

/// A bit that was missing while the head stood there is this lane's to set. One that was not may be
/// another job's by now.
void WorkflowProgress::mark_once(const Membership& member, bool failed) {
  if (!is_head(head_of(store_, member))) return;
  const bool done = bits_of(store_.job(member.head)).is_done(member.member);
  if (is_head(head_of(store_, member)) && !done) mark(member, failed);
}

void WorkflowProgress::mark_again(std::uint32_t slot, Control ended) {
  const JobRecord& job = store_.job(slot);
  if ((job.signals.load() & kMember) == 0 || !is_finished(ended.state())) return;
  const Membership member = membership(job);
  if (job.control.load() == ended.word) mark_once(member, ended.state() != kSlotCompleted);
}

bool WorkflowProgress::waits_again(const JobRecord& job) const {
  if ((job.signals.load() & kMember) == 0 || Control(job.control.load()).ring() == 0) return false;
  const Membership member = membership(job);
  return is_head(head_of(store_, member)) &&
         !bits_of(store_.job(member.head)).is_done(member.member);
}

bool WorkflowProgress::know(std::uint32_t head, std::uint32_t generation) {
  if (known_head_ == head && known_generation_ == generation) return true;
  const auto exchange = [this](Known& other) {
    std::swap(graph_, other.graph);
    std::swap(known_head_, other.head);
    std::swap(known_generation_, other.generation);
  };
  for (Known& other : earlier_)
    if (other.head == head && other.generation == generation) {
      exchange(other);
      return true;
    }
  exchange(earlier_[oldest_++ % kMostKnown]);
  known_head_ = kNoIndex;
  if (!read_graph(store_, head, generation, graph_)) return false;
  known_head_ = head;
  known_generation_ = generation;
  return true;
}

void WorkflowProgress::dropped(const Membership& member) {
  mark(member, true);
  dropped_.push_back(member);
}

void WorkflowProgress::advance_dropped() {
  for (const Membership& member : std::exchange(dropped_, {})) advance(member);
}

void WorkflowProgress::advance(const Membership& member) {
  const Control head = head_of(store_, member);
  if (!is_head(head)) return;
  if (runs(head) && know(member.head, member.generation) && member.member < graph_.members.size()) {
    const MemberLists::List after = graph_.followers(member.member);
    std::vector<std::uint16_t> look_at(after.begin(), after.end());
    settle(member.head, member.generation, look_at);
  }
  end_if_done(member.head, member.generation);
}

/// Judges these members, and what waits for those of them that are left out.
void WorkflowProgress::settle(std::uint32_t head, std::uint32_t generation,
                              std::vector<std::uint16_t>& look_at) {
  using Verdict = WorkflowGraph::Verdict;
  const WorkflowBits& bits = bits_of(store_.job(head));
  for (std::size_t i = 0; i < look_at.size() && know(head, generation); ++i) {
    const std::uint16_t at = look_at[i];
    if (graph_.root(at)) continue;
    const Verdict verdict = graph_.judge(at, bits);
    if (verdict == Verdict::kWait) continue;
    if (verdict == Verdict::kRun) {
      release({head, generation, at});
      continue;
    }
    if (leave_out({head, generation, at}, verdict == Verdict::kFail)) {
      const MemberLists::List more = graph_.followers(at);
      look_at.insert(look_at.end(), more.begin(), more.end());
    }
  }
}

/// Whether the member waits in the slot. What was read is judged by a cas of its control word.
bool WorkflowProgress::stands_in(std::uint32_t slot, const Membership& member) const {
  const JobRecord& job = store_.job(slot);
  const Membership found = membership(job);
  return (job.signals.load() & kMember) != 0 && found.head == member.head &&
         found.generation == member.generation && found.member == member.member;
}

/// From waiting to available, or scheduled. No bound refuses it.
void WorkflowProgress::release(const Membership& member) {
  const std::uint32_t slot = graph_.members[member.member].slot;
  if (slot >= store_.slots()) return;
  JobRecord& job = store_.job(slot);
  const Control found(job.control.load());
  if (found.state() != kSlotWaiting || !stands_in(slot, member)) return;
  Control held;
  if (!actor_.hold(Event::kMemberRuns, slot, found, held)) return;
  const std::uint32_t q = job.queue.get();
  QueueTally& mine = actor_.tally(q);
  actor_.charge_return(q, job);
  mine.enqueued.set_ordered(mine.enqueued.get() + 1, Point::kCounterMoved);
  const JobId id = job.id();
  actor_.give_out(slot, job, held);
  // A cancel that came while we held it has passed it over.
  if (!runs(head_of(store_, member))) cancel_member(id);
}

void WorkflowProgress::cancel_member(JobId id) {
  JobState before{};
  actor_.cancel(id, before);
}

/// Takes a waiting member out for good. Until its bit is set the lane holds its slot, and with it
/// the head.
bool WorkflowProgress::leave_out(const Membership& member, bool failed) {
  const std::uint32_t slot = graph_.members[member.member].slot;
  if (slot >= store_.slots()) return false;
  JobRecord& job = store_.job(slot);
  const Control found(job.control.load());
  if (found.state() != kSlotWaiting || !stands_in(slot, member)) return false;
  const Control held = found.to(kSlotFilling, found.ring(), actor_.owner_);
  if (!job.control.cas_once(found.word, held.word, Point::kSlotFilling)) return false;
  mark_once(member, failed);
  actor_.slots_.free(slot, held);
  return true;
}

/// The member by whose failure a workflow failed: the first whose job failed, if need be a member
/// by whose end other members failed on which the outcome depends.
std::uint16_t WorkflowProgress::failed_by(const WorkflowBits& bits) const {
  std::uint64_t earliest = ~0ULL;
  std::uint16_t by = 0;  // without their jobs, the first
  while (by + 1U < graph_.members.size() && !bits.has_failed(by)) ++by;
  const auto look_at = [&](std::uint16_t member) {
    const WorkflowGraph::Member& at = graph_.members[member];
    const JobRecord& job = store_.job(at.slot);
    if (!bits.has_failed(member) || at.slot >= store_.slots() ||
        job.generation.get() != at.generation || job.finished_at.get() >= earliest ||
        job.finished_at.get() == 0)
      return;
    earliest = job.finished_at.get();
    by = member;
  };
  if (graph_.result < graph_.sets.size())
    for (const std::uint16_t member : graph_.sets[graph_.result]) look_at(member);
  for (std::uint16_t i = 0; i < graph_.members.size() && earliest == ~0ULL; ++i) look_at(i);
  return by;
}

/// 1. It runs and all are done: one cas ends it; 2. it was cancelled: its last member is through.
/// The process that does the last of it lists what is left.
void WorkflowProgress::end_if_done(std::uint32_t slot, std::uint32_t generation) {
  JobRecord& head = store_.job(slot);
  const Control found = head_of(store_, {slot, generation, 0});
  if (!is_head(found) || !all_done(head)) return;
  actor_.intend_bare(Op::kClose, 0, slot);
  if (runs(found)) {  // 1
    if (!know(slot, generation)) return actor_.intend_nothing();
    const bool failed = graph_.any_failed(graph_.result, bits_of(head));
    const WorkflowState end = failed ? WorkflowState::kFailed : WorkflowState::kCompleted;
    const Control ended = found.to(kSlotHead, static_cast<unsigned>(end), 0);
    EventFacts told = Tellings::of_workflow(
        failed ? EventKind::kWorkflowFailed : EventKind::kWorkflowCompleted, head, ended);
    std::uint64_t started = 0;
    for (const WorkflowGraph::Member& member : graph_.members) {
      const JobRecord& job = store_.job(member.slot);
      const std::uint64_t at = job.started_at.get();
      if (job.generation.get() == member.generation && at != 0)
        started = started == 0 ? at : std::min(started, at);
    }
    const std::uint64_t ended_at = store_.now_ms();
    if (failed) told.attempt = failed_by(bits_of(head));
    told.value = ended_at - std::min(ended_at, started != 0 ? started : head.created_at.get());
    // Others that saw the last bit may write the same.
    if (head.control.load() == found.word) {
      head.started_at.set(started);
      head.finished_at.set(ended_at);
    }
    if (!head.control.cas_once(found.word, ended.word, Point::kWorkflowEnded)) {
      // another process was faster, or has cancelled it
      const Control now = head_of(store_, {slot, generation, 0});
      if (!is_head(now) || workflow_state(now) != WorkflowState::kCancelled)
        return actor_.intend_nothing();
    } else if (actor_.tellings_.on()) {
      actor_.tellings_.about_workflow(told);
    }
  }
  close(slot);  // 2
  actor_.intend_nothing();
}

/// Twice does no harm. Behind the word that says that it was done the slot may go on at any time.
void WorkflowProgress::close(std::uint32_t slot) {
  JobRecord& head = store_.job(slot);
  const Control ended(head.control.load());
  const std::uint32_t generation = head.generation.get();
  if (!is_head(ended) || runs(ended) || !all_done(head)) return;
  if ((ended.ring() & kClosed) != 0) return actor_.slots_.list(slot, ended);
  if (!know(slot, generation)) return;
  for (std::uint16_t i = 0; i < graph_.members.size(); ++i) {
    const std::uint32_t at = graph_.members[i].slot;
    if (at >= store_.slots()) continue;
    const JobRecord& job = store_.job(at);
    const Control control(job.control.load());
    if (is_finished(control.state()) && !job.flags().has(Policy::kDead) &&
        stands_in(at, {slot, generation, i}))
      actor_.slots_.list(at, control);
  }
  const Control closed = ended.to(kSlotHead, ended.ring() | kClosed, 0);
  if (head.control.cas_once(ended.word, closed.word, Point::kWorkflowEnded))
    actor_.slots_.list(slot, closed);
}

Outcome WorkflowProgress::cancel(JobId id, WorkflowState& found) {
  for (unsigned look = 0; look < kPatience; ++look) {
    const std::uint32_t slot = find_workflow(store_, id);
    if (slot == kNoIndex) return Outcome::kNotFound;
    JobRecord& head = store_.job(slot);
    const Control control(head.control.load());
    const std::uint32_t generation = head.generation.get();
    if (!is_head(control) || head.id() != id) continue;
    found = workflow_state(control);
    if (!runs(control)) return Outcome::kWrongState;
    const Control cancelled =
        control.to(kSlotHead, static_cast<unsigned>(WorkflowState::kCancelled), 0);
    const std::uint64_t now = store_.now_ms();
    EventFacts told = Tellings::of_workflow(EventKind::kWorkflowCancelled, head, cancelled);
    told.value = now - std::min(now, head.created_at.get());
    head.finished_at.set(now);
    if (!head.control.cas_once(control.word, cancelled.word, Point::kWorkflowEnded)) continue;
    if (actor_.tellings_.on()) actor_.tellings_.about_workflow(told);
    sweep_cancelled(slot, generation);
    return Outcome::kOk;
  }
  return Outcome::kBusy;
}

/// Ends what has not begun.
void WorkflowProgress::sweep_cancelled(std::uint32_t head, std::uint32_t generation) {
  const Control cancelled = head_of(store_, {head, generation, 0});
  if (!is_head(cancelled) || workflow_state(cancelled) != WorkflowState::kCancelled) return;
  if (!know(head, generation)) return;
  const std::size_t members = graph_.members.size();
  for (std::uint16_t i = 0; i < members; ++i) {
    const Membership member{head, generation, i};
    // an end of another workflow's last member may have come in between
    if (!know(head, generation)) return;
    if (leave_out(member, true)) continue;
    const std::uint32_t slot = graph_.members[i].slot;
    if (slot >= store_.slots()) continue;
    const JobRecord& job = store_.job(slot);
    for (unsigned look = 0; look < kPatience; ++look) {
      const Control control(job.control.load());
      const unsigned state = control.state();
      const bool waits = state == kSlotScheduled || state == kSlotAvailable ||
                         state == kSlotPending || state == kSlotRetryable;
      if (!waits || !stands_in(slot, member)) break;
      const JobId id = job.id();
      if (job.control.load() != control.word) continue;  // else the id may be another job's
      cancel_member(id);
      break;
    }
  }
  end_if_done(head, generation);
}

/// After a death anything may be half done.
void WorkflowProgress::mend() {
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& head = store_.job(slot);
    const Control control(head.control.load());
    const std::uint32_t generation = head.generation.get();
    if (!is_head(control) || !know(slot, generation)) continue;
    if (runs(control))
      mend_one(slot, generation);
    else if (!all_done(head))
      sweep_cancelled(slot, generation);
    else if ((control.ring() & kClosed) == 0)
      end_if_done(slot, generation);
  }
}

void WorkflowProgress::mend_one(std::uint32_t head, std::uint32_t generation) {
  if (!know(head, generation)) return;
  std::vector<std::uint16_t> all(graph_.members.size());
  for (std::uint16_t i = 0; i < all.size(); ++i) all[i] = i;
  settle(head, generation, all);
  end_if_done(head, generation);
}

}  // namespace ojs_shm::engine
