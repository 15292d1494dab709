// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>
#include <ojs_shm/workflow.hpp>

#include "engine/workflows/workflow_look.hpp"
#include "engine/workflows/workflows.hpp"
#include "worker_api/json/id_text.hpp"
#include "worker_api/roles/producer_impl.hpp"
#include "worker_api/roles/results.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/workflow_compile.hpp"
#include "worker_api/roles/workflow_tree.hpp"

namespace ojs_shm {
namespace {

/// Why the id cannot be that of another workflow.
Status check_free(const engine::Store& store, const WorkflowSpec& spec, engine::JobId id) {
  if (engine::find_workflow(store, id) == engine::kNoIndex &&
      engine::find_job(store, id) == engine::kNoIndex)
    return {};
  return Error{Code::kDuplicate, "there is a job or a workflow with the id " + std::string(spec.id)}
      .about(std::string(spec.id));
}

Error no_workflow(std::string_view id) {
  return Error{Code::kNotFound, "no workflow with id " + std::string(id)}.about("workflow");
}

Result<WorkflowInfo> look_up(const engine::Store& store, std::string_view id) {
  const auto parsed = engine::parse_id(id);
  if (!parsed) return internal::not_an_id(id, "workflow");
  for (int look = 0; look < 1000; ++look) {
    const std::uint32_t slot = engine::find_workflow(store, *parsed);
    if (slot == engine::kNoIndex) break;
    auto info = internal::workflow_info(store, slot, true);
    if (info && info->id == id) return std::move(*info);
  }
  return no_workflow(id);
}

}  // namespace

/// The priority of a whole or a part, also where none of its jobs takes it.
Status check_priorities(engine::Convention convention, const WorkflowSpec& spec,
                        const std::string& place) {
  if (spec.kind == WorkflowKind::kJob) return {};
  if (spec.priority)
    if (const auto checked = internal::check_priority(convention, *spec.priority); !checked) {
      Error error = checked.error();
      error.message = place + ": " + error.message;
      error.subject = place + "." + error.subject;
      return error;
    }
  const bool in_order = spec.kind == WorkflowKind::kChain || spec.kind == WorkflowKind::kGraph;
  for (std::size_t i = 0; i < spec.steps.size(); ++i)
    if (Status checked =
            check_priorities(convention, spec.steps[i],
                             place + (in_order ? ".steps[" : ".jobs[") + std::to_string(i) + "]");
        !checked)
      return checked;
  return {};
}

/// Reads the jobs of a workflow that was compiled, and makes their queues once all of them are well
/// formed.
Status Producer::Impl::read_members(const WorkflowSpec& whole) {
  const std::vector<JobSpec>& specs = workflow->jobs;
  std::vector<engine::NewJob>& jobs = workflow->ready;
  jobs.assign(specs.size(), engine::NewJob());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto fault = internal::read_spec(actor(), specs[i], jobs[i]);
    if (fault == internal::SpecFault::kNone && jobs[i].size() > store().max_body())
      fault = internal::SpecFault::kTooLarge;
    if (fault == internal::SpecFault::kNone) continue;
    Error error = internal::error_of(fault, specs[i], store());
    const std::string place = internal::place_in(whole, i);
    error.message = place + ": " + error.message;
    if (error.code == Code::kInvalid) error.subject = place + "." + error.subject;
    return error;
  }
  if (std::ranges::find(jobs, engine::kNoIndex, &engine::NewJob::queue) == jobs.end()) return {};
  std::size_t at = 0;
  const auto fault = handle->make_queues(specs, jobs, at);
  if (fault == internal::SpecFault::kNone) return {};
  return internal::error_of(fault, specs[at], store());
}

Result<std::string> Producer::create_workflow(const WorkflowSpec& spec) {
  Impl& impl = *impl_;
  if (impl.handle->closed()) return internal::closed();
  if (!impl.workflow) impl.workflow = std::make_shared<internal::CompiledWorkflow>();
  internal::CompiledWorkflow& compiled = *impl.workflow;
  if (Status done = internal::compile(spec, compiled); !done) return done.error();
  if (Status checked = check_priorities(impl.store().convention(), spec, "$"); !checked)
    return checked.error();
  engine::NewWorkflow workflow;
  if (!spec.id.empty()) {
    workflow.id = engine::parse_id(spec.id);
    if (!workflow.id)
      return Error{Code::kInvalid, internal::not_an_id_text(spec.id, "workflow")}.about("id");
    if (Status checked = check_free(impl.store(), spec, *workflow.id); !checked)
      return checked.error();
  }
  if (Status read = impl.read_members(spec); !read) return read.error();
  workflow.graph = &compiled.graph;
  workflow.kind = workflow_kind_name(spec.kind);
  workflow.description = compiled.description;
  engine::JobId id;
  bool well = true;
  const auto put = [&] {
    workflow.jobs = compiled.ready;
    return impl.actor().workflows().create(workflow, id);
  };
  const auto read = [&] { return well = impl.read_members(spec).ok(); };
  const engine::Outcome outcome = impl.patiently({}, [&] { return impl.settled(read, put); });
  if (outcome == engine::Outcome::kOk) return engine::to_string(id);
  if (outcome == engine::Outcome::kDuplicate && workflow.id)
    if (Status checked = check_free(impl.store(), spec, *workflow.id); !checked)
      return checked.error();
  const std::size_t at = std::min<std::size_t>(workflow.refused, compiled.jobs.size() - 1);
  const std::uint32_t queue = well ? compiled.ready[at].queue : engine::kNoIndex;
  // A queue that would drop jobs for new jobs, or let them wait, has told no numbers.
  if (outcome == engine::Outcome::kQueueFull && impl.actor().met().fullness.bound == 0)
    return internal::error_of(outcome, impl.store(), queue, "");
  return impl.refusal(outcome, queue, spec.id.empty() ? "workflow" : spec.id,
                      std::span(&compiled.jobs[at], 1));
}

Result<WorkflowInfo> Producer::cancel_workflow(std::string_view id) {
  const auto parsed = engine::parse_id(id);
  if (impl_->handle->closed()) return internal::closed();
  if (!parsed) return internal::not_an_id(id, "workflow");
  engine::WorkflowState found{};
  switch (impl_->actor().workflows().cancel(*parsed, found)) {
    case engine::Outcome::kOk: return look_up(impl_->store(), id);
    case engine::Outcome::kNotFound: return no_workflow(id);
    case engine::Outcome::kWrongState: {
      const std::string state(workflow_state_name(static_cast<WorkflowState>(found)));
      return Error{Code::kWrongState,
                   "workflow " + std::string(id) + " is already in terminal state '" + state + "'"}
          .about(state);
    }
    default: break;
  }
  return internal::error_of(engine::Outcome::kBusy, impl_->store(), engine::kNoIndex, id);
}

Result<WorkflowInfo> Observer::workflow(std::string_view id) const {
  return look_up(segment_.attachment()->store(), id);
}

std::vector<WorkflowInfo> Observer::workflows(const WorkflowFilter& filter) const {
  const engine::Store& store = segment_.attachment()->store();
  std::vector<std::pair<engine::JobId, std::uint32_t>> heads;
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const engine::Control control(store.job(slot).control.load());
    if (!engine::is_head(control)) continue;
    if (filter.state &&
        static_cast<WorkflowState>(engine::workflow_state(control)) != *filter.state)
      continue;
    heads.emplace_back(store.job(slot).id(), slot);
  }
  std::sort(heads.begin(), heads.end(), std::greater<>());  // ids grow with time
  std::vector<WorkflowInfo> found;
  for (const auto& [id, slot] : heads) {
    if (found.size() >= filter.most) break;
    auto info = internal::workflow_info(store, slot, false);
    if (!info || (!filter.name.empty() && info->name() != filter.name)) continue;
    if (filter.tenant && info->tenant != *filter.tenant) continue;
    found.push_back(std::move(*info));
  }
  return found;
}

/// Where a job that is held here belongs.
struct internal::JobOfWorkflow {
  static engine::Membership look(const Job& held) {
    if (held.segment_ == nullptr) return {};
    const engine::JobRecord& job = held.segment_->store().job(held.slot_);
    const bool member = (job.signals.load() & engine::kMember) != 0;
    const engine::Membership found = engine::membership(job);
    // while it is held, the slot is its own
    return member && job.control.load() == held.word_ ? found : engine::Membership{};
  }
};

std::string Job::parent_results() const {
  const engine::Membership member = internal::JobOfWorkflow::look(*this);
  return member.head == engine::kNoIndex ? std::string()
                                         : internal::parent_results(segment_->store(), member);
}

[[gnu::noinline]] std::string_view internal::result_to_keep(std::string_view result,
                                                            const Job& job) {
  const engine::Membership member = internal::JobOfWorkflow::look(job);
  return result_to_keep(result, job.extra(), member.head != engine::kNoIndex);
}

std::string Job::workflow_id() const {
  const engine::Membership member = internal::JobOfWorkflow::look(*this);
  if (member.head == engine::kNoIndex) return {};
  const auto id = engine::workflow_of(segment_->store(), member);
  return id ? engine::to_string(*id) : std::string();
}

}  // namespace ojs_shm
