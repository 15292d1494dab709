// SPDX-License-Identifier: Apache-2.0
//
// The C ABI's crons, workflows, unique jobs and results. Included by c_api_test.c.

static int crons(void) {
  room here;
  char id[37];
  uint64_t times[3];
  const char *nightly =
                 "{\"name\":\"nightly\",\"cron\":\"30 2 * * *\",\"timezone\":\"UTC\","
                 "\"type\":\"report.make\",\"options\":{\"queue\":\"default\"}}",
             *inside =
                 "{\"name\":\"nightly\",\"expression\":\"@daily\",\"overlap_policy\":\"allow\","
                 "\"job_template\":{\"type\":\"report.other\",\"args\":[1]}}",
             *wrong = "{\"name\":\"nightly\",\"cron\":\"61 * * * *\",\"type\":\"a\"}";
  CHECK(open_room(&here, "crons", NULL));
  CHECK(ojs_shm_set_cron(here.admin, nightly, strlen(nightly)) == 1);
  CHECK_OK(here.admin, ojs_shm_trigger_cron(here.admin, "nightly", id));
  CHECK(ojs_shm_trigger_cron(here.admin, "nightly", id) == OJS_SHM_E_WRONG_STATE);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(same(fields_of(here.job).id, id));
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
  CHECK(ojs_shm_set_cron(here.admin, inside, 0) == 0);
  CHECK_OK(here.observer, ojs_shm_cron(here.observer, "nightly", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"run_count\":1") != NULL);
  CHECK(strstr(here.text, "\"job_template\":{\"type\":\"report.other\"") != NULL);
  CHECK_OK(here.admin, ojs_shm_enable_cron(here.admin, "nightly", 0));
  CHECK_OK(here.observer, ojs_shm_crons(here.observer, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"next_run_at\":null") != NULL);
  CHECK(ojs_shm_set_cron(here.admin, wrong, 0) == OJS_SHM_E_INVALID);
  CHECK_OK(here.admin, ojs_shm_remove_cron(here.admin, "nightly"));
  CHECK(ojs_shm_remove_cron(here.admin, "nightly") == OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_cron(here.observer, "nightly", here.text, sizeof here.text) == OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_cron_times("@hourly", NULL, 1767571200000U, times, 3) == 3);
  CHECK(times[0] == 1767574800000U && times[2] == 1767582000000U);
  CHECK(ojs_shm_cron_times("@hourly", "EST", 0, times, 3) == OJS_SHM_E_INVALID);
  return close_room(&here, "crons");
}

static int workflows(void) {
  room here;
  char id[37];
  const char *chain =
                 "{\"type\":\"chain\",\"steps\":[{\"type\":\"a\",\"args\":[]},{\"type\":\"b\","
                 "\"args\":[]}]}",
             *empty = "{\"type\":\"chain\",\"steps\":[]}";
  CHECK(open_room(&here, "workflows", NULL));
  CHECK(ojs_shm_create_workflow(here.producer, empty, 0, id) == OJS_SHM_E_INVALID);
  CHECK_OK(here.producer, ojs_shm_create_workflow(here.producer, chain, strlen(chain), id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.job, ojs_shm_workflow_id(here.job, here.text, sizeof here.text));
  CHECK(strcmp(here.text, id) == 0);
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, "{\"n\":1}", 0));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(ojs_shm_last_checkpoint(here.job, here.text, sizeof here.text) == 0);
  CHECK_OK(here.worker, ojs_shm_checkpoint(here.worker, here.job, " [7]\n", 0));
  CHECK(ojs_shm_checkpoint(here.worker, here.job, "[", 1) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_last_checkpoint(here.job, here.text, sizeof here.text) == 3);
  CHECK(strcmp(here.text, "[7]") == 0);
  CHECK_OK(here.job, ojs_shm_parent_results(here.job, here.text, sizeof here.text));
  CHECK(strcmp(here.text, "[{\"n\":1}]") == 0);
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
  CHECK_OK(here.observer, ojs_shm_workflow(here.observer, id, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"state\":\"completed\"") != NULL);
  CHECK(ojs_shm_cancel_workflow(here.producer, id) == OJS_SHM_E_WRONG_STATE);
  CHECK(ojs_shm_workflow(here.observer, "none", here.text, sizeof here.text) ==
        OJS_SHM_E_NOT_FOUND);
  CHECK_OK(here.observer,
           ojs_shm_workflows(here.observer, "completed", here.text, sizeof here.text));
  CHECK(strstr(here.text, id) != NULL);
  CHECK(ojs_shm_workflows(here.observer, "odd", here.text, sizeof here.text) == OJS_SHM_E_INVALID);
  return close_room(&here, "workflows");
}

static int unique_jobs(void) {
  room here;
  ojs_shm_job_spec job = spec_at("once", 1);
  ojs_shm_error detail = {0};
  char id[OJS_SHM_ID_SIZE], other[OJS_SHM_ID_SIZE];
  CHECK(open_room(&here, "unique", NULL));
  job.unique = "{\"keys\":[\"type\"]} and more";
  job.unique_size = 17;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(ojs_shm_last_deduplicated(here.producer, 0) == 0);
  CHECK(ojs_shm_enqueue(here.producer, &job, other) == OJS_SHM_E_DUPLICATE);
  detail.struct_size = sizeof detail;
  CHECK_OK(here.producer, ojs_shm_last_error_detail(here.producer, &detail));
  CHECK(strcmp(detail.subject, id) == 0 && strcmp(detail.state, "available") == 0);
  job.unique = "{\"keys\":[\"type\"],\"on_conflict\":\"ignore\"}";
  job.unique_size = 0;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, other));
  CHECK(ojs_shm_last_deduplicated(here.producer, 0) == 1 && strcmp(id, other) == 0);
  job.unique = "{\"keys\":[\"argz\"]}";
  CHECK(ojs_shm_enqueue(here.producer, &job, other) == OJS_SHM_E_INVALID);
  return close_room(&here, "unique");
}

static int results_in_time(void) {
  room here;
  ojs_shm_job_spec job = spec("kept");
  ojs_shm_error detail = {0};
  ojs_shm_retry retry = {0};
  ojs_shm_failure failure = {0};
  ojs_shm_job_filter filter = {0};
  ojs_shm_bulk_report report = {0};
  char id[OJS_SHM_ID_SIZE];
  report.struct_size = sizeof report;
  CHECK(open_room(&here, "results", NULL));
  job.result_ttl_s = 3600;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.producer, ojs_shm_get(here.producer, id, here.text, sizeof here.text));
  CHECK(strstr(here.text, "result_ttl") == NULL);  // its flag is missing
  CHECK_OK(here.producer, ojs_shm_cancel(here.producer, id, NULL, 0));
  job.flags |= OJS_SHM_JOB_HAS_RESULT_TTL;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, "7", 0));
  CHECK_OK(here.producer, ojs_shm_get(here.producer, id, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"result\":7") != NULL &&
        strstr(here.text, "\"result_ttl\":3600") != NULL);
  CHECK(strstr(here.text, "\"result_expires_at\":\"2") != NULL);
  job.result_ttl_s = 0;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, "7", 0));
  CHECK_OK(here.producer, ojs_shm_wait(here.producer, id, -1, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"result\":") == NULL &&
        strstr(here.text, "\"result_pruned\":true") != NULL);
  job.result_ttl_s = -2;
  CHECK(ojs_shm_enqueue(here.producer, &job, id) == OJS_SHM_E_INVALID);
  detail.struct_size = sizeof detail;
  CHECK_OK(here.producer, ojs_shm_last_error_detail(here.producer, &detail));
  CHECK(strcmp(detail.subject, "result_ttl") == 0);
  CHECK(ojs_shm_get(here.producer, "01961234-5678-7abc-8def-0123456789ab", NULL, 0) ==
        OJS_SHM_E_NOT_FOUND);
  CHECK_OK(here.producer, ojs_shm_last_error_detail(here.producer, &detail));
  CHECK(strcmp(detail.state, "") == 0);

  job.result_ttl_s = -1;
  retry.struct_size = sizeof retry;
  retry.flags = OJS_SHM_RETRY_DEAD_LETTER;
  job.retry = &retry;
  failure.struct_size = sizeof failure;
  failure.flags = OJS_SHM_FAILURE_NOT_RETRYABLE;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.worker, ojs_shm_nack(here.worker, here.job, &failure, NULL));
  CHECK_OK(here.admin, ojs_shm_dead_drop(here.admin, id));
  CHECK(ojs_shm_get(here.producer, id, NULL, 0) == OJS_SHM_E_NOT_FOUND);
  CHECK_OK(here.producer, ojs_shm_last_error_detail(here.producer, &detail));
  CHECK(strcmp(detail.state, "gone") == 0 && strstr(detail.message, "is gone") != NULL);

  job.retry = NULL;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(ojs_shm_drop(here.admin, id) == OJS_SHM_E_WRONG_STATE);
  CHECK_OK(here.producer, ojs_shm_cancel(here.producer, id, NULL, 0));
  filter.struct_size = sizeof filter;
  filter.ended_from_ms = 1;
  filter.error_type = "none";
  CHECK_OK(here.admin, ojs_shm_bulk(here.admin, OJS_SHM_BULK_DROP, &filter, &report));
  CHECK(report.matched == 0);
  CHECK_OK(here.admin, ojs_shm_drop(here.admin, id));
  CHECK(ojs_shm_drop(here.admin, id) == OJS_SHM_E_NOT_FOUND);
  return close_room(&here, "results");
}
