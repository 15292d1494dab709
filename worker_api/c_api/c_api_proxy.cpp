// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "worker_api/c_api/c_api_failure.hpp"
#include "worker_api/c_api/c_api_json.hpp"

namespace {

using namespace ojs_shm::c_api;

ojs_shm::FetchRequest request_of(const ojs_shm_fetch_request* given) {
  ojs_shm::FetchRequest request;
  if (given == nullptr) return request;
  const ojs_shm_fetch_request read = read_struct(given, "request");
  known_flags(read.flags, OJS_SHM_FETCH_HELD, "request.flags");
  if (read.queue_count != 0)
    request.queues = names_of(read.queues, read.queue_count, "request.queues");
  if (read.weights != nullptr)
    request.weights.assign(read.weights, read.weights + request.queues.size());
  request.pool = text_or(read.pool);
  if (read.tenant != nullptr) request.tenant = read.tenant;
  request.worker = text_or(read.worker);
  if (read.count != 0) request.count = read.count;
  request.lease_ms = read.lease_ms;
  request.held = (read.flags & OJS_SHM_FETCH_HELD) != 0;
  return request;
}

std::optional<std::string> said(const char* text) {
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

ojs_shm::WorkerReport report_of(const ojs_shm_worker_report* given) {
  const ojs_shm_worker_report read = read_struct(given, "report");
  known_flags(read.flags,
              OJS_SHM_REPORT_REGISTERS | OJS_SHM_REPORT_NO_PLEDGE | OJS_SHM_REPORT_CONCURRENCY |
                  OJS_SHM_REPORT_ACTIVE_JOBS,
              "report.flags");
  ojs_shm::WorkerReport report{.id = std::string(text(read.id, "report.id"))};
  report.pool = said(read.pool);
  if (read.queue_count != 0)
    report.queues = names_of(read.queues, read.queue_count, "report.queues");
  report.hostname = said(read.hostname);
  report.version = said(read.version);
  if (read.labels != nullptr)
    report.labels = json_text(read.labels, ojs_shm::json::Kind::kObject, "report.labels");
  report.state = said(read.state);
  if ((read.flags & OJS_SHM_REPORT_CONCURRENCY) != 0) report.concurrency = read.concurrency;
  if ((read.flags & OJS_SHM_REPORT_ACTIVE_JOBS) != 0) report.active_jobs = read.active_jobs;
  if (read.pid != 0) report.pid = read.pid;
  if (read.silence_ms != 0) report.silence_ms = read.silence_ms;
  report.registers = (read.flags & OJS_SHM_REPORT_REGISTERS) != 0;
  report.pledges = (read.flags & OJS_SHM_REPORT_NO_PLEDGE) == 0;
  return report;
}

}  // namespace

extern "C" {

int ojs_shm_proxy_open(const ojs_shm_segment* segment, ojs_shm_proxy** proxy) {
  return entry([&](Record& record) -> int {
    out(proxy, "proxy");
    auto made = ojs_shm::Proxy::attach(opened(segment).object);
    if (!made) return record.fail(made.error());
    *proxy = new ojs_shm_proxy(std::move(made).value());
    return OJS_SHM_OK;
  });
}

int64_t ojs_shm_proxy_fetch(ojs_shm_proxy* proxy, const ojs_shm_fetch_request* request,
                            char* buffer, size_t size) {
  return entry(proxy, [&](Record& record) -> int64_t {
    check_buffer(buffer, size);
    const auto jobs = proxy->object.fetch(request_of(request));
    return jobs ? record.give(print_fetched(*jobs), buffer, size) : record.fail(jobs.error());
  });
}

int ojs_shm_proxy_await(ojs_shm_proxy* proxy, const char* const* queues, size_t queue_count,
                        const char* const* pools, size_t pool_count) {
  return entry(proxy, [&](Record& record) -> int {
    const auto descriptor = proxy->object.await_jobs(names_of(queues, queue_count, "queues"),
                                                     names_of(pools, pool_count, "pools"));
    return descriptor ? *descriptor : record.fail(descriptor.error());
  });
}

int ojs_shm_proxy_await_end(ojs_shm_proxy* proxy, const char* id) {
  return entry(proxy, [&](Record& record) -> int {
    const auto descriptor = proxy->object.await_end(text(id, "id"));
    return descriptor ? *descriptor : record.fail(descriptor.error());
  });
}

int ojs_shm_proxy_forget_end(ojs_shm_proxy* proxy, const char* id) {
  return entry(proxy, [&](Record&) -> int {
    proxy->object.forget_end(text(id, "id"));
    return OJS_SHM_OK;
  });
}

int64_t ojs_shm_proxy_take_ended(ojs_shm_proxy* proxy, char* buffer, size_t size) {
  return entry(proxy, [&](Record& record) -> int64_t {
    check_buffer(buffer, size);
    std::string ids = "[";
    for (const std::string& id : proxy->object.take_ended()) {
      if (ids.size() > 1) ids += ',';
      ids += '"' + id + '"';
    }
    return record.give(ids + ']', buffer, size);
  });
}

int ojs_shm_proxy_await_events(ojs_shm_proxy* proxy, int on) {
  return entry(proxy, [&](Record& record) -> int {
    const auto descriptor = proxy->object.await_events(on != 0);
    return descriptor ? *descriptor : record.fail(descriptor.error());
  });
}

int64_t ojs_shm_proxy_take_decided(ojs_shm_proxy* proxy, uint64_t* tags, size_t most) {
  return entry(proxy, [&](Record&) -> int64_t {
    if (most != 0) out(tags, "tags");
    const std::vector<std::uint64_t> decided = proxy->object.take_decided(most);
    std::copy(decided.begin(), decided.end(), tags);
    return static_cast<int64_t>(decided.size());
  });
}

int ojs_shm_proxy_hand_over(ojs_shm_proxy* proxy, const char* id, uint64_t fence) {
  return entry(proxy, [&](Record& record) -> int {
    return record.done(proxy->object.hand_over(text(id, "id"), fence));
  });
}

int ojs_shm_proxy_ack(ojs_shm_proxy* proxy, const char* id, uint64_t fence, const char* result,
                      size_t result_size) {
  return entry(proxy, [&](Record& record) -> int {
    return record.done(proxy->object.ack(
        text(id, "id"), fence, json_text_or_none(text_or(result, result_size), "result")));
  });
}

int ojs_shm_proxy_nack(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                       const ojs_shm_failure* failure, ojs_shm_nack_outcome* outcome) {
  return entry(proxy, [&](Record& record) -> int {
    return nacked(record, outcome,
                  [&] { return proxy->object.nack(text(id, "id"), fence, failure_of(failure)); });
  });
}

int ojs_shm_proxy_requeue(ojs_shm_proxy* proxy, const char* id, uint64_t fence) {
  return entry(proxy, [&](Record& record) -> int {
    return record.done(proxy->object.requeue(text(id, "id"), fence));
  });
}

int ojs_shm_proxy_heartbeat(ojs_shm_proxy* proxy, const char* id, uint64_t fence, uint32_t lease_ms,
                            uint64_t* deadline_ms) {
  return entry(proxy, [&](Record& record) -> int {
    const auto ends = proxy->object.heartbeat(text(id, "id"), fence, lease_ms);
    if (!ends) return record.fail(ends.error());
    if (deadline_ms != nullptr) *deadline_ms = ends.value();
    return OJS_SHM_OK;
  });
}

int ojs_shm_proxy_progress(ojs_shm_proxy* proxy, const char* id, uint64_t fence, double fraction) {
  return entry(proxy, [&](Record& record) -> int {
    return record.done(proxy->object.progress(text(id, "id"), fence, fraction));
  });
}

int ojs_shm_proxy_progress_texts(ojs_shm_proxy* proxy, const char* id, uint64_t fence,
                                 double fraction, const char* message, const char* data,
                                 size_t data_size) {
  return entry(proxy, [&](Record& record) -> int {
    return record.done(proxy->object.progress(text(id, "id"), fence, fraction, text_or(message),
                                              json_text_or_none(text_or(data, data_size), "data")));
  });
}

int ojs_shm_proxy_checkpoint(ojs_shm_proxy* proxy, const char* id, uint64_t fence, const char* json,
                             size_t json_size) {
  return entry(proxy, [&](Record& record) -> int {
    return record.done(proxy->object.checkpoint(text(id, "id"), fence,
                                                ojs_shm::json::trim(text_or(json, json_size))));
  });
}

int64_t ojs_shm_proxy_report(ojs_shm_proxy* proxy, const ojs_shm_worker_report* report,
                             char* buffer, size_t size) {
  return entry(proxy, [&](Record& record) -> int64_t {
    check_buffer(buffer, size);
    const auto known = proxy->object.report(report_of(report));
    return known ? record.give(ojs_shm::print_registered_worker(*known), buffer, size)
                 : record.fail(known.error());
  });
}

}  // extern "C"
