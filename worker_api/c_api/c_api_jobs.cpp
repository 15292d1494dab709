// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "worker_api/c_api/c_api_json.hpp"
#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/envelope.hpp"

namespace {

using namespace ojs_shm::c_api;

ojs_shm::JobFilter filter_of(const ojs_shm_job_filter* given) {
  ojs_shm::JobFilter filter;
  if (given == nullptr) return filter;
  const ojs_shm_job_filter read = read_struct(given, "filter");
  known_flags(read.flags,
              OJS_SHM_FILTER_HAS_STATE | OJS_SHM_FILTER_DEAD_LETTER | OJS_SHM_FILTER_WAITING |
                  OJS_SHM_FILTER_HAS_PRIORITY,
              "filter.flags");
  if (read.state > OJS_SHM_STATE_DISCARDED)
    wrong_argument("filter.state", "is none of OJS_SHM_STATE_");
  filter.queue = text_or(read.queue);
  filter.type = text_or(read.type);
  if ((read.flags & OJS_SHM_FILTER_HAS_STATE) != 0)
    filter.state = static_cast<ojs_shm::State>(read.state);
  filter.dead_letter = (read.flags & OJS_SHM_FILTER_DEAD_LETTER) != 0;
  filter.waiting = (read.flags & OJS_SHM_FILTER_WAITING) != 0;
  filter.limit = read.limit;
  if (read.tenant != nullptr) filter.tenant = read.tenant;
  if ((read.flags & OJS_SHM_FILTER_HAS_PRIORITY) != 0) filter.priority = read.priority;
  filter.created_before_ms = read.created_before_ms;
  filter.ended_from_ms = read.ended_from_ms;
  filter.ended_before_ms = read.ended_before_ms;
  filter.error_type = text_or(read.error_type);
  return filter;
}

}  // namespace

extern "C" {

int64_t ojs_shm_list(ojs_shm_observer* observer, const ojs_shm_job_filter* filter, char* buffer,
                     size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(print(observer->object.list(filter_of(filter))), buffer, size);
  });
}

int64_t ojs_shm_page(ojs_shm_observer* observer, const ojs_shm_job_filter* filter, int order,
                     int falls, uint64_t offset, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    if (order < OJS_SHM_ORDER_CREATED || order > OJS_SHM_ORDER_PRIORITY)
      wrong_argument("order", "is none of OJS_SHM_ORDER_");
    ojs_shm::JobPageRequest wanted{.filter = filter_of(filter)};
    wanted.order = static_cast<ojs_shm::JobOrder>(order);
    wanted.falls = falls != 0;
    wanted.offset = offset;
    if (wanted.filter.limit != 0) wanted.limit = std::exchange(wanted.filter.limit, 0);
    const ojs_shm::JobPage page = observer->object.page(wanted);
    return record.give("{\"jobs\":" + print(page.jobs) +
                           ",\"total\":" + std::to_string(page.total) +
                           (page.more ? ",\"more\":true}" : ",\"more\":false}"),
                       buffer, size);
  });
}

int ojs_shm_promote(ojs_shm_producer* producer, const char* id) {
  return entry(producer, [&](Record& record) -> int {
    return record.done(producer->object.promote(text(id, "id")));
  });
}

int ojs_shm_retry_job(ojs_shm_producer* producer, const char* id) {
  return entry(producer, [&](Record& record) -> int {
    return record.done(producer->object.retry(text(id, "id")));
  });
}

int ojs_shm_drop(ojs_shm_admin* admin, const char* id) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.drop(text(id, "id")));
  });
}

int ojs_shm_bulk(ojs_shm_admin* admin, int action, const ojs_shm_job_filter* filter,
                 ojs_shm_bulk_report* report) {
  return entry(admin, [&](Record& record) -> int {
    if (action < OJS_SHM_BULK_CANCEL || action > OJS_SHM_BULK_RETRY)
      wrong_argument("action", "is none of OJS_SHM_BULK_");
    if (report != nullptr) write_struct(report, ojs_shm_bulk_report{}, "report");
    ojs_shm::BulkReport last;
    const auto done =
        admin->object.bulk(static_cast<ojs_shm::BulkAction>(action), filter_of(filter),
                           [&last](const ojs_shm::BulkReport& now) {
                             last = now;
                             return true;
                           });
    if (report != nullptr)
      write_struct(report, ojs_shm_bulk_report{0, last.matched, last.done, last.skipped}, "report");
    return done ? OJS_SHM_OK : record.fail(done.error());
  });
}

}  // extern "C"
