// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

/// Something that happened in a segment, in the words of ojs-events. docs/events.md lists the types
/// and their members.
struct Event {
  std::string id;    ///< "evt_" and a UUIDv7
  std::string type;  ///< "job.enqueued", "priority.changed", ...
  std::uint64_t time_ms = 0;
  std::uint32_t handle = 0;  ///< the handle that caused it
  std::uint64_t fence = 0;   ///< JobInfo::fence, of an attempt that began or goes on
  /// its number among what that handle, and those before it in its place, told
  std::uint64_t sequence = 0;
  /// its number among all that the segment told, as this reader counts, with those it lost
  std::uint64_t position = 0;
  std::string source;  ///< "ojs://SEGMENT/handles/N"
  std::string queue;
  std::string job_id;    ///< empty when it is about the queue or a pool
  std::string job_type;  ///< empty when the job's place is already used by another
  std::string tenant;    ///< its `meta.tenant_id`; the same, or it has none
  std::int64_t priority = 0, previous_priority = 0;
  std::uint32_t attempt = 0, max_attempts = 0;
  std::optional<State> led_to;  ///< the state of the job behind an attempt that failed
  /// due, end of the lease, created, or until when a limit is closed: what the type speaks of
  std::uint64_t at_ms = 0;
  /// of the run that ended, or for which a queue has starved
  std::uint64_t duration_ms = 0;
  std::uint64_t ttl_ms = 0;    ///< of an expired job; unknown where `job_type` is empty
  std::uint64_t limit_ms = 0;  ///< its timeout or its lease, of an attempt that passed it
  double progress = 0;         ///< 0..1
  /// what was reported with the progress, or since, while the job has it; data: JSON
  std::string progress_message, progress_data;
  /// of the limit that held the job back, let it go or dropped it, or that the job's report closed
  std::string limit_key;
  /// Of an event about a limit: which of its rules holds jobs back, "concurrency", "rate",
  /// "throttle", or "report" for a job's report; and how many jobs that rule allows, as it is set
  /// now. Nothing: a report closed it, or the rule was taken away since.
  std::string limit_strategy;
  std::optional<std::uint64_t> limit_allows;
  /// of workers; empty when it is about a queue or a job
  std::string pool;
  std::uint64_t active_jobs = 0, waiting_jobs = 0;  ///< of a pool or a queue
  std::string previous_strategy, new_strategy;      ///< of a pool
  std::uint64_t depth = 0, bound = 0;               ///< of the queue, in `unit`: backpressure
  std::string_view unit = "";                       ///< "jobs" or "bytes"
  /// how many refused jobs this event speaks for; pruned dead letters; jobs discarded with a queue;
  /// jobs of a request about many
  std::uint64_t count = 0;
  std::uint64_t done = 0;  ///< of a request about many jobs: to how many it was done
  bool atomic = false;     ///< such a request: to all or none
  /// of the failed attempt, while the job still has it
  std::optional<JobError> error;
  std::string cron_name;  ///< of an event about a cron; `at_ms` is then when it fires next
  /// why a cron enqueued no job: "overlap_skip", "queue_full", "segment_full", "duplicate" or
  /// "damaged" (a stranger wrote into it)
  std::string_view reason = "";
  std::uint64_t scheduled_at_ms = 0, run_count = 0;  ///< of a cron; 0: it was triggered
  /// of a cron, as long as there is one of that name
  std::string cron_expression, timezone;
  /// Of an event about a workflow; `queue` is then its first job's, `job_type` of the step that
  /// completed or by which it failed, `duration_ms` of the step or of the whole, from its first
  /// job's beginning.
  std::string workflow_id;
  /// of its root, as long as the segment keeps it; `workflow_type`: "chain", "group", "batch" or
  /// "workflow"
  std::string workflow_name, workflow_type, workflow_tenant;
  std::string step_id;  ///< the step's name, else the id of its job; its number once that is gone
  std::uint32_t total_steps = 0, steps_remaining = 0;  ///< its jobs; those that have not ended
  /// Of a registered worker: that has the job, or that the event is about. Then "worker.lost": it
  /// was ended for its silence of `duration_ms`, `count` jobs returned; "worker.stopped": it was
  /// registered for `duration_ms`, `reason` is "shutdown", "error"
  /// (its process died) or "silent" (it had not promised any sign of life); "worker.quiet" and
  /// "worker.resumed": it has `active_jobs`
  std::string worker_id;
  std::vector<std::string> worker_queues;  ///< of a worker that started, as long as it is there
  std::uint64_t worker_concurrency = 0;    ///< of a worker that started; 0: it did not say
  /// of a dead process that was repaired, and of its repairer; as each knew itself
  std::uint32_t pid = 0, repaired_by = 0;
  /// the dead of that repair, and the slots that were mended for all of them
  std::uint64_t repaired_at_once = 0, mended = 0;
};

struct EventOptions {
  /// begin with the events that the segment still keeps; else with those from now on
  bool from_start = false;
  /// Events younger than this are held back, so that all handles' events arrive in order. 0: none
  /// are held back, for a quiet segment.
  std::uint32_t settle_ms = 20;
  /// Instead: begin behind the event with this Event::id, also when another reader gave it out; and
  /// its Event::position there, so that lost() counts what is kept no more of those behind it. 0:
  /// not known. Of two handles' events in one millisecond either may come first while they are
  /// young.
  std::string after = {};
  std::uint64_t after_position = 0;
  /// Which are given out; what is empty lets all pass. Types as in Event::type, "job.*" means all
  /// that begin so. An event of which the segment does not know type or tenant any more has none.
  std::vector<std::string> types = {}, queues = {}, jobs = {}, job_types = {};
  std::string tenant = {};  ///< whose jobs and workflows
};

/// Every Event::type there is.
OJS_SHM_API std::vector<std::string_view> event_types();

/// INVALID, naming what is wrong: a type that no event has, or an `after` that is no Event::id. A
/// reader with such options gives out none, or all.
OJS_SHM_API Status check(const EventOptions& options);

/// Reads events while other handles tell new ones. A slow reader loses the oldest events, and
/// lost() says how many. Works on a read-only mapping. One thread at a time.
class OJS_SHM_API EventReader {
 public:
  EventReader(EventReader&&) noexcept;
  EventReader& operator=(EventReader&&) noexcept;
  ~EventReader();

  /// False when there is none now. Never blocks.
  bool next(Event& event);
  /// Whether the last next() that returned false held back events younger than `settle_ms`: a later
  /// call gives them out.
  bool holds_young() const;
  /// Events that were overwritten before they could be read, up to the last one given out. From
  /// behind an event without a known position it begins at 0.
  std::uint64_t lost() const;
  /// Event::position of the last one given out; 0: there was none.
  std::uint64_t position() const;
  /// Whether EventOptions::after was still there when the first next() looked. If not, events begin
  /// with the first that is kept and not older, and lost() is exact if the position was given.
  bool resumed() const;

 private:
  friend class Observer;
  struct Impl;
  explicit EventReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ojs_shm
