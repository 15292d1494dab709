// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tables/job_look.hpp"
#include "worker_api/roles/attachment.hpp"

// How long results are kept, why a job was discarded, and what is said of a job that is gone.

namespace ojs_shm {
class Job;
namespace internal {

/// There is no job with that id: there never was one or, as far as the slots remember, it is gone;
/// then `state` is "gone".
Error no_job(const engine::Store& store, std::string_view id);
/// The job's result, until when it is kept, and whether that time is over.
void tell_result(const engine::Store& store, const engine::Snapshot& snapshot, JobInfo& info);
/// JobInfo::discard_reason.
std::string_view discard_reason(const engine::Snapshot& snapshot);
/// What of a result is to be stored: nothing when it is kept for no time, unless other jobs of the
/// workflow want it.
std::string_view result_to_keep(std::string_view result, std::string_view extra, bool member);
std::string_view result_to_keep(std::string_view result, const Job& job);

/// Of a spec that asks for a time that cannot be kept to.
Error wrong_result_ttl(const JobSpec& spec);
/// Puts result_ttl_s among the other members of the job, where the segment keeps it. One that
/// cannot be kept to stays where it is, and the spec is refused.
void keep_result_ttl(JobSpec& spec, std::deque<std::string>& texts);

/// Specs as they came or, where any has a result_ttl_s, with all of those kept.
class KeptSpecs {
 public:
  explicit KeptSpecs(std::span<const JobSpec> given);
  KeptSpecs(const KeptSpecs&) = delete;
  std::span<const JobSpec> all() const { return all_; }

 private:
  std::vector<JobSpec> own_;
  std::deque<std::string> texts_;
  std::span<const JobSpec> all_;
};

}  // namespace internal
}  // namespace ojs_shm
