// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include <ojs_shm/ojs_shm_cron.h>

#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/cron_text.hpp"
#include "worker_api/roles/attachment.hpp"

using namespace ojs_shm::c_api;

extern "C" {

int ojs_shm_set_cron(ojs_shm_admin* admin, const char* json, size_t json_size) {
  return entry(admin, [&](Record& record) -> int {
    const auto read = ojs_shm::parse_cron(text_or(json, json_size, "{}"),
                                          admin->object.segment().attachment()->store().now_ms());
    if (!read) return record.fail(read.error());
    const auto made = admin->object.set_cron(read.value()->spec);
    return made ? static_cast<int>(made.value()) : record.fail(made.error());
  });
}

int ojs_shm_remove_cron(ojs_shm_admin* admin, const char* name) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.remove_cron(text(name, "name")));
  });
}

int ojs_shm_enable_cron(ojs_shm_admin* admin, const char* name, int enabled) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.enable_cron(text(name, "name"), enabled != 0));
  });
}

int ojs_shm_trigger_cron(ojs_shm_admin* admin, const char* name, char* id) {
  return entry(admin, [&](Record& record) -> int {
    const auto made = admin->object.trigger_cron(text(name, "name"));
    if (!made) return record.fail(made.error());
    if (id != nullptr) std::memcpy(id, made->str().c_str(), made->str().size() + 1);
    return OJS_SHM_OK;
  });
}

int64_t ojs_shm_cron(ojs_shm_observer* observer, const char* name, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    const auto cron = observer->object.cron(text(name, "name"));
    return cron ? record.give(ojs_shm::print_cron(cron.value()), buffer, size)
                : record.fail(cron.error());
  });
}

int64_t ojs_shm_cron_name(const ojs_shm_job* job, char* buffer, size_t size) {
  return entry(job, [&](Record& record) -> int64_t {
    return record.give(job->object.cron_name(), buffer, size);
  });
}

int64_t ojs_shm_crons(ojs_shm_observer* observer, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    std::string all = "[";
    for (const auto& cron : observer->object.crons())
      all += (all.size() > 1 ? "," : "") + ojs_shm::print_cron(cron);
    return record.give(all + "]", buffer, size);
  });
}

int64_t ojs_shm_cron_times(const char* expression, const char* zone, uint64_t after_ms,
                           uint64_t* times, size_t count) {
  return entry([&](Record& record) -> int64_t {
    const auto found =
        ojs_shm::cron_times(text(expression, "expression"), text_or(zone, "UTC"), after_ms, count);
    if (!found) return record.fail(found.error());
    if (!found->empty()) std::ranges::copy(*found, &out(times, "times"));
    return static_cast<int64_t>(found->size());
  });
}

}  // extern "C"
