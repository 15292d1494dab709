// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pools of workers; part of ojs_shm.h, by the same conventions. docs/scheduling.md explains them.

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
OJS_SHM_API int64_t ojs_shm_scheduling(ojs_shm_observer* observer, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif
