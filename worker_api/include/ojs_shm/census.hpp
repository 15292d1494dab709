// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/observer.hpp>

namespace ojs_shm {

/// How a counter moves jobs, so that a monitor can place it without knowing its name.
enum class CounterFlow : std::uint8_t { kNone = 0, kIn = 1, kOut = 2, kRefused = 3, kLost = 4 };

/// A counter as the segment describes it.
struct CounterInfo {
  std::uint32_t id = 0;  ///< means the same number in every version
  std::string label, unit;
  CounterFlow flow = CounterFlow::kNone;
};

/// Times of jobs, in ms: `p50` is the least time that half of them do not exceed, to a sixteenth.
struct Durations {
  std::uint64_t count = 0, p50_ms = 0, p99_ms = 0;
};

struct OJS_SHM_API QueueCensus {
  QueueInfo info;
  std::vector<std::uint64_t> counters;  ///< in the order of Census::queue_counters
  /// of completed jobs of the last minute whose slots are not used again yet
  Durations wait, run;
  bool starving = false;  ///< it has jobs, and no worker took one for a rotation interval
  std::uint64_t starved_total = 0;

  /// "paused", "full", "starving", "warning" (over its threshold) or "running": the first that
  /// holds.
  std::string_view state() const;
  /// The order in force: "strict", "ageing" or "weights", with ", tenants" or ", tenants across",
  /// and ", N shards".
  std::string order() const;
};

/// One process and what it has in hand.
struct WorkerCensus {
  std::uint32_t process = 0;  ///< ProcessInfo::index
  std::vector<std::string> pools;
  /// of its pools, of the jobs it holds, and those for which it sleeps
  std::vector<std::string> queues;
  std::uint64_t dispatched_total = 0;  ///< by its handles, and by those before them in their places
  std::string oldest_job, oldest_type;  ///< the job that it has held longest; empty: none
  std::uint64_t oldest_age_ms = 0;
  /// when it last began a job that it still holds, or beat for one; Unix ms, 0: not known
  std::uint64_t last_sign_ms = 0;
};

/// What one tenant has in one queue. Shares are those of the tenants that have jobs waiting.
struct TenantCensus {
  std::string queue, tenant;  ///< tenant "": jobs without one; "#..." when its name is not known
  std::uint32_t weight = 1;
  std::uint64_t depth = 0, active = 0, oldest_age_ms = 0;
  std::uint64_t max_depth = 0, max_size_bytes = 0;  ///< 0: unbounded
  std::uint64_t begun_1m = 0;                       ///< jobs begun in the last minute
  std::optional<double> entitled;  ///< by weight; unset in a queue that is not fair
  double actual = 0;               ///< of begun_1m of the queue
};

/// One look at everything. The numbers of one look belong to one walk over the segment.
struct Census {
  std::uint64_t at_ms = 0;  ///< Unix time, by the segment's clock
  /// a copy of a segment's file, as its last trace left it (Segment::examine)
  bool post_mortem = false;
  /// of a broker that died, and was not replaced: the last repair after a death, or, while it is
  /// not repaired, the last trace that a job or the supervisor left; Unix ms, 0: none died, or not
  /// known
  std::uint64_t broker_lost_ms = 0;
  bool removed = false;  ///< the segment's file has been removed, or another has its name
  /// its pools are those that the segment describes, without an option that makes them larger
  SegmentInfo segment;
  std::vector<CounterInfo> segment_counters, queue_counters;
  std::vector<std::uint64_t> segment_values;  ///< in the order of segment_counters
  std::vector<QueueCensus> queues;
  std::vector<WorkerCensus> workers;         ///< in the order of SegmentInfo::processes
  std::vector<RegisteredWorker> registered;  ///< by id
  std::vector<WorkerPoolInfo> pools;
  std::vector<TenantCensus> tenants;  ///< by queue, then by name
  std::vector<LimitInfo> limits;

  /// "alive", "stopped" or "dead"; "attached" in a copy, which cannot tell.
  OJS_SHM_API std::string_view state_of(const ProcessInfo& process) const;
  /// The same, or "none" when no process has the seat.
  OJS_SHM_API std::string_view broker_state() const;
  OJS_SHM_API std::string_view supervisor_state() const;
  /// All bytes of the segment but those of unused objects of its pools.
  OJS_SHM_API std::uint64_t bytes_used() const;
  /// Each queue counter, summed over the queues.
  OJS_SHM_API std::vector<std::uint64_t> totals() const;
};

/// One JSON object; docs/top_sample.schema.json describes it.
OJS_SHM_API std::string print_census(const Census& census);

}  // namespace ojs_shm
