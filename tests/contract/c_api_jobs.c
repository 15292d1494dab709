// SPDX-License-Identifier: Apache-2.0
//
// The C ABI's jobs, from enqueue to their end. Included by c_api_test.c.

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

  // One over two queues: the job in the worker's comes out, and all ids are told.
  specs[1] = spec("elsewhere");
  specs[1].queue = "another";
  CHECK_OK(here.producer, ojs_shm_enqueue_batch(here.producer, specs + 1, 2, ids));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).id, ids + OJS_SHM_ID_SIZE));
  CHECK(ojs_shm_get(here.producer, ids, NULL, 0) > 0);
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
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
