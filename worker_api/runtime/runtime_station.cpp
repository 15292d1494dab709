// SPDX-License-Identifier: Apache-2.0
#include "worker_api/runtime/runtime_station.hpp"

#include <algorithm>
#include <utility>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {
namespace {

/// A third of the lease leaves room for two extensions that come late. Both times are of one clock,
/// so their difference is right whatever the wall clock does.
std::chrono::milliseconds third_of_lease(const Job& job) {
  const std::uint64_t begun = job.started_at_ms(), end = job.deadline_ms();
  return std::chrono::milliseconds(end > begun ? (end - begun) / 3 : 0);
}

}  // namespace

Station::Clock::time_point Station::begin(Clock::time_point now, std::chrono::milliseconds every) {
  const std::lock_guard lock(mutex_);
  held_.reset();
  metadata_.clear();
  worker_ = nullptr;
  busy_ = true;
  period_ = std::max(every.count() > 0 ? within_reach(every) : third_of_lease(job_),
                     std::chrono::milliseconds(1));
  due_ = now + period_;
  return due_;
}

bool Station::start(Worker& worker) {
  const std::lock_guard lock(mutex_);
  worker_ = &worker;
  return busy_;
}

Job* Station::finish() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(busy_, false)) return nullptr;
  return held_ ? &*held_ : &job_;
}

void Station::progress(double fraction) {
  const std::lock_guard lock(mutex_);
  // A job that is lost cannot tell its progress; the handler learns of it from cancel_requested().
  if (busy_ && worker_ != nullptr) (void)worker_->progress(held(), fraction);
}

void Station::progress(double fraction, std::string_view message, std::string_view data) {
  const std::lock_guard lock(mutex_);
  if (busy_ && worker_ != nullptr) (void)worker_->progress(held(), fraction, message, data);
}

void Station::checkpoint(std::string_view data) {
  const std::lock_guard lock(mutex_);
  if (busy_ && worker_ != nullptr) (void)worker_->checkpoint(held(), data);
}

Station::Clock::time_point Station::beat(Worker& worker, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!busy_) return Clock::time_point::max();
  if (now < due_) return due_;
  const auto extended = worker.heartbeat(held());
  due_ = extended.code() == Code::kLost ? Clock::time_point::max() : now + period_;
  return due_;
}

bool Station::give_back(Worker& worker) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(busy_, false)) return false;
  // Lost already: then it is where it belongs.
  (void)worker.requeue(held());
  return true;
}

Job& Station::held() {
  if (!held_) held_.emplace(job_);
  return *held_;
}

}  // namespace ojs_shm::internal
