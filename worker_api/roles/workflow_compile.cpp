// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/workflow_compile.hpp"

#include <algorithm>
#include <map>

namespace ojs_shm::internal {
namespace {

using Members = std::vector<std::uint16_t>;

/// What jobs have that say nothing themselves.
struct Inherited {
  std::optional<std::int64_t> priority;
  std::string_view queue = "default", tenant;
  Inherited with(const WorkflowSpec& spec) const {
    Inherited more = *this;
    if (spec.priority) more.priority = spec.priority;
    if (!spec.queue.empty()) more.queue = spec.queue;
    if (!spec.tenant.empty()) more.tenant = spec.tenant;
    return more;
  }
};

/// Walks the parts in order; each gives the members whose outcome is its own.
class Compiler {
 public:
  explicit Compiler(CompiledWorkflow& out) : out_(out) {}

  /// `waits`: the set that the part comes after.
  Members part(const WorkflowSpec& spec, const std::string& path, const Inherited& above,
               std::uint16_t waits, unsigned depth, WorkflowTree& tree) {
    tree.kind = spec.kind;
    tree.name = spec.name;
    if (depth > kDeepestWorkflow) {
      complain(path, "parts are nested deeper than " + std::to_string(kDeepestWorkflow) +
                         " levels, the most there may be");
      return {};
    }
    const Inherited inherited = above.with(spec);
    switch (spec.kind) {
      case WorkflowKind::kJob: return {job(spec, path, above, waits, engine::When::kSuccess, tree)};
      case WorkflowKind::kChain: return chain(spec, path, inherited, waits, depth, tree);
      case WorkflowKind::kGroup: return group(spec, path, inherited, waits, depth, tree);
      case WorkflowKind::kBatch: return batch(spec, path, inherited, waits, depth, tree);
      case WorkflowKind::kGraph: return graph(spec, path, inherited, waits, depth, tree);
    }
    return {};
  }
  std::uint16_t number_of(Members members) {
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.empty()) return engine::WorkflowGraph::kNothing;
    const auto [at, made] =
        sets_.try_emplace(members, static_cast<std::uint16_t>(out_.graph.sets.size()));
    if (made) out_.graph.sets.push_back(std::move(members));
    return at->second;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  void complain(const std::string& path, std::string what) {
    if (!error_) error_ = Error{Code::kInvalid, path + ": " + std::move(what), path, 0, 0, ""};
  }

  std::uint16_t job(const WorkflowSpec& spec, const std::string& path, const Inherited& inherited,
                    std::uint16_t waits, engine::When when, WorkflowTree& tree) {
    if (out_.jobs.size() == kMostWorkflowJobs)
      complain(path, "a workflow has at most " + std::to_string(kMostWorkflowJobs) + " jobs");
    if (spec.job.pending)
      complain(path, "a workflow's job cannot be pending: it runs when its turn has come");
    if (error_) return 0;
    JobSpec job = spec.job;
    if (job.queue.empty()) job.queue = inherited.queue;
    if (!job.priority) job.priority = inherited.priority;
    if (job.tenant.empty()) job.tenant = inherited.tenant;
    job.id = {};
    const auto member = static_cast<std::uint16_t>(out_.jobs.size());
    tree.member = member;
    tree.type = job.type;
    tree.queue = job.queue;
    out_.jobs.push_back(job);
    out_.paths.push_back(path);
    engine::WorkflowGraph::Member at;
    at.waits = waits;
    at.when = when;
    out_.graph.members.push_back(at);
    return member;
  }

  bool has_parts(const WorkflowSpec& spec, const std::string& path, const char* name) {
    if (spec.steps.empty())
      complain(path + "." + name, std::string(name) + " array must contain at least one element");
    return !error_;
  }

  Members chain(const WorkflowSpec& spec, const std::string& path, Inherited inherited,
                std::uint16_t waits, unsigned depth, WorkflowTree& tree) {
    if (!has_parts(spec, path, "steps")) return {};
    // Without a word about the whole, its first job is the root from which the others inherit.
    const WorkflowSpec& first = spec.steps.front();
    Inherited later = inherited;
    if (!later.priority && first.kind == WorkflowKind::kJob) later.priority = first.job.priority;
    Members last;
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i) {
      tree.steps.emplace_back();
      last = part(spec.steps[i], path + ".steps[" + std::to_string(i) + "]", later, waits,
                  depth + 1, tree.steps.back());
      waits = number_of(last);
    }
    return last;
  }

  Members group(const WorkflowSpec& spec, const std::string& path, const Inherited& inherited,
                std::uint16_t waits, unsigned depth, WorkflowTree& tree) {
    Members all;
    if (!has_parts(spec, path, "jobs")) return all;
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i) {
      tree.steps.emplace_back();
      const Members more = part(spec.steps[i], path + ".jobs[" + std::to_string(i) + "]", inherited,
                                waits, depth + 1, tree.steps.back());
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  Members batch(const WorkflowSpec& spec, const std::string& path, const Inherited& inherited,
                std::uint16_t waits, unsigned depth, WorkflowTree& tree) {
    const std::uint16_t jobs = number_of(group(spec, path, inherited, waits, depth, tree));
    Members called;
    const auto callback = [&](const std::vector<WorkflowSpec>& given, const char* name,
                              engine::When when) {
      if (given.empty() || error_) return;
      const std::string place = path + ".callbacks." + name;
      if (given.size() > 1 || given.front().kind != WorkflowKind::kJob)
        return complain(place, "a callback is one job");
      WorkflowTree& leaf = tree.steps.emplace_back();
      leaf.callback = name;
      const std::uint16_t member = job(given.front(), place, inherited, jobs, when, leaf);
      if (error_) return;
      out_.graph.members[member].gate = waits;
      called.push_back(member);
    };
    callback(spec.on_complete, "on_complete", engine::When::kComplete);
    callback(spec.on_success, "on_success", engine::When::kAllGood);
    callback(spec.on_failure, "on_failure", engine::When::kFailure);
    if (called.empty())
      complain(path + ".callbacks",
               "a batch needs at least one of on_complete, on_success and on_failure; without any "
               "it is a group");
    return called;
  }

  /// Steps in the order given; their numbers are known before what they wait for.
  Members graph(const WorkflowSpec& spec, const std::string& path, const Inherited& inherited,
                std::uint16_t waits, unsigned depth, WorkflowTree& tree) {
    if (depth > 1) complain(path, "steps with depends_on cannot be part of another workflow");
    if (!has_parts(spec, path, "steps")) return {};
    std::map<std::string_view, std::uint16_t> names;
    std::vector<std::uint16_t> numbers;
    const auto place = [&](std::size_t i) { return path + ".steps[" + std::to_string(i) + "]"; };
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i) {
      const WorkflowSpec& step = spec.steps[i];
      if (step.kind != WorkflowKind::kJob)
        complain(place(i), "a step beside depends_on is one job");
      WorkflowTree& leaf = tree.steps.emplace_back();
      leaf.name = step.name;
      leaf.when = step.when;
      leaf.depends_on.assign(step.depends_on.begin(), step.depends_on.end());
      numbers.push_back(job(step, place(i), inherited, waits, condition(step.when), leaf));
      if (!step.name.empty() && !names.emplace(step.name, numbers.back()).second)
        complain(place(i) + ".id", "two steps are called '" + std::string(step.name) + "'");
    }
    std::vector<bool> followed(numbers.size(), false);
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i) {
      Members before;
      for (const std::string_view name : spec.steps[i].depends_on) {
        const auto other = names.find(name);
        if (other == names.end()) {
          complain(place(i) + ".depends_on", "there is no step '" + std::string(name) + "'");
          break;
        }
        before.push_back(other->second);
        followed[other->second] = true;
      }
      if (!before.empty()) out_.graph.members[numbers[i]].waits = number_of(before);
    }
    look_for_cycle(spec, path, names);
    Members last;
    for (const std::uint16_t number : numbers)
      if (!error_ && !followed[number]) last.push_back(number);
    return last;
  }

  /// Takes steps away that nothing left comes before; what stays is a cycle, or comes after one.
  void look_for_cycle(const WorkflowSpec& spec, const std::string& path,
                      const std::map<std::string_view, std::uint16_t>& names) {
    if (error_) return;
    const std::size_t count = spec.steps.size();
    std::vector<std::vector<std::size_t>> after(count);
    std::vector<std::size_t> open(count, 0), ready;
    for (std::size_t i = 0; i < count; ++i) {
      open[i] = spec.steps[i].depends_on.size();
      if (open[i] == 0) ready.push_back(i);
      for (const std::string_view name : spec.steps[i].depends_on)
        after[names.at(name)].push_back(i);
    }
    std::size_t through = 0;
    for (; through < ready.size(); ++through)
      for (const std::size_t next : after[ready[through]])
        if (--open[next] == 0) ready.push_back(next);
    if (through == count) return;
    const auto stuck = static_cast<std::size_t>(
        std::find_if(open.begin(), open.end(), [](std::size_t n) { return n != 0; }) -
        open.begin());
    complain(path + ".steps[" + std::to_string(stuck) + "].depends_on",
             "the steps depend on each other in a circle");
  }

  static engine::When condition(StepCondition when) {
    switch (when) {
      case StepCondition::kSuccess: return engine::When::kSuccess;
      case StepCondition::kFailure: return engine::When::kFailure;
      case StepCondition::kComplete: return engine::When::kComplete;
      case StepCondition::kCallback: return engine::When::kAllGood;
    }
    return engine::When::kSuccess;
  }

  CompiledWorkflow& out_;
  std::map<Members, std::uint16_t> sets_;
  std::optional<Error> error_;
};

}  // namespace

Result<CompiledWorkflow> compile(const WorkflowSpec& spec) {
  CompiledWorkflow out;
  if (spec.kind == WorkflowKind::kJob)
    return Error{
        Code::kInvalid, "$: a workflow is a chain, a group, a batch or a graph", "$", 0, 0, ""};
  Compiler compiler(out);
  const Members result = compiler.part(spec, "$", {}, engine::WorkflowGraph::kNothing, 1, out.tree);
  if (compiler.error()) return *compiler.error();
  out.graph.result = compiler.number_of(result);
  out.graph.link();
  return out;
}

}  // namespace ojs_shm::internal
