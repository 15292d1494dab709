// SPDX-License-Identifier: Apache-2.0
//
// The C ABI's producers that do something about refusals. Included by c_api_test.c.
#include <ojs_shm/resilience.h>

static int set_bound(room* here, uint64_t jobs) {
  ojs_shm_queue_settings settings = {0};
  settings.struct_size = sizeof settings;
  settings.max_depth = jobs;
  settings.set = OJS_SHM_QUEUE_MAX_DEPTH;
  CHECK_OK(here->admin, ojs_shm_set_queue(here->admin, "default", &settings));
  return 1;
}

static int a_producer_for_which_nothing_was_asked(void) {
  room here;
  ojs_shm_resilience options = {0};
  ojs_shm_producer* one = NULL;
  ojs_shm_job_spec job = spec("kept");
  CHECK(open_room(&here, "plain", NULL));
  CHECK(set_bound(&here, 1));
  options.struct_size = sizeof options;
  CHECK(ojs_shm_producer_open_resilient(here.segment, NULL, NULL, &one) == OJS_SHM_E_INVALID &&
        one == NULL);
  CHECK_OK(NULL, ojs_shm_producer_open_resilient(here.segment, &options, NULL, &one));
  CHECK(ojs_shm_enqueue(one, &job, NULL) == OJS_SHM_OK);
  CHECK(ojs_shm_enqueue(one, &job, NULL) == OJS_SHM_E_QUEUE_FULL);
  CHECK(ojs_shm_flush(one, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_close(one) == OJS_SHM_OK);
  return close_room(&here, "plain");
}

static int a_producer_with_a_local_buffer(void) {
  room here;
  ojs_shm_resilience options = {0};
  ojs_shm_producer *one = NULL, *two = NULL;
  ojs_shm_job_spec job = spec("kept"), two_jobs[2];
  char ids[2][OJS_SHM_ID_SIZE], id[OJS_SHM_ID_SIZE];
  CHECK(open_room(&here, "buffer", NULL));
  CHECK(set_bound(&here, 1));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  options.struct_size = sizeof options;
  options.buffer_jobs = 3;
  CHECK_OK(NULL, ojs_shm_producer_open_resilient(here.segment, &options, NULL, &one));
  CHECK(ojs_shm_producer_open_resilient(here.segment, &options, one, &two) == OJS_SHM_E_INVALID &&
        two == NULL);
  CHECK_OK(NULL, ojs_shm_producer_open_resilient(here.segment, NULL, one, &two));
  CHECK(ojs_shm_enqueue(one, &job, id) == OJS_SHM_BUFFERED && strlen(id) == OJS_SHM_ID_SIZE - 1);
  two_jobs[0] = two_jobs[1] = spec("kept");
  CHECK(ojs_shm_enqueue_batch(two, two_jobs, 2, ids[0]) == OJS_SHM_BUFFERED &&
        strcmp(ids[0], ids[1]) != 0);
  CHECK(ojs_shm_enqueue(two, &job, NULL) == OJS_SHM_E_QUEUE_FULL); /* four are more than three */
  CHECK(strstr(ojs_shm_last_error(two), "local buffer") != NULL);
  CHECK(ojs_shm_flush(one, 0) == OJS_SHM_E_TIMEOUT && detail_of(one).depth == 3);
  CHECK(ojs_shm_get(one, id, NULL, 0) == OJS_SHM_E_NOT_FOUND);
  CHECK(set_bound(&here, 0));
  CHECK_OK(two, ojs_shm_flush(two, WAIT_MS));
  CHECK_OK(one, ojs_shm_get(one, id, here.text, sizeof here.text));
  CHECK_OK(one, ojs_shm_get(one, ids[1], here.text, sizeof here.text));

  CHECK(set_bound(&here, 1));
  job.priority = 1000;
  job.flags = OJS_SHM_JOB_HAS_PRIORITY;
  CHECK(ojs_shm_enqueue(one, &job, NULL) == OJS_SHM_E_INVALID); /* what is wrong is not kept */
  job.priority = 3;
  CHECK(ojs_shm_enqueue(one, &job, id) == OJS_SHM_BUFFERED);
  CHECK(ojs_shm_take_failed(one, here.text, sizeof here.text) == 2 && strcmp(here.text, "[]") == 0);
  CHECK_OK(two, ojs_shm_close_buffer(two, here.text, sizeof here.text));
  CHECK(strstr(here.text, id) != NULL && strstr(here.text, "\"priority\":3,") != NULL);
  CHECK(strstr(here.text, "\"code\":\"") != NULL &&
        strstr(here.text, "\"job\":{") == here.text + 2);
  CHECK(ojs_shm_close_buffer(one, here.text, sizeof here.text) == 2);
  CHECK(ojs_shm_enqueue(one, &job, id) == OJS_SHM_E_QUEUE_FULL);
  CHECK(ojs_shm_close(one) == OJS_SHM_OK && ojs_shm_close(two) == OJS_SHM_OK);
  return close_room(&here, "buffer");
}

static int a_producer_with_retries_and_a_breaker(void) {
  room here;
  ojs_shm_resilience options = {0};
  ojs_shm_producer* one = NULL;
  ojs_shm_job_spec job = spec("late");
  CHECK(open_room(&here, "retries", NULL));
  CHECK(set_bound(&here, 1));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  options.struct_size = sizeof options;
  options.retries = 9;
  options.breaker_refusals = 2;
  CHECK_OK(NULL, ojs_shm_producer_open_resilient(here.segment, &options, NULL, &one));
  CHECK(ojs_shm_enqueue(one, &job, NULL) ==
        OJS_SHM_E_QUEUE_FULL); /* refused twice, and the circuit is open */
  CHECK(strstr(ojs_shm_last_error(one), "2 refusals in a row") != NULL &&
        detail_of(one).bound == 1);
  CHECK_OK(here.observer, ojs_shm_queue(here.observer, "default", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"rejected_total\":2") != NULL);
  CHECK(set_bound(&here, 0));
  CHECK(ojs_shm_enqueue(one, &job, NULL) == OJS_SHM_E_QUEUE_FULL); /* nobody is asked */
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK(ojs_shm_close(one) == OJS_SHM_OK);
  return close_room(&here, "retries");
}

static int jobs_of_one_kind(void) {
  room here;
  ojs_shm_prepared *kind = NULL, *wrong = NULL;
  ojs_shm_producer* buffered = NULL;
  ojs_shm_resilience options = {0};
  ojs_shm_job_spec job = spec("kind");
  ojs_shm_args own[2] = {{0}};
  char ids[2][OJS_SHM_ID_SIZE], id[OJS_SHM_ID_SIZE];
  CHECK(open_room(&here, "kind", NULL));
  job.priority = 3;
  job.flags = OJS_SHM_JOB_HAS_PRIORITY;
  CHECK_OK(here.producer, ojs_shm_prepare(here.producer, &job, &kind));
  own[0].struct_size = own[1].struct_size = sizeof own[0];
  own[0].args = " [1] ";
  own[0].priority = 1;
  own[0].flags = OJS_SHM_JOB_HAS_PRIORITY;
  CHECK_OK(here.producer, ojs_shm_enqueue_prepared_batch(here.producer, kind, own, 2, ids[0]));
  CHECK_OK(here.producer, ojs_shm_enqueue_prepared(here.producer, kind, NULL, id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).id, ids[0]) && same(fields_of(here.job).args, "[1]"));
  CHECK(same(fields_of(here.job).type, "kind") && fields_of(here.job).priority == 1);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).id, ids[1]) && same(fields_of(here.job).args, "[]"));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).id, id) && fields_of(here.job).priority == 3);

  own[1].args = "[";
  CHECK(ojs_shm_enqueue_prepared_batch(here.producer, kind, own, 2, NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_enqueue_prepared(here.producer, wrong, NULL, NULL) == OJS_SHM_E_INVALID);
  own[0].priority = 1000;
  CHECK(ojs_shm_enqueue_prepared(here.producer, kind, own, NULL) == OJS_SHM_E_INVALID);
  own[0].priority = 1;
  job.id = id;
  CHECK(ojs_shm_prepare(here.producer, &job, &wrong) == OJS_SHM_E_INVALID && wrong == NULL);
  CHECK(ojs_shm_fetch(here.worker, here.job, 0) == OJS_SHM_E_EMPTY);

  CHECK(set_bound(&here, 1));
  options.struct_size = sizeof options;
  options.buffer_jobs = 3;
  CHECK_OK(NULL, ojs_shm_producer_open_resilient(here.segment, &options, NULL, &buffered));
  CHECK(ojs_shm_enqueue_prepared(buffered, kind, own, id) == OJS_SHM_OK);
  CHECK(ojs_shm_enqueue_prepared(buffered, kind, own, id) == OJS_SHM_BUFFERED);
  own[1].args = "[2]";
  CHECK(ojs_shm_enqueue_prepared_batch(buffered, kind, own, 2, ids[0]) == OJS_SHM_BUFFERED);
  CHECK(ojs_shm_enqueue_prepared(here.producer, kind, own, id) == OJS_SHM_E_QUEUE_FULL);
  CHECK_OK(NULL, ojs_shm_close_buffer(buffered, here.text, sizeof here.text));
  CHECK(strstr(here.text, "[2]") != NULL);
  CHECK(ojs_shm_close(buffered) == OJS_SHM_OK && ojs_shm_close(kind) == OJS_SHM_OK);
  return close_room(&here, "kind");
}
