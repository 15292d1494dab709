// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pools of workers, and registered workers; part of ojs_shm.h, by the same conventions.
// docs/scheduling.md explains them.

#include <ojs_shm/ojs_shm.h>

#ifdef __cplusplus
extern "C" {
#endif

// Makes a pool of workers, or changes it to the JSON object (docs/c_api.md); effective at once. 1
// when it is new, else 0. Errors: INVALID (names the member), NOMEM; to remove none: NOT_FOUND.
OJS_SHM_API int ojs_shm_set_pool(ojs_shm_admin* admin, const char* pool, const char* json,
                                 size_t json_size);
OJS_SHM_API int ojs_shm_remove_pool(ojs_shm_admin* admin, const char* pool);
// An array of all pools of workers; or one of them (errors: NOT_FOUND); what each queue handed out
// in the last minute.
OJS_SHM_API int64_t ojs_shm_pools(ojs_shm_observer* observer, char* buffer, size_t size);
OJS_SHM_API int64_t ojs_shm_pool(ojs_shm_observer* observer, const char* name, char* buffer,
                                 size_t size);
// Registered workers: an array of all; or one of them (errors: NOT_FOUND).
OJS_SHM_API int64_t ojs_shm_registered_workers(ojs_shm_observer* observer, char* buffer,
                                               size_t size);
OJS_SHM_API int64_t ojs_shm_registered_worker(ojs_shm_observer* observer, const char* id,
                                              char* buffer, size_t size);
enum {
  OJS_SHM_DIRECTIVE_RUNNING = 0,
  OJS_SHM_DIRECTIVE_QUIET = 1,     // take no more jobs
  OJS_SHM_DIRECTIVE_TERMINATE = 2  // the same, and end when those in hand are done
};
// Directs the worker of that id. Errors: NOT_FOUND, INVALID.
OJS_SHM_API int ojs_shm_direct_worker(ojs_shm_admin* admin, const char* id, int directive);
// Forgets the worker; its jobs stay with their leases. Errors: NOT_FOUND.
OJS_SHM_API int ojs_shm_remove_worker(ojs_shm_admin* admin, const char* id);
// Of a handle with an id. A sign of life, as each fetch, heartbeat and progress is one; after 30 s
// without, its jobs go to other workers. Any thread. Returns OJS_SHM_DIRECTIVE_.
OJS_SHM_API int ojs_shm_worker_beat(ojs_shm_worker* worker);
// Of a handle with an id: what its worker does from now on, an OJS_SHM_DIRECTIVE_, as lists of
// workers say it. Errors: INVALID, IN_USE (it has another pool), TIMEOUT, NOMEM.
OJS_SHM_API int ojs_shm_worker_say(ojs_shm_worker* worker, int directive);
// From now on the handle fetches nothing (EMPTY, TIMEOUT), until the other one ends that: what
// SIGTSTP and SIGCONT are for. Any thread beside other calls, also a signal handler.
OJS_SHM_API int ojs_shm_worker_quiet(ojs_shm_worker* worker);
OJS_SHM_API int ojs_shm_worker_resume(ojs_shm_worker* worker);
OJS_SHM_API int64_t ojs_shm_scheduling(ojs_shm_observer* observer, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif
