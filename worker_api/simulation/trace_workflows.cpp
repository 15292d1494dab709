// SPDX-License-Identifier: Apache-2.0
#include "worker_api/simulation/trace_workflows.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace ojs_shm {
namespace {

using Jobs = std::vector<std::string>;

void add(Jobs& jobs, const Jobs& more) {
  for (const std::string& job : more)
    if (std::ranges::find(jobs, job) == jobs.end()) jobs.push_back(job);
}

/// Looks for a job in a workflow's parts. `last()` gives the last jobs of a part that ran.
class JobsBefore {
 public:
  explicit JobsBefore(std::string_view job) : job_(job) {}

  /// `before`: the last jobs of what the part comes after; they stand for a part that never ran.
  Jobs last(const WorkflowStep& part, const Jobs& before) {
    switch (part.kind) {
      case WorkflowKind::kJob: break;
      case WorkflowKind::kChain: {
        Jobs jobs = before;
        for (const WorkflowStep& step : part.steps) jobs = last(step, jobs);
        return jobs;
      }
      case WorkflowKind::kGroup:
      case WorkflowKind::kBatch: return last_of_all(part, before);
      case WorkflowKind::kGraph: return last_of_graph(part, before);
    }
    if (part.job_id.empty()) return before;
    if (part.job_id == job_) found_ = before;
    return {part.job_id};
  }
  Jobs& found() { return found_; }

 private:
  /// Callbacks come after all else, and what comes next after those of them that ran.
  Jobs last_of_all(const WorkflowStep& part, const Jobs& before) {
    Jobs jobs, called;
    for (const WorkflowStep& step : part.steps)
      if (step.callback.empty()) add(jobs, last(step, before));
    for (const WorkflowStep& step : part.steps)
      if (!step.callback.empty() && !step.job_id.empty()) add(called, last(step, jobs));
    return called.empty() ? jobs : called;
  }

  /// The steps stand in any order, and do not depend on each other in a circle.
  Jobs last_of_graph(const WorkflowStep& part, const Jobs& before) {
    std::map<std::string_view, const WorkflowStep*> named;
    for (const WorkflowStep& step : part.steps)
      if (!step.name.empty()) named[step.name] = &step;
    std::map<const WorkflowStep*, Jobs> known;
    const auto after = [&](auto& self, const WorkflowStep& step) -> const Jobs& {
      const auto [entry, fresh] = known.try_emplace(&step);
      if (!fresh) return entry->second;
      Jobs jobs = step.depends_on.empty() ? before : Jobs();
      for (const std::string& name : step.depends_on)
        if (const auto other = named.find(name); other != named.end())
          add(jobs, self(self, *other->second));
      return known[&step] = last(step, jobs);
    };
    Jobs all;
    for (const WorkflowStep& step : part.steps) add(all, after(after, step));
    return all;
  }

  std::string_view job_;
  Jobs found_;
};

/// The trees of a forest: each arrival leads to the arrival that stands for all of its workflow.
class Forest {
 public:
  explicit Forest(std::size_t size) : above_(size) {
    std::iota(above_.begin(), above_.end(), std::uint32_t{0});
  }
  std::uint32_t top(std::uint32_t at) {
    while (above_[at] != at) at = above_[at] = above_[above_[at]];
    return at;
  }
  void join(std::uint32_t a, std::uint32_t b) { above_[top(a)] = top(b); }

 private:
  std::vector<std::uint32_t> above_;
};

Error wrong(std::uint32_t arrival, const std::string& what) {
  return Error{Code::kInvalid, "arrival " + std::to_string(arrival + 1) + " " + what}.about(
      "after");
}

}  // namespace

std::vector<std::string> jobs_before(const WorkflowInfo& workflow, std::string_view job) {
  JobsBefore search(job);
  (void)search.last(workflow.root, {});
  return std::move(search.found());
}

Result<TraceWorkflows> TraceWorkflows::of(const Trace& trace) {
  const auto count = static_cast<std::uint32_t>(trace.arrivals.size());
  TraceWorkflows made;
  made.workflow_.assign(count, kNone);
  made.followers_.resize(count);
  Forest forest(count);
  std::map<std::string_view, std::uint32_t> first;
  std::vector<bool> member(count, false);
  for (std::uint32_t i = 0; i < count; ++i) {
    const TraceArrival& arrival = trace.arrivals[i];
    if (!arrival.workflow.empty()) {
      member[i] = true;
      forest.join(i, first.try_emplace(arrival.workflow, i).first->second);
    }
    for (const std::uint32_t before : arrival.after) {
      if (before >= count) return wrong(i, "comes after one that is not there");
      member[i] = member[before] = true;
      forest.join(i, before);
      made.followers_[before].push_back(i);
    }
  }
  // Those that nothing left comes before are taken away, until only a circle is left.
  std::vector<std::size_t> open(count);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < count; ++i)
    if ((open[i] = trace.arrivals[i].after.size()) == 0) ready.push_back(i);
  for (std::size_t at = 0; at < ready.size(); ++at)
    for (const std::uint32_t next : made.followers_[ready[at]])
      if (--open[next] == 0) ready.push_back(next);
  if (ready.size() != count) {
    const auto stuck = std::ranges::find_if(open, [](std::size_t left) { return left != 0; });
    return wrong(static_cast<std::uint32_t>(stuck - open.begin()), "comes after itself");
  }
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!member[i]) continue;
    if (!trace.arrivals[i].unique.empty())
      return wrong(i, "is unique, and a job of a workflow cannot be");
    const auto [entry, fresh] =
        numbers.try_emplace(forest.top(i), static_cast<std::uint32_t>(made.all_.size()));
    if (fresh) made.all_.emplace_back();
    std::vector<std::uint32_t>& jobs = made.all_[entry->second];
    if (jobs.size() == kMostWorkflowJobs)
      return wrong(i, "is one too many: a workflow has at most " +
                          std::to_string(kMostWorkflowJobs) + " jobs");
    made.workflow_[i] = entry->second;
    jobs.push_back(i);
  }
  return made;
}

}  // namespace ojs_shm
