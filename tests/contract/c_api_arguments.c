// SPDX-License-Identifier: Apache-2.0
//
// What the C ABI is given: texts, buffers, structs, and all of them wrong. For c_api_test.c.

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
  CHECK(ojs_shm_worker_quiet(NULL) == OJS_SHM_E_INVALID &&
        ojs_shm_worker_resume(NULL) == OJS_SHM_E_INVALID);
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
