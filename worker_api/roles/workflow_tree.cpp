// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/workflow_tree.hpp"

#include <algorithm>

#include "engine/tables/job_look.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/last_error.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {

std::string_view workflow_state_name(WorkflowState state) noexcept {
  switch (state) {
    case WorkflowState::kRunning: return "running";
    case WorkflowState::kCompleted: return "completed";
    case WorkflowState::kFailed: return "failed";
    case WorkflowState::kCancelled: return "cancelled";
  }
  return "unknown";
}

std::string_view workflow_kind_name(WorkflowKind kind) noexcept {
  switch (kind) {
    case WorkflowKind::kJob: return "job";
    case WorkflowKind::kChain: return "chain";
    case WorkflowKind::kGroup: return "group";
    case WorkflowKind::kBatch: return "batch";
    case WorkflowKind::kGraph: return "graph";
  }
  return "unknown";
}

std::string_view step_state_name(StepState state) noexcept {
  switch (state) {
    case StepState::kWaiting: return "waiting";
    case StepState::kPending: return "pending";
    case StepState::kActive: return "active";
    case StepState::kCompleted: return "completed";
    case StepState::kFailed: return "failed";
    case StepState::kCancelled: return "cancelled";
    case StepState::kSkipped: return "skipped";
  }
  return "unknown";
}

namespace internal {
namespace {

/// What a job's text leaves out.
struct JobBefore {
  std::uint16_t next = 0;
  std::string type, queue;
};

WorkflowTree read_tree(std::string_view object, JobBefore& before) {
  WorkflowTree tree;
  for (const json::Member& member : json::members_of(object)) {
    const auto number = json::integer_of(member.value).value_or(0);
    const auto text = [&] { return json::string_of(member.value).value_or(""); };
    if (member.name == "k")
      tree.kind = static_cast<WorkflowKind>(std::clamp<std::int64_t>(number, 0, 4));
    else if (member.name == "when")
      tree.when = static_cast<StepCondition>(std::clamp<std::int64_t>(number, 0, 3));
    else if (member.name == "name")
      tree.name = text();
    else if (member.name == "type")
      before.type = text();
    else if (member.name == "queue")
      before.queue = text();
    else if (member.name == "tenant")
      tree.tenant = text();
    else if (member.name == "on")
      tree.callback = text();
    else if (json::kind_of(member.value) != json::Kind::kArray)
      continue;
    else if (member.name == "after")
      for (const std::string_view name : json::elements_of(member.value))
        tree.depends_on.push_back(json::string_of(name).value_or(""));
    else if (member.name == "steps")
      for (const std::string_view step : json::elements_of(member.value))
        tree.steps.push_back(read_tree(step, before));
  }
  if (tree.kind != WorkflowKind::kJob) return tree;
  tree.member = before.next++;
  tree.type = before.type;
  tree.queue = before.queue;
  return tree;
}

using Trees = std::vector<const WorkflowTree*>;

/// What the results of the member's context consist of; false when it is not in the tree. `before`:
/// what the tree as a whole comes after.
bool find_parents(const WorkflowTree& tree, std::uint16_t member, const Trees& before,
                  Trees& parents) {
  if (tree.kind == WorkflowKind::kJob) {
    if (tree.member != member) return false;
    parents = before;
    return true;
  }
  Trees earlier;
  for (const WorkflowTree& step : tree.steps) {
    Trees context = before;
    if (tree.kind == WorkflowKind::kGraph) {
      context.clear();
      for (const std::string& name : step.depends_on)
        for (const WorkflowTree& other : tree.steps)
          if (other.name == name) context.push_back(&other);
    } else if (!step.callback.empty() || (tree.kind == WorkflowKind::kChain && !earlier.empty())) {
      context = earlier;
    }
    if (find_parents(step, member, context, parents)) return true;
    if (step.callback.empty()) earlier.push_back(&step);
  }
  return false;
}

/// {"error":{...}} by which the job failed; false when none is known. Source: ojs-results 9.1.
bool append_failure(const engine::Snapshot& job, std::string& out) {
  const auto errors = engine::decode_errors(job.errors);
  if (errors.empty()) return false;
  const engine::ErrorEntry& last = errors.back();
  json::ObjectWriter writer(out);
  json::ObjectWriter error(writer.open("error"));
  error.text("code", last.code);
  error.text("type", last.type.empty() ? last.code : last.type);
  error.text("message", last.message);
  if (!last.details.empty() && json::check(last.details)) error.value("details", last.details);
  error.close();
  writer.close();
  return true;
}

void append_result(const engine::Store& store, const engine::WorkflowSnapshot& workflow,
                   const WorkflowTree& tree, std::string& out) {
  if (tree.kind == WorkflowKind::kChain && !tree.steps.empty())
    return append_result(store, workflow, tree.steps.back(), out);
  if (tree.kind != WorkflowKind::kJob) {
    out += '[';
    bool first = true;
    for (const WorkflowTree& step : tree.steps) {
      if (!step.callback.empty()) continue;
      if (!std::exchange(first, false)) out += ',';
      append_result(store, workflow, step, out);
    }
    out += ']';
    return;
  }
  const std::uint32_t slot = engine::slot_of_member(store, workflow, tree.member);
  const auto job = slot == engine::kNoIndex ? std::nullopt : engine::snapshot(store, slot);
  const bool there = job && job->generation == workflow.graph.members[tree.member].generation;
  const bool good = there && job->state() == engine::JobState::kCompleted && !job->result.empty() &&
                    json::check(job->result);
  if (there && job->state() == engine::JobState::kDiscarded && append_failure(*job, out)) return;
  out += good ? std::string_view(job->result) : std::string_view("null");
}

}  // namespace

void TreeWriter::member(std::string_view name) {
  if (out_.back() != '{') out_ += ',';
  json::append_quoted(out_, name);
  out_ += ':';
}

void TreeWriter::begin(const WorkflowSpec& spec, std::string_view callback) {
  if (!out_.empty() && out_.back() != '[') out_ += ',';
  out_ += '{';
  if (spec.kind != WorkflowKind::kJob) {
    member("k");
    out_ += std::to_string(static_cast<unsigned>(spec.kind));
  }
  if (!spec.name.empty()) {
    member("name");
    json::append_quoted(out_, spec.name);
  }
  if (!callback.empty()) {
    member("on");
    json::append_quoted(out_, callback);
  }
  if (spec.when != StepCondition::kSuccess) {
    member("when");
    out_ += std::to_string(static_cast<unsigned>(spec.when));
  }
  if (spec.depends_on.empty()) return;
  member("after");
  out_ += '[';
  for (const std::string_view name : spec.depends_on) {
    if (out_.back() != '[') out_ += ',';
    json::append_quoted(out_, name);
  }
  out_ += ']';
}

void TreeWriter::job(std::string_view type, std::string_view queue) {
  if (type != type_) {
    member("type");
    json::append_quoted(out_, type_ = type);
  }
  if (queue != queue_) {
    member("queue");
    json::append_quoted(out_, queue_ = queue);
  }
  out_ += '}';
}

void TreeWriter::open() {
  member("steps");
  out_ += '[';
}

std::optional<WorkflowTree> WorkflowTree::read(std::string_view text) {
  if (!json::check(text) || json::kind_of(json::trim(text)) != json::Kind::kObject)
    return std::nullopt;
  JobBefore before;
  return read_tree(text, before);
}

std::string parent_results(const engine::Store& store, const engine::Membership& member) {
  const auto workflow = engine::snapshot_workflow(store, member.head);
  if (!workflow || workflow->generation != member.generation) return {};
  const auto tree = WorkflowTree::read(workflow->description);
  Trees parents;
  if (!tree || !find_parents(*tree, member.member, {}, parents)) return {};
  std::string out = "[";
  for (const WorkflowTree* parent : parents) {
    if (out.size() > 1) out += ',';
    append_result(store, *workflow, *parent, out);
  }
  return out + "]";
}

namespace {

StepState state_of(const engine::WorkflowSnapshot& workflow, std::uint16_t member,
                   const engine::Snapshot* job) {
  const bool failed = member < workflow.graph.members.size() && workflow.is_done(member) &&
                      workflow.has_failed(member);
  const bool revived = failed && job != nullptr && job->state() != engine::JobState::kDiscarded &&
                       job->state() != engine::JobState::kCancelled;
  if (revived) return StepState::kFailed;  // to the workflow; what became of it since is its own
  if (job != nullptr) switch (job->state()) {
      case engine::JobState::kActive: return StepState::kActive;
      case engine::JobState::kCompleted: return StepState::kCompleted;
      case engine::JobState::kDiscarded: return StepState::kFailed;
      case engine::JobState::kCancelled: return StepState::kCancelled;
      default: return StepState::kPending;
    }
  if (member >= workflow.graph.members.size() || !workflow.is_done(member))
    return StepState::kWaiting;
  // Its slot is another's by now, or it never ran.
  const engine::WorkflowGraph::Member& at = workflow.graph.members[member];
  const auto failed_in = [&](std::uint16_t set) {
    return set != engine::WorkflowGraph::kNothing &&
           std::any_of(workflow.graph.sets[set].begin(), workflow.graph.sets[set].end(),
                       [&](std::uint16_t other) { return workflow.has_failed(other); });
  };
  const bool before = failed_in(at.waits);
  if (workflow.has_failed(member)) {
    const bool never = workflow.state == engine::WorkflowState::kCancelled || failed_in(at.gate) ||
                       (before && at.when == engine::When::kSuccess);
    return never ? StepState::kCancelled : StepState::kFailed;
  }
  const bool left_out = at.when == engine::When::kFailure   ? !before
                        : at.when == engine::When::kAllGood ? before
                                                            : false;
  return left_out ? StepState::kSkipped : StepState::kCompleted;
}

/// The state of a part of parts, as its own outcome will be.
StepState state_of(const WorkflowStep& step) {
  const auto any = [&](auto&&... states) {
    return std::any_of(step.steps.begin(), step.steps.end(),
                       [&](const WorkflowStep& part) { return ((part.state == states) || ...); });
  };
  if (any(StepState::kActive)) return StepState::kActive;
  if (any(StepState::kPending))
    return any(StepState::kCompleted, StepState::kFailed) ? StepState::kActive
                                                          : StepState::kPending;
  if (any(StepState::kWaiting))
    return any(StepState::kCompleted, StepState::kFailed) ? StepState::kActive
                                                          : StepState::kWaiting;
  const bool by_callbacks = step.kind == WorkflowKind::kBatch;
  bool failed = false, cancelled = false;
  for (const WorkflowStep& part : step.steps) {
    if (by_callbacks && part.callback.empty()) continue;
    failed = failed || part.state == StepState::kFailed;
    cancelled = cancelled || part.state == StepState::kCancelled;
  }
  return failed ? StepState::kFailed : cancelled ? StepState::kCancelled : StepState::kCompleted;
}

WorkflowStep describe(const engine::Store& store, const engine::WorkflowSnapshot& workflow,
                      const WorkflowTree& tree, bool results, WorkflowInfo& info, bool callback) {
  WorkflowStep step;
  step.kind = tree.kind;
  step.name = tree.name;
  step.type = tree.type;
  step.queue = tree.queue;
  step.callback = tree.callback;
  step.depends_on = tree.depends_on;
  callback = callback || !tree.callback.empty();
  if (tree.kind != WorkflowKind::kJob) {
    for (const WorkflowTree& part : tree.steps)
      step.steps.push_back(describe(store, workflow, part, results, info, callback));
    step.state = state_of(step);
    return step;
  }
  const std::uint32_t slot = engine::slot_of_member(store, workflow, tree.member);
  auto job = slot == engine::kNoIndex ? std::nullopt : engine::snapshot(store, slot, results);
  if (job && job->generation != workflow.graph.members[tree.member].generation) job.reset();
  step.state = state_of(workflow, tree.member, job ? &*job : nullptr);
  if (job) {
    const JobInfo known = info_of(store, *job);
    step.job_id = known.id;
    step.result = known.result;
    step.started_at_ms = known.started_at_ms;
    step.completed_at_ms = std::max(known.completed_at_ms, known.discarded_at_ms);
    if (step.state == StepState::kFailed) step.error = last_error_of(known);
    if (known.started_at_ms != 0)
      info.started_at_ms = info.started_at_ms == 0
                               ? known.started_at_ms
                               : std::min(info.started_at_ms, known.started_at_ms);
  }
  if (callback) return step;
  ++info.jobs;
  if (step.state == StepState::kCompleted) ++info.completed;
  if (step.state == StepState::kFailed) ++info.failed;
  return step;
}

}  // namespace

std::optional<WorkflowInfo> workflow_info(const engine::Store& store, std::uint32_t head,
                                          bool results) {
  const auto workflow = engine::snapshot_workflow(store, head);
  if (!workflow) return std::nullopt;
  WorkflowInfo info;
  info.id = engine::to_string(workflow->id);
  info.state = static_cast<WorkflowState>(workflow->state);
  info.created_at_ms = workflow->created_at;
  info.ended_at_ms = workflow->finished_at;
  if (const auto tree = WorkflowTree::read(workflow->description)) {
    info.root = describe(store, *workflow, *tree, results, info, false);
    info.tenant = tree->tenant;
  }
  if (workflow->started_at != 0) info.started_at_ms = workflow->started_at;
  return info;
}

}  // namespace internal
}  // namespace ojs_shm
