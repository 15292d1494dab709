// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "engine/actor.hpp"
#include "engine/workflows/workflow_look.hpp"

namespace ojs_shm::engine {

/// What one lane does with workflows that are there (workflow_progress.cpp).
///
/// A member's bits are set by the process that holds the member's slot, or names it in its intent,
/// when it ends the job or leaves it out. So each pair is set by one process, and a head of which a
/// bit is missing is not used again: the bit's owner may write it without asking. Everything else
/// may be done by any process any number of times: it follows from the bits.
class WorkflowProgress {
 public:
  explicit WorkflowProgress(Actor& actor) : actor_(actor), store_(actor.store_) {}

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
  /// Does what is left to be done, for all workflows.
  void mend();
  /// Lists what is left of an ended workflow, to be used again.
  void close(std::uint32_t head);

 protected:
  void mend_one(std::uint32_t head, std::uint32_t generation);
  /// Ends what has not begun of a workflow that was cancelled.
  void sweep_cancelled(std::uint32_t head, std::uint32_t generation);

  Actor& actor_;
  Store& store_;

 private:
  void settle(std::uint32_t head, std::uint32_t generation, std::vector<std::uint16_t>& look_at);
  void release(const Membership& member);
  bool leave_out(const Membership& member, bool failed);
  bool stands_in(std::uint32_t slot, const Membership& member) const;
  void mark_once(const Membership& member, bool failed);
  void cancel_member(JobId id);
  void end_if_done(std::uint32_t head, std::uint32_t generation);
  bool know(std::uint32_t head, std::uint32_t generation);
  std::uint16_t failed_by(const WorkflowBits& bits) const;

  /// A graph that was read, and whose it is.
  struct Known {
    WorkflowGraph graph;
    std::uint32_t head = kNoIndex, generation = 0;
  };
  static constexpr std::size_t kMostKnown = 8;

  /// the graph of the last workflow
  WorkflowGraph graph_;
  std::vector<Membership> dropped_;
  std::uint32_t known_head_ = kNoIndex, known_generation_ = 0;
  /// those before it, for a lane that ends jobs of several in turn
  std::array<Known, kMostKnown> earlier_;
  std::size_t oldest_ = 0;
};

}  // namespace ojs_shm::engine
