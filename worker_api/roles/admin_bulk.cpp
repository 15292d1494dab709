// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>

#include "engine/observing/events.hpp"
#include "worker_api/roles/admin_impl.hpp"

namespace ojs_shm {
namespace {

/// Where the action could only fail: what is chosen and counted is what it can be done to.
JobFilter narrowed(JobFilter filter, BulkAction action) {
  if (action == BulkAction::kRetry && !filter.state) filter.state = State::kDiscarded;
  filter.dead_letter =
      filter.dead_letter || action == BulkAction::kRetryDead || action == BulkAction::kDropDead;
  return filter;
}

/// What stands in the way of one job says nothing of the next: that it is gone, that another job
/// has its unique key, that a stopped process is in the middle of it.
bool is_passed_by(Code code) {
  return code == Code::kNotFound || code == Code::kWrongState || code == Code::kDuplicate ||
         code == Code::kTimeout;
}

bool concerns(const BriefJob& job, BulkAction action) {
  switch (action) {
    case BulkAction::kCancel: return !is_terminal(job.state);
    case BulkAction::kPromote:
      return job.state == State::kScheduled || job.state == State::kRetryable;
    case BulkAction::kRetryDead:
    case BulkAction::kDropDead: return job.dead_letter;
    case BulkAction::kDrop: return is_terminal(job.state);
    case BulkAction::kRetry:
      return job.state == State::kDiscarded || job.state == State::kCancelled;
  }
  return false;
}

/// Of a part of the list, the order in which jobs would be fetched says which jobs are in it.
std::vector<BriefJob> chosen(const Observer& observer, const JobFilter& filter) {
  if (filter.limit == 0) return observer.brief_list({.filter = filter, .falls = false});
  std::vector<BriefJob> jobs;
  for (JobInfo& job : observer.list(filter))
    jobs.push_back({std::move(job.id), job.state, job.dead_letter});
  return jobs;
}

BulkKind kind_of(BulkAction action) {
  switch (action) {
    case BulkAction::kCancel: return BulkKind::kCancel;
    case BulkAction::kPromote:
    case BulkAction::kRetry:
    case BulkAction::kRetryDead: return BulkKind::kRetry;
    case BulkAction::kDropDead:
    case BulkAction::kDrop: break;
  }
  return BulkKind::kDelete;
}

}  // namespace

void Admin::tell_bulk(BulkKind kind, std::uint64_t jobs, std::uint64_t done, bool atomic) {
  if (impl_->handle->closed()) return;
  engine::Tellings& tellings = impl_->handle->actor().tellings();
  constexpr engine::EventKind kKinds[] = {
      engine::EventKind::kBulkEnqueue, engine::EventKind::kBulkCancel,
      engine::EventKind::kBulkRetry, engine::EventKind::kBulkDelete};
  if (tellings.on()) tellings.bulk(kKinds[static_cast<std::size_t>(kind)], jobs, done, atomic);
}

Result<BulkReport> Admin::bulk(BulkAction action, const JobFilter& filter,
                               const std::function<bool(const BulkReport&)>& progress) {
  const Result<Observer> observer = Observer::attach(segment());
  if (!observer) return observer.error();
  if (!filter.queue.empty())
    if (const auto queue = observer->queue(filter.queue); !queue) return queue.error();
  std::vector<BriefJob> jobs = chosen(*observer, narrowed(filter, action));
  std::erase_if(jobs, [action](const BriefJob& job) { return !concerns(job, action); });
  BulkReport report;
  report.matched = jobs.size();
  const auto act = [&](const std::string& id) -> Status {
    switch (action) {
      case BulkAction::kCancel:
        if (const auto cancelled = producer().cancel(id); !cancelled) return cancelled.error();
        return {};
      case BulkAction::kPromote: return producer().promote(id);
      case BulkAction::kRetryDead: return retry_dead(id);
      case BulkAction::kDropDead: return drop_dead(id);
      case BulkAction::kRetry: return producer().retry(id);
      case BulkAction::kDrop: break;
    }
    return drop(id);
  };
  bool goes_on = true;
  for (const BriefJob& job : jobs) {
    goes_on = !progress || progress(report);
    if (!goes_on) break;
    const Status done = act(job.id);
    if (!done && !is_passed_by(done.code())) return done.error();
    ++(done ? report.done : report.skipped);
  }
  if (progress && goes_on) (void)progress(report);
  tell_bulk(kind_of(action), report.matched, report.done);
  return report;
}

}  // namespace ojs_shm
