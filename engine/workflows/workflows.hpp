// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "engine/actor.hpp"
#include "engine/workflows/workflow_look.hpp"

namespace ojs_shm::engine {

/// What one lane does with workflows (workflow_create.cpp, workflow_advance.cpp).
///
/// A member's bits are set by the process that holds the member's slot, or names it in its intent,
/// when it ends the job or leaves it out. So each pair is set by one process, and a head of which a
/// bit is missing is not used again: the bit's owner may write it without asking. Everything else
/// may be done by any process any number of times: it follows from the bits.
class Workflows {
 public:
  explicit Workflows(Actor& actor);

  /// Whole or not at all. Roots are admitted to their queues; a queue without room refuses. One
  /// that has lived elsewhere goes on from where it stood.
  Outcome create(NewWorkflow& workflow, JobId& id);
  /// kWrongState: it has ended, as `found` says. Waiting members are cancelled; active ones may
  /// end.
  Outcome cancel(JobId id, WorkflowState& found);

  /// Told of each member that begins: the first one's beginning is the workflow's.
  void begins(const Membership& member);
  /// The member has ended, and this lane's intent names it: its bits.
  void mark(const Membership& member, bool failed);
  /// mark(), and tells that a member completed after so many ms.
  void mark_ended(const Membership& member, bool failed, std::uint64_t ran_ms);
  /// Lets run what may run now that the member has ended, and ends the workflow after its last.
  void advance(const Membership& member);

  /// The same of a job that is dropped: its bits now, the rest once the intent of the drop is over.
  void dropped(const Membership& member);
  void advance_dropped();

  // ---- after a death
  /// mark(), for a slot in which a dead lane stored that word; it may have been marked already.
  void mark_again(std::uint32_t slot, Control ended);
  /// Whether a member that a dead lane was filling, or taking out, is to wait again.
  bool waits_again(const JobRecord& job) const;
  /// A member that the lane was filling and that had ended elsewhere.
  bool ended_before(const JobRecord& job) const;
  void publish_ended(std::uint32_t slot);
  /// Does what is left to be done, for all workflows.
  void mend();
  /// Lists what is left of an ended workflow, to be used again.
  void close(std::uint32_t head);

 private:
  Outcome fill_members(NewWorkflow& workflow, std::uint32_t head,
                       std::vector<std::uint32_t>& slots);
  Outcome fill_member(NewWorkflow& workflow, std::uint32_t head, std::uint16_t member,
                      std::uint64_t now, std::vector<std::uint32_t>& slots);
  Outcome charge_root(const NewJob& spec, std::uint32_t slot, bool past);
  void mend_one(std::uint32_t head, std::uint32_t generation);
  Outcome write_head(const NewWorkflow& workflow, std::uint32_t slot);
  void settle(std::uint32_t head, std::uint32_t generation, std::vector<std::uint16_t>& look_at);
  void release(const Membership& member);
  bool leave_out(const Membership& member, bool failed);
  bool stands_in(std::uint32_t slot, const Membership& member) const;
  void mark_once(const Membership& member, bool failed);
  void cancel_member(JobId id);
  void end_if_done(std::uint32_t head, std::uint32_t generation);
  void sweep_cancelled(std::uint32_t head, std::uint32_t generation);
  bool know(std::uint32_t head, std::uint32_t generation);
  std::uint16_t failed_by(const WorkflowBits& bits) const;

  /// A graph that was read, and whose it is.
  struct Known {
    WorkflowGraph graph;
    std::uint32_t head = kNoIndex, generation = 0;
  };
  static constexpr std::size_t kMostKnown = 8;

  Actor& actor_;
  Store& store_;
  /// the graph of the last workflow
  WorkflowGraph graph_;
  std::vector<Membership> dropped_;
  std::uint32_t known_head_ = kNoIndex, known_generation_ = 0;
  /// those before it, for a lane that ends jobs of several in turn
  std::array<Known, kMostKnown> earlier_;
  std::size_t oldest_ = 0;
};

}  // namespace ojs_shm::engine
