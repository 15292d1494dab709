// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/events.hpp>

#include "tools/top/grid.hpp"
#include "tools/top/sampler.hpp"

namespace ojs_shm::top {

enum class View : std::uint8_t {
  kQueues,
  kWorkers,
  kPools,
  kTenants,
  kLimits,
  kJobs,
  kEvents,
  kCounters,
  kPast,
  kWorkflows,
  kCrons,
  kWorkflow,  ///< one as a tree
  kJob,       ///< one job in full
  kHelp,
};
/// Those that a digit chooses, in order; the tenth is 0, the last one C.
inline constexpr View kViews[] = {View::kQueues, View::kWorkers,   View::kPools,  View::kTenants,
                                  View::kLimits, View::kJobs,      View::kEvents, View::kCounters,
                                  View::kPast,   View::kWorkflows, View::kCrons};
std::string_view name_of(View view);
/// For a tab where there is little room.
std::string_view short_name_of(View view);
std::optional<View> view_by_name(std::string_view name);

/// Which jobs the view of jobs shows.
enum class JobChoice : std::uint8_t { kWaiting, kActive, kDead, kAll };
std::string_view name_of(JobChoice choice);

/// What a view is about, beside the sample.
struct Subject {
  std::string queue = {};   ///< "": all
  std::string tenant = {};  ///< of jobs; empty: any
  std::string pool = {};    ///< of queues; empty: any
  std::string job = {}, workflow = {};
  JobChoice jobs = JobChoice::kWaiting;
  bool operator==(const Subject&) const = default;
};

/// What the event view shows: the last ones, oldest first.
struct EventLog {
  std::deque<Event> events;
  std::uint64_t lost = 0;
};

Grid queues_grid(const Sample& sample, const Subject& subject);
Grid workers_grid(const Sample& sample);
/// The key of a registered worker's row, which no process has.
std::string key_of(const RegisteredWorker& worker);
Grid pools_grid(const Sample& sample);
Grid tenants_grid(const Sample& sample, const Subject& subject);
Grid limits_grid(const Sample& sample);
Grid crons_grid(const Observer& observer, std::uint64_t now_ms);
/// Asks the segment for the jobs: in the order in which they would be fetched.
Grid jobs_grid(const Observer& observer, std::uint64_t now_ms, const Subject& subject);
/// One job as members and values.
Grid job_grid(const Observer& observer, const Subject& subject);
/// The youngest first.
Grid workflows_grid(const Observer& observer, std::uint64_t now_ms);
/// Its parts as a tree; of a job in it the third cell is the id.
Grid workflow_grid(const Observer& observer, const Subject& subject);
Grid events_grid(const Sample& sample, const EventLog& log);
/// Every counter of every queue and of the segment, and the memory, as the segment tells them.
Grid counters_grid(const Sample& sample);
/// The flight recorder: the last transitions of every handle.
Grid past_grid(const Observer& observer);
Grid help_grid(bool admin);

Grid grid_of(View view, const Observer& observer, const Sample& sample, const Subject& subject,
             const EventLog& log, bool admin);
/// The lines above every view.
Picture header_of(const Sample& sample, const std::string& notice, std::size_t width);

}  // namespace ojs_shm::top
