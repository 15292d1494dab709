// SPDX-License-Identifier: Apache-2.0
//
// The C ABI's settings of queues, limits and pools. Included by c_api_test.c.

static int the_order_within_a_queue(void) {
  room here;
  const char *aging = "{\"aging\":{\"interval\":\"PT30S\"}}",
             *weights = "{\"level_weights\":{\"0\":1,\"low\":1}}";
  CHECK(open_room(&here, "order", NULL));
  CHECK_OK(here.admin, ojs_shm_configure_queue(here.admin, "other", weights, strlen(weights)));
  CHECK_OK(here.admin, ojs_shm_configure_queue(here.admin, "default", aging, 0));
  CHECK(ojs_shm_configure_queue(here.admin, "default", weights, 0) ==
        OJS_SHM_E_INVALID); /* it ages */
  CHECK(ojs_shm_configure_queue(here.admin, NULL, aging, 0) ==
        OJS_SHM_E_INVALID); /* `other` has weights */
  return close_room(&here, "order");
}

static int queues_take_turns_by_weight(void) {
  const char* const queues[] = {"critical", "default", "low"};
  const uint32_t weights[] = {5, 2, 1};
  int served[3] = {0, 0, 0}, index, turn;
  ojs_shm_worker_options options = {0};
  room here;
  CHECK(open_room(&here, "weights", NULL));
  for (index = 0; index < 24; ++index) {
    ojs_shm_job_spec job = spec("work");
    job.queue = queues[index % 3];
    CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  }
  options.struct_size = sizeof options;
  options.queues = queues;
  options.queue_count = 3;
  options.weights = weights;
  CHECK(ojs_shm_close(here.worker) == OJS_SHM_OK);
  // weights, but strict
  CHECK(ojs_shm_worker_open(here.segment, &options, &here.worker) == OJS_SHM_E_INVALID);
  options.flags = OJS_SHM_WORKER_WEIGHTED;
  CHECK_OK(NULL, ojs_shm_worker_open(here.segment, &options, &here.worker));
  for (turn = 0; turn < 8; ++turn) {
    CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
    for (index = 0; index < 3; ++index)
      served[index] += same(fields_of(here.job).queue, queues[index]);
    CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
  }
  CHECK(served[0] == 5 && served[1] == 2 && served[2] == 1);

  // A caller from before there were weights.
  options.struct_size = offsetof(ojs_shm_worker_options, weights);
  options.flags = 0;
  CHECK(ojs_shm_close(here.worker) == OJS_SHM_OK);
  CHECK_OK(NULL, ojs_shm_worker_open(here.segment, &options, &here.worker));
  for (turn = 0; turn < 3; ++turn) {
    CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
    CHECK(same(fields_of(here.job).queue, "critical"));
    CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
  }
  return close_room(&here, "weights");
}

static int bounds_of_tenants(void) {
  room here;
  ojs_shm_job_spec job = spec_at("bounded", 1);
  ojs_shm_error detail;
  char id[OJS_SHM_ID_SIZE];
  const char* bounds =
      "{\"backpressure\":{\"tenant_max_depth\":1,\"tenant_bounds\":{\"big\":{\"max_depth\":2}}}}";
  CHECK(open_room(&here, "tenants", NULL));
  CHECK_OK(here.admin, ojs_shm_configure_queue(here.admin, "default", bounds, strlen(bounds)));
  CHECK(ojs_shm_configure_queue(here.admin, NULL, bounds, 0) == OJS_SHM_E_INVALID);
  job.tenant = "acme";
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(ojs_shm_enqueue(here.producer, &job, id) == OJS_SHM_E_QUEUE_FULL);
  memset(&detail, 0, sizeof detail);
  detail.struct_size = sizeof detail;
  CHECK_OK(here.producer, ojs_shm_last_error_detail(here.producer, &detail));
  CHECK(detail.tenant != NULL && strcmp(detail.tenant, "acme") == 0 && detail.bound == 1);
  job.tenant = "big";
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(ojs_shm_configure_queue(here.admin, "default", "{\"backpressure\":{\"max_depth\":1}}", 0) ==
        OJS_SHM_OK);
  job.tenant = "other";
  CHECK(ojs_shm_enqueue(here.producer, &job, id) == OJS_SHM_E_QUEUE_FULL);
  CHECK_OK(here.producer, ojs_shm_last_error_detail(here.producer, &detail));
  CHECK(detail.tenant == NULL && detail.bound == 1);
  return close_room(&here, "tenants");
}

static int limits_of_keys(void) {
  room here;
  ojs_shm_failure failure = {0};
  ojs_shm_retry once = {0};
  ojs_shm_job_spec job = spec_at("paid", 1);
  char id[OJS_SHM_ID_SIZE];
  const char *one = "{\"concurrency\":1}", *none = "{\"concurrency\":0}";
  CHECK(open_room(&here, "limits", NULL));
  job.rate_limit = "{\"key\":\"payment-api\",\"concurrency\":5} and more";
  job.rate_limit_size = 37;
  job.tenant = "acme";
  once.struct_size = sizeof once;
  once.max_attempts = 1;
  job.retry = &once;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  job.retry = NULL;
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.observer, ojs_shm_limit(here.observer, "payment-api", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"concurrency\":{\"limit\":5,\"active\":0,\"available\":5}") != NULL);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  failure.struct_size = sizeof failure;
  failure.rate_limit_until_ms = 4070908800000; /* 2099 */
  CHECK_OK(here.worker, ojs_shm_nack(here.worker, here.job, &failure, NULL));
  CHECK_OK(here.observer, ojs_shm_limit(here.observer, "payment-api", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"closed_until\":\"2099-01-01T00:00:00.000Z\"") != NULL);
  CHECK_OK(here.admin, ojs_shm_set_limit(here.admin, "payment-api", none, strlen(none)));
  CHECK(ojs_shm_fetch(here.worker, here.job, 0) == OJS_SHM_E_EMPTY);
  CHECK_OK(here.observer, ojs_shm_limits(here.observer, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"waiting_count\":1") != NULL);
  CHECK_OK(here.admin, ojs_shm_clear_limit(here.admin, "payment-api"));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(ojs_shm_set_limit(here.admin, "queue:No!", one, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_set_limit(here.admin, "k", "{\"speed\":1}", 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_limit(here.observer, "none", here.text, sizeof here.text) == OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_clear_limit(here.admin, "none") == OJS_SHM_E_NOT_FOUND);
  job.rate_limit = "{\"concurrency\":1}"; /* no key */
  job.rate_limit_size = 0;
  CHECK(ojs_shm_enqueue(here.producer, &job, id) == OJS_SHM_E_INVALID);
  return close_room(&here, "limits");
}

static int pools_of_workers(void) {
  room here;
  ojs_shm_worker* worker = NULL;
  ojs_shm_worker_options options;
  ojs_shm_job_spec job = spec_at("pooled", 3);
  const char *pool = "{\"queues\":[\"other\",\"default\"],\"strategy\":\"strict\"}",
             *none = "{\"strategy\":\"strict\"}";
  CHECK(open_room(&here, "pools", NULL));
  CHECK(ojs_shm_set_pool(here.admin, "p", none, strlen(none)) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_set_pool(here.admin, "p", pool, strlen(pool)) == 1);
  CHECK(ojs_shm_set_pool(here.admin, "p", pool, 0) == 0);
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.pool = "nowhere";
  CHECK(ojs_shm_worker_open(here.segment, &options, &worker) == OJS_SHM_E_NOT_FOUND &&
        worker == NULL);
  options.pool = "p";
  options.concurrency = 1;
  CHECK_OK(NULL, ojs_shm_worker_open(here.segment, &options, &worker));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  job.queue = "other";
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK_OK(worker, ojs_shm_fetch(worker, here.job, 0));
  CHECK(same(fields_of(here.job).queue, "other"));
  CHECK(ojs_shm_fetch(worker, here.job, 0) == OJS_SHM_E_EMPTY); /* it has as many as it may have */
  CHECK_OK(here.observer, ojs_shm_pool(here.observer, "p", here.text, sizeof here.text));
  CHECK(strstr(here.text,
               "\"active_workers\":1,\"active_jobs\":1,\"waiting_jobs\":1,\"utilization\":1") !=
        NULL);
  CHECK_OK(here.observer, ojs_shm_pools(here.observer, here.text, sizeof here.text));
  CHECK(here.text[0] == '[' && strstr(here.text, "\"name\":\"p\"") != NULL);
  CHECK_OK(here.observer, ojs_shm_scheduling(here.observer, here.text, sizeof here.text));
  CHECK(strstr(here.text, "{\"name\":\"other\",\"dispatch_count_1m\":1,\"dispatch_ratio_1m\":1,") !=
        NULL);
  CHECK_OK(here.admin, ojs_shm_remove_pool(here.admin, "p"));
  CHECK(ojs_shm_remove_pool(here.admin, "p") == OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_pool(here.observer, "p", here.text, sizeof here.text) == OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_close(worker) == OJS_SHM_OK);
  return close_room(&here, "pools");
}

static int registered_workers(void) {
  room here;
  ojs_shm_worker* worker = NULL;
  ojs_shm_worker_options options;
  ojs_shm_job_spec job = spec("seen");
  CHECK(open_room(&here, "registered", NULL));
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.id = "c-1";
  options.labels = "{\"zone\":\"a\"}";
  options.total_concurrency = 4;
  CHECK_OK(NULL, ojs_shm_worker_open(here.segment, &options, &worker));
  CHECK(ojs_shm_worker_beat(worker) == OJS_SHM_DIRECTIVE_RUNNING);
  CHECK_OK(here.observer,
           ojs_shm_registered_worker(here.observer, "c-1", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"concurrency\":4") != NULL &&
        strstr(here.text, "\"labels\":{\"zone\":\"a\"}") != NULL);
  CHECK_OK(here.observer, ojs_shm_registered_workers(here.observer, here.text, sizeof here.text));
  CHECK(here.text[0] == '[' && strstr(here.text, "\"id\":\"c-1\"") != NULL);
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, NULL));
  CHECK(ojs_shm_direct_worker(here.admin, "c-1", 7) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_direct_worker(here.admin, "c-2", 1) == OJS_SHM_E_NOT_FOUND);
  CHECK_OK(here.admin, ojs_shm_direct_worker(here.admin, "c-1", OJS_SHM_DIRECTIVE_QUIET));
  CHECK(ojs_shm_worker_beat(worker) == OJS_SHM_DIRECTIVE_QUIET);
  CHECK(ojs_shm_fetch(worker, here.job, 0) == OJS_SHM_E_EMPTY);
  CHECK_OK(here.admin, ojs_shm_direct_worker(here.admin, "c-1", OJS_SHM_DIRECTIVE_RUNNING));
  CHECK(ojs_shm_worker_say(worker, 7) == OJS_SHM_E_INVALID);
  CHECK_OK(worker, ojs_shm_worker_say(worker, OJS_SHM_DIRECTIVE_QUIET));
  CHECK_OK(here.observer,
           ojs_shm_registered_worker(here.observer, "c-1", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"state\":\"quiet\"") != NULL);
  CHECK_OK(worker, ojs_shm_worker_say(worker, OJS_SHM_DIRECTIVE_RUNNING));
  CHECK_OK(worker, ojs_shm_worker_quiet(worker));
  CHECK(ojs_shm_fetch(worker, here.job, 1) == OJS_SHM_E_TIMEOUT);
  CHECK_OK(worker, ojs_shm_worker_resume(worker));
  CHECK_OK(worker, ojs_shm_fetch(worker, here.job, 0));
  CHECK_OK(worker, ojs_shm_ack(worker, here.job, NULL, 0));
  CHECK_OK(here.admin, ojs_shm_direct_worker(here.admin, "c-1", OJS_SHM_DIRECTIVE_TERMINATE));
  CHECK(ojs_shm_fetch(worker, here.job, -1) == OJS_SHM_E_CLOSED);
  CHECK_OK(here.admin, ojs_shm_remove_worker(here.admin, "c-1"));
  CHECK(ojs_shm_remove_worker(here.admin, "c-1") == OJS_SHM_E_NOT_FOUND);
  options.labels = "zone";
  CHECK(ojs_shm_worker_open(here.segment, &options, &worker) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_close(worker) == OJS_SHM_OK);
  return close_room(&here, "registered");
}

static int a_full_queue_says_how_full_and_may_be_waited_for(void) {
  room here;
  ojs_shm_error detail;
  ojs_shm_queue_settings settings = {0};
  ojs_shm_pressure pressure = {0};
  ojs_shm_job_spec jobs[2];
  ojs_shm_waiting* waiting = NULL;
  char ids[2 * OJS_SHM_ID_SIZE];
  jobs[0] = spec("work");
  jobs[1] = spec("work");
  CHECK(open_room(&here, "full", NULL));
  settings.struct_size = sizeof settings;
  pressure.struct_size = sizeof pressure;
  settings.max_depth = 2;
  settings.strategy = OJS_SHM_STRATEGY_BLOCK;
  settings.warning_threshold = 0.5;
  settings.drop = OJS_SHM_DROP_LOWEST_PRIORITY;
  settings.set = OJS_SHM_QUEUE_MAX_DEPTH | OJS_SHM_QUEUE_STRATEGY |
                 OJS_SHM_QUEUE_WARNING_THRESHOLD | OJS_SHM_QUEUE_DROP;
  CHECK_OK(here.admin, ojs_shm_set_queue(here.admin, "default", &settings));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, jobs, NULL));
  CHECK_OK(here.producer, ojs_shm_last_pressure(here.producer, &pressure));
  CHECK(pressure.bound == 0);
  CHECK_OK(here.producer, ojs_shm_enqueue_within(here.producer, jobs, 1, 1000, ids));
  CHECK_OK(here.producer, ojs_shm_last_pressure(here.producer, &pressure));
  CHECK(pressure.depth == 2 && pressure.bound == 2 && pressure.pressure == 1.0 &&
        strcmp(pressure.unit, "jobs") == 0);
  CHECK(ojs_shm_enqueue_within(here.producer, jobs, 2, 20, ids) == OJS_SHM_E_QUEUE_FULL);
  detail = detail_of(here.producer);
  CHECK(strcmp(detail.strategy, "block") == 0 && detail.retry_after_ms >= 1000);
  CHECK(ojs_shm_enqueue_within(here.producer, jobs, 2, -1, ids) == OJS_SHM_E_INVALID);
  CHECK(strcmp(detail_of(here.producer).strategy, "") == 0);

  CHECK_OK(here.producer, ojs_shm_enqueue_begin(here.producer, jobs, 2, 30000, &waiting));
  CHECK(ojs_shm_enqueue_poll(waiting, ids) == OJS_SHM_E_EMPTY);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(ojs_shm_enqueue_poll(waiting, ids) == OJS_SHM_E_EMPTY);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(waiting, ojs_shm_enqueue_poll(waiting, ids));
  CHECK_OK(here.producer,
           ojs_shm_get(here.producer, ids + OJS_SHM_ID_SIZE, here.text, sizeof here.text));
  CHECK(ojs_shm_close(waiting) == OJS_SHM_OK);
  CHECK_OK(here.producer, ojs_shm_enqueue_begin(here.producer, jobs, 1, 30000, &waiting));
  CHECK(ojs_shm_close(waiting) == OJS_SHM_OK);
  CHECK_OK(here.observer, ojs_shm_queue(here.observer, "default", here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"waiting\":0") != NULL &&
        strstr(here.text, "\"strategy\":\"block\"") != NULL);
  CHECK(strstr(here.text, "\"drop\":\"lowest_priority\"") != NULL);
  settings.strategy = 3;
  CHECK(ojs_shm_set_queue(here.admin, "default", &settings) == OJS_SHM_E_INVALID);
  return close_room(&here, "full");
}

static int names_of_priorities(void) {
  room here;
  char id[OJS_SHM_ID_SIZE], text[16];
  int64_t priority = -1;
  ojs_shm_job_spec job = spec("alert");
  CHECK(open_room(&here, "names", "qo"));
  CHECK(ojs_shm_segment_convention(here.segment, text, sizeof text) == 2 &&
        strcmp(text, "qo") == 0);
  CHECK_OK(here.observer, ojs_shm_priority_by_name(here.observer, "urgent", &priority));
  CHECK(priority == 200 && ojs_shm_priority_by_name(here.observer, "soonish", &priority) < 0);
  CHECK(strstr(ojs_shm_last_error(here.observer), "background") != NULL);
  CHECK(ojs_shm_default_priority(here.observer, "alert", &priority) == OJS_SHM_E_NOT_FOUND);
  CHECK_OK(here.admin, ojs_shm_set_default_priority(here.admin, "alert", 255));
  CHECK_OK(here.observer, ojs_shm_default_priority(here.observer, "alert", &priority));
  CHECK(priority == 255);
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  // immutable in qo
  CHECK(ojs_shm_reprioritize(here.producer, id, 1, NULL) == OJS_SHM_E_WRONG_STATE);
  CHECK_OK(here.admin, ojs_shm_set_immutable_priorities(here.admin, 0));
  CHECK_OK(here.producer, ojs_shm_reprioritize(here.producer, id, 1, &priority));
  CHECK(priority == 255);
  CHECK_OK(here.producer, ojs_shm_reprioritize(here.producer, id, 255, NULL));
  CHECK_OK(here.admin, ojs_shm_set_immutable_priorities(here.admin, 1));
  CHECK(ojs_shm_reprioritize(here.producer, id, 1, NULL) == OJS_SHM_E_WRONG_STATE);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(fields_of(here.job).priority == 255);
  CHECK_OK(here.admin, ojs_shm_clear_default_priority(here.admin, "alert"));
  CHECK(ojs_shm_default_priority(here.observer, "alert", &priority) == OJS_SHM_E_NOT_FOUND);
  return close_room(&here, "names");
}
