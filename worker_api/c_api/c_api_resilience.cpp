// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/resilience.h>

#include <utility>
#include <vector>

#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace {

using namespace ojs_shm::c_api;
using std::chrono::milliseconds;

ojs_shm::ResilienceOptions resilience_of(const ojs_shm_resilience* given,
                                         const ojs_shm::Segment& segment) {
  const ojs_shm_resilience read = read_struct(given, "options");
  ojs_shm::ResilienceOptions options;
  options.retry.retries = read.retries;
  if (read.max_delay_ms != 0) options.retry.max_delay = milliseconds(read.max_delay_ms);
  if (read.breaker_refusals != 0) {
    ojs_shm::CircuitBreaker::Options breaker{.refusals = read.breaker_refusals};
    if (read.breaker_cooldown_ms != 0) breaker.cooldown = milliseconds(read.breaker_cooldown_ms);
    options.breaker = std::make_shared<ojs_shm::CircuitBreaker>(breaker);
  }
  if (read.buffer_jobs != 0) {
    ojs_shm::LocalBufferOptions buffer{.max_jobs = read.buffer_jobs,
                                       .max_delay = options.retry.max_delay};
    if (read.buffer_bytes != 0) buffer.max_bytes = read.buffer_bytes;
    auto started = ojs_shm::LocalBuffer::start(segment, buffer, options.breaker);
    if (!started) throw WrongArgument{started.error()};
    options.buffer = std::move(started).value();
  }
  return options;
}

ojs_shm::LocalBuffer& buffer_of(const ojs_shm_producer& producer) {
  const auto& buffer = producer.resilient.options().buffer;
  if (buffer == nullptr) wrong_argument("producer", "has no local buffer");
  return *buffer;
}

std::string print_unsent(const std::vector<ojs_shm::UnsentJob>& jobs) {
  std::string out = "[";
  for (const ojs_shm::UnsentJob& each : jobs) {
    if (&each != &jobs.front()) out += ',';
    ojs_shm::json::ObjectWriter writer(out);
    writer.open("job") += ojs_shm::print_envelope(each.job.view());
    ojs_shm::json::ObjectWriter error(writer.open("error"));
    error.text("code", ojs_shm::code_name(each.error.code));
    error.text("message", each.error.message);
    error.text("subject", each.error.subject);
    error.number("depth", static_cast<std::int64_t>(each.error.depth));
    error.number("bound", static_cast<std::int64_t>(each.error.bound));
    error.text("unit", each.error.unit);
    error.close();
    writer.close();
  }
  return out + "]";
}

}  // namespace

extern "C" {

int ojs_shm_producer_open_resilient(const ojs_shm_segment* segment,
                                    const ojs_shm_resilience* options, const ojs_shm_producer* like,
                                    ojs_shm_producer** producer) {
  return entry([&](Record& record) -> int {
    out(producer, "producer");
    const ojs_shm::Segment& attached = opened(segment).object;
    if ((options == nullptr) == (like == nullptr))
      wrong_argument("options", "or like must be given, not both");
    ojs_shm::ResilienceOptions shared =
        options != nullptr ? resilience_of(options, attached) : opened(like).resilient.options();
    auto made = ojs_shm::Producer::attach(attached);
    if (!made) return record.fail(made.error());
    *producer = new ojs_shm_producer(std::move(made).value(), std::move(shared));
    return OJS_SHM_OK;
  });
}

int ojs_shm_flush(ojs_shm_producer* producer, int64_t timeout_ms) {
  return entry(producer, [&](Record& record) -> int {
    ojs_shm::LocalBuffer& buffer = buffer_of(*producer);
    return record.done(in_pieces(
        timeout_ms, [&](milliseconds piece) { return buffer.flush(piece); },
        [](const auto& outcome) { return outcome.code() != ojs_shm::Code::kTimeout; }));
  });
}

int64_t ojs_shm_take_failed(ojs_shm_producer* producer, char* buffer, size_t size) {
  return entry(producer, [&](Record& record) -> int64_t {
    check_buffer(buffer, size);
    return record.give(print_unsent(buffer_of(*producer).take_failed()), buffer, size);
  });
}

int64_t ojs_shm_close_buffer(ojs_shm_producer* producer, char* buffer, size_t size) {
  return entry(producer, [&](Record& record) -> int64_t {
    check_buffer(buffer, size);
    return record.give(print_unsent(buffer_of(*producer).close()), buffer, size);
  });
}

}  // extern "C"
