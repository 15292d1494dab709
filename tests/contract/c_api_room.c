// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the C ABI share, in C99 too: checks, and one segment with one handle of each
// kind. Included by c_api_test.c.
#include <ojs_shm/ojs_shm.h>

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 30000 };
static const char* directory;

// --- Checking: the first failed check ends its test ----------------------------------------------

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return 0;                                                       \
    }                                                                 \
  } while (0)

#define CHECK_OK(handle, call)                                                       \
  do {                                                                               \
    const long long code_ = (long long)(call);                                       \
    if (code_ < 0) {                                                                 \
      fprintf(stderr, "%s:%d: %s gave %lld: %s\n", __FILE__, __LINE__, #call, code_, \
              ojs_shm_last_error(handle));                                           \
      return 0;                                                                      \
    }                                                                                \
  } while (0)

// One segment with one handle of each kind. Included by c_api_test.c.
typedef struct room {
  ojs_shm_segment* segment;
  ojs_shm_producer* producer;
  ojs_shm_worker* worker;
  ojs_shm_admin* admin;
  ojs_shm_observer* observer;
  ojs_shm_job* job;
  char text[16384];
} room;

static int open_room(room* here, const char* name, const char* convention) {
  ojs_shm_segment_options options = {0};
  memset(here, 0, sizeof *here);
  options.struct_size = sizeof options;
  options.slots = 512;
  options.convention = convention;
  CHECK_OK(NULL, ojs_shm_segment_create(name, directory, &options, &here->segment));
  CHECK_OK(NULL, ojs_shm_producer_open(here->segment, &here->producer));
  CHECK_OK(NULL, ojs_shm_worker_open(here->segment, NULL, &here->worker));
  CHECK_OK(NULL, ojs_shm_admin_open(here->segment, &here->admin));
  CHECK_OK(NULL, ojs_shm_observer_open(here->segment, &here->observer));
  CHECK_OK(NULL, ojs_shm_job_new(&here->job));
  return 1;
}

// Every test ends here: whatever it did, the segment must be sound and its files removable.
static int close_room(room* here, const char* name) {
  CHECK_OK(here->observer, ojs_shm_audit(here->observer, here->text, sizeof here->text));
  CHECK(strcmp(here->text, "[]") == 0);
  CHECK(ojs_shm_close(here->job) == OJS_SHM_OK);
  CHECK(ojs_shm_close(here->observer) == OJS_SHM_OK);
  CHECK(ojs_shm_close(here->admin) == OJS_SHM_OK);
  CHECK(ojs_shm_close(here->worker) == OJS_SHM_OK);
  CHECK(ojs_shm_close(here->producer) == OJS_SHM_OK);
  CHECK(ojs_shm_close(here->segment) == OJS_SHM_OK);
  CHECK_OK(NULL, ojs_shm_segment_remove(name, directory, 1));
  return 1;
}

static ojs_shm_job_spec spec(const char* type) {
  ojs_shm_job_spec made = {0};
  made.struct_size = sizeof made;
  made.type = type;
  return made;
}

static ojs_shm_job_spec spec_at(const char* type, int64_t priority) {
  ojs_shm_job_spec made = spec(type);
  made.priority = priority;
  made.flags = OJS_SHM_JOB_HAS_PRIORITY;
  return made;
}

static int same(ojs_shm_text text, const char* wanted) {
  return text.size == strlen(wanted) && memcmp(text.data, wanted, text.size) == 0;
}

static ojs_shm_job_fields fields_of(const ojs_shm_job* job) {
  ojs_shm_job_fields fields = {0};
  fields.struct_size = sizeof fields;
  if (ojs_shm_job_read(job, &fields) != OJS_SHM_OK) memset(&fields, 0, sizeof fields);
  return fields;
}

static ojs_shm_error detail_of(const void* handle) {
  ojs_shm_error detail = {0};
  detail.struct_size = sizeof detail;
  if (ojs_shm_last_error_detail(handle, &detail) != OJS_SHM_OK)
    detail.message = detail.subject = detail.unit = "";
  return detail;
}

static int state_is(room* here, const char* id, const char* state) {
  char wanted[64];
  if (ojs_shm_get(here->producer, id, here->text, sizeof here->text) < 0) return 0;
  snprintf(wanted, sizeof wanted, "\"state\":\"%s\"", state);
  return strstr(here->text, wanted) != NULL;
}
