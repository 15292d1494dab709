// SPDX-License-Identifier: Apache-2.0
#pragma once

// Export and import; part of ojs_shm.h, by the same conventions. docs/export.md has the format.

#include <ojs_shm/ojs_shm.h>

#ifdef __cplusplus
extern "C" {
#endif

// What an import did; docs/export.md explains each number.
typedef struct ojs_shm_import_report {
  size_t struct_size;
  uint64_t jobs;      // put in, and there when the import ended
  uint64_t existing;  // whose id was here already: left as they are
  uint64_t refused;   // lines at fault
  uint64_t queues, pools, limits, default_priorities;
  uint64_t defaulted, clamped;  // of the jobs: without a priority; with one beyond this convention
  uint64_t displaced;           // finished jobs that were put in, and gave their room to later ones
  uint64_t crons;
} ojs_shm_import_report;

// Writes a segment's default ageing, queues, pools, limits, crons, default priorities and jobs to a
// descriptor, as lines of JSON; returns how many. Only looks, also on a handle from
// ojs_shm_segment_observe(). Blocks, or raises SIGPIPE, as write() to it does. Errors: INTERNAL (it
// cannot be written), TIMEOUT (a workflow does not stand still).
OJS_SHM_API int64_t ojs_shm_export(const ojs_shm_segment* segment, int fd);
// Puts an export into a segment, read from a descriptor up to its end. A line that is at fault is
// counted as refused, the rest go in. Errors: INVALID (lines were refused; the message is that of
// the first), OTHER_FORMAT (not an export, or of a later version), NOMEM, INTERNAL (it cannot be
// read), TIMEOUT (a stopped process is in its way), PERMISSION (the segment only observes).
// `report` may be NULL; it is filled on errors, too. What was put in stays, and the same export
// again puts in what is missing.
OJS_SHM_API int ojs_shm_import(const ojs_shm_segment* segment, int fd,
                               ojs_shm_import_report* report);

#ifdef __cplusplus
}
#endif
