// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rules/uuid.hpp"
#include "engine/tables/layout.hpp"
#include "engine/tables/new_job.hpp"
#include "shm/segment.hpp"

// A workflow: a head, which is a slot of its own, and a member for each of its jobs. The head holds
// two bits for each member, done and failed, and behind them the graph that says which member waits
// for which. docs/adr/0022-a-workflow-is-a-head-and-its-members.md has the argument.

namespace ojs_shm::engine {

constexpr unsigned kMostMembers = 512;

/// What a workflow is; the head's control word says so in the place of the ring.
enum class WorkflowState : std::uint8_t { kRunning, kCompleted, kFailed, kCancelled };

/// When a member may run, once all that it waits for are done.
enum class When : std::uint8_t {
  kSuccess,   ///< none of them failed; else the member fails too, and never runs
  kFailure,   ///< one of them failed; else it is left out
  kComplete,  ///< in any case
  kAllGood,   ///< none of them failed; else it is left out: a callback
};

/// In the place of a head's inline bytes. A bit is set once and stays; the process that sets the
/// last of `done` ends the workflow. A member's bit is set by the process that ends the member, or,
/// after its death, by the process that repairs it, so a head with a missing bit is still there.
struct WorkflowBits {
  static constexpr unsigned kWords = kMostMembers / 64;
  Word failed[kWords];  ///< before `done`
  Word done[kWords];
  bool is_done(unsigned member) const { return (done[member / 64].load() >> member % 64 & 1) != 0; }
  bool has_failed(unsigned member) const {
    return (failed[member / 64].load() >> member % 64 & 1) != 0;
  }
};
static_assert(sizeof(WorkflowBits) <= kInlineBytes);

inline WorkflowBits& bits_of(JobRecord& head) {
  return *reinterpret_cast<WorkflowBits*>(head.inline_bytes);
}
inline const WorkflowBits& bits_of(const JobRecord& head) {
  return *reinterpret_cast<const WorkflowBits*>(head.inline_bytes);
}

/// In the signals of a head: it was told that its first job began.
constexpr std::uint64_t kBegan = 1;

/// In the ring number of a head, above its WorkflowState: what is left of it is listed.
constexpr unsigned kClosed = 4;

constexpr bool is_head(Control control) { return control.state() == kSlotHead; }
constexpr WorkflowState workflow_state(Control head) {
  return static_cast<WorkflowState>(head.ring() & 3);
}
constexpr bool runs(Control head) {
  return is_head(head) && workflow_state(head) == WorkflowState::kRunning;
}

/// Lists of members, one list behind the next.
class MemberLists {
 public:
  using List = std::span<const std::uint16_t>;
  std::size_t size() const { return ends_.size(); }
  List operator[](std::size_t at) const {
    const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
    return List(members_).subspan(begin, ends_[at] - begin);
  }
  void clear() {
    members_.clear();
    ends_.clear();
  }
  /// The last list grows by a member, and ends.
  void put(std::uint16_t member) { members_.push_back(member); }
  void end() { ends_.push_back(static_cast<std::uint32_t>(members_.size())); }
  void add(List list) {
    members_.insert(members_.end(), list.begin(), list.end());
    end();
  }

 private:
  std::vector<std::uint16_t> members_;
  std::vector<std::uint32_t> ends_;
};

/// Which member waits for which. Plain data; the head's body is its text.
struct WorkflowGraph {
  static constexpr std::uint16_t kNothing = 0xFFFF;
  struct Member {
    std::uint32_t slot = shm::kNoIndex, generation = 0;
    std::uint16_t waits = kNothing;  ///< a set
    /// a set of which none may have failed, or the member fails too
    std::uint16_t gate = kNothing;
    When when = When::kSuccess;
  };
  std::vector<Member> members;
  MemberLists sets;
  std::uint16_t result = kNothing;  ///< the set that the workflow's own outcome is

  void encode(std::string& out) const;
  /// Nothing of it may be believed: false when it leads out of itself.
  bool decode(std::string_view bytes);
  bool holds() const;
  /// Those that wait for a member, once each.
  MemberLists::List followers(std::uint16_t member) const { return followers_[member]; }
  bool root(std::uint16_t member) const { return members[member].waits == kNothing; }
  /// Fills what followers() gives.
  void link();

  enum class Verdict : std::uint8_t { kWait, kRun, kFail, kLeaveOut };
  Verdict judge(std::uint16_t member, const WorkflowBits& bits) const;
  bool all_done(const WorkflowBits& bits) const;
  bool any_failed(std::uint16_t set, const WorkflowBits& bits) const;

 private:
  MemberLists followers_;
};

struct PastJob;

/// A job of a workflow that has lived elsewhere.
struct PastMember {
  enum class Is : std::uint8_t {
    kWaiting,  ///< for other members
    kAlive,    ///< its turn has come
    kEnded,
    kGone,  ///< ended, and nothing else is known of it
  };
  Is is = Is::kWaiting;
  bool failed = false;            ///< of a member that ended
  const PastJob* past = nullptr;  ///< unless it is gone
};

/// What create_workflow() needs to know. The jobs' order is that of the graph's members.
struct NewWorkflow {
  std::span<NewJob> jobs;
  WorkflowGraph* graph = nullptr;
  std::string_view kind;         ///< the type of the head
  std::string_view description;  ///< opaque
  std::optional<JobId> id;
  /// Of a workflow that has lived elsewhere: as many as jobs. No bound refuses it.
  std::span<const PastMember> past;
  std::uint64_t created_at = 0;  ///< 0: now
  std::uint16_t refused = 0;     ///< of a refusal: the member whose queue refused it

  /// Whether the member is in its queue once the workflow is there.
  bool starts(std::uint16_t member) const {
    return past.empty() ? graph->root(member) : past[member].is == PastMember::Is::kAlive;
  }
};

/// Where a member belongs.
struct Membership {
  std::uint32_t head = shm::kNoIndex, generation = 0;
  std::uint16_t member = 0;
};
inline Membership membership(const JobRecord& job) {
  const Annex& annex = job.annex();
  return {annex.workflow.get(), annex.workflow_generation.get(), annex.node.get()};
}

}  // namespace ojs_shm::engine
