// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits on concurrency and rates; part of ojs_shm.h, by the same conventions. docs/scheduling.md
// explains them.

#include <ojs_shm/ojs_shm.h>

#ifdef __cplusplus
extern "C" {
#endif

// The limit of a key, in place of what jobs bring:
//   {"concurrency": 5, "rate": {"limit": 100, "period": "PT1M", "window": "fixed" or "sliding"},
//    "throttle": {"limit": 10, "period": "PT1S", "burst": 1}, "on_limit": "wait", "reschedule" or
//    "drop", "expires_at": "2026-02-13T13:00:00Z", when it is taken back; default never}
// The key stands on `queue:NAME`, `type:NAME`, `tenant:ID`, or on the jobs that bring it. Errors:
// INVALID (names the member), NOMEM.
OJS_SHM_API int ojs_shm_set_limit(ojs_shm_admin* admin, const char* key, const char* json,
                                  size_t json_size);
// No limit until a job brings one. Errors: NOT_FOUND.
OJS_SHM_API int ojs_shm_clear_limit(ojs_shm_admin* admin, const char* key);
// JSON: the keys that have or had a limit, each with `active_count`, `waiting_count` and its
// limits; and one of them. Errors: NOT_FOUND.
OJS_SHM_API int64_t ojs_shm_limits(ojs_shm_observer* observer, char* buffer, size_t size);
OJS_SHM_API int64_t ojs_shm_limit(ojs_shm_observer* observer, const char* key, char* buffer,
                                  size_t size);

// Whether programs that read envelopes for this segment refuse members that mean nothing; a new
// segment's do not.
OJS_SHM_API int ojs_shm_set_strict_envelopes(ojs_shm_admin* admin, int on);
// Whether jobs keep the priority they were enqueued with (reprioritize: WRONG_STATE), in place of
// what the convention says: on in `qo`, off elsewhere.
OJS_SHM_API int ojs_shm_set_immutable_priorities(ojs_shm_admin* admin, int on);

#ifdef __cplusplus
}
#endif
