// SPDX-License-Identifier: Apache-2.0
#pragma once

// Workflows; part of ojs_shm.h, by the same conventions. docs/workflows.md explains them.

#include <ojs_shm/ojs_shm.h>

#ifdef __cplusplus
extern "C" {
#endif

// Creates a workflow from its JSON, whole or not at all, and writes its id (OJS_SHM_ID_SIZE bytes).
// Errors: INVALID (the subject is the place, such as "$.steps[2].args"), QUEUE_FULL, NOMEM,
// TOO_LARGE, DUPLICATE (its id, or a unique key of its jobs, is taken), TIMEOUT.
OJS_SHM_API int ojs_shm_create_workflow(ojs_shm_producer* producer, const char* json,
                                        size_t json_size, char* id);
// Cancels all of its jobs that have not begun; active ones may end. Errors: NOT_FOUND, WRONG_STATE.
OJS_SHM_API int ojs_shm_cancel_workflow(ojs_shm_producer* producer, const char* id);
// One workflow as JSON, with the state of each part (errors: NOT_FOUND); an array of them, the
// newest first, 1,000 at most: of that state ("running", "completed", "failed", "cancelled"), or of
// any when it is NULL.
OJS_SHM_API int64_t ojs_shm_workflow(ojs_shm_observer* observer, const char* id, char* buffer,
                                     size_t size);
OJS_SHM_API int64_t ojs_shm_workflows(ojs_shm_observer* observer, const char* state, char* buffer,
                                      size_t size);
// Of a job that is held and belongs to a workflow: the results of the jobs that it comes after, a
// JSON array (of a job that failed {"error": {...}}), and the workflow's id. Empty for any other
// job.
OJS_SHM_API int64_t ojs_shm_parent_results(const ojs_shm_job* job, char* buffer, size_t size);
OJS_SHM_API int64_t ojs_shm_workflow_id(const ojs_shm_job* job, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif
