// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of the C ABI that deals with many jobs at once. Included by ojs_shm.h, whose conventions
// hold here too.

#include "ojs_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  OJS_SHM_FILTER_HAS_STATE = 1,    // `state` counts
  OJS_SHM_FILTER_DEAD_LETTER = 2,  // only dead letters
  OJS_SHM_FILTER_WAITING = 4,      // only scheduled, available, pending and retryable jobs
  OJS_SHM_FILTER_HAS_PRIORITY = 8  // `priority` counts
};

typedef struct ojs_shm_job_filter {
  size_t struct_size;
  const char* queue;           // NULL: any
  const char* type;            // NULL: any
  uint64_t limit;              // 0: all
  uint32_t state;              // OJS_SHM_STATE_
  uint32_t flags;              // OJS_SHM_FILTER_
  const char* tenant;          // NULL: any
  int64_t priority;            // as stored
  uint64_t created_before_ms;  // Unix time; 0: any
  uint64_t ended_from_ms;      // when it was completed, cancelled or discarded, Unix time; 0: any
  uint64_t ended_before_ms;    // 0: any
  const char* error_type;      // type, or else code, of its last failure; NULL: any
} ojs_shm_job_filter;

// JSON: jobs; available ones in the order of fetching (with weights level by level), then the other
// jobs, queue by queue, by creation. `filter` may be NULL.
OJS_SHM_API int64_t ojs_shm_list(ojs_shm_observer* observer, const ojs_shm_job_filter* filter,
                                 char* buffer, size_t size);

enum {                          // what ojs_shm_page() sorts by, then by creation and id
  OJS_SHM_ORDER_CREATED = 0,    // when it was created
  OJS_SHM_ORDER_SCHEDULED = 1,  // when it is due
  OJS_SHM_ORDER_PRIORITY = 2
};
// JSON: {"jobs":[...],"total":N,"more":true or false}, a part of a sorted list that is picked
// without reading the rest: the filter's limit says how many (0: 50) behind the first `offset`.
// `falls`: not 0 for the newest, latest or highest number first. `filter` may be NULL.
OJS_SHM_API int64_t ojs_shm_page(ojs_shm_observer* observer, const ojs_shm_job_filter* filter,
                                 int order, int falls, uint64_t offset, char* buffer, size_t size);

// Jobs that differ only in args and priority, checked once. Never changes: any thread may use it
// with a producer of its own until ojs_shm_close().
typedef struct ojs_shm_prepared ojs_shm_prepared;
typedef struct ojs_shm_args {
  size_t struct_size;
  const char* args;  // a JSON array; NULL: []
  size_t args_size;  // 0: up to the NUL
  int64_t priority;  // only with OJS_SHM_JOB_HAS_PRIORITY; else the kind's
  uint32_t flags;    // OJS_SHM_JOB_HAS_PRIORITY
  uint32_t reserved;
} ojs_shm_args;

// Prepares jobs like `kind`, whose args are ignored. A kind with no more than type, queue,
// priority, retry, timeout_ms and lease_ms is checked whole, and its queue is made if it does not
// exist; of any other kind, queue and times are checked at each enqueue. Errors: INVALID (also for
// an id or a unique key, which one job has), NOMEM (no further queue), CLOSED.
OJS_SHM_API int ojs_shm_prepare(ojs_shm_producer* producer, const ojs_shm_job_spec* kind,
                                ojs_shm_prepared** prepared);
// As ojs_shm_enqueue and ojs_shm_enqueue_batch; `job` may be NULL, for args of []. Errors: as
// those.
OJS_SHM_API int ojs_shm_enqueue_prepared(ojs_shm_producer* producer, ojs_shm_prepared* prepared,
                                         const ojs_shm_args* job, char* id);
OJS_SHM_API int ojs_shm_enqueue_prepared_batch(ojs_shm_producer* producer,
                                               ojs_shm_prepared* prepared, const ojs_shm_args* jobs,
                                               size_t count, char* ids);

// discarded or cancelled -> available, as if it had never been tried. Errors: NOT_FOUND,
// WRONG_STATE, DUPLICATE (it is unique, and another job has its key).
OJS_SHM_API int ojs_shm_retry_job(ojs_shm_producer* producer, const char* id);

enum {                          // what ojs_shm_bulk() does to each job
  OJS_SHM_BULK_CANCEL = 0,      // as ojs_shm_cancel
  OJS_SHM_BULK_PROMOTE = 1,     // as ojs_shm_promote
  OJS_SHM_BULK_RETRY_DEAD = 2,  // as ojs_shm_dead_retry
  OJS_SHM_BULK_DROP_DEAD = 3,   // as ojs_shm_dead_drop
  OJS_SHM_BULK_DROP = 4,        // as ojs_shm_drop
  // as ojs_shm_retry_job; cancelled jobs only where the filter's state is cancelled
  OJS_SHM_BULK_RETRY = 5
};

typedef struct ojs_shm_bulk_report {
  size_t struct_size;
  uint64_t matched;  // jobs that the filter chose
  uint64_t done;
  uint64_t skipped;  // their state had changed, another has their unique key, or a process was in
                     // their middle
} ojs_shm_bulk_report;

// Does the same to every job that the filter chooses, one after the other. `filter` NULL: all jobs
// that it can be done to; `report` may be NULL, and is filled in. Errors: INVALID, NOT_FOUND (the
// filter's queue), CLOSED, NOMEM.
OJS_SHM_API int ojs_shm_bulk(ojs_shm_admin* admin, int action, const ojs_shm_job_filter* filter,
                             ojs_shm_bulk_report* report);

// Removes what is kept of a completed, cancelled or discarded job. Errors: NOT_FOUND, WRONG_STATE
// (it has not ended, or its workflow runs and may ask for its result).
OJS_SHM_API int ojs_shm_drop(ojs_shm_admin* admin, const char* id);

// ojs_shm_progress() with a text for people and JSON for programs, which replace the earlier ones;
// either may be NULL for none. Errors: also TOO_LARGE (nothing is changed, not even the lease),
// NOMEM (the fraction alone is kept).
OJS_SHM_API int ojs_shm_progress_texts(ojs_shm_worker* worker, ojs_shm_job* job, double fraction,
                                       const char* message, const char* data, size_t data_size);

// JSON that the next attempt finds in ojs_shm_last_checkpoint(), however this one ends; it replaces
// the earlier one. Renews the lease. Errors: INVALID (no JSON), LOST, TOO_LARGE, NOMEM (an earlier
// one of this attempt is kept).
OJS_SHM_API int ojs_shm_checkpoint(ojs_shm_worker* worker, ojs_shm_job* job, const char* json,
                                   size_t json_size);
// Writes what was kept last, in this attempt or an earlier one; "" when there is nothing.
OJS_SHM_API int64_t ojs_shm_last_checkpoint(const ojs_shm_job* job, char* buffer, size_t size);

// Maintenance of the segment: while it is on, no process gets a job from any queue, no scheduled
// job or retry becomes available, and no cron fires; enqueues go on, and active jobs may end.
// `reason` may be NULL, and has 256 bytes at most; ojs_shm_stats() tells both. Errors: INVALID,
// TIMEOUT.
OJS_SHM_API int ojs_shm_set_maintenance(ojs_shm_admin* admin, int on, const char* reason);
// The same with the time at which it is meant to end, Unix ms, 0: nothing is said. It is told, and
// ends nothing.
OJS_SHM_API int ojs_shm_set_maintenance_until(ojs_shm_admin* admin, int on, const char* reason,
                                              uint64_t estimated_end_ms);

// How long dead letters are kept (since the job was discarded; at first 180 days), and how many of
// the segment (the oldest go first; at first 10,000). 0: without limit, OJS_SHM_AS_IT_IS: as it is.
#define OJS_SHM_AS_IT_IS UINT64_MAX
OJS_SHM_API int ojs_shm_set_dead_retention(ojs_shm_admin* admin, uint64_t max_age_ms,
                                           uint64_t max_count);

enum {                              // what happens to a deleted queue's unfinished jobs
  OJS_SHM_DELETE_QUEUE_REJECT = 0,  // while it has any, the queue stays
  OJS_SHM_DELETE_QUEUE_DISCARD = 1  // they are discarded with the error type "queue_deleted"
};
// The queue loses its settings and is no longer listed, until a job or a setting makes it anew. How
// many jobs were discarded. Errors: NOT_FOUND, WRONG_STATE (unfinished jobs), TIMEOUT (more come).
OJS_SHM_API int64_t ojs_shm_delete_queue(ojs_shm_admin* admin, const char* name, int jobs);

// A unique job with "on_conflict": "ignore" yields the id of the job in its way.
// ojs_shm_last_deduplicated(): 1 when the job at that place of this producer's last enqueue or
// batch with a unique job was there already, else 0.
OJS_SHM_API int ojs_shm_last_deduplicated(const ojs_shm_producer* producer, size_t place);

#ifdef __cplusplus
}
#endif
