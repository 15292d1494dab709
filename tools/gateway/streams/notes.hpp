// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ojs_shm::gateway {

/// The worker that runs a job.
struct JobNote {
  std::uint64_t fence = 0;
  /// of a worker for whom the segment had no place
  std::string worker = {};
};

/// Notes on the jobs that workers of this gateway run. They live in this process: another gateway
/// of the segment has its own, and a new one begins without any. Thread-safe.
class Notes {
 public:
  static constexpr std::size_t kMostNotes = 100'000;

  void note(std::string_view job, JobNote note);
  /// Of this attempt of the job.
  std::optional<JobNote> note_of(std::string_view job, std::uint64_t fence) const;
  void forget(std::string_view job);
  void clear();

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, JobNote> notes_;
  std::deque<std::string> noted_;  ///< the oldest first; some are forgotten already
};

}  // namespace ojs_shm::gateway
