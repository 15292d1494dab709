// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/resilience.h>

#include <cstring>
#include <optional>
#include <vector>

#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/envelope.hpp"

namespace {

using namespace ojs_shm::c_api;

ojs_shm::Retry retry_of(const ojs_shm_retry* given) {
  ojs_shm::Retry retry;
  if (given == nullptr) return retry;
  const ojs_shm_retry read = read_struct(given, "retry");
  known_flags(read.flags, OJS_SHM_RETRY_NO_JITTER | OJS_SHM_RETRY_DEAD_LETTER, "retry.flags");
  if (read.backoff > OJS_SHM_BACKOFF_POLYNOMIAL)
    wrong_argument("retry.backoff", "is none of OJS_SHM_BACKOFF_");
  if (read.max_attempts > UINT16_MAX) wrong_argument("retry.max_attempts", "must not exceed 65535");
  if (read.max_attempts != 0) retry.max_attempts = static_cast<std::uint16_t>(read.max_attempts);
  if (read.initial_ms != 0) retry.initial_ms = read.initial_ms;
  if (read.max_ms != 0) retry.max_ms = read.max_ms;
  if (read.coefficient != 0) retry.coefficient = static_cast<float>(read.coefficient);
  retry.backoff = static_cast<ojs_shm::RetryBackoff>(read.backoff);
  retry.jitter = (read.flags & OJS_SHM_RETRY_NO_JITTER) == 0;
  retry.dead_letter = (read.flags & OJS_SHM_RETRY_DEAD_LETTER) != 0;
  return retry;
}

/// What a spec points to.
struct Beside {
  std::optional<ojs_shm::JobLimit> limit = {};
  std::optional<ojs_shm::JobUnique> unique = {};
};

/// The views point into the caller's texts, and to `beside`.
ojs_shm::JobSpec spec_of(const ojs_shm_job_spec* given, Beside& beside) {
  ojs_shm_job_spec room;
  const ojs_shm_job_spec& read = struct_of(given, room, "job");
  known_flags(read.flags,
              OJS_SHM_JOB_HAS_PRIORITY | OJS_SHM_JOB_PENDING | OJS_SHM_JOB_HAS_AGE_RATE |
                  OJS_SHM_JOB_HAS_RESULT_TTL,
              "job.flags");
  ojs_shm::JobSpec spec;
  spec.type = text(read.type, "job.type");
  spec.args = json_text(text_or(read.args, read.args_size, spec.args), ojs_shm::json::Kind::kArray,
                        "job.args");
  spec.queue = text_or(read.queue, spec.queue);
  spec.id = text_or(read.id);
  spec.extra = json_text_or_none(text_or(read.extra, read.extra_size), ojs_shm::json::Kind::kObject,
                                 "job.extra");
  if ((read.flags & OJS_SHM_JOB_HAS_PRIORITY) != 0) spec.priority = read.priority;
  if ((read.flags & OJS_SHM_JOB_HAS_AGE_RATE) != 0) spec.priority_age_rate = read.priority_age_rate;
  if ((read.flags & OJS_SHM_JOB_HAS_RESULT_TTL) != 0) spec.result_ttl_s = read.result_ttl_s;
  spec.scheduled_at_ms = read.scheduled_at_ms;
  spec.expires_at_ms = read.expires_at_ms;
  spec.timeout_ms = read.timeout_ms;
  spec.lease_ms = read.lease_ms;
  spec.enqueue_ttl_s = read.enqueue_ttl_s;
  spec.total_timeout_s = read.total_timeout_s;
  spec.grace_period_s = read.grace_period_s;
  spec.pending = (read.flags & OJS_SHM_JOB_PENDING) != 0;
  if (read.retry != nullptr) spec.retry = retry_of(read.retry);
  spec.tenant = text_or(read.tenant);
  if (const auto rule = text_or(read.rate_limit, read.rate_limit_size); !rule.empty()) {
    auto parsed = ojs_shm::parse_limit(rule);
    if (!parsed) wrong_argument("job.rate_limit", parsed.error().message);
    beside.limit = std::move(parsed).value();
    spec.limit = &*beside.limit;
  }
  if (const auto policy = text_or(read.unique, read.unique_size); !policy.empty()) [[unlikely]] {
    auto unique = ojs_shm::JobUnique::of(spec, policy);
    if (!unique) wrong_argument("job.unique", unique.error().message);
    beside.unique = std::move(unique).value();
    spec.unique = &*beside.unique;
  }
  return spec;
}

/// What one job of a kind has of its own; none given: no args.
ojs_shm::PreparedArgs args_of(const ojs_shm_args* given) {
  ojs_shm::PreparedArgs job;
  if (given == nullptr) return job;
  ojs_shm_args room;
  const ojs_shm_args& read = struct_of(given, room, "args");
  known_flags(read.flags, OJS_SHM_JOB_HAS_PRIORITY, "args.flags");
  job.args = json_text(text_or(read.args, read.args_size, job.args), ojs_shm::json::Kind::kArray,
                       "job.args");
  if ((read.flags & OJS_SHM_JOB_HAS_PRIORITY) != 0) job.priority = read.priority;
  return job;
}

void put_id(const ojs_shm::JobIdText& id, char* place) {
  const std::string_view text = id.view();
  std::memcpy(place, text.data(), OJS_SHM_ID_SIZE - 1);
  place[OJS_SHM_ID_SIZE - 1] = '\0';
}

/// An array of jobs, and what they point to.
struct Specs {
  Specs(const ojs_shm_job_spec* given, std::size_t count) : beside(count) {
    const std::size_t distance = given_size(&out(given, "jobs"), "jobs");
    jobs.reserve(count);
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    for (std::size_t index = 0; index < count; ++index, bytes += distance) {
      const auto* job = reinterpret_cast<const ojs_shm_job_spec*>(bytes);
      if (job->struct_size != distance)
        wrong_argument("jobs.struct_size", "must be the same in the whole array");
      jobs.push_back(spec_of(job, beside[index]));
    }
  }
  std::vector<ojs_shm::JobSpec> jobs;
  std::vector<Beside> beside;
};

/// Writes them one after the other, where they are wanted.
int put_ids(const std::vector<ojs_shm::JobIdText>& ids, char* place) {
  for (std::size_t i = 0; place != nullptr && i < ids.size(); ++i)
    put_id(ids[i], place + i * OJS_SHM_ID_SIZE);
  return OJS_SHM_OK;
}

int put_resiliently(ojs_shm_producer& producer, Record& record, const ojs_shm::JobSpec& spec,
                    char* id) {
  const auto made = producer.resilient.enqueue(spec);
  if (!made) return record.fail(made.error());
  if (id != nullptr) put_id(made->id, id);
  return made->buffered ? int{OJS_SHM_BUFFERED} : int{OJS_SHM_OK};
}

/// An array of them, with one distance, the struct_size of each.
std::vector<ojs_shm::PreparedArgs> args_of_all(const ojs_shm_args* given, std::size_t count) {
  const std::size_t distance = given_size(&out(given, "jobs"), "jobs");
  std::vector<ojs_shm::PreparedArgs> jobs;
  jobs.reserve(count);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t index = 0; index < count; ++index, bytes += distance) {
    const auto* job = reinterpret_cast<const ojs_shm_args*>(bytes);
    if (job->struct_size != distance)
      wrong_argument("jobs.struct_size", "must be the same in the whole array");
    jobs.push_back(args_of(job));
  }
  return jobs;
}

ojs_shm::EnqueueOptions patience_of(std::int64_t timeout_ms) {
  return {.block_timeout = std::chrono::milliseconds(timeout_ms)};
}

std::int64_t give_job(Record& record, const ojs_shm::Result<ojs_shm::JobInfo>& job, char* buffer,
                      std::size_t size) {
  if (!job) return record.fail(job.error());
  return record.give(ojs_shm::print_job(job.value()), buffer, size);
}

int tell(const std::optional<ojs_shm::QueuePressure>& level, ojs_shm_pressure* pressure) {
  ojs_shm_pressure filled{};
  filled.unit = level ? level->unit.data() : "";  // literals, so a NUL follows
  if (level) {
    filled.depth = level->depth;
    filled.bound = level->bound;
    filled.pressure = level->pressure;
  }
  write_struct(pressure, filled, "pressure");
  return OJS_SHM_OK;
}

}  // namespace

extern "C" {

int ojs_shm_producer_open(const ojs_shm_segment* segment, ojs_shm_producer** producer) {
  return entry([&](Record& record) -> int {
    out(producer, "producer");
    auto made = ojs_shm::Producer::attach(opened(segment).object);
    if (!made) return record.fail(made.error());
    *producer = new ojs_shm_producer(std::move(made).value());
    return OJS_SHM_OK;
  });
}

int ojs_shm_enqueue(ojs_shm_producer* producer, const ojs_shm_job_spec* job, char* id) {
  return entry(producer, [&](Record& record) -> int {
    Beside beside;
    const ojs_shm::JobSpec spec = spec_of(job, beside);
    if (!producer->options) {
      const auto made = producer->object.enqueue(spec);
      if (!made) return record.fail(made.error());
      if (id != nullptr) put_id(made.value(), id);
      return OJS_SHM_OK;
    }
    return put_resiliently(*producer, record, spec, id);
  });
}

int ojs_shm_enqueue_batch(ojs_shm_producer* producer, const ojs_shm_job_spec* jobs, size_t count,
                          char* ids) {
  return entry(producer, [&](Record& record) -> int {
    if (count == 0) return OJS_SHM_OK;
    Specs specs(jobs, count);
    const auto made = producer->resilient.enqueue_batch(specs.jobs);
    if (!made) return record.fail(made.error());
    put_ids(made->ids, ids);
    return made->buffered ? int{OJS_SHM_BUFFERED} : int{OJS_SHM_OK};
  });
}

int ojs_shm_prepare(ojs_shm_producer* producer, const ojs_shm_job_spec* kind,
                    ojs_shm_prepared** prepared) {
  return entry(producer, [&](Record& record) -> int {
    out(prepared, "prepared");
    Beside beside;
    auto made = producer->object.prepare(spec_of(kind, beside));
    if (!made) return record.fail(made.error());
    *prepared = new ojs_shm_prepared(std::move(made).value());
    return OJS_SHM_OK;
  });
}

int ojs_shm_enqueue_prepared(ojs_shm_producer* producer, ojs_shm_prepared* prepared,
                             const ojs_shm_args* job, char* id) {
  return entry(producer, [&](Record& record) -> int {
    const ojs_shm::PreparedJob& kind = opened(prepared).object;
    const ojs_shm::PreparedArgs own = args_of(job);
    if (producer->options)
      return put_resiliently(*producer, record, kind.with(own.args, own.priority), id);
    const auto made = producer->object.enqueue(kind, own.args, own.priority);
    if (!made) return record.fail(made.error());
    if (id != nullptr) put_id(made.value(), id);
    return OJS_SHM_OK;
  });
}

int ojs_shm_enqueue_prepared_batch(ojs_shm_producer* producer, ojs_shm_prepared* prepared,
                                   const ojs_shm_args* jobs, size_t count, char* ids) {
  return entry(producer, [&](Record& record) -> int {
    const ojs_shm::PreparedJob& kind = opened(prepared).object;
    if (count == 0) return OJS_SHM_OK;
    const auto each = args_of_all(jobs, count);
    if (producer->options) {
      std::vector<ojs_shm::JobSpec> specs;
      for (const ojs_shm::PreparedArgs& own : each)
        specs.push_back(kind.with(own.args, own.priority));
      const auto made = producer->resilient.enqueue_batch(specs);
      if (!made) return record.fail(made.error());
      put_ids(made->ids, ids);
      return made->buffered ? int{OJS_SHM_BUFFERED} : int{OJS_SHM_OK};
    }
    std::vector<ojs_shm::JobIdText> made(count);
    if (const auto done = producer->object.enqueue_batch(kind, each, made); !done)
      return record.fail(done.error());
    return put_ids(made, ids);
  });
}

int ojs_shm_enqueue_within(ojs_shm_producer* producer, const ojs_shm_job_spec* jobs, size_t count,
                           int64_t timeout_ms, char* ids) {
  return entry(producer, [&](Record& record) -> int {
    if (count == 0) return OJS_SHM_OK;
    const auto made =
        producer->object.enqueue_batch(Specs(jobs, count).jobs, patience_of(timeout_ms));
    return made ? put_ids(made.value(), ids) : record.fail(made.error());
  });
}

int ojs_shm_enqueue_begin(ojs_shm_producer* producer, const ojs_shm_job_spec* jobs, size_t count,
                          int64_t timeout_ms, ojs_shm_waiting** waiting) {
  return entry(producer, [&](Record& record) -> int {
    out(waiting, "waiting");
    auto begun = producer->object.begin(Specs(jobs, count).jobs, patience_of(timeout_ms));
    if (!begun) return record.fail(begun.error());
    *waiting = new ojs_shm_waiting(std::move(begun).value());
    return OJS_SHM_OK;
  });
}

int ojs_shm_enqueue_poll(ojs_shm_waiting* waiting, char* ids) {
  return entry(waiting, [&](Record& record) -> int {
    const auto decided = waiting->object.poll();
    if (!decided)
      return record.fail(ojs_shm::Error{ojs_shm::Code::kEmpty, "it still waits for room"});
    return *decided ? put_ids(decided->value(), ids) : record.fail(decided->error());
  });
}

int ojs_shm_enqueue_deduplicated(const ojs_shm_waiting* waiting, size_t place) {
  return entry(waiting,
               [&](Record&) -> int { return waiting->object.deduplicated(place) ? 1 : 0; });
}

int ojs_shm_proxy_enqueue_begin(ojs_shm_proxy* proxy, const ojs_shm_job_spec* jobs, size_t count,
                                int64_t timeout_ms, uint64_t tag, ojs_shm_waiting** waiting) {
  return entry(proxy, [&](Record& record) -> int {
    out(waiting, "waiting");
    const auto descriptor = proxy->object.descriptor();
    if (!descriptor) return record.fail(descriptor.error());
    auto begun = proxy->object.begin_enqueue(Specs(jobs, count).jobs, patience_of(timeout_ms), tag);
    if (!begun) return record.fail(begun.error());
    *waiting = new ojs_shm_waiting(std::move(begun).value());
    return *descriptor;
  });
}

int ojs_shm_last_deduplicated(const ojs_shm_producer* producer, std::size_t place) {
  return entry(producer,
               [&](Record&) -> int { return producer->object.deduplicated(place) ? 1 : 0; });
}

int ojs_shm_last_pressure(const ojs_shm_producer* producer, ojs_shm_pressure* pressure) {
  return entry(producer, [&](Record&) { return tell(producer->object.pressure(), pressure); });
}

int ojs_shm_enqueue_pressure(const ojs_shm_waiting* waiting, ojs_shm_pressure* pressure) {
  return entry(waiting, [&](Record&) { return tell(waiting->object.pressure(), pressure); });
}

int64_t ojs_shm_wait(ojs_shm_producer* producer, const char* id, int64_t timeout_ms, char* buffer,
                     size_t size) {
  return entry(producer, [&](Record& record) -> int64_t {
    const auto wanted = text(id, "id");
    const auto finished = in_pieces(
        timeout_ms,
        [&](std::chrono::milliseconds piece) { return producer->object.wait(wanted, piece); },
        [](const auto& outcome) { return outcome.code() != ojs_shm::Code::kTimeout; });
    return give_job(record, finished, buffer, size);
  });
}

int64_t ojs_shm_get(ojs_shm_producer* producer, const char* id, char* buffer, size_t size) {
  return entry(producer, [&](Record& record) -> int64_t {
    return give_job(record, producer->object.get(text(id, "id")), buffer, size);
  });
}

int64_t ojs_shm_cancel(ojs_shm_producer* producer, const char* id, char* buffer, size_t size) {
  return entry(producer, [&](Record& record) -> int64_t {
    check_buffer(buffer, size);
    return give_job(record, producer->object.cancel(text(id, "id")), buffer, size);
  });
}

int ojs_shm_reprioritize(ojs_shm_producer* producer, const char* id, int64_t priority,
                         int64_t* previous) {
  return entry(producer, [&](Record& record) -> int {
    const auto was = producer->object.reprioritize(text(id, "id"), priority);
    if (!was) return record.fail(was.error());
    if (previous != nullptr) *previous = was.value();
    return OJS_SHM_OK;
  });
}

int ojs_shm_activate(ojs_shm_producer* producer, const char* id) {
  return entry(producer, [&](Record& record) -> int {
    return record.done(producer->object.activate(text(id, "id")));
  });
}

}  // extern "C"
