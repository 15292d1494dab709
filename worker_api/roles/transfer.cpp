// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/transfer.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ojs_shm/admin.hpp>

#include "engine/enqueue/restore.hpp"
#include "engine/limits/limit_setter.hpp"
#include "engine/workflows/workflows.hpp"
#include "shm/control.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_export.hpp"
#include "worker_api/json/result_ttl.hpp"
#include "worker_api/json/unique_key.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/crons.hpp"
#include "worker_api/roles/exported_past.hpp"
#include "worker_api/roles/limit_rule.hpp"
#include "worker_api/roles/queue_policy.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/workflow_tree.hpp"

namespace ojs_shm {

using internal::Handle;
namespace {

std::uint64_t finished_at(const JobInfo& job) {
  return std::max({job.completed_at_ms, job.cancelled_at_ms, job.discarded_at_ms});
}

}  // namespace

struct Import::Impl {
  std::unique_ptr<Handle> handle;
  std::optional<Admin> admin;
  std::optional<engine::Convention> theirs;
  std::uint32_t version = 0;                                           ///< of the text
  std::deque<std::pair<std::uint64_t, ExportedJob>> without_priority;  ///< with their lines
  std::uint64_t lines = 0;
  ImportReport report;
  /// put in; those whose room was needed since are gone again
  std::vector<engine::JobId> finished_;
  bool limits_moved = false;  ///< what was just to be put in has to be read again

  engine::Actor& actor() { return handle->actor(); }
  engine::Convention ours() { return handle->store().convention(); }

  /// The rank that a priority of the export has here.
  Result<std::uint8_t> rank_of(const std::string& priority, bool& clamped) {
    const Result<std::int64_t> number = internal::priority_of_text(*theirs, priority);
    if (!number) return number.error();
    const int rank = *engine::rank_of(*theirs, *number);
    const engine::ConventionInfo& known = engine::info(ours());
    const int last = known.max - known.min;
    clamped = rank > last;
    return static_cast<std::uint8_t>(std::min(rank, last));
  }

  Status take(const ExportHead& head) {
    if (theirs) return Error{Code::kInvalid, "a second first line; import one export at a time"};
    theirs = engine::convention_by_name(head.convention);
    version = head.version;
    if (theirs) return {};
    return Error{Code::kInvalid,
                 "convention '" + head.convention + "' is none of ojs, ojs-core, qo"}
        .about("convention");
  }

  /// Limits and levels as this convention says them.
  Status move(AgingSettings& aging) {
    const Result<engine::Aging> read = internal::read_aging(*theirs, aging);
    if (!read) return read.error();
    const engine::ConventionInfo& known = engine::info(ours());
    if (aging.limit)
      aging.limit =
          engine::extended_priority(ours(), std::min(read->best(), known.max - known.min));
    return {};
  }
  Status move(std::vector<LevelWeight>& weights) {
    std::vector<LevelWeight> moved;
    for (LevelWeight& each : weights) {
      if (each.level != "*") {
        bool clamped = false;
        const Result<std::uint8_t> rank = rank_of(each.level, clamped);
        if (!rank) return rank.error();
        each.level = std::to_string(engine::priority_of(ours(), *rank));
      }
      const auto same = [&](const LevelWeight& other) { return other.level == each.level; };
      if (const auto found = std::find_if(moved.begin(), moved.end(), same); found != moved.end())
        found->weight += each.weight;
      else
        moved.push_back(each);
    }
    weights = std::move(moved);
    return {};
  }

  Status take(ExportedAging aging) {
    if (Status moved = move(aging.settings); !moved) return moved;
    return admin->set_default_aging(aging.settings);
  }

  Status take(ExportedQueue queue) {
    if (queue.settings.aging)
      if (Status moved = move(*queue.settings.aging); !moved) return moved;
    if (queue.settings.level_weights)
      if (Status moved = move(*queue.settings.level_weights); !moved) return moved;
    if (Status set = admin->set_queue(queue.name, queue.settings); !set) return set;
    ++report.queues;
    return {};
  }

  Status take(const ExportedPool& pool) {
    if (const auto set = admin->set_pool(pool.name, pool.settings); !set) return set.error();
    ++report.pools;
    return {};
  }

  /// Its counts begin anew, and so does its time.
  Status take(const ExportedCron& given) {
    Status set = internal::import_cron(*admin, given.text, [this](std::int64_t priority) {
      bool clamped = false;
      return rank_of(std::to_string(priority), clamped);
    });
    report.crons += set ? 1 : 0;
    return set;
  }

  Status take(const ExportedLimit& given) {
    Status set;
    if (given.by_operator) {
      if (given.expires_at_ms != 0 && given.expires_at_ms <= handle->store().now_ms()) return {};
      set = admin->set_limit(given.key, given.limit, given.expires_at_ms);
    } else if (set = internal::check_limit(given.key, given.limit, false); set) {
      std::uint32_t key = engine::kNoIndex;
      if (const auto outcome = engine::LimitSetter(actor()).bring(
              given.key, internal::settings_of(given.limit), key);
          outcome != engine::Outcome::kOk)
        return internal::error_of(outcome, handle->store(), engine::kNoIndex, given.key);
    }
    report.limits += set ? 1 : 0;
    return set;
  }

  Status take(const ExportedDefault& given) {
    bool clamped = false;
    const Result<std::uint8_t> rank = rank_of(given.priority, clamped);
    if (!rank) return rank.error();
    if (given.type.empty() && given.type_hash == 0)
      return Error{Code::kInvalid, "a default priority needs type or type_hash"}.about("type");
    if (!given.type.empty())
      if (Status checked = internal::check_type(given.type); !checked) return checked;
    const std::uint64_t hash =
        given.type.empty() ? given.type_hash : engine::Store::hash_name(given.type);
    if (!engine::set_type_rank(actor().store(), hash, *rank))
      return Error{Code::kSegmentFull, "all 256 default priorities of types are taken"}
          .about("types")
          .uses(256, 256);
    ++report.default_priorities;
    return {};
  }

  Status take(const ExportedJob& exported) {
    if (exported.priority) return put(exported);
    without_priority.emplace_back(lines, exported);
    return {};
  }

  /// Finished jobs give their room to jobs that come after them, also to those of the same import.
  void recount() {
    const std::uint64_t gone = std::erase_if(finished_, [this](engine::JobId id) {
      return engine::find_job(handle->store(), id) == engine::kNoIndex;
    });
    report.jobs -= gone;
    report.displaced += gone;
  }

  Status put(const ExportedJob& exported) {
    constexpr int kMostReads = 32;
    Status put = put_once(exported);
    for (int i = 0; limits_moved && i < kMostReads; ++i) put = put_once(exported);
    return put;
  }

  /// A job that was read, and what it refers to.
  struct Reading {
    JobSpec spec;
    std::optional<JobLimit> limit;
    std::optional<JobUnique> unique;
    std::string tenant, errors;
    engine::PastJob past;
    bool clamped = false;
  };

  Status put_once(const ExportedJob& exported) {
    limits_moved = false;
    Reading reading;
    if (Status read_it = read(exported, reading); !read_it) return read_it;
    return restore(reading.past, exported.job.id, reading.clamped, !exported.priority);
  }

  Status read(const ExportedJob& exported, Reading& reading) {
    const JobInfo& job = exported.job;
    constexpr std::uint64_t kMostFence = shm::kLastFirstTag + (1ULL << 24);  // no job comes so far
    if (job.fence > kMostFence)
      return Error{Code::kInvalid, "fence is at most " + std::to_string(kMostFence)}
          .about("fence")
          .at_most(kMostFence);
    engine::PastJob& past = reading.past;
    JobSpec& spec = reading.spec;
    spec.type = job.type;
    if (!job.args.empty()) spec.args = job.args;
    if (!job.queue.empty()) spec.queue = job.queue;
    spec.id = job.id;
    spec.extra = job.extra;
    spec.scheduled_at_ms = job.scheduled_at_ms;
    spec.expires_at_ms = job.expires_at_ms;
    internal::take_times(job, spec);
    spec.pending = job.state == State::kPending;
    spec.retry = job.retry;
    spec.priority_age_rate = job.priority_age_rate;
    reading.limit = internal::limit_in(job.extra, spec.queue);
    reading.tenant = tenant_of(job.extra);
    spec.limit = reading.limit ? &*reading.limit : nullptr;
    spec.tenant = reading.tenant;
    // in the first version an attribute like any other
    if (version > 1) reading.unique = unique_in(spec);
    spec.unique = reading.unique ? &*reading.unique : nullptr;
    // An export may hold what is refused today: a tenant_id that is not a text, a result_ttl that
    // is no time. Such a job has none.
    if (!tenant_in(job.extra) || !result_ttl_fits(job.extra)) spec.extra = {};
    if (const auto fault = handle->read(spec, past.job); fault != internal::SpecFault::kNone)
      return internal::error_of(fault, spec, handle->store());
    past.job.extra = job.extra;
    if (exported.priority) {
      const Result<std::uint8_t> rank = rank_of(*exported.priority, reading.clamped);
      if (!rank) return rank.error();
      past.job.rank = *rank;
    }
    past.state = static_cast<engine::JobState>(job.state);
    if (job.previous_state) past.previous = static_cast<engine::JobState>(*job.previous_state);
    past.attempt = job.attempt;
    past.expired = exported.expired;
    past.time_up = internal::time_up_of(job.discard_reason);
    past.dead = job.dead_letter && job.state == State::kDiscarded;
    past.fence = job.fence;
    past.created_at = job.created_at_ms;
    past.available_at = job.enqueued_at_ms;
    past.started_at = job.started_at_ms;
    past.finished_at = finished_at(job);
    if (engine::is_terminal(past.state) && past.finished_at == 0)  // it need not say when
      past.finished_at = handle->store().now_ms();
    past.retry_at = job.next_attempt_at_ms;
    past.retry_delay_ms = job.retry_delay_ms;
    if (job.progress >= 0) past.progress = job.progress;
    past.report = {job.progress_at_ms, job.progress_message, job.progress_data,
                   job.last_checkpoint};
    past.result = job.result;
    past.errors = reading.errors = internal::encoded(job.errors);
    return {};
  }

  Status take(const ExportedWorkflow& exported) {
    const auto id = engine::parse_id(exported.id);
    const auto wrong = [](std::string what) {
      return Error{Code::kInvalid, std::move(what)}.about("workflow");
    };
    if (!id) return wrong("workflow.id must be a UUIDv7 in lower case");
    const auto tree = internal::WorkflowTree::read(exported.tree);
    if (!tree || tree->kind == WorkflowKind::kJob) return wrong("workflow.tree is none");
    engine::WorkflowGraph graph;
    for (const auto& set : exported.sets) graph.sets.add(set);
    graph.result = exported.result;
    for (const ExportedMember& member : exported.members) {
      engine::WorkflowGraph::Member& at = graph.members.emplace_back();
      at.waits = member.waits;
      at.gate = member.gate;
      at.when = static_cast<engine::When>(member.when);
    }
    if (!graph.holds()) return wrong("workflow.members or workflow.sets lead out of the workflow");
    for (const ExportedMember& member : exported.members)
      if (member.job && !member.job->priority)
        return wrong("each job of a workflow needs its priority");
    constexpr int kMostReads = 32;
    Status put;
    for (int i = 0; i < kMostReads; ++i) {
      limits_moved = false;
      put = put_workflow(exported, *id, workflow_kind_name(tree->kind), graph);
      if (!limits_moved) break;
    }
    return put;
  }

  Status put_workflow(const ExportedWorkflow& exported, engine::JobId id, std::string_view kind,
                      engine::WorkflowGraph& graph) {
    using Is = engine::PastMember::Is;
    const std::size_t count = exported.members.size();
    std::vector<Reading> readings(count);
    std::vector<engine::PastMember> past(count);
    std::vector<engine::NewJob> jobs(count);
    std::uint64_t there = 0, clamped = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const ExportedMember& member = exported.members[i];
      past[i] = {Is::kGone, member.failed, nullptr};
      if (!member.job) continue;
      if (Status read_it = read(*member.job, readings[i]); !read_it) return read_it;
      engine::PastJob& job = readings[i].past;
      // it is due when it was to be, at the earliest once its turn has come
      if (member.waiting) job.state = engine::JobState::kScheduled;
      const bool ended = engine::is_terminal(job.state);
      if (ended && job.finished_at == 0) job.finished_at = handle->store().now_ms();
      past[i] = {member.waiting ? Is::kWaiting
                 : ended        ? Is::kEnded
                                : Is::kAlive,
                 ended && job.state != engine::JobState::kCompleted, &job};
      jobs[i] = job.job;
      ++there;
      clamped += readings[i].clamped ? 1 : 0;
    }
    engine::NewWorkflow workflow{
        jobs, &graph, kind, exported.tree, id, past, exported.created_at_ms};
    engine::JobId made;
    engine::Outcome outcome = engine::Outcome::kDuplicate;
    // as of a job: restore()
    for (int turn = 0; turn < 100; ++turn) {
      if (engine::find_workflow(handle->store(), id) != engine::kNoIndex) {
        report.existing += there;
        return {};
      }
      outcome = actor().workflows().create(workflow, made);
      if (outcome == engine::Outcome::kOk || outcome == engine::Outcome::kLimitsMoved) break;
      const std::uint32_t dead = handle->attachment().repair_the_dead();
      if (dead == 0 && outcome != engine::Outcome::kDuplicate) break;
      if (dead == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    limits_moved = outcome == engine::Outcome::kLimitsMoved;
    if (outcome == engine::Outcome::kDuplicate)
      return Error{Code::kDuplicate,
                   "a job of workflow " + exported.id + " is here already, and the workflow is not"}
          .about("id");
    if (outcome != engine::Outcome::kOk)
      return internal::error_of(outcome, handle->store(), jobs[workflow.refused].queue,
                                exported.id);
    report.jobs += there;
    report.clamped += clamped;
    return {};
  }

  Status restore(const engine::PastJob& past, const std::string& id, bool clamped, bool defaulted) {
    engine::Outcome outcome = actor().restore(past);
    // The room, or the id, may be held by a dead process, perhaps of an import that was killed.
    for (int turn = 0; turn < 100 && outcome != engine::Outcome::kOk; ++turn) {
      const bool stands =
          past.job.id && engine::find_job(handle->store(), *past.job.id) != engine::kNoIndex;
      if (outcome == engine::Outcome::kDuplicate && stands) {
        ++report.existing;
        return {};
      }
      const std::uint32_t dead = handle->attachment().repair_the_dead();
      if (dead == 0 && outcome != engine::Outcome::kDuplicate) break;
      if (dead == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      outcome = actor().restore(past);
    }
    limits_moved = outcome == engine::Outcome::kLimitsMoved;
    if (outcome == engine::Outcome::kDuplicate) return internal::just_brought(id);
    if (outcome == engine::Outcome::kClash)
      return internal::key_taken(actor().conflicts().clash, id);
    if (outcome != engine::Outcome::kOk)
      return internal::error_of(outcome, handle->store(), past.job.queue, id);
    if (const auto finished = engine::is_terminal(past.state); finished && past.job.id)
      finished_.push_back(*past.job.id);
    ++report.jobs;
    report.clamped += clamped ? 1 : 0;
    report.defaulted += defaulted ? 1 : 0;
    return {};
  }
};

Import::Import(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Import::Import(Import&&) noexcept = default;
Import& Import::operator=(Import&&) noexcept = default;
Import::~Import() = default;

Result<Import> Import::attach(const Segment& segment) {
  auto handle = Handle::make(segment);
  if (!handle) return handle.error();
  Result<Admin> admin = Admin::attach(segment);
  if (!admin) return admin.error();
  auto impl = std::make_unique<Impl>();
  impl->handle = std::move(handle).value();
  impl->admin.emplace(std::move(admin).value());
  return Import(std::move(impl));
}

namespace {
Error in_line(std::uint64_t line, Error error) {
  error.message = "line " + std::to_string(line) + ": " + error.message;
  return error;
}
Error no_head() {
  return {
      .code = Code::kOtherFormat,
      .message = "an export begins with {\"ojs_shm_export\":2,...}, as `ojs-shm export` writes it"};
}
}  // namespace

Status Import::take(std::string_view line) {
  if (impl_->handle->closed()) return internal::closed();
  ++impl_->lines;
  if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
  const Result<ExportLine> read = read_export_line(line);
  if (!impl_->theirs && (!read || !std::holds_alternative<ExportHead>(*read)) &&
      read.code() != Code::kOtherFormat)
    return in_line(impl_->lines, no_head());
  if (!read) return in_line(impl_->lines, read.error());
  const Status taken =
      std::visit([this](const auto& record) { return impl_->take(record); }, *read);
  return taken ? taken : in_line(impl_->lines, taken.error());
}

Status Import::finish() {
  if (impl_->handle->closed()) return internal::closed();
  if (!impl_->theirs) return no_head();
  impl_->recount();
  while (!impl_->without_priority.empty()) {
    const auto [line, job] = std::move(impl_->without_priority.front());
    impl_->without_priority.pop_front();
    if (const Status put = impl_->put(job); !put) return in_line(line, put.error());
  }
  impl_->recount();
  return {};
}

const ImportReport& Import::report() const { return impl_->report; }

}  // namespace ojs_shm
