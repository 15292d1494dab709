// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of the C ABI that only looks. Included by ojs_shm.h, whose conventions hold here too.

#include "ojs_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Observer ------------------------------------------------------------------------------------

// Works on every segment handle, also on one from ojs_shm_segment_observe(). What follows gives
// JSON.
OJS_SHM_API int ojs_shm_observer_open(const ojs_shm_segment* segment, ojs_shm_observer** observer);
// One look at everything that a monitor shows, in one walk: one JSON object, which
// docs/top_sample.schema.json describes (without its member `rates`).
OJS_SHM_API int64_t ojs_shm_census(ojs_shm_observer* observer, char* buffer, size_t size);
// JSON: one object with the segment's options, pools, processes and totals.
OJS_SHM_API int64_t ojs_shm_stats(ojs_shm_observer* observer, char* buffer, size_t size);
// JSON: an array of queues with settings, depths and totals; or one of them. Errors: NOT_FOUND.
OJS_SHM_API int64_t ojs_shm_queues(ojs_shm_observer* observer, char* buffer, size_t size);
OJS_SHM_API int64_t ojs_shm_queue(ojs_shm_observer* observer, const char* name, char* buffer,
                                  size_t size);
// JSON: one job. Errors: NOT_FOUND.
OJS_SHM_API int64_t ojs_shm_find(ojs_shm_observer* observer, const char* id, char* buffer,
                                 size_t size);
// JSON: an array of {"invariant", "text"}, empty when the segment is sound. docs/invariants.md has
// the numbers.
OJS_SHM_API int64_t ojs_shm_audit(ojs_shm_observer* observer, char* buffer, size_t size);
// What enqueue uses for jobs of this type without a priority of their own. Errors: NOT_FOUND when
// the type has none.
OJS_SHM_API int ojs_shm_default_priority(ojs_shm_observer* observer, const char* type,
                                         int64_t* priority);
// How long jobs waited to be handed out, and ran, ever: an array of {"queue", "priority",
// "from_enqueue", "from_available", "runs"}, the last three {"count", "sum_ms",
// "up_to_ms": {"1": n}}.
OJS_SHM_API int64_t ojs_shm_waits(ojs_shm_observer* observer, char* buffer, size_t size);
// The newest transitions of jobs of all handles, at most so many, oldest first: an array of
// {"time", "handle", "pid", "slot", "job", "queue", "from", "to"}.
OJS_SHM_API int64_t ojs_shm_recent(ojs_shm_observer* observer, uint64_t most, char* buffer,
                                   size_t size);
// "urgent" and the like, as a number of this segment's convention. Errors: INVALID, listing the
// names.
OJS_SHM_API int ojs_shm_priority_by_name(ojs_shm_observer* observer, const char* name,
                                         int64_t* priority);

// --- Events --------------------------------------------------------------------------------------

typedef struct ojs_shm_events ojs_shm_events;

enum {
  // begin with what the segment still keeps; else with what happens from now on
  OJS_SHM_EVENTS_FROM_START = 1,
  OJS_SHM_EVENTS_AT_ONCE =
      2  // else what happened in the last 20 ms waits, so that all handles' events come in order
};

// Works on every segment handle, also on one from ojs_shm_segment_observe(). docs/events.md has the
// types.
OJS_SHM_API int ojs_shm_events_open(const ojs_shm_segment* segment, uint32_t flags,
                                    ojs_shm_events** events);
// JSON: the next event. EMPTY when there is none now.
OJS_SHM_API int64_t ojs_shm_next_event(ojs_shm_events* events, char* buffer, size_t size);
// How many events were overwritten before this handle read them; ask after each OJS_SHM_E_EMPTY.
OJS_SHM_API int64_t ojs_shm_events_lost(ojs_shm_events* events);

typedef struct ojs_shm_event_options {
  size_t struct_size;
  const char* after;        // "id" of an event: begin behind it, also when another handle read it
  uint64_t after_position;  // its ojs_shm_event_position(); 0: not known
  // which are given out; a count of 0, and NULL, let all pass
  const char* const* types;  // "job.*" means all that begin so
  size_t type_count;
  const char* const* queues;
  size_t queue_count;
  const char* const* jobs;  // ids
  size_t job_count;
  const char* const* job_types;
  size_t job_type_count;
  const char* tenant;  // whose jobs and workflows
  uint32_t flags;      // OJS_SHM_EVENTS_
  uint32_t reserved;   // 0
} ojs_shm_event_options;

// The same, of chosen events. Errors: also INVALID (a type that no event has, or what is not an
// id).
OJS_SHM_API int ojs_shm_events_choose(const ojs_shm_segment* segment,
                                      const ojs_shm_event_options* options,
                                      ojs_shm_events** events);
// Of the event that was read last: its number among all that the segment told; 0: none was read.
OJS_SHM_API int64_t ojs_shm_event_position(ojs_shm_events* events);
// 1: `after` was still there when the first event was asked for. 0: events begin with the first
// that is kept and not older; ojs_shm_events_lost() counts what is missing if `after_position` was
// given.
OJS_SHM_API int ojs_shm_events_resumed(ojs_shm_events* events);

#ifdef __cplusplus
}
#endif
