// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C ABI of ojs-shm, for C programs and for foreign-function interfaces. It translates the C++
// classes of this folder and decides nothing itself. docs/c_api.md shows it used by C, Node, Rust.
//
// Conventions, true for every entry unless its own comment says otherwise:
//
//  1. Handles are opaque and keep the segment mapped. ojs_shm_close() takes any, in any order.
//  2. Results. An `int` is OJS_SHM_OK or a negative OJS_SHM_E_ code; an `int64_t` is a length, a
//     count or such a code. ojs_shm_strerror() explains a code, ojs_shm_last_error() tells what
//     went wrong this time, and ojs_shm_last_error_detail() gives it to a program. Out-parameters
//     are written only on success and may be NULL where that is said.
//  3. Texts in are UTF-8 and end with a NUL. Those that may be long have a `_size` beside them: 0
//     means "up to the NUL", else exactly so many bytes and no NUL is needed (an empty text that
//     has none is passed as NULL). They need to live only during the call. Those that shall be JSON
//     are checked: one value in UTF-8 of the kind that is said, nested at most 100 deep. White
//     space around it is allowed and not kept. The value itself is stored as given.
//  4. Texts out go into the caller's buffer, as with snprintf: the entry returns the length L
//     without the NUL, writes at most `size` bytes and always ends them with a NUL if size > 0. L <
//     size: all is there. L >= size: it was cut, and ojs_shm_last_text() copies the same text again
//     into a larger buffer; nothing is done twice. (NULL, 0) only asks.
//  5. Structs begin with struct_size; set it to sizeof the struct and the rest to zero, which
//     always means the default, then what you want. An older caller's shorter struct is taken as if
//     its missing end were zero. A newer caller's longer one is taken when what this library does
//     not know (flags and `reserved` too) is zero, else the answer is OJS_SHM_E_STALE_VERSION.
//     Structs filled by the library are filled up to struct_size, which is left as it was.
//  6. Threads. A segment handle may be used by all threads at once, every other handle by one
//     thread at a time; make one for each thread. Only ojs_shm_interrupt(),
//     ojs_shm_cancel_requested() and what says so may run beside other calls.
//  7. Processes. After fork() the child's inherited handles, but for those that only read, answer
//     OJS_SHM_E_CLOSED; the child attaches for itself.
//  8. No callbacks, no exceptions, no longjmp, no signals, nothing printed, no locale. No call
//     waits for work or room unless it has a timeout, or its producer was opened with retries
//     (resilience.h). Any change that meets a stopped process gives up after a second or two
//     (TIMEOUT), an attach after 5 s (NOMEM). Times are milliseconds: points are counted from
//     1970-01-01T00:00Z, 0 meaning never or unset.
//  9. Wrong arguments (a NULL that is not allowed, a handle of another kind, a closed handle as far
//     as can be seen) are answered with OJS_SHM_E_INVALID and change nothing. Opening a handle that
//     does more than look: also NOMEM (none free), CLOSED, PERMISSION (the segment only observes).

#include <stddef.h>
#include <stdint.h>

#ifndef OJS_SHM_API
#define OJS_SHM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

// --- Versions ------------------------------------------------------------------------------------

// Counts up when an entry or a struct changes so that old callers break, not when it grows.
#define OJS_SHM_ABI_VERSION 1

// The library's version, such as "0.1.0". Static text.
OJS_SHM_API const char* ojs_shm_version(void);
// The segment format that this library reads and writes.
OJS_SHM_API uint32_t ojs_shm_format(void);
// Call it first, with OJS_SHM_ABI_VERSION: OJS_SHM_E_STALE_VERSION when they do not fit.
OJS_SHM_API int ojs_shm_check_abi(uint32_t abi_version);

// --- Codes and errors ----------------------------------------------------------------------------

enum {
  OJS_SHM_OK = 0,
  OJS_SHM_E_INTERNAL = -1,  // a bug of ours, or an operating-system call that should not fail
  OJS_SHM_E_INVALID = -2,   // an argument is wrong; `bound`: the allowed maximum if there is one
  OJS_SHM_E_CANNOT_ATTACH = -3,  // no such segment, or it is not a readable one of this library
  OJS_SHM_E_NOT_FOUND = -4,      // no job, queue or name like that
  OJS_SHM_E_WRONG_STATE = -5,    // the job's state forbids it; `subject` is the state
  OJS_SHM_E_QUEUE_FULL = -6,     // the queue's bound refused the job; see `depth`, `bound`, `unit`
  OJS_SHM_E_NOMEM = -7,  // a pool of the segment is exhausted, handles too; `subject` is the pool
  OJS_SHM_E_PERMISSION = -8,     // the operating system refused access to the segment
  OJS_SHM_E_IN_USE = -9,         // another process has that name, role or file
  OJS_SHM_E_OTHER_FORMAT = -10,  // another segment format, layout or convention
  OJS_SHM_E_DUPLICATE = -11,     // a job with that id exists, or one with the same unique key
  OJS_SHM_E_TOO_LARGE = -12,     // body, result or name longer than the segment's maximum
  OJS_SHM_E_EMPTY = -13,         // nothing to fetch, or the job handle holds none
  OJS_SHM_E_TIMEOUT = -14,       // the given time passed
  OJS_SHM_E_LOST = -15,          // the job is no longer held by the caller
  OJS_SHM_E_CLOSED = -16,        // interrupted, or the handle belongs to the parent of a fork
  OJS_SHM_E_NO_SPACE = -17,      // the file system cannot hold the segment
  OJS_SHM_E_STALE_VERSION = -18  // the library is older or newer than the caller's header
};

// What a code means, as a sentence. Static text, also for unknown codes.
OJS_SHM_API const char* ojs_shm_strerror(int code);
// The code's short stable name, such as "not_found". Static text.
OJS_SHM_API const char* ojs_shm_code_name(int code);

typedef struct ojs_shm_error {
  size_t struct_size;
  const char* message;  // for a person; never NULL
  const char* subject;  // the queue, pool, member or state it speaks of; "" when there is none
  const char* unit;     // of depth and bound: "jobs", "bytes", of NOMEM such as "blocks", or ""
  uint64_t depth;       // present use
  uint64_t bound;       // the limit
  int32_t code;         // OJS_SHM_OK when nothing has failed yet
  uint32_t reserved;
  const char* strategy;  // of QUEUE_FULL: the queue's, "reject", "block" or "drop_oldest"; else ""
  uint64_t retry_after_ms;  // of QUEUE_FULL: when there may be room, at least 1,000; else 0
  // of QUEUE_FULL: whose bound it is, "" that of jobs without a tenant; NULL: the queue's
  const char* tenant;
  // "", or of DUPLICATE by a unique key: that of job `subject`; of NOT_FOUND: "gone", it had it
  const char* state;
} ojs_shm_error;

// The last failure of a handle; a success leaves it. With NULL or a segment handle: the last
// failure in this thread of an entry that opens something or takes no handle. The texts stay until
// that handle, or thread, fails again or ends.
OJS_SHM_API const char* ojs_shm_last_error(const void* handle);
OJS_SHM_API int ojs_shm_last_error_detail(const void* handle, ojs_shm_error* error);
// The text of the last call of a handle that returned one (convention 4), NULL or a segment handle
// as above.
OJS_SHM_API int64_t ojs_shm_last_text(const void* handle, char* buffer, size_t size);

// Ends any handle. NULL is allowed. What an ended worker still held goes back to the front of its
// level; ending a job handle gives nothing back.
OJS_SHM_API int ojs_shm_close(void* handle);

// --- Segments ------------------------------------------------------------------------------------

// One attachment: the files DIR/ojs-shm.NAME and DIR/ojs-shm.NAME.lock. A NULL name always means
// the environment's OJS_SHM_NAME, else "default"; a NULL dir its OJS_SHM_DIR, else /dev/shm.
typedef struct ojs_shm_segment ojs_shm_segment;

// What can be chosen only when a segment is made; 0, NULL: a default, for 60 MiB and 102,400 jobs.
typedef struct ojs_shm_segment_options {
  size_t struct_size;
  const char* convention;  // of priorities: "ojs" (default), "ojs-core" or "qo"
  const char* group;       // of the files; default: the creator's
  uint64_t size_bytes;
  uint64_t retention_ms;  // of finished jobs; 0: kept until their room is needed
  uint32_t slots;         // jobs that it can hold, finished ones included
  uint32_t max_queues;
  uint32_t max_body_bytes;  // of one body, result or error
  uint32_t max_handles;     // producers, workers, admins and the supervisor at once
  uint32_t mode;            // permission bits, set whatever the umask is; default 0660
  uint32_t max_tenants;     // with jobs waiting at one level of one queue, summed up; default 1,024
  uint32_t max_waiting;     // enqueues that wait for room at once; default eight for each handle
  uint32_t reserved;
} ojs_shm_segment_options;

// Attaches as a living member. Errors: INVALID (the name), CANNOT_ATTACH, OTHER_FORMAT, PERMISSION,
// NOMEM, IN_USE (its lock file is gone, and a process lives in it).
OJS_SHM_API int ojs_shm_segment_attach(const char* name, const char* dir,
                                       ojs_shm_segment** segment);
// Makes a segment, whole or not at all, and attaches; `options` may be NULL. Errors: IN_USE,
// NO_SPACE, INVALID, PERMISSION, CANNOT_ATTACH (no such directory).
OJS_SHM_API int ojs_shm_segment_create(const char* name, const char* dir,
                                       const ojs_shm_segment_options* options,
                                       ojs_shm_segment** segment);
// Maps it read-only and joins nothing, for observers. Errors: as attach, but for NOMEM and IN_USE.
OJS_SHM_API int ojs_shm_segment_observe(const char* name, const char* dir,
                                        ojs_shm_segment** segment);
// The same of a copy of a segment's file, as its last trace left it. Errors: as observe.
OJS_SHM_API int ojs_shm_segment_examine(const char* path, ojs_shm_segment** segment);
// "ojs", "ojs-core" or "qo".
OJS_SHM_API int64_t ojs_shm_segment_convention(const ojs_shm_segment* segment, char* buffer,
                                               size_t size);
OJS_SHM_API int64_t ojs_shm_segment_path(const ojs_shm_segment* segment, char* buffer, size_t size);
OJS_SHM_API int64_t ojs_shm_segment_size_bytes(const ojs_shm_segment* segment);
// `force` != 0: with its jobs, under the living too. Errors: NOT_FOUND, IN_USE, WRONG_STATE (it has
// jobs or crons), OTHER_FORMAT, PERMISSION.
OJS_SHM_API int ojs_shm_segment_remove(const char* name, const char* dir, int force);
// The segments of a directory, as a JSON array. The text is kept for ojs_shm_last_text(NULL, ...).
OJS_SHM_API int64_t ojs_shm_segment_list(const char* dir, char* buffer, size_t size);

// --- Jobs to be enqueued -------------------------------------------------------------------------

#define OJS_SHM_ID_SIZE 37  // of a job id: 36 characters and the NUL

enum {
  OJS_SHM_STATE_SCHEDULED = 0,
  OJS_SHM_STATE_AVAILABLE = 1,
  OJS_SHM_STATE_PENDING = 2,
  OJS_SHM_STATE_ACTIVE = 3,
  OJS_SHM_STATE_COMPLETED = 4,
  OJS_SHM_STATE_RETRYABLE = 5,
  OJS_SHM_STATE_CANCELLED = 6,
  OJS_SHM_STATE_DISCARDED = 7
};

// "scheduled", "available", ...; "" for any other number. Static text.
OJS_SHM_API const char* ojs_shm_state_name(int state);

// How the pause before retry n grows from i by c.
enum {
  OJS_SHM_BACKOFF_EXPONENTIAL = 0,  // i * c^(n-1)
  OJS_SHM_BACKOFF_LINEAR = 1,       // i * n
  OJS_SHM_BACKOFF_CONSTANT = 2,     // i
  OJS_SHM_BACKOFF_POLYNOMIAL = 3    // i * n^c
};

enum {
  OJS_SHM_RETRY_NO_JITTER = 1,   // else the pause is multiplied by 0.5 to 1.5
  OJS_SHM_RETRY_DEAD_LETTER = 2  // exhausted: kept in the dead-letter list
};

typedef struct ojs_shm_retry {
  size_t struct_size;
  double coefficient;     // c, at least 1; default 2
  uint32_t max_attempts;  // 1: never again; default 3
  uint32_t initial_ms;    // i; default 1,000
  uint32_t max_ms;        // longest pause; default 300,000
  uint32_t backoff;       // OJS_SHM_BACKOFF_
  uint32_t flags;         // OJS_SHM_RETRY_
  uint32_t reserved;
} ojs_shm_retry;

enum {
  OJS_SHM_JOB_HAS_PRIORITY = 1,   // `priority` counts; else the type's, else the convention's
  OJS_SHM_JOB_PENDING = 2,        // waits for ojs_shm_activate()
  OJS_SHM_JOB_HAS_AGE_RATE = 4,   // `priority_age_rate` counts; else its queue's
  OJS_SHM_JOB_HAS_RESULT_TTL = 8  // `result_ttl_s` counts; else its result stays with the job
};

typedef struct ojs_shm_job_spec {
  size_t struct_size;
  const char* type;  // required: 1..255 bytes, ^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$
  const char* args;  // a JSON array; default []
  size_t args_size;
  const char* queue;  // 1..128 bytes, ^[a-z0-9][a-z0-9-.]*$; default "default"
  const char* id;     // a UUIDv7 in lower case; default: one is made
  const char* extra;  // a JSON object with meta, tags and members of your own; default none
  size_t extra_size;
  const ojs_shm_retry* retry;  // NULL: the defaults above
  int64_t priority;            // in the segment's convention; see OJS_SHM_JOB_HAS_PRIORITY
  uint64_t scheduled_at_ms;    // 0 or past: at once
  uint64_t expires_at_ms;
  uint32_t timeout_ms;         // longest run of one attempt; 0: no limit
  uint32_t lease_ms;           // 0: the segment's default
  uint32_t flags;              // OJS_SHM_JOB_
  uint32_t priority_age_rate;  // levels per interval, 0 to 255; see OJS_SHM_JOB_HAS_AGE_RATE
  const char* rate_limit;      // as for ojs_shm_set_limit(), and its "key"; default none
  size_t rate_limit_size;
  const char* tenant;  // whose job it is; default: no tenant's
  const char* unique;  // a policy in JSON (docs/unique.md); default none
  size_t unique_size;
  int64_t result_ttl_s;  // kept so many seconds after its end; 0: not stored, -1: without end
  // in seconds, 0: none; docs/c_api.md says what they do. Source: ojs-timeouts 5
  uint32_t enqueue_ttl_s, total_timeout_s, grace_period_s, reserved;
} ojs_shm_job_spec;

// --- Producer ------------------------------------------------------------------------------------

typedef struct ojs_shm_producer ojs_shm_producer;

OJS_SHM_API int ojs_shm_producer_open(const ojs_shm_segment* segment, ojs_shm_producer** producer);
// On return the job survives all processes. `id` (OJS_SHM_ID_SIZE bytes) may be NULL. Errors:
// INVALID, TOO_LARGE, QUEUE_FULL, NOMEM, DUPLICATE, CLOSED; TIMEOUT: an enqueue of its id is stuck,
// which may yet store it; or its unique key, or a change of a limit is: then nothing is stored.
OJS_SHM_API int ojs_shm_enqueue(ojs_shm_producer* producer, const ojs_shm_job_spec* job, char* id);
// All or none, in any queues, also when the process is killed half-way. `ids` (count *
// OJS_SHM_ID_SIZE bytes) may be NULL. All structs have the same struct_size, also their distance.
OJS_SHM_API int ojs_shm_enqueue_batch(ojs_shm_producer* producer, const ojs_shm_job_spec* jobs,
                                      size_t count, char* ids);
// Waits until it is finished; the job as JSON. timeout_ms < 0: for ever. Errors: NOT_FOUND,
// TIMEOUT, CANNOT_ATTACH (the segment's file is gone).
OJS_SHM_API int64_t ojs_shm_wait(ojs_shm_producer* producer, const char* id, int64_t timeout_ms,
                                 char* buffer, size_t size);
// The job as JSON, as it stands now. Errors: NOT_FOUND.
OJS_SHM_API int64_t ojs_shm_get(ojs_shm_producer* producer, const char* id, char* buffer,
                                size_t size);
// Cancels the job and writes it as JSON. Errors: NOT_FOUND, WRONG_STATE (finished).
OJS_SHM_API int64_t ojs_shm_cancel(ojs_shm_producer* producer, const char* id, char* buffer,
                                   size_t size);
// Available and scheduled jobs only; `previous` may be NULL. Errors: INVALID (names the maximum),
// NOT_FOUND, WRONG_STATE (also where priorities are immutable), NOMEM.
OJS_SHM_API int ojs_shm_reprioritize(ojs_shm_producer* producer, const char* id, int64_t priority,
                                     int64_t* previous);
// pending -> available. Errors: NOT_FOUND, WRONG_STATE.
OJS_SHM_API int ojs_shm_activate(ojs_shm_producer* producer, const char* id);
// scheduled or retryable -> available now, before its time. Errors: NOT_FOUND, WRONG_STATE.
OJS_SHM_API int ojs_shm_promote(ojs_shm_producer* producer, const char* id);

// --- Jobs that were fetched ----------------------------------------------------------------------

// Room for one job, used again for the next.
typedef struct ojs_shm_job ojs_shm_job;

// Bytes inside the job handle, without a NUL, until the handle is fetched into again or closed.
typedef struct ojs_shm_text {
  const char* data;
  size_t size;
} ojs_shm_text;

typedef struct ojs_shm_job_fields {
  size_t struct_size;
  ojs_shm_text id;
  ojs_shm_text type;
  ojs_shm_text args;   // a JSON array
  ojs_shm_text extra;  // empty or a JSON object
  ojs_shm_text queue;
  int64_t priority;
  uint64_t fence;  // a fencing token: grows with each attempt of this job
  uint64_t created_at_ms;
  uint64_t enqueued_at_ms;  // when it became available
  uint64_t started_at_ms;
  uint64_t deadline_ms;  // end of the lease, or of timeout_ms if that is sooner
  uint32_t timeout_ms;
  uint32_t attempt;  // 1 for the first
  uint32_t max_attempts;
  uint32_t reserved;
} ojs_shm_job_fields;

OJS_SHM_API int ojs_shm_job_new(ojs_shm_job** job);
// Errors: EMPTY when nothing was fetched into the handle.
OJS_SHM_API int ojs_shm_job_read(const ojs_shm_job* job, ojs_shm_job_fields* fields);
// 1 once the job was cancelled or is no longer held here, else 0. One load; any thread, any time.
OJS_SHM_API int ojs_shm_cancel_requested(const ojs_shm_job* job);

// --- Worker --------------------------------------------------------------------------------------

typedef struct ojs_shm_worker ojs_shm_worker;
enum {
  OJS_SHM_WORKER_LEASE_OWNED = 1,  // its jobs survive this process's death until their lease ends
  OJS_SHM_WORKER_WEIGHTED = 2  // queues take turns by `weights`, and are not tried in their order
};

typedef struct ojs_shm_worker_options {
  size_t struct_size;
  const char* const* queues;  // default {"default"}
  size_t queue_count;
  uint32_t lease_ms;        // 0: the job's own, else the segment's default
  uint32_t spin_us;         // how long an empty fetch spins; 0: 10, or none with one processor
  uint32_t flags;           // OJS_SHM_WORKER_
  uint32_t concurrency;     // jobs that this handle has at once; 0: as many as it fetches
  const uint32_t* weights;  // one for each queue, 1 to 1,000; NULL: all alike
  const char* pool;         // served, in place of those above; NULL: `default`, if there is one
  const char* id;      // registers a worker (ojs_shm_pools.h); handles of one id are one worker
  const char* labels;  // of that worker: a JSON object; and the jobs of all its handles at once
  uint32_t total_concurrency, reserved;
} ojs_shm_worker_options;

enum { OJS_SHM_FAILURE_NOT_RETRYABLE = 1 };  // never again, unless `code` is RETRY

typedef struct ojs_shm_failure {
  size_t struct_size;
  // default "error"; DISCARD, FAIL, DEAD_LETTER, NON_RETRYABLE_ERROR, JOB_CANCELLED: the end
  const char* code;
  const char* message;
  const char* type;     // the class of the error; default: the code
  const char* details;  // JSON; default none
  size_t details_size;
  uint32_t flags;  // OJS_SHM_FAILURE_
  uint32_t reserved;
  uint64_t rate_limit_until_ms;  // no job of the same limit begins before, Unix time; default: open
} ojs_shm_failure;

typedef struct ojs_shm_nack_outcome {
  size_t struct_size;
  uint64_t next_attempt_at_ms;
  uint32_t retry_delay_ms;
  uint32_t state;  // OJS_SHM_STATE_RETRYABLE or OJS_SHM_STATE_DISCARDED
} ojs_shm_nack_outcome;

// `options` may be NULL. Errors: INVALID (a queue's name), NOT_FOUND (the pool), IN_USE (the worker
// has another pool), TIMEOUT.
OJS_SHM_API int ojs_shm_worker_open(const ojs_shm_segment* segment,
                                    const ojs_shm_worker_options* options, ojs_shm_worker** worker);
// The best available job, into `job`. timeout_ms 0: at once or EMPTY; > 0: TIMEOUT when it passed;
// < 0: waits without end. Errors: also CLOSED (after ojs_shm_interrupt too), NOT_FOUND (its pool
// was removed), CANNOT_ATTACH (the segment's file is gone).
OJS_SHM_API int ojs_shm_fetch(ojs_shm_worker* worker, ojs_shm_job* job, int64_t timeout_ms);
// Up to `count` best jobs in order, into jobs[0], jobs[1] ...: `count` handles of the caller's.
// Returns how many; 0 when the time passed with none. Errors: CLOSED, NOT_FOUND, CANNOT_ATTACH.
OJS_SHM_API int64_t ojs_shm_fetch_batch(ojs_shm_worker* worker, ojs_shm_job* const* jobs,
                                        size_t count, int64_t timeout_ms);
// Acks each of `count` jobs without a result; returns how many. lost[i] (`lost` may be NULL) is 1
// for a job that is no longer held, else 0. EMPTY: a handle holds no job; none was acked.
OJS_SHM_API int64_t ojs_shm_ack_batch(ojs_shm_worker* worker, ojs_shm_job* const* jobs,
                                      size_t count, unsigned char* lost);
// The next five accept a job of another worker of this process and segment. Errors: LOST, EMPTY.
// active -> completed. `result` is JSON or NULL. Errors: TOO_LARGE, NOMEM (the job stays active).
OJS_SHM_API int ojs_shm_ack(ojs_shm_worker* worker, ojs_shm_job* job, const char* result,
                            size_t result_size);
// active -> retryable or discarded, by the job's policy. `failure` and `outcome` may be NULL.
OJS_SHM_API int ojs_shm_nack(ojs_shm_worker* worker, ojs_shm_job* job,
                             const ojs_shm_failure* failure, ojs_shm_nack_outcome* outcome);
// active -> available at the front of its level; the attempt is not counted.
OJS_SHM_API int ojs_shm_requeue(ojs_shm_worker* worker, ojs_shm_job* job);
// The lease ends lease_ms from now (0: its present length). `deadline_ms`: the new end, or NULL.
OJS_SHM_API int ojs_shm_heartbeat(ojs_shm_worker* worker, ojs_shm_job* job, uint32_t lease_ms,
                                  uint64_t* deadline_ms);
// 0..1. Renews the lease. A fraction below the attempt's last one changes nothing else: no error.
// NOMEM: the fraction is kept, but not the checkpoint of an earlier attempt.
OJS_SHM_API int ojs_shm_progress(ojs_shm_worker* worker, ojs_shm_job* job, double fraction);
// A descriptor that is readable while a job may be waiting, for poll and epoll; it belongs to the
// worker. Read it or fetch with timeout 0 to arm it again. Returns the descriptor, >= 0.
OJS_SHM_API int ojs_shm_event_fd(ojs_shm_worker* worker);
// Fetches of this handle return CLOSED from now on. Any thread, also a signal handler.
OJS_SHM_API int ojs_shm_interrupt(ojs_shm_worker* worker);

// --- Admin ---------------------------------------------------------------------------------------

typedef struct ojs_shm_admin ojs_shm_admin;

typedef struct ojs_shm_queue_settings {
  size_t struct_size;
  uint64_t max_depth;        // jobs; 0: unbounded
  uint64_t max_size_bytes;   // stored bytes of the bodies; 0: unbounded
  uint32_t paused;           // != 0: it accepts jobs and gives none
  uint32_t set;              // OJS_SHM_QUEUE_, of ojs_shm_full.h
  double warning_threshold;  // 0 to 1; fuller than this, the queue warns
  uint32_t strategy;         // OJS_SHM_STRATEGY_, and
  uint32_t drop;             // OJS_SHM_DROP_, of ojs_shm_full.h
} ojs_shm_queue_settings;

OJS_SHM_API int ojs_shm_admin_open(const ojs_shm_segment* segment, ojs_shm_admin** admin);
// Makes the queue when it does not exist; effective at once. Errors: INVALID, NOMEM.
OJS_SHM_API int ojs_shm_set_queue(ojs_shm_admin* admin, const char* queue,
                                  const ojs_shm_queue_settings* settings);
// The settings of a queue as a JSON object (docs/c_api.md); what is left out stays as it is.
// `queue` NULL: only `aging`, for all queues that have none of their own, now and later. Errors:
// INVALID (names the member), NOMEM.
OJS_SHM_API int ojs_shm_configure_queue(ojs_shm_admin* admin, const char* queue, const char* json,
                                        size_t json_size);
// For jobs of this type that are enqueued without one; cleared: the convention's. Errors: INVALID
// (names the maximum), NOMEM.
OJS_SHM_API int ojs_shm_set_default_priority(ojs_shm_admin* admin, const char* type,
                                             int64_t priority);
OJS_SHM_API int ojs_shm_clear_default_priority(ojs_shm_admin* admin, const char* type);
// Whether every handle of the segment tells what it does from now on (ojs_shm_events_open).
OJS_SHM_API int ojs_shm_set_events(ojs_shm_admin* admin, int on);
// A dead letter back to available with attempt 0, or gone. ojs_shm_list() lists them. Errors:
// NOT_FOUND, WRONG_STATE; of a retry DUPLICATE (it is unique, and another job has its key).
OJS_SHM_API int ojs_shm_dead_retry(ojs_shm_admin* admin, const char* id);
OJS_SHM_API int ojs_shm_dead_drop(ojs_shm_admin* admin, const char* id);
// Repairs after every dead process right now; returns how many it found.
OJS_SHM_API int64_t ojs_shm_repair(ojs_shm_admin* admin);
// Looks at everything once and mends lost hints and leaked blocks; returns how many it mended.
OJS_SHM_API int64_t ojs_shm_mend(ojs_shm_admin* admin);

typedef struct ojs_shm_observer ojs_shm_observer;  // its entries: ojs_shm_observer.h
#ifdef __cplusplus
}
#endif
#include <ojs_shm/ojs_shm_cron.h>
#include <ojs_shm/ojs_shm_full.h>
#include <ojs_shm/ojs_shm_jobs.h>
#include <ojs_shm/ojs_shm_limits.h>
#include <ojs_shm/ojs_shm_observer.h>
#include <ojs_shm/ojs_shm_pools.h>
#include <ojs_shm/ojs_shm_proxy.h>
#include <ojs_shm/ojs_shm_transfer.h>
#include <ojs_shm/ojs_shm_workflows.h>
