// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>
#include <utility>

#include "worker_api/c_api/c_api_failure.hpp"

namespace {

using namespace ojs_shm::c_api;

ojs_shm::WorkerOptions options_of(const ojs_shm_worker_options* given) {
  ojs_shm::WorkerOptions options;
  if (given == nullptr) return options;
  const ojs_shm_worker_options read = read_struct(given, "options");
  known_flags(read.flags, OJS_SHM_WORKER_LEASE_OWNED | OJS_SHM_WORKER_WEIGHTED, "options.flags");
  if (read.queue_count != 0) {
    out(read.queues, "options.queues");
    options.queues.clear();
    for (std::size_t index = 0; index < read.queue_count; ++index) {
      options.queues.emplace_back(text(read.queues[index], "options.queues"));
    }
  }
  options.lease_ms = read.lease_ms;
  options.spin_us = read.spin_us;
  if ((read.flags & OJS_SHM_WORKER_WEIGHTED) != 0)
    options.strategy = ojs_shm::QueueStrategy::kWeighted;
  if (read.weights != nullptr)
    options.weights.assign(read.weights, read.weights + options.queues.size());
  options.pool = text_or(read.pool);
  options.concurrency = read.concurrency;
  options.id = text_or(read.id);
  options.labels =
      json_text_or_none(text_or(read.labels), ojs_shm::json::Kind::kObject, "options.labels");
  options.total_concurrency = read.total_concurrency;
  options.lease_owned = (read.flags & OJS_SHM_WORKER_LEASE_OWNED) != 0;
  return options;
}

ojs_shm_text text_of(std::string_view view) { return {view.data(), view.size()}; }

void put_fields(const ojs_shm::Job& job, ojs_shm_job_fields& fields) {
  fields.id = text_of(job.id());
  fields.type = text_of(job.type());
  fields.args = text_of(job.args());
  fields.extra = text_of(job.extra());
  fields.queue = text_of(job.queue());
  fields.priority = job.priority();
  fields.fence = job.fence();
  fields.created_at_ms = job.created_at_ms();
  fields.enqueued_at_ms = job.enqueued_at_ms();
  fields.started_at_ms = job.started_at_ms();
  fields.deadline_ms = job.deadline_ms();
  fields.timeout_ms = job.timeout_ms();
  fields.attempt = job.attempt();
  fields.max_attempts = job.max_attempts();
  fields.reserved = 0;
}

}  // namespace

extern "C" {

int ojs_shm_job_new(ojs_shm_job** job) {
  return entry([&](Record&) -> int {
    out(job, "job") = new ojs_shm_job;
    return OJS_SHM_OK;
  });
}

int ojs_shm_job_read(const ojs_shm_job* job, ojs_shm_job_fields* fields) {
  return entry(job, [&](Record& record) -> int {
    if (!job->object.valid()) {
      return record.fail(
          ojs_shm::Error{ojs_shm::Code::kEmpty, "nothing was fetched into this job handle"});
    }
    fill_struct(fields, "fields",
                [&](ojs_shm_job_fields& place) { put_fields(job->object, place); });
    return OJS_SHM_OK;
  });
}

int ojs_shm_cancel_requested(const ojs_shm_job* job) {
  // Not through the handle's record: this may run beside another thread's call on the same job.
  return entry([&](Record&) -> int { return opened(job).object.cancel_requested() ? 1 : 0; });
}

int ojs_shm_worker_open(const ojs_shm_segment* segment, const ojs_shm_worker_options* options,
                        ojs_shm_worker** worker) {
  return entry([&](Record& record) -> int {
    out(worker, "worker");
    auto made = ojs_shm::Worker::attach(opened(segment).object, options_of(options));
    if (!made) return record.fail(made.error());
    *worker = new ojs_shm_worker(std::move(made).value());
    return OJS_SHM_OK;
  });
}

int ojs_shm_fetch(ojs_shm_worker* worker, ojs_shm_job* job, int64_t timeout_ms) {
  return entry(worker, [&](Record& record) -> int {
    ojs_shm::Job& into = opened(job).object;
    if (timeout_ms == 0) return record.done(worker->object.try_fetch(into));
    return record.done(in_pieces(
        timeout_ms,
        [&](std::chrono::milliseconds piece) { return worker->object.fetch(into, piece); },
        [](const auto& outcome) { return outcome.code() != ojs_shm::Code::kTimeout; }));
  });
}

int64_t ojs_shm_fetch_batch(ojs_shm_worker* worker, ojs_shm_job* const* jobs, size_t count,
                            int64_t timeout_ms) {
  return entry(worker, [&](Record& record) -> int64_t {
    if (count == 0) return 0;
    out(jobs, "jobs");
    // All handles are looked at before any job is taken: a job without a place to go would be
    // active without a holder.
    for (std::size_t index = 0; index < count; ++index) opened(jobs[index]);
    auto fetched = in_pieces(
        timeout_ms,
        [&](std::chrono::milliseconds piece) { return worker->object.fetch_batch(count, piece); },
        [](const auto& outcome) { return !outcome.ok() || !outcome.value().empty(); });
    if (!fetched) return record.fail(fetched.error());
    std::size_t index = 0;
    for (ojs_shm::Job& job : fetched.value()) jobs[index++]->object = std::move(job);
    return static_cast<int64_t>(index);
  });
}

int ojs_shm_ack(ojs_shm_worker* worker, ojs_shm_job* job, const char* result, size_t result_size) {
  return entry(worker, [&](Record& record) -> int {
    return record.done(worker->object.ack(
        opened(job).object, json_text_or_none(text_or(result, result_size), "result")));
  });
}

int64_t ojs_shm_ack_batch(ojs_shm_worker* worker, ojs_shm_job* const* jobs, size_t count,
                          unsigned char* lost) {
  return entry(worker, [&](Record& record) -> int64_t {
    if (count == 0) return 0;
    out(jobs, "jobs");
    for (std::size_t index = 0; index < count; ++index)
      if (!opened(jobs[index]).object.valid())
        return record.fail(
            ojs_shm::Error{ojs_shm::Code::kEmpty, "one of the job handles holds no job"});
    int64_t acked = 0;
    for (std::size_t index = 0; index < count; ++index) {
      const auto done = worker->object.ack_batch(std::span(&jobs[index]->object, 1));
      if (!done) return record.fail(done.error());
      acked += static_cast<int64_t>(done->acked);
      if (lost != nullptr) lost[index] = done->acked == 0;
    }
    return acked;
  });
}

int ojs_shm_nack(ojs_shm_worker* worker, ojs_shm_job* job, const ojs_shm_failure* failure,
                 ojs_shm_nack_outcome* outcome) {
  return entry(worker, [&](Record& record) -> int {
    return nacked(record, outcome,
                  [&] { return worker->object.nack(opened(job).object, failure_of(failure)); });
  });
}

int ojs_shm_requeue(ojs_shm_worker* worker, ojs_shm_job* job) {
  return entry(worker, [&](Record& record) -> int {
    return record.done(worker->object.requeue(opened(job).object));
  });
}

int ojs_shm_heartbeat(ojs_shm_worker* worker, ojs_shm_job* job, uint32_t lease_ms,
                      uint64_t* deadline_ms) {
  return entry(worker, [&](Record& record) -> int {
    const auto ends = worker->object.heartbeat(opened(job).object, lease_ms);
    if (!ends) return record.fail(ends.error());
    if (deadline_ms != nullptr) *deadline_ms = ends.value();
    return OJS_SHM_OK;
  });
}

int ojs_shm_progress(ojs_shm_worker* worker, ojs_shm_job* job, double fraction) {
  return entry(worker, [&](Record& record) -> int {
    return record.done(worker->object.progress(opened(job).object, fraction));
  });
}

int ojs_shm_progress_texts(ojs_shm_worker* worker, ojs_shm_job* job, double fraction,
                           const char* message, const char* data, size_t data_size) {
  return entry(worker, [&](Record& record) -> int {
    return record.done(
        worker->object.progress(opened(job).object, fraction, text_or(message),
                                json_text_or_none(text_or(data, data_size), "data")));
  });
}

int ojs_shm_checkpoint(ojs_shm_worker* worker, ojs_shm_job* job, const char* json,
                       size_t json_size) {
  return entry(worker, [&](Record& record) -> int {
    return record.done(worker->object.checkpoint(opened(job).object,
                                                 ojs_shm::json::trim(text_or(json, json_size))));
  });
}

int64_t ojs_shm_last_checkpoint(const ojs_shm_job* job, char* buffer, size_t size) {
  return entry(job, [&](Record& record) -> int64_t {
    return record.give(job->object.last_checkpoint(), buffer, size);
  });
}

int ojs_shm_event_fd(ojs_shm_worker* worker) {
  return entry(worker, [&](Record& record) -> int {
    const auto descriptor = worker->object.event_fd();
    return descriptor ? descriptor.value() : record.fail(descriptor.error());
  });
}

int ojs_shm_worker_beat(ojs_shm_worker* worker) {
  // Not through the handle's record: another thread may be at a call of the same handle.
  return entry([&](Record&) -> int {
    opened(worker).object.beat();
    return static_cast<int>(worker->object.directive());
  });
}

int ojs_shm_worker_say(ojs_shm_worker* worker, int directive) {
  return entry(worker, [&](Record& record) -> int {
    if (directive < OJS_SHM_DIRECTIVE_RUNNING || directive > OJS_SHM_DIRECTIVE_TERMINATE)
      wrong_argument("directive", "is none of OJS_SHM_DIRECTIVE_");
    return record.done(worker->object.say(static_cast<ojs_shm::WorkerDirective>(directive)));
  });
}

// Of these three nothing is remembered: they may run in a signal handler.

int ojs_shm_interrupt(ojs_shm_worker* worker) {
  if (!is_open(worker)) return OJS_SHM_E_INVALID;
  worker->object.interrupt();
  return OJS_SHM_OK;
}

int ojs_shm_worker_quiet(ojs_shm_worker* worker) {
  if (!is_open(worker)) return OJS_SHM_E_INVALID;
  worker->object.quiet();
  return OJS_SHM_OK;
}

int ojs_shm_worker_resume(ojs_shm_worker* worker) {
  if (!is_open(worker)) return OJS_SHM_E_INVALID;
  worker->object.resume();
  return OJS_SHM_OK;
}

}  // extern "C"
