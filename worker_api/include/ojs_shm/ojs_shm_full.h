// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of the C ABI that deals with the settings of queues and with full ones. Included by
// ojs_shm.h, whose conventions hold here too.

#include "ojs_shm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {  // which members of ojs_shm_queue_settings count
  OJS_SHM_QUEUE_MAX_DEPTH = 1,
  OJS_SHM_QUEUE_MAX_SIZE_BYTES = 2,
  OJS_SHM_QUEUE_PAUSED = 4,
  OJS_SHM_QUEUE_STRATEGY = 8,
  OJS_SHM_QUEUE_WARNING_THRESHOLD = 16,
  OJS_SHM_QUEUE_DROP = 32
};

enum {  // what happens to a job for which a bounded queue has no room
  OJS_SHM_STRATEGY_REJECT = 0,
  OJS_SHM_STRATEGY_BLOCK = 1,  // its producer may wait: ojs_shm_enqueue_within
  OJS_SHM_STRATEGY_DROP_OLDEST =
      2  // it goes in, and what has been available for the longest time is discarded
};

enum {  // which job that is
  OJS_SHM_DROP_OLDEST = 0,
  OJS_SHM_DROP_LOWEST_PRIORITY = 1  // the oldest of the lowest priority that there is
};

// Enqueues, one or all or none, and is ready to wait for room: in a full queue whose strategy is
// block for up to timeout_ms, at most an hour; no other queue is waited for. The first to wait is
// let in first; a batch is let in when there is room for all of it.
OJS_SHM_API int ojs_shm_enqueue_within(ojs_shm_producer* producer, const ojs_shm_job_spec* jobs,
                                       size_t count, int64_t timeout_ms, char* ids);
// The same without blocking: any number of enqueues may wait at once. The jobs are copied. Closing
// the handle gives up its place in line. One thread at a time may use a producer and what waits
// through it. For event loops ojs_shm_proxy_enqueue_begin() has a descriptor that tells when to
// poll.
typedef struct ojs_shm_waiting ojs_shm_waiting;
OJS_SHM_API int ojs_shm_enqueue_begin(ojs_shm_producer* producer, const ojs_shm_job_spec* jobs,
                                      size_t count, int64_t timeout_ms, ojs_shm_waiting** waiting);
// EMPTY while it waits, then what ojs_shm_enqueue_within would have answered; never blocks.
OJS_SHM_API int ojs_shm_enqueue_poll(ojs_shm_waiting* waiting, char* ids);
// Once it is decided, as ojs_shm_last_deduplicated().
OJS_SHM_API int ojs_shm_enqueue_deduplicated(const ojs_shm_waiting* waiting, size_t place);

typedef struct ojs_shm_pressure {
  size_t struct_size;
  uint64_t depth;    // of the queue, the last job included
  uint64_t bound;    // 0: it is not above its warning threshold, or has no bound
  double pressure;   // depth / bound, at most 1
  const char* unit;  // "jobs" or "bytes"
} ojs_shm_pressure;

// How full the queue of this producer's last enqueue is.
OJS_SHM_API int ojs_shm_last_pressure(const ojs_shm_producer* producer, ojs_shm_pressure* pressure);
// The same of an enqueue that has waited, once it is decided.
OJS_SHM_API int ojs_shm_enqueue_pressure(const ojs_shm_waiting* waiting,
                                         ojs_shm_pressure* pressure);

#ifdef __cplusplus
}
#endif
