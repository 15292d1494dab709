// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/transfer.hpp>

#include "engine/tables/job_look.hpp"
#include "engine/workflows/workflow_look.hpp"
#include "worker_api/json/cron_text.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_export.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/unique_key.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/limit_rule.hpp"

namespace ojs_shm {

namespace {

/// 0 finished, the longest first: where room is short, they go again first. 1 those that become due
/// by themselves. 2 those that a worker holds: here they will be the first of their level. 3
/// available ones, in the order in which they would be fetched, as Observer::list() gives them.
int group_of(State state) {
  switch (state) {
    case State::kCompleted:
    case State::kCancelled:
    case State::kDiscarded: return 0;
    case State::kScheduled:
    case State::kPending:
    case State::kRetryable: return 1;
    case State::kActive: return 2;
    case State::kAvailable: break;
  }
  return 3;
}

std::uint64_t ended_at(const JobInfo& job) {
  return std::max({job.completed_at_ms, job.cancelled_at_ms, job.discarded_at_ms});
}

std::vector<JobInfo> in_order(std::vector<JobInfo> jobs) {
  auto key = [](const JobInfo& job) {
    const int group = group_of(job.state);
    return std::tuple(group, group == 0 ? ended_at(job) : group == 2 ? job.enqueued_at_ms : 0);
  };
  std::stable_sort(jobs.begin(), jobs.end(),
                   [&](const JobInfo& a, const JobInfo& b) { return key(a) < key(b); });
  return jobs;
}

/// But for those of pools, which come with them.
std::vector<ExportedLimit> limits_of(const Observer& observer) {
  std::vector<ExportedLimit> limits;
  for (LimitInfo& info : observer.limits()) {
    const bool of_pool =
        info.key.starts_with(engine::kPoolLimit) &&
        observer.pool(std::string_view(info.key).substr(engine::kPoolLimit.size())).ok();
    if (!of_pool && internal::settings_of(info.limit).any())
      limits.push_back({std::move(info.key), info.limit, info.by_operator, info.expires_at_ms});
  }
  return limits;
}

/// With the order in force alone. A process that died between two settings may have left orders
/// behind that exclude each other, which an import refuses; of these level weights go first.
QueueInfo with_one_order(QueueInfo queue) {
  if (queue.level_weights.empty()) return queue;
  if (queue.aging.enabled) {
    queue.aging.enabled = false;
    queue.aging_is_default = false;
  }
  queue.tenant_fairness.across = false;
  return queue;
}

/// A key that the job's own words do not give is written as it is.
JobInfo with_true_key(JobInfo job) {
  if (says_its_key(job)) return job;
  std::string extra;
  json::ObjectWriter writer(extra);
  for (const json::Member& member : json::members_of(job.extra))
    if (member.name == "unique")
      writer.value("unique", print_unique(job.unique_key, job.unique));
    else
      writer.value(member.name, member.value);
  writer.close();
  job.extra = std::move(extra);
  return job;
}

ExportedJob exported(const JobInfo& job) {
  const bool expired = job.state == State::kDiscarded && job.completed_at_ms == 0;
  return {with_true_key(job), std::to_string(job.priority), expired};
}

/// The member as it stands; nothing while it is between two states.
std::optional<ExportedMember> member_of(const engine::Store& store,
                                        const engine::WorkflowSnapshot& workflow,
                                        std::uint16_t number) {
  const engine::WorkflowGraph::Member& at = workflow.graph.members[number];
  ExportedMember member{at.waits, at.gate, static_cast<std::uint8_t>(at.when), false, false, {}};
  const auto job = engine::snapshot(store, at.slot, true, true);
  const bool stands =
      job && job->generation == at.generation && (job->signals & engine::kMember) != 0 &&
      job->annex.workflow == workflow.slot && job->annex.workflow_generation == workflow.generation;
  if (!stands) {
    if (!workflow.is_done(number)) return std::nullopt;
    member.failed = workflow.has_failed(number);
    return member;
  }
  member.job = exported(internal::info_of(store, *job));
  member.waiting = job->waits;
  member.failed = engine::is_terminal(job->state()) && job->state() != engine::JobState::kCompleted;
  return member;
}

/// Nothing unless it runs. Its members are looked at until no one of them has ended meanwhile: so
/// all of them are as they were at one instant, but for those that their predecessors let run.
Result<std::optional<ExportedWorkflow>> workflow_of(const engine::Store& store,
                                                    const std::string& id) {
  constexpr int kMostLooks = 1000;
  const auto parsed = engine::parse_id(id);
  for (int look = 0; parsed && look < kMostLooks; ++look) {
    if (look > 10) std::this_thread::yield();
    const auto seen = engine::snapshot_workflow(store, engine::find_workflow(store, *parsed));
    if (!seen || seen->id != *parsed || seen->state != engine::WorkflowState::kRunning)
      return std::optional<ExportedWorkflow>();
    ExportedWorkflow workflow{id, seen->created_at, seen->description, {}, seen->graph.result, {}};
    for (std::size_t i = 0; i < seen->graph.sets.size(); ++i)
      workflow.sets.emplace_back(seen->graph.sets[i].begin(), seen->graph.sets[i].end());
    bool whole = true;
    for (std::uint16_t i = 0; i < seen->graph.members.size() && whole; ++i) {
      auto member = member_of(store, *seen, i);
      whole = member.has_value();
      if (whole) workflow.members.push_back(std::move(*member));
    }
    const auto now = engine::snapshot_workflow(store, seen->slot);
    if (whole && now && now->generation == seen->generation && now->state == seen->state &&
        now->done == seen->done)
      return std::optional(std::move(workflow));
  }
  return Error{Code::kTimeout,
               "workflow " + id + " does not stand still; stop its workers, or repair the segment"}
      .about("workflow");
}

/// Jobs in order; a running workflow whole, where the first of its jobs that has not ended stands.
Status print_jobs(const engine::Store& store, const std::vector<JobInfo>& jobs,
                  const std::function<Status(std::string_view line)>& line) {
  std::map<std::string, std::optional<ExportedWorkflow>> workflows;
  for (const JobInfo& job : jobs) {
    if (job.workflow_id.empty() || workflows.contains(job.workflow_id)) continue;
    auto workflow = workflow_of(store, job.workflow_id);
    if (!workflow) return workflow.error();
    workflows.emplace(job.workflow_id, std::move(*workflow));
  }
  std::set<std::string> told;
  for (const JobInfo& job : jobs) {
    const auto found = workflows.find(job.workflow_id);
    const bool of_workflow = found != workflows.end() && found->second;
    if (of_workflow && (group_of(job.state) == 0 || !told.insert(job.workflow_id).second)) continue;
    const std::string text =
        of_workflow ? print_export(*found->second) : print_export(exported(job));
    if (Status done = line(text); !done) return done;
  }
  // All of its jobs that could be listed had ended when they were.
  for (const auto& [id, workflow] : workflows)
    if (workflow && !told.contains(id))
      if (Status done = line(print_export(*workflow)); !done) return done;
  return {};
}

}  // namespace

Status export_segment(const Segment& segment,
                      const std::function<Status(std::string_view line)>& line) {
  const Result<Observer> observer = Observer::attach(segment);
  if (!observer) return observer.error();
  const engine::Store& store = segment.attachment()->store();
  const SegmentInfo info = observer->segment_info();
  ExportHead head{kExportVersion, info.convention, info.name, std::string(library_version()),
                  store.now_ms()};
  if (Status done = line(print_export(head)); !done) return done;
  if (engine::Aging(store.header().aging.load()).set()) {
    QueueInfo any;
    any.lower_first = info.lower_first;
    any.aging = info.aging;
    if (Status done = line(print_export_aging(any)); !done) return done;
  }
  for (const QueueInfo& queue : observer->queues())
    if (Status done = line(print_export(with_one_order(queue))); !done) return done;
  for (const WorkerPoolInfo& pool : observer->pools())
    if (Status done = line(print_export(ExportedPool{pool.name, pool.settings})); !done)
      return done;
  const std::vector<ExportedLimit> limits = limits_of(*observer);
  // An operator's before the jobs, which it holds for; what a job brought last after them, for each
  // brings its own.
  const auto print_limits = [&](bool by_operator) -> Status {
    for (const ExportedLimit& limit : limits)
      if (limit.by_operator == by_operator)
        if (Status done = line(print_export(limit)); !done) return done;
    return {};
  };
  if (Status done = print_limits(true); !done) return done;
  for (CronInfo& cron : observer->crons()) {
    cron.job = with_true_key(std::move(cron.job));
    cron.job.unique_key.clear();  // what a native client set it says in no words
    if (Status done = line(print_export(ExportedCron{print_cron(cron)})); !done) return done;
  }
  const std::vector<JobInfo> jobs = in_order(observer->list({}));
  std::unordered_map<std::uint64_t, std::string_view> types;
  for (const JobInfo& job : jobs) types.emplace(engine::Store::hash_name(job.type), job.type);
  for (std::uint32_t i = 0; i < engine::kTypeDefaults; ++i) {
    const std::uint64_t hash = store.type_defaults[i].hash.load(),
                        rank = store.type_defaults[i].rank.load();
    if (hash == 0 || rank == 0 || rank > 256) continue;
    const auto type = types.find(hash);
    const int priority =
        engine::priority_of(store.convention(), static_cast<std::uint8_t>(rank - 1));
    const ExportedDefault exported{type == types.end() ? std::string() : std::string(type->second),
                                   hash, std::to_string(priority)};
    if (Status done = line(print_export(exported)); !done) return done;
  }
  if (Status done = print_jobs(store, jobs, line); !done) return done;
  return print_limits(false);
}

}  // namespace ojs_shm
