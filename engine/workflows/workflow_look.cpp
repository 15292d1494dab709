// SPDX-License-Identifier: Apache-2.0
#include "engine/workflows/workflow_look.hpp"

#include <algorithm>
#include <bit>

#include "engine/tables/job_look.hpp"
#include "shm/blocks.hpp"

namespace ojs_shm::engine {

bool all_done(const JobRecord& head) {
  const WorkflowBits& bits = bits_of(head);
  const unsigned members = members_of(head);
  for (unsigned i = 0; i * 64 < members; ++i) {
    const unsigned left = members - i * 64;
    const std::uint64_t all = left >= 64 ? ~0ULL : (1ULL << left) - 1;
    if ((bits.done[i].load() & all) != all) return false;  // PAIR member-done
  }
  return members != 0;
}

unsigned members_left(const JobRecord& head) {
  unsigned done = 0;
  for (const Word& word : bits_of(head).done)
    done += static_cast<unsigned>(std::popcount(word.load()));
  return members_of(head) - std::min(members_of(head), done);
}

Control head_of(const Store& store, const Membership& member) {
  if (member.head >= store.slots() || member.member >= kMostMembers) return {};
  const JobRecord& head = store.job(member.head);
  const Control control(head.control.load());  // PAIR workflow-head
  return is_head(control) && head.generation.get() == member.generation ? control : Control();
}

bool kept_for_workflow(const Store& store, const JobRecord& job) {
  return (job.signals.load() & kMember) != 0 &&
         (runs(head_of(store, membership(job))) || is_unmarked(store, job));
}

bool is_unmarked(const Store& store, const JobRecord& job) {
  if ((job.signals.load() & kMember) == 0) return false;
  const Membership member = membership(job);
  return is_head(head_of(store, member)) && !bits_of(store.job(member.head)).is_done(member.member);
}

bool reusable(const Store& store, const JobRecord& job, Control control) {
  if (is_finished(control.state())) return !kept_for_workflow(store, job);
  return is_spent(control) && all_done(job);
}

bool workflow_runs(const Store& store, const JobRecord& member) {
  return runs(head_of(store, membership(member)));
}

bool unborn(const Store& store, const JobRecord& job) {
  if ((job.signals.load() & kMember) == 0) return false;
  const Membership member = membership(job);
  if (member.head >= store.slots()) return false;
  const JobRecord& head = store.job(member.head);
  return Control(head.control.load()).state() == kSlotFilling &&
         head.generation.get() == member.generation;
}

std::uint32_t find_workflow(const Store& store, JobId id) {
  const auto stands_in = [&](std::uint32_t slot) {
    return slot < store.slots() && is_head(Control(store.job(slot).control.load())) &&
           store.job(slot).id() == id;
  };
  const std::uint64_t salt = store.segment().header().salt & ((1ULL << 56) - 1);
  if (const auto made_here = parts(id, salt); made_here && stands_in(made_here->slot))
    return made_here->slot;
  const std::uint32_t slot =
      shm::KeyIndex::find(store.segment(), hash_id(id), CarriesId(store, id));
  return stands_in(slot) ? slot : kNoIndex;
}

std::optional<JobId> workflow_of(const Store& store, const Membership& member) {
  const Control before = head_of(store, member);
  if (!is_head(before)) return std::nullopt;
  const JobId id = store.job(member.head).id();
  return is_head(head_of(store, member)) ? std::optional(id) : std::nullopt;
}

namespace {

/// Kind, graph and description.
bool read_body(const Store& store, std::uint32_t slot, std::uint32_t generation, std::string& body,
               std::size_t& kind, std::size_t& graph) {
  const JobRecord& head = store.job(slot);
  kind = head.type_length();
  graph = head.args_length();
  const std::uint64_t size = head.body_length();
  // kind and graph may make it larger than any job's
  if (size > std::uint64_t{store.max_body()} * 2 + kInlineBytes) return false;
  body.clear();
  shm::Blocks::read(store.segment(), head.body_block.get(), slot, generation, size, body);
  return body.size() == size && is_head(head_of(store, {slot, generation, 0}));
}

}  // namespace

bool read_graph(const Store& store, std::uint32_t slot, std::uint32_t generation,
                WorkflowGraph& graph) {
  std::string body;
  std::size_t kind = 0, length = 0;
  return slot < store.slots() && read_body(store, slot, generation, body, kind, length) &&
         graph.decode(std::string_view(body).substr(kind, length));
}

std::optional<WorkflowSnapshot> snapshot_workflow(const Store& store, std::uint32_t slot) {
  if (slot >= store.slots()) return std::nullopt;
  const JobRecord& head = store.job(slot);
  for (int look = 0; look < 64; ++look) {
    const Control control(head.control.load());
    if (!is_head(control)) return std::nullopt;
    WorkflowSnapshot s;
    s.slot = slot;
    s.generation = head.generation.get();
    s.id = head.id();
    s.state = workflow_state(control);
    s.created_at = head.created_at.get();
    s.started_at = head.started_at.get();
    s.finished_at = s.state == WorkflowState::kRunning ? 0 : head.finished_at.get();
    const WorkflowBits& bits = bits_of(head);
    for (unsigned i = 0; i < WorkflowBits::kWords; ++i) s.done[i] = bits.done[i].load();
    for (unsigned i = 0; i < WorkflowBits::kWords; ++i) s.failed[i] = bits.failed[i].load();
    std::string body;
    std::size_t kind = 0, graph = 0;
    const bool whole = read_body(store, slot, s.generation, body, kind, graph);
    if (Control(head.control.load()) != control) continue;
    if (!whole || !s.graph.decode(std::string_view(body).substr(kind, graph))) return std::nullopt;
    s.kind = body.substr(0, kind);
    s.description = body.substr(kind + graph);
    return s;
  }
  return std::nullopt;
}

std::uint32_t slot_of_member(const Store& store, const WorkflowSnapshot& workflow,
                             std::uint16_t member) {
  if (member >= workflow.graph.members.size()) return kNoIndex;
  const WorkflowGraph::Member& at = workflow.graph.members[member];
  if (at.slot >= store.slots()) return kNoIndex;
  const JobRecord& job = store.job(at.slot);
  const unsigned state = Control(job.control.load()).state();
  const bool lives = state != kSlotFree && state != kSlotFilling && state < kSlotTemplate;
  return lives && job.generation.get() == at.generation ? at.slot : kNoIndex;
}

}  // namespace ojs_shm::engine
