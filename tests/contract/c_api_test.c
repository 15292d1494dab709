// SPDX-License-Identifier: Apache-2.0
//
// The C ABI from C99, every entry of it. Usage: c_api_test DIR, a directory for the segments.
// Prints "ok NAME" or "not ok NAME" for each test and exits 1 when one failed. c_api_c_test.cpp
// compiles it with -std=c99 -pedantic-errors.
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c_api_room.c"

// --- Tests ---------------------------------------------------------------------------------------

static int versions_and_codes(void) {
  int code;
  CHECK(strlen(ojs_shm_version()) >= 5 && ojs_shm_format() > 0);
  CHECK(ojs_shm_check_abi(OJS_SHM_ABI_VERSION) == OJS_SHM_OK);
  CHECK(ojs_shm_check_abi(OJS_SHM_ABI_VERSION + 1) == OJS_SHM_E_STALE_VERSION);
  CHECK(detail_of(NULL).code == OJS_SHM_E_STALE_VERSION &&
        detail_of(NULL).bound == OJS_SHM_ABI_VERSION);
  for (code = OJS_SHM_E_STALE_VERSION; code <= OJS_SHM_OK; ++code) {
    CHECK(strlen(ojs_shm_code_name(code)) >= 2 && strcmp(ojs_shm_code_name(code), "unknown") != 0);
    CHECK(strcmp(ojs_shm_strerror(code), ojs_shm_strerror(1)) != 0);
  }
  CHECK(strcmp(ojs_shm_code_name(OJS_SHM_E_NOT_FOUND), "not_found") == 0);
  CHECK(strcmp(ojs_shm_code_name(OJS_SHM_E_STALE_VERSION - 1), "unknown") == 0);
  CHECK(strcmp(ojs_shm_state_name(OJS_SHM_STATE_RETRYABLE), "retryable") == 0);
  CHECK(strcmp(ojs_shm_state_name(8), "") == 0 && strcmp(ojs_shm_state_name(-1), "") == 0);
  return 1;
}

static int a_job_from_enqueue_to_ack(void) {
  room here;
  char id[OJS_SHM_ID_SIZE], path[512];
  ojs_shm_job_fields fields;
  ojs_shm_job_spec job = spec_at("mail.send", 1);
  uint64_t deadline = 0;
  const char args[] = "[\"to\",42]trailing bytes that do not count";
  CHECK(open_room(&here, "whole", NULL));
  CHECK_OK(NULL, ojs_shm_segment_path(here.segment, path, sizeof path));
  CHECK(strstr(path, "/ojs-shm.whole") != NULL && access(path, R_OK | W_OK) == 0);
  CHECK(ojs_shm_segment_size_bytes(here.segment) > 0);

  job.args = args;
  job.args_size = 9;
  job.extra = "{\"tags\":[\"x\"]}";
  job.queue = "mails";
  job.timeout_ms = 60000;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(strlen(id) == OJS_SHM_ID_SIZE - 1 && state_is(&here, id, "available"));
  CHECK(ojs_shm_job_read(here.job, &fields) == OJS_SHM_E_EMPTY);
  CHECK(ojs_shm_fetch(here.worker, here.job, 0) ==
        OJS_SHM_E_EMPTY);  // this worker serves "default"

  {
    const char* queues[] = {"urgent", "mails"};
    ojs_shm_worker_options options = {0};
    options.struct_size = sizeof options;
    options.queues = queues;
    options.queue_count = 2;
    CHECK(ojs_shm_close(here.worker) == OJS_SHM_OK);
    CHECK_OK(NULL, ojs_shm_worker_open(here.segment, &options, &here.worker));
  }
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, WAIT_MS));
  fields = fields_of(here.job);
  CHECK(same(fields.id, id) && same(fields.type, "mail.send") && same(fields.args, "[\"to\",42]"));
  CHECK(same(fields.extra, "{\"tags\":[\"x\"]}") && same(fields.queue, "mails"));
  CHECK(fields.priority == 1 && fields.attempt == 1 && fields.max_attempts == 3 &&
        fields.fence > 0);
  CHECK(fields.timeout_ms == 60000 && fields.created_at_ms > 0 &&
        fields.enqueued_at_ms >= fields.created_at_ms);
  CHECK(fields.started_at_ms >= fields.enqueued_at_ms && fields.deadline_ms > fields.started_at_ms);
  CHECK(state_is(&here, id, "active") && ojs_shm_cancel_requested(here.job) == 0);
  CHECK_OK(here.worker, ojs_shm_progress(here.worker, here.job, 0.5));
  CHECK_OK(here.worker, ojs_shm_progress_texts(here.worker, here.job, 0.6, "more", "[6]", 0));
  CHECK_OK(here.worker, ojs_shm_progress_texts(here.worker, here.job, 0.1, "behind", NULL, 0));
  CHECK_OK(here.worker, ojs_shm_heartbeat(here.worker, here.job, 3600000, &deadline));
  CHECK(deadline > fields.started_at_ms);
  CHECK(ojs_shm_wait(here.producer, id, 0, NULL, 0) == OJS_SHM_E_TIMEOUT);
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, "{\"sent\":true}", 0));
  CHECK(ojs_shm_ack(here.worker, here.job, NULL, 0) == OJS_SHM_E_LOST);
  CHECK_OK(here.producer, ojs_shm_wait(here.producer, id, -1, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"state\":\"completed\"") != NULL &&
        strstr(here.text, "{\"sent\":true}") != NULL && strstr(here.text, "\"more\"") != NULL);
  return close_room(&here, "whole");
}

static int a_batch_comes_out_by_priority(void) {
  room here;
  ojs_shm_job_spec specs[3];
  ojs_shm_job* jobs[4];
  char ids[3 * OJS_SHM_ID_SIZE];
  unsigned char lost[4];
  int index;
  CHECK(open_room(&here, "batch", NULL));
  specs[0] = spec_at("low", 4);
  specs[1] = spec_at("high", 0);
  specs[2] = spec("normal");
  CHECK_OK(here.producer, ojs_shm_enqueue_batch(here.producer, specs, 3, ids));
  for (index = 0; index < 4; ++index) CHECK_OK(NULL, ojs_shm_job_new(&jobs[index]));
  CHECK(ojs_shm_fetch_batch(here.worker, jobs, 4, 0) == 3);
  CHECK(same(fields_of(jobs[0]).id, ids + OJS_SHM_ID_SIZE) &&
        same(fields_of(jobs[1]).type, "normal"));
  CHECK(same(fields_of(jobs[2]).id, ids) && fields_of(jobs[3]).struct_size == 0);
  CHECK(ojs_shm_fetch_batch(here.worker, jobs, 4, 1) == 0);

  // Nothing of a batch with one wrong job is stored.
  specs[1].type = "Not A Type";
  CHECK(ojs_shm_enqueue_batch(here.producer, specs, 3, ids) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_fetch(here.worker, here.job, 0) == OJS_SHM_E_EMPTY);
  for (index = 0; index < 3; ++index)
    CHECK_OK(here.worker, ojs_shm_requeue(here.worker, jobs[index]));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).type, "high") && fields_of(here.job).attempt == 1);

  CHECK_OK(here.worker, ojs_shm_requeue(here.worker, here.job));
  CHECK(ojs_shm_fetch_batch(here.worker, jobs, 3, 0) == 3);
  CHECK(ojs_shm_ack_batch(here.worker, jobs, 4, lost) == OJS_SHM_E_EMPTY);
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, jobs[1], NULL, 0));
  CHECK(ojs_shm_ack_batch(here.worker, jobs, 3, lost) == 2);
  CHECK(lost[0] == 0 && lost[1] == 1 && lost[2] == 0);
  CHECK(ojs_shm_ack_batch(here.worker, jobs, 3, NULL) == 0);
  CHECK(ojs_shm_ack_batch(here.worker, NULL, 0, NULL) == 0);
  CHECK(ojs_shm_ack_batch(here.worker, NULL, 1, NULL) == OJS_SHM_E_INVALID);
  for (index = 0; index < 4; ++index) CHECK(ojs_shm_close(jobs[index]) == OJS_SHM_OK);
  return close_room(&here, "batch");
}

static int failures_retries_and_dead_letters(void) {
  room here;
  char id[OJS_SHM_ID_SIZE];
  ojs_shm_retry retry = {0};
  ojs_shm_job_spec job = spec("fragile");
  ojs_shm_failure failure = {0};
  ojs_shm_nack_outcome outcome = {0};
  ojs_shm_job_filter dead = {0};
  CHECK(open_room(&here, "dead", NULL));
  retry.struct_size = sizeof retry;
  retry.max_attempts = 2;
  retry.initial_ms = 3600000;
  retry.max_ms = 7200000;
  retry.coefficient = 3;
  retry.backoff = OJS_SHM_BACKOFF_CONSTANT;
  retry.flags = OJS_SHM_RETRY_NO_JITTER | OJS_SHM_RETRY_DEAD_LETTER;
  failure.struct_size = sizeof failure;
  failure.code = "smtp";
  failure.message = "connection refused";
  failure.details = "{\"port\":25}";
  outcome.struct_size = sizeof outcome;
  dead.struct_size = sizeof dead;
  dead.flags = OJS_SHM_FILTER_DEAD_LETTER;
  job.retry = &retry;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.worker, ojs_shm_nack(here.worker, here.job, &failure, &outcome));
  CHECK(outcome.state == OJS_SHM_STATE_RETRYABLE && outcome.retry_delay_ms == 3600000);
  CHECK(outcome.next_attempt_at_ms > 0 && state_is(&here, id, "retryable"));
  CHECK(strstr(here.text, "connection refused") != NULL && strstr(here.text, "smtp") != NULL);

  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  failure.flags = OJS_SHM_FAILURE_NOT_RETRYABLE;
  CHECK_OK(here.worker, ojs_shm_nack(here.worker, here.job, &failure, &outcome));
  CHECK(outcome.state == OJS_SHM_STATE_DISCARDED && outcome.retry_delay_ms == 0);
  CHECK_OK(here.observer, ojs_shm_list(here.observer, &dead, here.text, sizeof here.text));
  CHECK(strstr(here.text, id) != NULL);

  CHECK_OK(here.admin, ojs_shm_dead_retry(here.admin, id));
  CHECK(ojs_shm_dead_retry(here.admin, id) < 0);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).id, id) && fields_of(here.job).attempt == 1);
  CHECK_OK(here.worker, ojs_shm_nack(here.worker, here.job, &failure, NULL));
  CHECK_OK(here.admin, ojs_shm_dead_drop(here.admin, id));
  CHECK(ojs_shm_get(here.producer, id, NULL, 0) == OJS_SHM_E_NOT_FOUND);
  return close_room(&here, "dead");
}

static int changes_of_a_waiting_job(void) {
  room here;
  char id[OJS_SHM_ID_SIZE];
  int64_t previous = -1;
  ojs_shm_job_spec job = spec_at("report", 3);
  CHECK(open_room(&here, "changes", NULL));
  job.flags |= OJS_SHM_JOB_PENDING;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(state_is(&here, id, "pending") &&
        ojs_shm_fetch(here.worker, here.job, 0) == OJS_SHM_E_EMPTY);
  CHECK_OK(here.producer, ojs_shm_activate(here.producer, id));
  CHECK(ojs_shm_activate(here.producer, id) == OJS_SHM_E_WRONG_STATE);
  CHECK(ojs_shm_promote(here.producer, id) == OJS_SHM_E_WRONG_STATE);
  CHECK(strcmp(detail_of(here.producer).subject, "available") == 0);
  CHECK_OK(here.producer, ojs_shm_reprioritize(here.producer, id, 1, &previous));
  CHECK(previous == 3 && ojs_shm_reprioritize(here.producer, id, -1, NULL) == OJS_SHM_E_INVALID);
  CHECK_OK(here.producer, ojs_shm_cancel(here.producer, id, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"state\":\"cancelled\"") != NULL);
  CHECK(ojs_shm_cancel(here.producer, id, NULL, 0) == OJS_SHM_E_WRONG_STATE);

  job.flags = 0;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.producer, ojs_shm_cancel(here.producer, id, NULL, 0));
  CHECK(ojs_shm_cancel_requested(here.job) == 1);
  return close_room(&here, "changes");
}

static int a_bound_and_a_pause(void) {
  room here;
  ojs_shm_error detail;
  ojs_shm_queue_settings settings = {0};
  ojs_shm_job_spec job = spec("work");
  CHECK(open_room(&here, "bound", NULL));
  settings.struct_size = sizeof settings;
  settings.max_depth = 2;
  settings.paused = 1;
  settings.set = OJS_SHM_QUEUE_MAX_DEPTH | OJS_SHM_QUEUE_PAUSED;
  CHECK_OK(here.admin, ojs_shm_set_queue(here.admin, "default", &settings));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK(ojs_shm_enqueue(here.producer, &job, NULL) == OJS_SHM_E_QUEUE_FULL);
  detail = detail_of(here.producer);
  CHECK(detail.code == OJS_SHM_E_QUEUE_FULL && detail.depth == 2 && detail.bound == 2);
  CHECK(strcmp(detail.unit, "jobs") == 0 && strcmp(detail.subject, "default") == 0);
  CHECK(strlen(detail.message) > 0 &&
        strcmp(detail.message, ojs_shm_last_error(here.producer)) == 0);
  CHECK(ojs_shm_fetch(here.worker, here.job, 0) == OJS_SHM_E_EMPTY);
  settings.paused = 0;
  settings.set = OJS_SHM_QUEUE_PAUSED;
  CHECK_OK(here.admin, ojs_shm_set_queue(here.admin, "default", &settings));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.observer, ojs_shm_queue(here.observer, "default", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"max_depth\":2") != NULL);
  CHECK(ojs_shm_queue(here.observer, "nowhere", NULL, 0) == OJS_SHM_E_NOT_FOUND);
  return close_room(&here, "bound");
}

static int a_full_segment_names_its_pool(void) {
  room here;
  int code = OJS_SHM_OK, stored = 0;
  ojs_shm_error detail;
  ojs_shm_job_spec job = spec("fill");
  CHECK(open_room(&here, "full", NULL));
  while (stored < 100000 && (code = ojs_shm_enqueue(here.producer, &job, NULL)) == OJS_SHM_OK)
    ++stored;
  CHECK(code == OJS_SHM_E_NOMEM && stored > 0);
  detail = detail_of(here.producer);
  CHECK(strcmp(detail.subject, "slots") == 0 && strcmp(detail.unit, "slots") == 0);
  CHECK(detail.bound == 512 && detail.depth == 512 &&
        strstr(detail.message, "--slots 1024 --size ") != NULL);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  return close_room(&here, "full");
}

// Brackets at both ends make no JSON, and JSON of another kind will not do; white space around it
// does no harm.
static int only_json_is_taken(void) {
  static const char* const arrays[] = {
      "[1]", " [1]", "[1]\n", "\t[ \"a\\u00e9\", -1.5e3, {\"b\":[]} ]\r\n", "[\"\xc3\xa9\"]"};
  static const char* const no_arrays[] = {"",           " ",          "[not json]", "[1,]",
                                          "[1]]",       "[1][2]",     "[01]",       "[\"",
                                          "[\"\xff\"]", "[\"\xc3\"]", "{}",         "\"[]\""};
  static const char* const no_objects[] = {
      " ", "[1]", "{bad", "{\"a\":}", "{\"a\":1,}", "{}{}", "{\"a\":\"\xff\"}", "7"};
  static const char* const no_values[] = {" ", "{not json", "nul", "1 2", "\"\xc0\x80\"", "'a'"};
  room here;
  size_t index;
  ojs_shm_job_spec job = spec("json");
  ojs_shm_failure failure = {0};
  failure.struct_size = sizeof failure;
  CHECK(open_room(&here, "json", NULL));
  for (index = 0; index < sizeof no_arrays / sizeof no_arrays[0]; ++index) {
    job.args = no_arrays[index];
    CHECK(ojs_shm_enqueue(here.producer, &job, NULL) == OJS_SHM_E_INVALID);
    CHECK(strcmp(detail_of(here.producer).subject, "job.args") == 0);
    CHECK(ojs_shm_enqueue_batch(here.producer, &job, 1, NULL) == OJS_SHM_E_INVALID);
  }
  job.args = "[1]]";
  job.args_size = 3;  // so many bytes and no more
  for (index = 0; index < sizeof no_objects / sizeof no_objects[0]; ++index) {
    job.extra = no_objects[index];
    CHECK(ojs_shm_enqueue(here.producer, &job, NULL) == OJS_SHM_E_INVALID);
    CHECK(strcmp(detail_of(here.producer).subject, "job.extra") == 0);
  }
  CHECK(ojs_shm_fetch(here.worker, here.job, 0) == OJS_SHM_E_EMPTY);
  job.extra = "\n{\"tags\":[\"x\"]} ";
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).args, "[1]") &&
        same(fields_of(here.job).extra, "{\"tags\":[\"x\"]}"));
  for (index = 0; index < sizeof no_values / sizeof no_values[0]; ++index) {
    failure.details = no_values[index];
    CHECK(ojs_shm_ack(here.worker, here.job, no_values[index], 0) == OJS_SHM_E_INVALID);
    CHECK(ojs_shm_nack(here.worker, here.job, &failure, NULL) == OJS_SHM_E_INVALID);
    CHECK(strcmp(detail_of(here.worker).subject, "failure.details") == 0);
  }
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, " \"done\"\n", 0));
  job = spec("json");
  for (index = 0; index < sizeof arrays / sizeof arrays[0]; ++index) {
    job.args = arrays[index];
    CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
    CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
    CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
  }
  return close_room(&here, "json");
}

static int texts_and_buffers(void) {
  room here;
  char id[OJS_SHM_ID_SIZE], small[8], again[16384];
  int64_t length;
  ojs_shm_job_spec job = spec("text");
  CHECK(open_room(&here, "texts", NULL));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  length = ojs_shm_get(here.producer, id, here.text, sizeof here.text);
  CHECK(length > 36 && (size_t)length == strlen(here.text));
  CHECK(ojs_shm_get(here.producer, id, small, sizeof small) == length);
  CHECK(strlen(small) == sizeof small - 1 && memcmp(small, here.text, sizeof small - 1) == 0);
  CHECK(ojs_shm_last_text(here.producer, again, sizeof again) == length &&
        strcmp(again, here.text) == 0);
  CHECK(ojs_shm_last_text(here.producer, NULL, 0) == length);
  CHECK(ojs_shm_get(here.producer, id, NULL, 5) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_find(here.observer, id, again, sizeof again) == length &&
        strcmp(again, here.text) == 0);
  CHECK(ojs_shm_segment_convention(here.segment, small, sizeof small) == 3 &&
        strcmp(small, "ojs") == 0);
  CHECK(ojs_shm_last_text(here.segment, small, sizeof small) == 3);
  CHECK(ojs_shm_cancel(here.producer, id, NULL, 0) > 0);
  return close_room(&here, "texts");
}

static int structs_of_other_versions(void) {
  room here;
  struct {
    ojs_shm_job_spec known;
    uint64_t added;
  } newer;
  ojs_shm_job_fields fields = {0};
  ojs_shm_error older = {0};
  ojs_shm_retry retry = {0};
  ojs_shm_job_spec job = spec("old");
  CHECK(open_room(&here, "structs", NULL));
  memset(&newer, 0, sizeof newer);
  newer.known = spec("new");
  newer.known.struct_size = sizeof newer;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &newer.known, NULL));
  newer.added = 1;
  CHECK(ojs_shm_enqueue(here.producer, &newer.known, NULL) == OJS_SHM_E_STALE_VERSION);
  newer.known.struct_size = sizeof newer.known;
  newer.known.flags = 0x80000000u;
  CHECK(ojs_shm_enqueue(here.producer, &newer.known, NULL) == OJS_SHM_E_STALE_VERSION);

  newer.known.flags = 0;
  retry.struct_size = sizeof retry;
  retry.reserved = 7;
  newer.known.retry = &retry;
  CHECK(ojs_shm_enqueue(here.producer, &newer.known, NULL) == OJS_SHM_E_STALE_VERSION);
  CHECK(ojs_shm_enqueue_batch(here.producer, &newer.known, 1, NULL) == OJS_SHM_E_STALE_VERSION);

  // An older caller knows no further than `type`; what stands behind is not read.
  job.struct_size = offsetof(ojs_shm_job_spec, args);
  job.args = (const char*)1;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  job.struct_size = 0;
  CHECK(ojs_shm_enqueue(here.producer, &job, NULL) == OJS_SHM_E_INVALID);
  job.struct_size = 1u << 20;
  CHECK(ojs_shm_enqueue(here.producer, &job, NULL) == OJS_SHM_E_INVALID);

  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  fields.struct_size = offsetof(ojs_shm_job_fields, args);
  fields.reserved = 7;
  CHECK_OK(here.job, ojs_shm_job_read(here.job, &fields));
  CHECK(same(fields.type, "new") && fields.args.data == NULL && fields.reserved == 7);
  older.struct_size = offsetof(ojs_shm_error, subject);
  CHECK_OK(here.producer, ojs_shm_last_error_detail(here.producer, &older));
  CHECK(older.message != NULL && older.subject == NULL);
  return close_room(&here, "structs");
}

static int wrong_arguments_change_nothing(void) {
  room here;
  ojs_shm_job_spec job = spec("never");
  ojs_shm_segment* none = NULL;
  void* handles[3];
  size_t index;
  CHECK(open_room(&here, "wrong", NULL));
  CHECK(ojs_shm_segment_attach("nobody", directory, NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_segment_attach("nobody", directory, &none) == OJS_SHM_E_CANNOT_ATTACH &&
        none == NULL);
  CHECK(ojs_shm_segment_attach("../x", directory, &none) == OJS_SHM_E_INVALID && none == NULL);
  CHECK(ojs_shm_segment_create("wrong", directory, NULL, &none) == OJS_SHM_E_IN_USE &&
        none == NULL);
  CHECK(ojs_shm_producer_open(NULL, &here.producer) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_producer_open((ojs_shm_segment*)here.job, &here.producer) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_enqueue(NULL, &job, NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_enqueue((ojs_shm_producer*)here.worker, &job, NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_enqueue(here.producer, NULL, NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_enqueue_batch(here.producer, NULL, 1, NULL) == OJS_SHM_E_INVALID);
  CHECK_OK(here.producer, ojs_shm_enqueue_batch(here.producer, NULL, 0, NULL));
  job.priority = 1000;
  job.flags = OJS_SHM_JOB_HAS_PRIORITY;
  CHECK(ojs_shm_enqueue(here.producer, &job, NULL) == OJS_SHM_E_INVALID &&
        detail_of(here.producer).bound > 0);
  job = spec(NULL);
  CHECK(ojs_shm_enqueue(here.producer, &job, NULL) == OJS_SHM_E_INVALID);
  CHECK(strcmp(detail_of(here.producer).subject, "job.type") == 0);
  CHECK(ojs_shm_get(here.producer, NULL, NULL, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_get(here.producer, "0192f000-0000-7000-8000-000000000000", NULL, 0) ==
        OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_fetch(here.worker, NULL, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_fetch_batch(here.worker, NULL, 1, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_ack(here.worker, here.job, NULL, 0) == OJS_SHM_E_EMPTY);
  CHECK(ojs_shm_interrupt(NULL) == OJS_SHM_E_INVALID &&
        ojs_shm_cancel_requested(NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_set_queue(here.admin, "default", NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_last_error_detail(NULL, NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_close(NULL) == OJS_SHM_OK);
  handles[0] = here.segment;
  handles[1] = here.producer;
  handles[2] = here.observer;
  for (index = 0; index < 3; ++index) {
    CHECK(ojs_shm_fetch((ojs_shm_worker*)handles[index], here.job, 0) == OJS_SHM_E_INVALID);
  }
  CHECK(ojs_shm_fetch(here.worker, here.job, 0) == OJS_SHM_E_EMPTY);
  return close_room(&here, "wrong");
}

static int an_observer_only_looks(void) {
  room here;
  ojs_shm_segment* watched = NULL;
  ojs_shm_observer* watcher = NULL;
  ojs_shm_producer* refused = NULL;
  ojs_shm_job_filter filter = {0};
  ojs_shm_job_spec job = spec("seen");
  char text[16384];
  CHECK(open_room(&here, "watched", NULL));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  char file[512];
  snprintf(file, sizeof file, "%s/ojs-shm.watched", directory);
  CHECK_OK(NULL, ojs_shm_segment_examine(file, &watched));
  CHECK(ojs_shm_close(watched) == OJS_SHM_OK);
  CHECK(ojs_shm_segment_examine("/nonexistent", &watched) == OJS_SHM_E_CANNOT_ATTACH);
  CHECK_OK(NULL, ojs_shm_segment_observe("watched", directory, &watched));
  CHECK_OK(NULL, ojs_shm_observer_open(watched, &watcher));
  CHECK(ojs_shm_producer_open(watched, &refused) < 0 && refused == NULL);
  CHECK_OK(watcher, ojs_shm_queues(watcher, text, sizeof text));
  CHECK(text[0] == '[' && strstr(text, "\"default\"") != NULL);
  CHECK_OK(watcher, ojs_shm_stats(watcher, text, sizeof text));
  CHECK(text[0] == '{' && strstr(text, "\"pools\"") != NULL);
  filter.struct_size = sizeof filter;
  filter.queue = "default";
  filter.type = "seen";
  filter.state = OJS_SHM_STATE_AVAILABLE;
  filter.flags = OJS_SHM_FILTER_HAS_STATE;
  filter.limit = 10;
  CHECK_OK(watcher, ojs_shm_list(watcher, &filter, text, sizeof text));
  CHECK(strstr(text, "\"seen\"") != NULL);
  filter.state = OJS_SHM_STATE_ACTIVE;
  CHECK(ojs_shm_list(watcher, &filter, text, sizeof text) == 2 && strcmp(text, "[]") == 0);
  CHECK_OK(NULL, ojs_shm_segment_list(directory, text, sizeof text));
  CHECK(strstr(text, "\"watched\"") != NULL);
  CHECK(ojs_shm_close(watched) == OJS_SHM_OK);
  CHECK_OK(watcher, ojs_shm_audit(watcher, text, sizeof text));
  CHECK(strcmp(text, "[]") == 0 && ojs_shm_close(watcher) == OJS_SHM_OK);
  return close_room(&here, "watched");
}

#include "c_api_resilience.c"
#include "c_api_settings.c"

static void* interrupt_worker(void* worker) {
  ojs_shm_interrupt((ojs_shm_worker*)worker);
  return NULL;
}

static int waiting_by_descriptor_and_being_woken(void) {
  room here;
  pthread_t other;
  struct pollfd ready = {0};
  ojs_shm_job_spec job = spec("ring");
  CHECK(open_room(&here, "waits", NULL));
  ready.fd = ojs_shm_event_fd(here.worker);
  ready.events = POLLIN;
  CHECK_OK(here.worker, ready.fd);
  while (ojs_shm_fetch(here.worker, here.job, 0) != OJS_SHM_E_EMPTY) continue;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK(poll(&ready, 1, WAIT_MS) == 1 && (ready.revents & POLLIN) != 0);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(ojs_shm_fetch(here.worker, here.job, 1) == OJS_SHM_E_TIMEOUT);
  CHECK(pthread_create(&other, NULL, interrupt_worker, here.worker) == 0);
  CHECK(ojs_shm_fetch(here.worker, here.job, -1) == OJS_SHM_E_CLOSED);
  CHECK(pthread_join(other, NULL) == 0);
  return close_room(&here, "waits");
}

// The child attaches for itself, fetches one job and either finishes it or is killed while it holds
// it.
static int child_of(const char* name, ojs_shm_producer* inherited, int finishes) {
  ojs_shm_segment* segment = NULL;
  ojs_shm_worker* worker = NULL;
  ojs_shm_job* job = NULL;
  ojs_shm_job_spec unused = spec("from.a.fork");
  if (ojs_shm_enqueue(inherited, &unused, NULL) != OJS_SHM_E_CLOSED) return 2;
  if (ojs_shm_segment_attach(name, directory, &segment) != OJS_SHM_OK) return 3;
  if (ojs_shm_worker_open(segment, NULL, &worker) != OJS_SHM_OK ||
      ojs_shm_job_new(&job) != OJS_SHM_OK)
    return 4;
  if (ojs_shm_fetch(worker, job, WAIT_MS) != OJS_SHM_OK) return 5;
  if (!finishes) raise(SIGKILL);
  if (ojs_shm_ack(worker, job, "\"from the child\"", 0) != OJS_SHM_OK) return 6;
  ojs_shm_close(job);
  ojs_shm_close(worker);
  ojs_shm_close(segment);
  return 0;
}

static int jobs_cross_processes_and_outlive_them(void) {
  room here;
  char id[OJS_SHM_ID_SIZE];
  int status = 0;
  pid_t child;
  ojs_shm_job_spec job = spec("cross");
  CHECK(open_room(&here, "cross", NULL));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  child = fork();
  if (child == 0) _exit(child_of("cross", here.producer, 0));
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
        WTERMSIG(status) == SIGKILL);
  CHECK_OK(here.admin, ojs_shm_repair(here.admin));
  CHECK(state_is(&here, id, "available"));
  child = fork();
  if (child == 0) _exit(child_of("cross", here.producer, 1));
  CHECK_OK(here.producer, ojs_shm_wait(here.producer, id, WAIT_MS, here.text, sizeof here.text));
  CHECK(strstr(here.text, "from the child") != NULL && strstr(here.text, "\"attempt\":2") != NULL);
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_OK(here.admin, ojs_shm_mend(here.admin));
  return close_room(&here, "cross");
}

#define TEST(name) \
  { #name, name }

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(void);
  } tests[] = {
      TEST(versions_and_codes),
      TEST(a_job_from_enqueue_to_ack),
      TEST(a_batch_comes_out_by_priority),
      TEST(queues_take_turns_by_weight),
      TEST(failures_retries_and_dead_letters),
      TEST(changes_of_a_waiting_job),
      TEST(a_bound_and_a_pause),
      TEST(a_full_queue_says_how_full_and_may_be_waited_for),
      TEST(a_full_segment_names_its_pool),
      TEST(the_order_within_a_queue),
      TEST(bounds_of_tenants),
      TEST(limits_of_keys),
      TEST(crons),
      TEST(unique_jobs),
      TEST(results_in_time),
      TEST(only_json_is_taken),
      TEST(texts_and_buffers),
      TEST(structs_of_other_versions),
      TEST(wrong_arguments_change_nothing),
      TEST(names_of_priorities),
      TEST(what_goes),
      TEST(a_producer_with_a_local_buffer),
      TEST(a_producer_with_retries_and_a_breaker),
      TEST(jobs_of_one_kind),
      TEST(an_observer_only_looks),
      TEST(pools_of_workers),
      TEST(registered_workers),
      TEST(by_ids),
      TEST(workflows),
      TEST(an_export_goes_into_another_segment),
      TEST(events_and_waits),
      TEST(waiting_by_descriptor_and_being_woken),
      TEST(jobs_cross_processes_and_outlive_them),
  };
  size_t index;
  int failed = 0;
  if (argc != 2) return fprintf(stderr, "usage: c_api_test DIR\n"), 2;
  directory = argv[1];
  for (index = 0; index < sizeof tests / sizeof tests[0]; ++index) {
    const int passed = tests[index].run();
    printf("%s %s\n", passed ? "ok" : "not ok", tests[index].name);
    fflush(stdout);
    failed += !passed;
  }
  return failed == 0 ? 0 : 1;
}
