// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/census.hpp>

#include "worker_api/c_api/c_api_json.hpp"
#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/envelope.hpp"

namespace {

using namespace ojs_shm::c_api;

}  // namespace

extern "C" {

const char* ojs_shm_state_name(int state) {
  if (state < OJS_SHM_STATE_SCHEDULED || state > OJS_SHM_STATE_DISCARDED) return "";
  // literals, so a NUL follows
  return ojs_shm::state_name(static_cast<ojs_shm::State>(state)).data();
}

int ojs_shm_observer_open(const ojs_shm_segment* segment, ojs_shm_observer** observer) {
  return entry([&](Record& record) -> int {
    out(observer, "observer");
    auto made = ojs_shm::Observer::attach(opened(segment).object);
    if (!made) return record.fail(made.error());
    *observer = new ojs_shm_observer(std::move(made).value());
    return OJS_SHM_OK;
  });
}

int64_t ojs_shm_pools(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    std::string all = "[";
    for (const auto& pool : observer->object.pools())
      all += (all.size() > 1 ? "," : "") + ojs_shm::print_pool(pool);
    return record.give(all + "]", buffer, size);
  });
}

int64_t ojs_shm_pool(ojs_shm_observer* observer, const char* name, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    const auto pool = observer->object.pool(text(name, "name"));
    return pool ? record.give(ojs_shm::print_pool(pool.value()), buffer, size)
                : record.fail(pool.error());
  });
}

int64_t ojs_shm_registered_workers(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    std::string all = "[";
    for (const auto& worker : observer->object.registered_workers())
      all += (all.size() > 1 ? "," : "") + ojs_shm::print_registered_worker(worker);
    return record.give(all + "]", buffer, size);
  });
}

int64_t ojs_shm_registered_worker(ojs_shm_observer* observer, const char* id, char* buffer,
                                  size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    const auto worker = observer->object.registered_worker(text(id, "id"));
    return worker ? record.give(ojs_shm::print_registered_worker(worker.value()), buffer, size)
                  : record.fail(worker.error());
  });
}

int64_t ojs_shm_scheduling(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(ojs_shm::print_scheduling(observer->object.scheduling_stats()), buffer,
                       size);
  });
}

int64_t ojs_shm_stats(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(print(observer->object.segment_info()), buffer, size);
  });
}

int64_t ojs_shm_queues(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(print(observer->object.queues()), buffer, size);
  });
}

int64_t ojs_shm_queue(ojs_shm_observer* observer, const char* name, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    const auto queue = observer->object.queue(text(name, "name"));
    return queue ? record.give(print(queue.value()), buffer, size) : record.fail(queue.error());
  });
}

int64_t ojs_shm_find(ojs_shm_observer* observer, const char* id, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    const auto job = observer->object.get(text(id, "id"));
    return job ? record.give(ojs_shm::print_job(job.value()), buffer, size)
               : record.fail(job.error());
  });
}

int64_t ojs_shm_audit(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(print(observer->object.audit()), buffer, size);
  });
}

int64_t ojs_shm_limits(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(print(observer->object.limits()), buffer, size);
  });
}

int64_t ojs_shm_limit(ojs_shm_observer* observer, const char* key, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    const auto limit = observer->object.limit(text(key, "key"));
    return limit ? record.give(ojs_shm::print_limit(limit.value()), buffer, size)
                 : record.fail(limit.error());
  });
}

int64_t ojs_shm_census(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(ojs_shm::print_census(observer->object.census()), buffer, size);
  });
}

int64_t ojs_shm_waits(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(ojs_shm::print_waits(observer->object.waits()), buffer, size);
  });
}

int64_t ojs_shm_recent(ojs_shm_observer* observer, uint64_t most, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    return record.give(print(observer->object.recent(most)), buffer, size);
  });
}

int ojs_shm_default_priority(ojs_shm_observer* observer, const char* type, int64_t* priority) {
  return entry(observer, [&](Record& record) -> int {
    out(priority, "priority");
    const auto found = observer->object.default_priority(text(type, "type"));
    if (!found) {
      return record.fail(
          ojs_shm::Error{ojs_shm::Code::kNotFound,
                         "type \"" + std::string(type) + "\" has no default priority of its own"}
              .about(type));
    }
    *priority = *found;
    return OJS_SHM_OK;
  });
}

int ojs_shm_priority_by_name(ojs_shm_observer* observer, const char* name, int64_t* priority) {
  return entry(observer, [&](Record& record) -> int {
    out(priority, "priority");
    const auto number = observer->object.priority_by_name(text(name, "name"));
    if (!number) return record.fail(number.error());
    *priority = number.value();
    return OJS_SHM_OK;
  });
}

}  // extern "C"
