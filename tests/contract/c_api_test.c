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

#include "c_api_arguments.c"
#include "c_api_events.c"
#include "c_api_jobs.c"
#include "c_api_proxy.c"
#include "c_api_resilience.c"
#include "c_api_settings.c"
#include "c_api_special_jobs.c"

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
      TEST(a_producer_for_which_nothing_was_asked),
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
      TEST(events_are_chosen),
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
