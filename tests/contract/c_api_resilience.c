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

static int a_producer_with_a_local_buffer(void) {
  room here;
  ojs_shm_resilience options = {0};
  ojs_shm_producer *one = NULL, *two = NULL;
  ojs_shm_job_spec job = spec("kept"), two_jobs[2];
  char ids[2][OJS_SHM_ID_SIZE], id[OJS_SHM_ID_SIZE];
  CHECK(open_room(&here, "buffer", NULL));
  CHECK(set_bound(&here, 1));
  options.struct_size = sizeof options;
  CHECK(ojs_shm_producer_open_resilient(here.segment, NULL, NULL, &one) == OJS_SHM_E_INVALID &&
        one == NULL);
  CHECK_OK(NULL, ojs_shm_producer_open_resilient(here.segment, &options, NULL, &one));
  CHECK(ojs_shm_enqueue(one, &job, id) == OJS_SHM_OK);
  CHECK(ojs_shm_enqueue(one, &job, id) == OJS_SHM_E_QUEUE_FULL); /* nothing was asked for */
  CHECK(ojs_shm_flush(one, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_close(one) == OJS_SHM_OK);

  options.buffer_jobs = 3;
  one = NULL;
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
