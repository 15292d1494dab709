// SPDX-License-Identifier: Apache-2.0
//
// What the C ABI tells and exports, and what goes. Included by c_api_test.c.

static int an_export_goes_into_another_segment(void) {
  room from, to;
  ojs_shm_job_spec job = spec("moved");
  ojs_shm_import_report report;
  char id[OJS_SHM_ID_SIZE];
  FILE* file = tmpfile();
  CHECK(file != NULL && open_room(&from, "from", NULL) && open_room(&to, "to", NULL));
  memset(&report, 0, sizeof report);
  report.struct_size = sizeof report;
  CHECK_OK(from.producer, ojs_shm_enqueue(from.producer, &job, id));
  CHECK(ojs_shm_export(from.segment, fileno(file)) >= 2);
  rewind(file);
  CHECK_OK(NULL, ojs_shm_import(to.segment, fileno(file), &report));
  CHECK(report.jobs == 1 && report.existing == 0 && report.refused == 0);
  CHECK_OK(to.worker, ojs_shm_fetch(to.worker, to.job, 0));
  CHECK(same(fields_of(to.job).id, id));
  rewind(file);
  CHECK_OK(NULL, ojs_shm_import(to.segment, fileno(file), &report));
  CHECK(report.jobs == 0 && report.existing == 1);
  CHECK(fputs("no job\n", file) >= 0 && fflush(file) == 0);
  rewind(file);
  CHECK(ojs_shm_import(to.segment, fileno(file), &report) == OJS_SHM_E_INVALID);
  CHECK(report.refused == 1 && report.existing == 1);
  CHECK(ojs_shm_export(from.segment, -1) == OJS_SHM_E_INTERNAL);
  CHECK(ojs_shm_import(to.segment, -1, NULL) == OJS_SHM_E_INTERNAL);
  CHECK(fclose(file) == 0);
  return close_room(&from, "from") && close_room(&to, "to");
}

static int events_and_waits(void) {
  room here;
  ojs_shm_events* events = NULL;
  ojs_shm_job_spec job = spec_at("told", 3);
  char id[OJS_SHM_ID_SIZE], wanted[128];
  CHECK(open_room(&here, "told", NULL));
  CHECK(ojs_shm_events_open(here.segment, 4, &events) == OJS_SHM_E_STALE_VERSION && events == NULL);
  CHECK_OK(NULL, ojs_shm_events_open(here.segment, OJS_SHM_EVENTS_AT_ONCE, &events));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(ojs_shm_next_event(events, here.text, sizeof here.text) == OJS_SHM_E_EMPTY);
  ojs_shm_bulk_report bulk = {.struct_size = sizeof bulk};
  ojs_shm_job_filter none = {.struct_size = sizeof none, .tenant = "nobody"};
  CHECK_OK(here.admin, ojs_shm_bulk(here.admin, OJS_SHM_BULK_CANCEL, &none, &bulk));
  CHECK(bulk.matched == 0 && bulk.done == 0 && bulk.skipped == 0);
  CHECK_OK(here.observer, ojs_shm_page(here.observer, NULL, OJS_SHM_ORDER_PRIORITY, 1, 0, here.text,
                                       sizeof here.text));
  CHECK(strstr(here.text, id) != NULL && strstr(here.text, "\"total\":1,\"more\":false}") != NULL);
  CHECK_OK(here.observer, ojs_shm_page(here.observer, &none, OJS_SHM_ORDER_CREATED, 0, 7, here.text,
                                       sizeof here.text));
  CHECK(strcmp(here.text, "{\"jobs\":[],\"total\":0,\"more\":false}") == 0);
  CHECK(ojs_shm_page(here.observer, NULL, 3, 1, 0, NULL, 0) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_bulk(here.admin, 9, NULL, NULL) == OJS_SHM_E_INVALID);
  CHECK_OK(here.admin, ojs_shm_set_strict_envelopes(here.admin, 1));
  CHECK_OK(here.admin, ojs_shm_set_events(here.admin, 1));
  CHECK_OK(here.producer, ojs_shm_reprioritize(here.producer, id, 0, NULL));
  CHECK(ojs_shm_next_event(events, NULL, 0) > 0);
  CHECK_OK(events, ojs_shm_last_text(events, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"type\":\"priority.changed\"") != NULL &&
        strstr(here.text, id) != NULL);
  CHECK(strstr(here.text, "\"previous_priority\":3,\"new_priority\":0") != NULL);
  CHECK(ojs_shm_next_event(events, here.text, sizeof here.text) == OJS_SHM_E_EMPTY);
  CHECK(ojs_shm_events_lost(events) == 0);
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK_OK(here.observer, ojs_shm_census(here.observer, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"totals\":{\"enqueued\":") != NULL);
  CHECK_OK(here.observer, ojs_shm_waits(here.observer, here.text, sizeof here.text));
  snprintf(wanted, sizeof wanted,
           "[{\"queue\":\"default\",\"priority\":0,\"from_enqueue\":{\"count\":1,\"sum_ms\":");
  CHECK(strncmp(here.text, wanted, strlen(wanted)) == 0);
  CHECK(strstr(here.text, "\"from_available\":{\"count\":1,\"sum_ms\":") != NULL);
  CHECK(strstr(here.text, "\"runs\":{\"count\":") != NULL);
  CHECK_OK(here.observer, ojs_shm_recent(here.observer, 1, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"from\":\"available\",\"to\":\"active\"}]") != NULL &&
        strstr(here.text, id) != NULL);
  CHECK(ojs_shm_close(events) == OJS_SHM_OK);
  return close_room(&here, "told");
}

static int events_are_chosen(void) {
  room here;
  ojs_shm_events* events = NULL;
  ojs_shm_job_spec job = spec_at("chosen", 3);
  char id[OJS_SHM_ID_SIZE], first[48] = "";
  const char* const types[] = {"job.*"};
  const char* const queues[] = {"default", NULL};
  ojs_shm_event_options options = {.struct_size = sizeof options,
                                   .types = types,
                                   .type_count = 1,
                                   .flags = OJS_SHM_EVENTS_FROM_START | OJS_SHM_EVENTS_AT_ONCE};
  CHECK(open_room(&here, "chosen", NULL));
  CHECK_OK(here.admin, ojs_shm_set_events(here.admin, 1));
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK_OK(here.producer, ojs_shm_reprioritize(here.producer, id, 0, NULL));
  CHECK(ojs_shm_cancel(here.producer, id, NULL, 0) > 0);
  CHECK_OK(NULL, ojs_shm_events_choose(here.segment, &options, &events));
  CHECK(ojs_shm_event_position(events) == 0);
  CHECK(ojs_shm_next_event(events, here.text, sizeof here.text) > 0);
  CHECK(strstr(here.text, "\"type\":\"job.enqueued\"") != NULL);
  CHECK(ojs_shm_event_position(events) == 1 && ojs_shm_events_resumed(events) == 0);
  const char* const found = strstr(here.text, "\"id\":\"evt_");
  CHECK(found != NULL);
  memcpy(first, found + strlen("\"id\":\""), 40);
  CHECK(ojs_shm_next_event(events, here.text, sizeof here.text) > 0);
  CHECK(strstr(here.text, "\"type\":\"job.cancelled\"") != NULL);
  CHECK(ojs_shm_event_position(events) == 3);
  CHECK(ojs_shm_close(events) == OJS_SHM_OK);

  options.after = first;
  options.after_position = 1;
  options.type_count = 0;
  CHECK_OK(NULL, ojs_shm_events_choose(here.segment, &options, &events));
  CHECK(ojs_shm_next_event(events, here.text, sizeof here.text) > 0);
  CHECK(strstr(here.text, "\"type\":\"priority.changed\"") != NULL);
  CHECK(ojs_shm_events_resumed(events) == 1 && ojs_shm_events_lost(events) == 0);
  CHECK(ojs_shm_close(events) == OJS_SHM_OK);

  options.after = "evt_no";
  CHECK(ojs_shm_events_choose(here.segment, &options, &events) == OJS_SHM_E_INVALID);
  options.after = NULL;
  options.queues = queues;
  options.queue_count = 2;
  CHECK(ojs_shm_events_choose(here.segment, &options, &events) == OJS_SHM_E_INVALID);
  options.queue_count = 0;
  options.flags = 4;
  CHECK(ojs_shm_events_choose(here.segment, &options, &events) == OJS_SHM_E_STALE_VERSION);
  return close_room(&here, "chosen");
}

static int what_goes(void) {
  room here;
  char id[OJS_SHM_ID_SIZE], cron[16];
  ojs_shm_job_spec job = spec("any");
  const char daily[] = "{\"name\":\"daily\",\"cron\":\"@daily\",\"type\":\"any\"}";
  CHECK(open_room(&here, "goes", NULL));
  CHECK_OK(here.admin, ojs_shm_set_dead_retention(here.admin, 86400000, OJS_SHM_AS_IT_IS));
  CHECK_OK(here.observer, ojs_shm_stats(here.observer, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"dead_max_age_ms\":86400000,\"dead_max_count\":10000") != NULL);
  CHECK_OK(here.admin, ojs_shm_set_dead_retention(here.admin, OJS_SHM_AS_IT_IS, 0));
  CHECK_OK(here.observer, ojs_shm_stats(here.observer, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"dead_max_age_ms\":86400000,\"dead_max_count\":0") != NULL);
  CHECK_OK(here.admin, ojs_shm_set_maintenance(here.admin, 1, "moving"));
  CHECK_OK(here.observer, ojs_shm_stats(here.observer, here.text, sizeof here.text));
  CHECK(strstr(here.text, "\"maintenance\":{\"enabled\":true,\"reason\":\"moving\"") != NULL);
  CHECK_OK(here.admin, ojs_shm_set_maintenance_until(here.admin, 1, "moving", 4102444800000ULL));
  CHECK_OK(here.admin, ojs_shm_set_maintenance(here.admin, 0, NULL));
  CHECK(ojs_shm_delete_queue(here.admin, "default", OJS_SHM_DELETE_QUEUE_REJECT) ==
        OJS_SHM_E_NOT_FOUND);
  CHECK_OK(here.producer, ojs_shm_enqueue(here.producer, &job, id));
  CHECK(ojs_shm_delete_queue(here.admin, "default", 2) == OJS_SHM_E_INVALID);
  CHECK(ojs_shm_delete_queue(here.admin, "default", OJS_SHM_DELETE_QUEUE_REJECT) ==
        OJS_SHM_E_WRONG_STATE);
  CHECK(ojs_shm_delete_queue(here.admin, "default", OJS_SHM_DELETE_QUEUE_DISCARD) == 1);
  CHECK(ojs_shm_queue(here.observer, "default", here.text, sizeof here.text) ==
        OJS_SHM_E_NOT_FOUND);
  CHECK(ojs_shm_set_cron(here.admin, daily, 0) == 1);
  CHECK_OK(here.admin, ojs_shm_trigger_cron(here.admin, "daily", id));
  CHECK_OK(here.worker, ojs_shm_fetch(here.worker, here.job, 0));
  CHECK(ojs_shm_cron_name(here.job, cron, sizeof cron) == 5 && strcmp(cron, "daily") == 0);
  CHECK_OK(here.worker, ojs_shm_ack(here.worker, here.job, NULL, 0));
  CHECK(ojs_shm_cron_name(here.job, cron, sizeof cron) == 0);
  return close_room(&here, "goes");
}
