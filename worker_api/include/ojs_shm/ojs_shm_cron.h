// SPDX-License-Identifier: Apache-2.0
#pragma once

// Crons; part of ojs_shm.h, by the same conventions. docs/cron.md explains them.

#include <ojs_shm/ojs_shm.h>

#ifdef __cplusplus
extern "C" {
#endif

// Makes a cron from its JSON, or replaces the cron of that name, whose counts stay:
//   {"name": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Berlin",
//    "overlap_policy": "skip", "enqueue", "allow" or "cancel_previous", "enabled": true,
//    "type": "report.make", "args": [], "options": {"queue": "reports"}}
// 1: it is new, 0: it was replaced. Errors: INVALID (the subject is the member), TOO_LARGE, NOMEM
// (also when there are 256 crons).
OJS_SHM_API int ojs_shm_set_cron(ojs_shm_admin* admin, const char* json, size_t json_size);
// Its jobs stay. Errors: NOT_FOUND.
OJS_SHM_API int ojs_shm_remove_cron(ojs_shm_admin* admin, const char* name);
// A disabled cron never fires; once enabled again, it fires at its next time. Errors: NOT_FOUND.
OJS_SHM_API int ojs_shm_enable_cron(ojs_shm_admin* admin, const char* name, int enabled);
// Enqueues its job now, leaves its next time, and writes the job's id (OJS_SHM_ID_SIZE bytes).
// Errors: NOT_FOUND, WRONG_STATE (its last job is not finished, and its overlap is skip),
// DUPLICATE, QUEUE_FULL, NOMEM.
OJS_SHM_API int ojs_shm_trigger_cron(ojs_shm_admin* admin, const char* name, char* id);
// JSON: one cron with its next time and its counts (errors: NOT_FOUND); an array of all, by name.
OJS_SHM_API int64_t ojs_shm_cron(ojs_shm_observer* observer, const char* name, char* buffer,
                                 size_t size);
OJS_SHM_API int64_t ojs_shm_crons(ojs_shm_observer* observer, char* buffer, size_t size);
// The first `count` times after `after_ms` (Unix time) into `times`; how many there are within the
// next years. Needs no segment. Errors: INVALID (the subject is "expression" or "timezone").
OJS_SHM_API int64_t ojs_shm_cron_times(const char* expression, const char* zone, uint64_t after_ms,
                                       uint64_t* times, size_t count);

// The name of the cron that enqueued a fetched job, while that cron exists; else an empty text.
OJS_SHM_API int64_t ojs_shm_cron_name(const ojs_shm_job* job, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif
