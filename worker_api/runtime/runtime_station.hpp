// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include <ojs_shm/runtime.hpp>
#include <ojs_shm/worker.hpp>

namespace ojs_shm::internal {

/// One job in the hands of a runtime, from its fetch to its ack. Three threads meet here: the pool
/// thread that runs the handler, the keeper that extends the lease, and run(), which gives the job
/// back when the grace time is over.
///
/// The handler reads `job_` without a lock, so it does not change while the handler runs. What an
/// extended lease or a reported progress changes is `held_`, a copy made when the first of them
/// comes; most jobs end before that.
class Station final : public JobContext {
 public:
  using Clock = std::chrono::steady_clock;

  // --- The fetching thread, while the station is free
  // ----------------------------------------------------------------
  Job& to_fetch_into() noexcept { return job_; }
  /// The job just fetched is now looked after. Returns when its lease wants extending: after
  /// `every`, or when that is zero after a third of the lease.
  Clock::time_point begin(Clock::time_point now, std::chrono::milliseconds every);

  // --- The pool thread
  // -----------------------------------------------------------------------------------------------
  /// Whose handle reports progress from here on. False when the job was given back before its
  /// handler began.
  bool start(Worker& worker);
  /// The handler is done and the job is about to be settled, so the keeper lets go of it. Null when
  /// it was given back.
  Job* finish();

  const Job& job() const override { return job_; }
  bool cancel_requested() const override { return job_.cancel_requested(); }
  void progress(double fraction) override;
  void progress(double fraction, std::string_view message, std::string_view data) override;
  void checkpoint(std::string_view data) override;
  Metadata& metadata() override { return metadata_; }

  // --- The keeper and run()
  // ------------------------------------------------------------------------------------------
  /// Extends the lease if that is due. Returns when it will be due next; never for a free station
  /// or a lost job.
  Clock::time_point beat(Worker& worker, Clock::time_point now);
  /// Puts a job that is still being worked on back to the front of its level. False when there was
  /// none to give.
  bool give_back(Worker& worker);

 private:
  Job& held();

  Job job_;
  Metadata metadata_;  // of the thread that runs the handler
  std::mutex mutex_;   // guards everything below
  std::optional<Job> held_;
  Worker* worker_ = nullptr;
  bool busy_ = false;
  Clock::duration period_{};
  Clock::time_point due_ = Clock::time_point::max();
};

}  // namespace ojs_shm::internal
