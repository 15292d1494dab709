// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C ABI's producers that do something about full queues. The conventions of ojs_shm.h hold;
// docs/producers.md.

#include <ojs_shm/ojs_shm.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a producer does about QUEUE_FULL and NOMEM before it returns them; 0 in all members:
// nothing.
typedef struct ojs_shm_resilience {
  size_t struct_size;
  uint64_t buffer_jobs;   // bound of the local buffer; 0: none
  uint64_t buffer_bytes;  // its other bound; default 64 MiB
  // after the first refusal, after pauses: the recommended one, then doubled
  uint32_t retries;
  uint32_t max_delay_ms;  // where doubling ends; default 60,000
  // in a row, after which a queue is not asked for a while; 0: no circuit breaker
  uint32_t breaker_refusals;
  uint32_t breaker_cooldown_ms;  // how long; default 10,000
} ojs_shm_resilience;

// A producer that does so. It blocks for the pauses of its retries, which an open circuit ends. A
// job that is refused then goes into the local buffer, and a thread of the buffer enqueues it
// later. The buffer is in the memory of this process alone, so the job dies with the process. With
// `like` instead of options the producer shares circuits and buffer with that one, which another
// thread may be using; the buffer ends with the last of them, and what it holds is then lost.
// Errors: INVALID, NOMEM, PERMISSION (the segment only observes), CLOSED.
OJS_SHM_API int ojs_shm_producer_open_resilient(const ojs_shm_segment* segment,
                                                const ojs_shm_resilience* options,
                                                const ojs_shm_producer* like,
                                                ojs_shm_producer** producer);
// What the enqueue of such a producer returns when the job, or all of the batch, is in the buffer
// and not yet in the segment. The ids are those that the jobs will have.
enum { OJS_SHM_BUFFERED = 1 };
// Waits until the buffer has no job left to enqueue; timeout_ms < 0 waits without end. Errors:
// TIMEOUT (`depth` jobs are left), CLOSED, INVALID (no buffer).
OJS_SHM_API int ojs_shm_flush(ojs_shm_producer* producer, int64_t timeout_ms);
// Takes jobs that were refused for good out of the buffer: a JSON array of {"job": envelope,
// "error": {...}}.
OJS_SHM_API int64_t ojs_shm_take_failed(ojs_shm_producer* producer, char* buffer, size_t size);
// Ends the buffer and gives every job back that is not in the segment, as JSON like the above.
// Again: [].
OJS_SHM_API int64_t ojs_shm_close_buffer(ojs_shm_producer* producer, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif
