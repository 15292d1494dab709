// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "engine/audit/audit_book.hpp"
#include "engine/workflows/workflow_look.hpp"

namespace ojs_shm::engine {
namespace {

void audit_head(AuditBook& book, std::uint32_t slot, const JobRecord& head, Control control) {
  const Store& store = book.store();
  const std::string name = "the workflow in slot " + std::to_string(slot);
  WorkflowGraph graph;
  if (!read_graph(store, slot, head.generation.get(), graph) ||
      graph.members.size() != members_of(head)) {
    book.say(27, name + " has no graph of its members");
    return;
  }
  const bool all = graph.all_done(bits_of(head));
  if (runs(control) == all && workflow_state(control) != WorkflowState::kCancelled)
    book.say(27, name + (all ? " runs, and all of its jobs have ended"
                             : " has ended, and not all of its jobs have"));
  for (std::uint16_t i = 0; i < graph.members.size(); ++i) {
    const WorkflowGraph::Member& member = graph.members[i];
    const JobRecord& job = store.job(member.slot);
    const Control found(job.control.load());
    const Membership own = membership(job);
    const bool stands = member.slot < store.slots() && found.state() != kSlotFree &&
                        job.generation.get() == member.generation &&
                        (job.signals.load() & kMember) != 0 && own.head == slot &&
                        own.generation == head.generation.get() && own.member == i;
    const bool done = bits_of(head).is_done(i);
    if (!stands && !done)
      book.say(27, name + " waits for its job " + std::to_string(i) + ", which is gone");
    if (stands && (done != is_finished(found.state())) && !is_exclusive(found.state()))
      book.say(27, name + (done ? " takes its job " : " does not know that its job ") +
                       std::to_string(i) + (done ? " for ended, and it has not" : " has ended"));
  }
}

}  // namespace

void audit_workflows(AuditBook& book) {
  const Store& store = book.store();
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    const Control control(job.control.load());
    if (is_head(control)) audit_head(book, slot, job, control);
    if (control.state() != kSlotWaiting) continue;
    const Control head =
        (job.signals.load() & kMember) == 0 ? Control() : head_of(store, membership(job));
    if (!is_head(head)) book.say(27, AuditBook::slot_name(slot) + " waits for no workflow");
  }
}

}  // namespace ojs_shm::engine
