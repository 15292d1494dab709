// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of the C ABI that works for many clients on one handle: each call names its job. Any
// process of the segment may end a job by its id. Included by ojs_shm.h, whose conventions hold
// here too.

#include "ojs_shm.h"
#include "ojs_shm_full.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ojs_shm_proxy ojs_shm_proxy;

enum {
  // Until ojs_shm_proxy_hand_over() the jobs belong to this process; if it ends before, they become
  // available at once, and the attempt is not counted. Without it they belong to their lease from
  // the start.
  OJS_SHM_FETCH_HELD = 1
};

typedef struct ojs_shm_fetch_request {
  size_t struct_size;
  const char* const* queues;  // tried from left to right; NULL: "default"; ignored with a pool
  size_t queue_count;
  const uint32_t*
      weights;  // one for each queue, 1 to 1,000: how often it has its turn; NULL: strict
  // whose queues and strategy hold; NULL: the pool in which the worker is registered, else
  // "default" if it exists, else `queues` hold
  const char* pool;
  const char* tenant;  // only this tenant's jobs, whatever stands before them; NULL: any
  const char* worker;  // its id; a worker told to take no more gets none; NULL: no worker is named
  uint64_t count;      // jobs at most; 0: 1
  uint32_t lease_ms;   // 0: the job's own, else the segment's default
  uint32_t flags;      // OJS_SHM_FETCH_
} ojs_shm_fetch_request;

// One thread at a time. Errors: NOMEM (no free handle), PERMISSION (the segment only observes),
// CLOSED.
OJS_SHM_API int ojs_shm_proxy_open(const ojs_shm_segment* segment, ojs_shm_proxy** proxy);

// JSON: the best available jobs, in order, as ojs_shm_list() tells them, each with the
// "fence" of its attempt; [] when there is none. Get a text that did not fit from
// ojs_shm_last_text(): the jobs are fetched already. `request` may be NULL. Errors: INVALID,
// NOT_FOUND (the pool), IN_USE (the worker is registered in another pool), NOMEM (no handle for the
// pool).
OJS_SHM_API int64_t ojs_shm_proxy_fetch(ojs_shm_proxy* proxy, const ojs_shm_fetch_request* request,
                                        char* buffer, size_t size);

// One descriptor, for event loops in which any number of requests wait. It becomes readable when
// something awaited may have happened, also when it had happened before the call. Read it, then
// check everything that is awaited: reading arms it again. It belongs to the proxy, and costs a
// thread and a second handle from the first of these calls on. Each of them returns it, >= 0.
// Errors: INVALID, NOMEM, CLOSED.

// Awaits jobs of these queues, and of the queues of these pools; then call ojs_shm_proxy_fetch().
// Another call replaces them. With both counts 0 it awaits no jobs.
OJS_SHM_API int ojs_shm_proxy_await(ojs_shm_proxy* proxy, const char* const* queues,
                                    size_t queue_count, const char* const* pools,
                                    size_t pool_count);
// The end of this job, besides those that are awaited already: ojs_shm_proxy_take_ended(). Errors:
// also NOT_FOUND (no job can have that id).
OJS_SHM_API int ojs_shm_proxy_await_end(ojs_shm_proxy* proxy, const char* id);
OJS_SHM_API int ojs_shm_proxy_forget_end(ojs_shm_proxy* proxy, const char* id);
// JSON: an array of the ids of those awaited jobs that have ended, or are not there any more. They
// are awaited no longer; a text that did not fit is had from ojs_shm_last_text().
OJS_SHM_API int64_t ojs_shm_proxy_take_ended(ojs_shm_proxy* proxy, char* buffer, size_t size);
// Events, some 30 ms after they were told, so that ojs_shm_next_event() gives them out; `on` 0: no
// more.
OJS_SHM_API int ojs_shm_proxy_await_events(ojs_shm_proxy* proxy, int on);
struct ojs_shm_waiting;  // ojs_shm_full.h
// ojs_shm_enqueue_begin(), and its end is awaited: ojs_shm_proxy_take_decided(), which names it by
// `tag`. The descriptor tells of it when it is decided, also when its time is over. Returns the
// descriptor.
OJS_SHM_API int ojs_shm_proxy_enqueue_begin(ojs_shm_proxy* proxy, const ojs_shm_job_spec* jobs,
                                            size_t count, int64_t timeout_ms, uint64_t tag,
                                            struct ojs_shm_waiting** waiting);
// The tags of those enqueues that are decided, in the order in which they were, and whose
// ojs_shm_enqueue_poll() has not said so yet; it does from now on. Each once. Returns how many;
// where there are more than `most` the descriptor stays readable.
OJS_SHM_API int64_t ojs_shm_proxy_take_decided(ojs_shm_proxy* proxy, uint64_t* tags, size_t most);

// `fence` is that of the attempt which is meant; 0: the present one. Errors of all that take an id:
// INVALID, NOT_FOUND, WRONG_STATE (not active; the error's subject is the state), LOST (another
// attempt runs).

// Of a job that was fetched HELD: its client has it, so it belongs to its lease now, whatever
// becomes of this process; the fence stays. LOST also when it was handed over before.
OJS_SHM_API int ojs_shm_proxy_hand_over(ojs_shm_proxy* proxy, const char* id, uint64_t fence);
// `result`: JSON or NULL. Errors: also TOO_LARGE, NOMEM (the job stays active).
OJS_SHM_API int ojs_shm_proxy_ack(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                                  const char* result, size_t result_size);
// `failure` and `outcome` as for ojs_shm_nack().
OJS_SHM_API int ojs_shm_proxy_nack(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                                   const ojs_shm_failure* failure, ojs_shm_nack_outcome* outcome);
OJS_SHM_API int ojs_shm_proxy_requeue(ojs_shm_proxy* proxy, const char* id, uint64_t fence);
// The lease's new end into `deadline_ms`, which may be NULL; `lease_ms` 0: its present length.
OJS_SHM_API int ojs_shm_proxy_heartbeat(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                                        uint32_t lease_ms, uint64_t* deadline_ms);
// 0..1. Renews the lease. A report behind the last one of its attempt changes nothing else.
OJS_SHM_API int ojs_shm_proxy_progress(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                                       double fraction);
// The same with texts, as ojs_shm_progress_texts() has them.
OJS_SHM_API int ojs_shm_proxy_progress_texts(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                                             double fraction, const char* message, const char* data,
                                             size_t data_size);
// As ojs_shm_checkpoint().
OJS_SHM_API int ojs_shm_proxy_checkpoint(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                                         const char* json, size_t json_size);

enum {
  OJS_SHM_REPORT_REGISTERS = 1,    // it begins anew: an earlier directive is over
  OJS_SHM_REPORT_NO_PLEDGE = 2,    // it does not promise signs of life, and loses no job by silence
  OJS_SHM_REPORT_CONCURRENCY = 4,  // `concurrency` counts
  OJS_SHM_REPORT_ACTIVE_JOBS = 8   // `active_jobs` counts
};

// A report about a worker; members that are NULL or 0 stay as they were.
typedef struct ojs_shm_worker_report {
  size_t struct_size;
  const char* id;             // 1 to 128 bytes
  const char* pool;           // the first one stays: a worker has one
  const char* const* queues;  // what it works off
  size_t queue_count;
  const char *hostname, *version;
  const char* labels;    // a JSON object
  const char* state;     // its own word: "running" or another, with which it takes no more jobs
  uint32_t concurrency;  // jobs that it has at most
  uint32_t active_jobs;  // that it has now
  uint32_t pid;
  uint32_t silence_ms;  // how long it may be silent, if that is longer than 30 s
  uint32_t flags;       // OJS_SHM_REPORT_
  uint32_t reserved;
} ojs_shm_worker_report;

// Registers a worker or updates its record, and counts as a sign of life. JSON: the record, as
// ojs_shm_registered_worker() tells it. Errors: INVALID, IN_USE (it has another pool),
// NOMEM, TIMEOUT.
OJS_SHM_API int64_t ojs_shm_proxy_report(ojs_shm_proxy* proxy, const ojs_shm_worker_report* report,
                                         char* buffer, size_t size);

#ifdef __cplusplus
}
#endif
