// SPDX-License-Identifier: Apache-2.0
//
// The C ABI's work for many clients on one handle. Included by c_api_test.c.

static uint64_t fence_in(const char* jobs) {
  const char* at = strstr(jobs, "\"fence\":");
  return at == NULL ? 0 : strtoull(at + strlen("\"fence\":"), NULL, 10);
}

// Takes the one job that waits; its fence.
static uint64_t taken(ojs_shm_proxy* proxy, const ojs_shm_fetch_request* request, const char* id,
                      char* text, size_t size) {
  if (ojs_shm_proxy_fetch(proxy, request, text, size) < 0) return 0;
  return strstr(text, id) == NULL ? 0 : fence_in(text);
}

static int workers_of_clients(void) {
  const char* const queues[] = {"mail"};
  ojs_shm_fetch_request request = {0};
  ojs_shm_worker_report report = {0};
  ojs_shm_job_spec job = spec("for.clients");
  ojs_shm_proxy* proxy = NULL;
  room here;
  CHECK(open_room(&here, "reports", NULL));
  CHECK_OK(NULL, ojs_shm_proxy_open(here.segment, &proxy));
  report.struct_size = sizeof report;
  CHECK(ojs_shm_proxy_report(proxy, &report, here.text, sizeof here.text) == OJS_SHM_E_INVALID);
  report.id = "far-1";
  report.queues = queues;
  report.queue_count = 1;
  report.labels = "{\"zone\":\"b\"}";
  report.concurrency = 6;
  report.flags = OJS_SHM_REPORT_REGISTERS | OJS_SHM_REPORT_CONCURRENCY;
  CHECK_OK(proxy, ojs_shm_proxy_report(proxy, &report, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"concurrency\":6") != NULL &&
        strstr(here.text, "\"queues\":[\"mail\"]") != NULL &&
        strstr(here.text, "\"labels\":{\"zone\":\"b\"}") != NULL);
  // What is not told stays; an operator's word is heard.
  memset(&report, 0, sizeof report);
  report.struct_size = sizeof report;
  report.id = "far-1";
  CHECK_OK(here.admin, ojs_shm_direct_worker(here.admin, "far-1", OJS_SHM_DIRECTIVE_QUIET));
  CHECK_OK(proxy, ojs_shm_proxy_report(proxy, &report, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"concurrency\":6") != NULL &&
        strstr(here.text, "\"directive\":\"quiet\"") != NULL);
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  request.struct_size = sizeof request;
  request.worker = "far-1";
  CHECK(ojs_shm_proxy_fetch(proxy, &request, here.text, sizeof here.text) == 2);
  report.labels = "zone";
  CHECK(ojs_shm_proxy_report(proxy, &report, here.text, sizeof here.text) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_close(proxy) == OJS_SHM_OK);
  return close_room(&here, "reports");
}

static int enqueues_of_clients(void) {
  ojs_shm_queue_settings settings = {0};
  ojs_shm_job_spec job = spec("for.clients");
  ojs_shm_proxy* proxy = NULL;
  ojs_shm_waiting *first = NULL, *second = NULL, *third = NULL;
  ojs_shm_pressure pressure = {0};
  struct pollfd bell = {0};
  uint64_t tags[2] = {0}, count = 0;
  char id[OJS_SHM_ID_SIZE];
  int64_t decided = 0;
  room here;
  CHECK(open_room(&here, "line", NULL));
  CHECK_OK(NULL, ojs_shm_proxy_open(here.segment, &proxy));
  settings.struct_size = sizeof settings;
  settings.max_depth = 1;
  settings.strategy = OJS_SHM_STRATEGY_BLOCK;
  settings.set = OJS_SHM_QUEUE_MAX_DEPTH | OJS_SHM_QUEUE_STRATEGY;
  CHECK_OK(here.admin, ojs_shm_set_queue(here.admin, "default", &settings));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK(ojs_shm_proxy_enqueue_begin(proxy, &job, 1, 30000, 7, NULL) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_proxy_enqueue_begin(proxy, NULL, 1, 30000, 7, &first) == OJS_SHM_E_INVALID);
  bell.fd = ojs_shm_proxy_enqueue_begin(proxy, &job, 1, 30000, 7, &first);
  bell.events = POLLIN;
  CHECK_OK(proxy, bell.fd);
  CHECK(ojs_shm_proxy_enqueue_begin(proxy, &job, 1, 30000, 8, &second) == bell.fd);
  CHECK(ojs_shm_proxy_enqueue_begin(proxy, &job, 1, 20, 9, &third) == bell.fd);
  CHECK(ojs_shm_proxy_await(proxy, NULL, 0, NULL, 0) == bell.fd);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  // The first has room, and the time of the third is over.
  while (decided < 2) {
    int64_t more = 0;
    CHECK(poll(&bell, 1, WAIT_MS) == 1);
    CHECK(read(bell.fd, &count, sizeof count) == sizeof count);
    more = ojs_shm_proxy_take_decided(proxy, tags + decided, (size_t)(2 - decided));
    CHECK(more >= 0);
    decided += more;
  }
  CHECK((tags[0] == 7 && tags[1] == 9) || (tags[0] == 9 && tags[1] == 7));
  CHECK_OK(first, ojs_shm_enqueue_poll(first, id));
  CHECK(ojs_shm_enqueue_deduplicated(first, 0) == 0);
  pressure.struct_size = sizeof pressure;
  CHECK_OK(first, ojs_shm_enqueue_pressure(first, &pressure));
  CHECK(pressure.depth == 1 && pressure.bound == 1 && strcmp(pressure.unit, "jobs") == 0);
  CHECK(ojs_shm_enqueue_poll(second, id) == OJS_SHM_E_EMPTY);
  CHECK(ojs_shm_enqueue_poll(third, id) == OJS_SHM_E_QUEUE_FULL);
  CHECK(ojs_shm_proxy_take_decided(proxy, NULL, 1) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_proxy_take_decided(proxy, tags, 2) == 0);
  CHECK(ojs_shm_close(first) == OJS_SHM_OK);
  CHECK(ojs_shm_close(second) == OJS_SHM_OK);
  CHECK(ojs_shm_close(third) == OJS_SHM_OK);
  CHECK_OK(here.observer, ojs_shm_queue(here.observer, "default", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"waiting\":0") != NULL);
  CHECK(ojs_shm_close(proxy) == OJS_SHM_OK);
  return close_room(&here, "line");
}

static int by_ids(void) {
  const char* const queues[] = {"other", "default"};
  const uint32_t weights[] = {3, 1};
  ojs_shm_fetch_request request = {0};
  ojs_shm_nack_outcome outcome = {0};
  ojs_shm_failure failure = {0};
  ojs_shm_error error = {0};
  ojs_shm_job_spec job = spec("for.clients");
  ojs_shm_retry again = {0};
  ojs_shm_proxy *proxy = NULL, *other = NULL;
  char id[OJS_SHM_ID_SIZE], awaited[OJS_SHM_ID_SIZE], forgotten[OJS_SHM_ID_SIZE];
  struct pollfd waiting = {0};
  uint64_t fence, deadline = 0;
  room here;
  CHECK(open_room(&here, "clients", NULL));
  request.struct_size = sizeof request;
  outcome.struct_size = sizeof outcome;
  failure.struct_size = sizeof failure;
  error.struct_size = sizeof error;
  again.struct_size = sizeof again;
  again.initial_ms = 1;
  again.flags = OJS_SHM_RETRY_NO_JITTER;
  job.retry = &again;
  CHECK(ojs_shm_proxy_open(here.segment, NULL) == OJS_SHM_E_INVALID);
  CHECK_OK(NULL, ojs_shm_proxy_open(here.segment, &proxy));
  CHECK_OK(NULL, ojs_shm_proxy_open(here.segment, &other));
  CHECK(ojs_shm_proxy_fetch(proxy, NULL, here.text, sizeof here.text) == 2);
  CHECK(strcmp(here.text, "[]") == 0);

  // One that ends before it has handed the job over gives it back, the attempt not counted.
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  request.flags = OJS_SHM_FETCH_HELD;
  fence = taken(other, &request, id, here.text, sizeof here.text);
  CHECK(fence != 0);
  CHECK(ojs_shm_close(other) == OJS_SHM_OK);
  fence = taken(proxy, &request, id, here.text, sizeof here.text);
  CHECK(fence != 0 && strstr(here.text, "\"attempt\":1") != NULL);
  CHECK_OK(proxy, ojs_shm_proxy_hand_over(proxy, id, fence));
  CHECK(ojs_shm_proxy_hand_over(proxy, id, fence) == OJS_SHM_E_LOST);

  // It tells of jobs that come.
  waiting.fd = ojs_shm_proxy_await(proxy, queues, 1, NULL, 0);
  waiting.events = POLLIN;
  CHECK_OK(proxy, waiting.fd);
  job.queue = "other";
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK(poll(&waiting, 1, WAIT_MS) == 1);
  CHECK(ojs_shm_proxy_await(proxy, NULL, 0, NULL, 0) == waiting.fd);
  CHECK(ojs_shm_proxy_await(proxy, NULL, 1, NULL, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_proxy_await(proxy, NULL, 0, NULL, 1) == OJS_SHM_E_INVALID);
  request.queues = queues;
  request.queue_count = 1;
  CHECK(ojs_shm_proxy_fetch(proxy, &request, here.text, sizeof here.text) > 2);
  request.queue_count = 0;

  // And, by the same descriptor, of ends and of events.
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, forgotten));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, awaited));
  CHECK(ojs_shm_proxy_await_events(proxy, 1) == waiting.fd);
  CHECK(ojs_shm_proxy_await_end(proxy, forgotten) == waiting.fd);
  CHECK(ojs_shm_proxy_await_end(proxy, awaited) == waiting.fd);
  CHECK(ojs_shm_proxy_await_end(proxy, "not an id") == OJS_SHM_E_NOT_FOUND);
  CHECK_OK(proxy, ojs_shm_proxy_forget_end(proxy, forgotten));
  CHECK_OK(here.producer, ojs_shm_cancel(here.producer, forgotten, here.text, sizeof here.text));
  CHECK_OK(here.producer, ojs_shm_cancel(here.producer, awaited, here.text, sizeof here.text));
  do {
    uint64_t count = 0;
    CHECK(poll(&waiting, 1, WAIT_MS) == 1);
    CHECK(read(waiting.fd, &count, sizeof count) == sizeof count);
    CHECK_OK(proxy, ojs_shm_proxy_take_ended(proxy, here.text, sizeof here.text));
  } while (strcmp(here.text, "[]") == 0);
  CHECK(strstr(here.text, awaited) != NULL && strstr(here.text, forgotten) == NULL);
  CHECK(ojs_shm_proxy_await_events(proxy, 0) == waiting.fd);
  job.queue = NULL;

  // Another handle ends it, by its fence.
  CHECK_OK(NULL, ojs_shm_proxy_open(here.segment, &other));
  CHECK_OK(other, ojs_shm_proxy_heartbeat(other, id, fence, 60000, &deadline));
  CHECK(deadline != 0);
  CHECK_OK(other, ojs_shm_proxy_heartbeat(other, id, 0, 0, NULL));
  CHECK_OK(other, ojs_shm_proxy_progress(other, id, fence, 0.5));
  CHECK_OK(other, ojs_shm_proxy_progress_texts(other, id, fence, 0.6, "more", NULL, 0));
  CHECK(ojs_shm_proxy_progress(other, id, fence, 1.5) == OJS_SHM_E_INVALID);
  CHECK_OK(other, ojs_shm_proxy_checkpoint(other, id, fence, " {\"row\":7} ", 0));
  CHECK(ojs_shm_proxy_checkpoint(other, id, fence, "{", 1) == OJS_SHM_E_INVALID);
  CHECK_OK(other, ojs_shm_proxy_requeue(other, id, fence));
  CHECK(ojs_shm_proxy_ack(other, id, fence, NULL, 0) == OJS_SHM_E_WRONG_STATE);
  CHECK_OK(other, ojs_shm_last_error_detail(other, &error));
  CHECK(strcmp(error.subject, "available") == 0);
  request.flags = 0;
  CHECK(taken(proxy, &request, id, here.text, sizeof here.text) > fence);
  CHECK(ojs_shm_proxy_ack(other, id, fence, NULL, 0) == OJS_SHM_E_LOST);
  failure.message = "not now";
  CHECK_OK(other, ojs_shm_proxy_nack(other, id, 0, &failure, &outcome));
  CHECK(outcome.state == OJS_SHM_STATE_RETRYABLE && outcome.retry_delay_ms == 1);
  CHECK_OK(here.producer, ojs_shm_promote(here.producer, id));
  CHECK(taken(proxy, &request, id, here.text, sizeof here.text) != 0);
  CHECK(ojs_shm_proxy_ack(proxy, id, 0, "{", 1) == OJS_SHM_E_INVALID);
  CHECK_OK(proxy, ojs_shm_proxy_ack(proxy, id, 0, "[7]", 0));
  CHECK_OK(here.producer, ojs_shm_get(here.producer, id, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"result\":[7]") != NULL);
  CHECK(strstr(here.text, "\"last_checkpoint\":{\"row\":7}") != NULL);
  CHECK(ojs_shm_retry_job(here.producer, id) == OJS_SHM_E_WRONG_STATE);
  CHECK(ojs_shm_proxy_requeue(proxy, "018f0000-0000-7000-8000-000000000000", 0) ==
        OJS_SHM_E_NOT_FOUND);

  // Whose turn it is, and one tenant's jobs; a text that did not fit is not lost.
  job.queue = "other";
  job.tenant = "t1";
  job.extra = "{\"meta\":{\"tenant_id\":\"t1\"}}";
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  request.queues = queues;
  request.queue_count = 2;
  request.weights = weights;
  request.count = 8;
  request.tenant = "t2";
  CHECK(ojs_shm_proxy_fetch(proxy, &request, here.text, sizeof here.text) == 2);
  request.tenant = "t1";
  CHECK(ojs_shm_proxy_fetch(proxy, &request, here.text, 4) > 4);
  CHECK_OK(proxy, ojs_shm_last_text(proxy, here.text, sizeof here.text));
  CHECK(strstr(here.text, id) != NULL);
  CHECK_OK(proxy, ojs_shm_proxy_ack(proxy, id, fence_in(here.text), NULL, 0));
  request.flags = 2;
  CHECK(ojs_shm_proxy_fetch(proxy, &request, here.text, sizeof here.text) ==
        OJS_SHM_E_STALE_VERSION);
  request.flags = 0;
  request.pool = "none";
  CHECK(ojs_shm_proxy_fetch(proxy, &request, here.text, sizeof here.text) == OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_close(other) == OJS_SHM_OK);
  CHECK(ojs_shm_close(proxy) == OJS_SHM_OK);
  CHECK(ojs_shm_proxy_requeue(NULL, id, 0) == OJS_SHM_E_INVALID);
  return close_room(&here, "clients") && workers_of_clients() && enqueues_of_clients();
}
