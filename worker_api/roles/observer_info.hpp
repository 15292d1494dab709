// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/observer.hpp>

#include "engine/observing/census.hpp"
#include "engine/unique/unique.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::internal {

/// Whether a unique job keeps other jobs of its key out, as far as it decides that itself.
inline bool keeps_others_out(engine::Uniqueness policy, engine::JobState state,
                             std::uint64_t created_at, std::uint64_t now) {
  return policy.minds(state) && policy.end(created_at) > now;
}
/// Whether a job of that state, which ended then if it is over, ended when the filter wants it.
inline bool ended_as_wanted(const JobFilter& filter, engine::JobState state, std::uint64_t at_ms) {
  if (filter.ended_from_ms == 0 && filter.ended_before_ms == 0) return true;
  return engine::is_terminal(state) && at_ms >= filter.ended_from_ms &&
         (filter.ended_before_ms == 0 || at_ms < filter.ended_before_ms);
}
/// Whether its last failure was of the kind that the filter wants.
bool failed_as_wanted(const JobFilter& filter, const engine::Snapshot& job);
/// The queue as the census found it.
QueueInfo describe_queue(const engine::Store& store, std::uint32_t queue,
                         const engine::Census::Queue& counted);
/// Whether that process has the broker's seat, or died in it.
bool is_broker(Attachment& attachment, std::uint32_t process);
Maintenance describe_maintenance(const engine::Store& store);
/// The segment as it is set up, without what has to be counted.
SegmentInfo describe_settings(Attachment& attachment);
/// The segment as the census found it; its memory pools are left to the caller.
SegmentInfo describe_segment(Attachment& attachment, const engine::Census& census);

}  // namespace ojs_shm::internal
