// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>

namespace ojs_shm {

/// Puts jobs into queues. One thread at a time may use a Producer; make one for each thread.
class OJS_SHM_API Producer {
 public:
  /// Errors: kSegmentFull (no free handle), kClosed.
  static Result<Producer> attach(const Segment& segment);
  /// Attaches to the segment and makes a producer in one step.
  static Result<Producer> attach(const SegmentName& name);
  Producer(Producer&&) noexcept;
  Producer& operator=(Producer&&) noexcept;
  ~Producer();

  /// When it returns a job id the job is in the segment and survives the death of every process.
  /// Errors: kInvalid, kTooLarge, kQueueFull, kSegmentFull, kDuplicate, kClosed; nothing is stored then.
  Result<JobIdText> enqueue(const JobSpec& job);
  /// All or none, in this order, also when the process is killed half-way.
  Result<std::vector<JobIdText>> enqueue_batch(std::span<const JobSpec> jobs);

  /// Waits until the job is finished. Errors: kNotFound, kTimeout.
  Result<JobInfo> wait(std::string_view id, std::chrono::milliseconds timeout);
  Result<JobInfo> get(std::string_view id) const;
  /// Cancels; an active job is asked to stop and cancelled by its worker or at once as `active` becomes `cancelled`.
  /// Errors: kNotFound, kWrongState (finished).
  Result<JobInfo> cancel(std::string_view id);
  /// Changes the priority of an available or scheduled job. Returns the previous one. Errors: kInvalid (the message
  /// names the maximum), kNotFound, kWrongState (also when the convention makes priorities immutable).
  Result<std::int64_t> reprioritize(std::string_view id, std::int64_t priority);
  /// pending -> available.
  Status activate(std::string_view id);

  const Segment& segment() const;

 private:
  friend class Admin;
  struct Impl;
  explicit Producer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ojs_shm
