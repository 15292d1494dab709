// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/workflow_compile.hpp"

#include <algorithm>
#include <map>

#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/results.hpp"

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

/// Where a part stands, as a list that leads up; its text is needed only for a complaint.
struct Place {
  const Place* above = nullptr;
  const char* name = "$";
  std::size_t index = kWhole;
  static constexpr std::size_t kWhole = ~std::size_t{0};
  std::string text() const {
    std::string out = above == nullptr ? std::string() : above->text() + ".";
    out += name;
    if (index != kWhole) out += "[" + std::to_string(index) + "]";
    return out;
  }
};

/// What the jobs of a chain inherit from its first part: the priority of that, or of its first job.
std::optional<std::int64_t> root_priority(const WorkflowSpec& first) {
  if (first.kind == WorkflowKind::kJob) return first.job.priority;
  if (first.priority || first.kind != WorkflowKind::kChain || first.steps.empty())
    return first.priority;
  return root_priority(first.steps.front());
}

/// Walks the parts in order; each gives the members whose outcome is its own.
class Compiler {
 public:
  /// `wanted`: a member of which only the place is asked for.
  explicit Compiler(CompiledWorkflow& out, std::uint16_t wanted = engine::WorkflowGraph::kNothing)
      : out_(out), tree_(out.description), wanted_(wanted) {}

  /// `waits`: the set that the part comes after. Its members are added to `last`.
  void part(const WorkflowSpec& spec, const Place& place, const Inherited& above,
            std::uint16_t waits, unsigned depth, Members& last) {
    if (depth > kDeepestWorkflow)
      return complain(place, "parts are nested deeper than " + std::to_string(kDeepestWorkflow) +
                                 " levels, the most there may be");
    if (spec.kind == WorkflowKind::kJob) {
      tree_.begin(spec);
      return last.push_back(job(spec, place, above, waits, engine::When::kSuccess));
    }
    const Inherited inherited = above.with(spec);
    tree_.begin(spec);
    tree_.open();
    switch (spec.kind) {
      case WorkflowKind::kJob: break;
      case WorkflowKind::kChain: chain(spec, place, inherited, waits, depth, last); break;
      case WorkflowKind::kGroup: group(spec, place, inherited, waits, depth, last); break;
      case WorkflowKind::kBatch: batch(spec, place, inherited, waits, depth, last); break;
      case WorkflowKind::kGraph: graph(spec, place, inherited, waits, depth, last); break;
    }
    tree_.close();
  }

  /// The same members have the same set.
  std::uint16_t number_of(Members& members) {
    if (members.size() == 1) {
      std::uint16_t& set = of_one_[members.front()];
      if (set == engine::WorkflowGraph::kNothing) set = add(members);
      return set;
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.empty()) return engine::WorkflowGraph::kNothing;
    if (members.size() == 1) return number_of(members);
    const auto at = of_many_.find(members);
    return at != of_many_.end() ? at->second : of_many_[members] = add(members);
  }
  const std::optional<Error>& error() const { return error_; }
  const std::string& found() const { return found_; }

 private:
  std::uint16_t add(const Members& members) {
    out_.graph.sets.add(members);
    return static_cast<std::uint16_t>(out_.graph.sets.size() - 1);
  }

  void complain(const Place& place, const std::string& what) { complain(place.text(), what); }
  void complain(const std::string& path, const std::string& what) {
    if (!error_) error_ = Error{Code::kInvalid, path + ": " + what}.about(path);
  }

  /// Its tree has begun, and ends here.
  std::uint16_t job(const WorkflowSpec& spec, const Place& place, const Inherited& inherited,
                    std::uint16_t waits, engine::When when) {
    if (out_.jobs.size() == kMostWorkflowJobs)
      complain(place, "a workflow has at most " + std::to_string(kMostWorkflowJobs) + " jobs");
    if (spec.job.pending)
      complain(place, "a workflow's job cannot be pending: it runs when its turn has come");
    if (spec.job.unique != nullptr) complain(place, "a workflow's job cannot be unique");
    if (error_) return 0;
    const auto member = static_cast<std::uint16_t>(out_.jobs.size());
    if (member == wanted_) found_ = place.text();
    JobSpec& job = out_.jobs.emplace_back(spec.job);
    if (job.queue.empty()) job.queue = inherited.queue;
    if (!job.priority) job.priority = inherited.priority;
    if (job.tenant.empty()) find_tenant(job, inherited);
    job.id = {};
    keep_result_ttl(job, out_.texts);
    tree_.job(job.type, job.queue);
    engine::WorkflowGraph::Member& at = out_.graph.members.emplace_back();
    at.waits = waits;
    at.when = when;
    return member;
  }

  /// Its own, as its meta says, or what it inherits, which its meta says from now on.
  void find_tenant(JobSpec& job, const Inherited& inherited) {
    if (std::string own = ojs_shm::tenant_of(job.extra); !own.empty()) {
      job.tenant = out_.texts.emplace_back(std::move(own));
    } else if (!inherited.tenant.empty()) {
      job.tenant = inherited.tenant;
      job.extra = out_.texts.emplace_back(with_tenant(job.extra, inherited.tenant));
    }
  }

  bool has_parts(const WorkflowSpec& spec, const Place& place, const char* name) {
    if (spec.steps.empty())
      complain(Place{&place, name}, std::string(name) + " array must contain at least one element");
    return !error_;
  }

  void chain(const WorkflowSpec& spec, const Place& place, const Inherited& inherited,
             std::uint16_t waits, unsigned depth, Members& last) {
    if (!has_parts(spec, place, "steps")) return;
    // Without a word about the whole, its first job is the root from which the rest inherit.
    Inherited later = inherited;
    if (!later.priority) later.priority = root_priority(spec.steps.front());
    Members step;
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i) {
      if (i != 0) waits = number_of(step);
      step.clear();
      part(spec.steps[i], {&place, "steps", i}, later, waits, depth + 1, step);
    }
    last.insert(last.end(), step.begin(), step.end());
  }

  void group(const WorkflowSpec& spec, const Place& place, const Inherited& inherited,
             std::uint16_t waits, unsigned depth, Members& last) {
    if (!has_parts(spec, place, "jobs")) return;
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i)
      part(spec.steps[i], {&place, "jobs", i}, inherited, waits, depth + 1, last);
  }

  void batch(const WorkflowSpec& spec, const Place& place, const Inherited& inherited,
             std::uint16_t waits, unsigned depth, Members& last) {
    Members all;
    group(spec, place, inherited, waits, depth, all);
    const std::uint16_t jobs = number_of(all);
    const std::size_t before = last.size();
    const Place callbacks{&place, "callbacks"};
    const auto callback = [&](const std::vector<WorkflowSpec>& given, const char* name,
                              engine::When when) {
      if (given.empty() || error_) return;
      const Place at{&callbacks, name};
      if (given.size() > 1 || given.front().kind != WorkflowKind::kJob)
        return complain(at, "a callback is one job");
      tree_.begin(given.front(), name);
      const std::uint16_t member = job(given.front(), at, inherited, jobs, when);
      if (error_) return;
      out_.graph.members[member].gate = waits;
      last.push_back(member);
    };
    callback(spec.on_complete, "on_complete", engine::When::kComplete);
    callback(spec.on_success, "on_success", engine::When::kAllGood);
    callback(spec.on_failure, "on_failure", engine::When::kFailure);
    if (last.size() == before)
      complain(callbacks,
               "a batch needs at least one of on_complete, on_success and on_failure; without any "
               "it is a group");
  }

  /// Steps in the order given; their numbers are known before what they wait for.
  void graph(const WorkflowSpec& spec, const Place& whole, const Inherited& inherited,
             std::uint16_t waits, unsigned depth, Members& last) {
    if (depth > 1) complain(whole, "steps with depends_on cannot be part of another workflow");
    if (!has_parts(spec, whole, "steps")) return;
    std::map<std::string_view, std::uint16_t> names;
    std::vector<std::uint16_t> numbers;
    const auto place = [&](std::size_t i) { return Place{&whole, "steps", i}; };
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i) {
      const WorkflowSpec& step = spec.steps[i];
      const Place at = place(i);
      if (step.kind != WorkflowKind::kJob) complain(at, "a step beside depends_on is one job");
      tree_.begin(step);
      numbers.push_back(job(step, at, inherited, waits, condition(step.when)));
      if (!step.name.empty() && !names.emplace(step.name, numbers.back()).second)
        complain(at.text() + ".id", "two steps are called '" + std::string(step.name) + "'");
    }
    std::vector<bool> followed(numbers.size(), false);
    for (std::size_t i = 0; i < spec.steps.size() && !error_; ++i) {
      Members before;
      for (const std::string_view name : spec.steps[i].depends_on) {
        const auto other = names.find(name);
        if (other == names.end()) {
          complain(place(i).text() + ".depends_on", "there is no step '" + std::string(name) + "'");
          break;
        }
        before.push_back(other->second);
        followed[other->second] = true;
      }
      if (!before.empty()) out_.graph.members[numbers[i]].waits = number_of(before);
    }
    look_for_cycle(spec, whole, names);
    if (!error_ && !inherited.priority) pass_on_priorities(spec, names, numbers);
    for (const std::uint16_t number : numbers)
      if (!error_ && !followed[number]) last.push_back(number);
  }

  /// A step without a priority has that of the first step that it depends on. There is no circle.
  void pass_on_priorities(const WorkflowSpec& spec,
                          const std::map<std::string_view, std::uint16_t>& names,
                          const std::vector<std::uint16_t>& numbers) {
    const std::uint16_t first = numbers.front();
    for (std::size_t i = 0; i < spec.steps.size(); ++i) {
      std::size_t at = i;
      while (!spec.steps[at].job.priority && !spec.steps[at].depends_on.empty())
        at = names.at(spec.steps[at].depends_on.front()) - first;
      out_.jobs[numbers[i]].priority = spec.steps[at].job.priority;
    }
  }

  /// Takes steps away that nothing left comes before; what stays is a cycle, or comes after one.
  void look_for_cycle(const WorkflowSpec& spec, const Place& place,
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
    complain(Place{&place, "steps", stuck}.text() + ".depends_on",
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
  TreeWriter tree_;
  std::uint16_t wanted_;
  std::string found_;
  std::vector<std::uint16_t> of_one_ =
      std::vector<std::uint16_t>(kMostWorkflowJobs, engine::WorkflowGraph::kNothing);
  std::map<Members, std::uint16_t> of_many_;
  std::optional<Error> error_;
};

}  // namespace

Status compile(const WorkflowSpec& spec, CompiledWorkflow& out) {
  out.clear();
  if (spec.kind == WorkflowKind::kJob)
    return Error{Code::kInvalid, "$: a workflow is a chain, a group, a batch or a graph"}.about(
        "$");
  out.jobs.reserve(std::min(spec.steps.size(), kMostWorkflowJobs));
  out.graph.members.reserve(std::min(spec.steps.size(), kMostWorkflowJobs));
  Compiler compiler(out);
  Members result;
  compiler.part(spec, {}, {}, engine::WorkflowGraph::kNothing, 1, result);
  if (compiler.error()) return *compiler.error();
  out.graph.result = compiler.number_of(result);
  // Whose it is: the tenant of all its jobs, if they have one.
  const std::string_view tenant = out.jobs.front().tenant;
  if (!tenant.empty() && std::ranges::all_of(out.jobs, [tenant](const JobSpec& job) {
        return job.tenant == tenant;
      })) {
    std::string member = "\"tenant\":";
    json::append_quoted(member, tenant);
    out.description.insert(1, member + ",");
  }
  return {};
}

std::string place_in(const WorkflowSpec& spec, std::size_t member) {
  CompiledWorkflow again;
  Compiler compiler(again, static_cast<std::uint16_t>(member));
  Members result;
  compiler.part(spec, {}, {}, engine::WorkflowGraph::kNothing, 1, result);
  return compiler.found();
}

}  // namespace ojs_shm::internal
