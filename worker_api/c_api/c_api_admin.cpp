// SPDX-License-Identifier: Apache-2.0
#include "worker_api/c_api/c_api_structs.hpp"

namespace {

using namespace ojs_shm::c_api;

ojs_shm::QueueSettings settings_of(const ojs_shm_queue_settings* given) {
  const ojs_shm_queue_settings read = read_struct(given, "settings");
  known_flags(read.set,
              OJS_SHM_QUEUE_MAX_DEPTH | OJS_SHM_QUEUE_MAX_SIZE_BYTES | OJS_SHM_QUEUE_PAUSED |
                  OJS_SHM_QUEUE_STRATEGY | OJS_SHM_QUEUE_WARNING_THRESHOLD | OJS_SHM_QUEUE_DROP,
              "settings.set");
  if (read.strategy > OJS_SHM_STRATEGY_DROP_OLDEST)
    wrong_argument("settings.strategy", "is none of OJS_SHM_STRATEGY_");
  if (read.drop > OJS_SHM_DROP_LOWEST_PRIORITY)
    wrong_argument("settings.drop", "is none of OJS_SHM_DROP_");
  ojs_shm::QueueSettings settings;
  if ((read.set & OJS_SHM_QUEUE_MAX_DEPTH) != 0) settings.max_depth = read.max_depth;
  if ((read.set & OJS_SHM_QUEUE_MAX_SIZE_BYTES) != 0) settings.max_size_bytes = read.max_size_bytes;
  if ((read.set & OJS_SHM_QUEUE_PAUSED) != 0) settings.paused = read.paused != 0;
  if ((read.set & OJS_SHM_QUEUE_STRATEGY) != 0)
    settings.strategy = static_cast<ojs_shm::BackpressureStrategy>(read.strategy);
  if ((read.set & OJS_SHM_QUEUE_WARNING_THRESHOLD) != 0)
    settings.warning_threshold = read.warning_threshold;
  if ((read.set & OJS_SHM_QUEUE_DROP) != 0)
    settings.drop = static_cast<ojs_shm::DropOrder>(read.drop);
  return settings;
}

std::int64_t count_of(Record& record, const ojs_shm::Result<std::uint32_t>& counted) {
  return counted ? static_cast<std::int64_t>(counted.value()) : record.fail(counted.error());
}

}  // namespace

extern "C" {

int ojs_shm_admin_open(const ojs_shm_segment* segment, ojs_shm_admin** admin) {
  return entry([&](Record& record) -> int {
    out(admin, "admin");
    auto made = ojs_shm::Admin::attach(opened(segment).object);
    if (!made) return record.fail(made.error());
    *admin = new ojs_shm_admin(std::move(made).value());
    return OJS_SHM_OK;
  });
}

int ojs_shm_set_queue(ojs_shm_admin* admin, const char* queue,
                      const ojs_shm_queue_settings* settings) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.set_queue(text(queue, "queue"), settings_of(settings)));
  });
}

int ojs_shm_configure_queue(ojs_shm_admin* admin, const char* queue, const char* json,
                            size_t json_size) {
  return entry(admin, [&](Record& record) -> int {
    const auto settings = ojs_shm::parse_queue_settings(text_or(json, json_size, "{}"));
    if (!settings) return record.fail(settings.error());
    if (queue != nullptr) return record.done(admin->object.set_queue(queue, settings.value()));
    if (!settings->aging || settings->paused || settings->max_depth || settings->max_size_bytes ||
        settings->level_weights || settings->shards || settings->tenant_fairness ||
        settings->strategy || settings->warning_threshold || settings->clear_threshold ||
        settings->drop || settings->tenant_max_depth || settings->tenant_max_size_bytes ||
        settings->tenant_bounds || settings->retention.completed_ms ||
        settings->retention.discarded_ms || settings->retention.cancelled_ms)
      wrong_argument("json", "without a queue it must hold `aging` alone");
    return record.done(admin->object.set_default_aging(*settings->aging));
  });
}

int ojs_shm_set_pool(ojs_shm_admin* admin, const char* pool, const char* json, size_t json_size) {
  return entry(admin, [&](Record& record) -> int {
    const auto settings = ojs_shm::parse_pool_settings(text_or(json, json_size, "{}"));
    if (!settings) return record.fail(settings.error());
    const auto made = admin->object.set_pool(text(pool, "pool"), settings.value());
    return made ? static_cast<int>(made.value()) : record.fail(made.error());
  });
}

int ojs_shm_remove_pool(ojs_shm_admin* admin, const char* pool) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.remove_pool(text(pool, "pool")));
  });
}

int ojs_shm_direct_worker(ojs_shm_admin* admin, const char* id, int directive) {
  return entry(admin, [&](Record& record) -> int {
    if (directive < OJS_SHM_DIRECTIVE_RUNNING || directive > OJS_SHM_DIRECTIVE_TERMINATE)
      wrong_argument("directive", "is none of OJS_SHM_DIRECTIVE_");
    return record.done(admin->object.direct_worker(
        text(id, "id"), static_cast<ojs_shm::WorkerDirective>(directive)));
  });
}

int ojs_shm_remove_worker(ojs_shm_admin* admin, const char* id) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.remove_worker(text(id, "id")));
  });
}

int ojs_shm_set_limit(ojs_shm_admin* admin, const char* key, const char* json, size_t json_size) {
  return entry(admin, [&](Record& record) -> int {
    const auto limit = ojs_shm::parse_limit(text_or(json, json_size, "{}"), true);
    if (!limit) return record.fail(limit.error());
    return record.done(
        admin->object.set_limit(text(key, "key"), limit->limit, limit->expires_at_ms));
  });
}

int ojs_shm_clear_limit(ojs_shm_admin* admin, const char* key) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.clear_limit(text(key, "key")));
  });
}

int ojs_shm_set_default_priority(ojs_shm_admin* admin, const char* type, int64_t priority) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.set_default_priority(text(type, "type"), priority));
  });
}

int ojs_shm_clear_default_priority(ojs_shm_admin* admin, const char* type) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.set_default_priority(text(type, "type"), {}));
  });
}

int ojs_shm_dead_retry(ojs_shm_admin* admin, const char* id) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.retry_dead(text(id, "id")));
  });
}

int ojs_shm_dead_drop(ojs_shm_admin* admin, const char* id) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.drop_dead(text(id, "id")));
  });
}

int ojs_shm_set_maintenance(ojs_shm_admin* admin, int on, const char* reason) {
  return ojs_shm_set_maintenance_until(admin, on, reason, 0);
}

int ojs_shm_set_maintenance_until(ojs_shm_admin* admin, int on, const char* reason,
                                  uint64_t estimated_end_ms) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.set_maintenance(on != 0, text_or(reason), estimated_end_ms));
  });
}

int ojs_shm_set_dead_retention(ojs_shm_admin* admin, uint64_t max_age_ms, uint64_t max_count) {
  return entry(admin, [&](Record& record) -> int {
    ojs_shm::DeadLetterRetention retention;
    if (max_age_ms != OJS_SHM_AS_IT_IS) retention.max_age_ms = max_age_ms;
    if (max_count != OJS_SHM_AS_IT_IS) retention.max_count = max_count;
    return record.done(admin->object.set_dead_retention(retention));
  });
}

int64_t ojs_shm_delete_queue(ojs_shm_admin* admin, const char* name, int jobs) {
  return entry(admin, [&](Record& record) -> int64_t {
    if (jobs != OJS_SHM_DELETE_QUEUE_REJECT && jobs != OJS_SHM_DELETE_QUEUE_DISCARD)
      wrong_argument("jobs", "is none of OJS_SHM_DELETE_QUEUE_");
    const auto discarded =
        admin->object.delete_queue(text(name, "name"), static_cast<ojs_shm::QueueDeletion>(jobs));
    return discarded ? static_cast<int64_t>(*discarded) : record.fail(discarded.error());
  });
}

int64_t ojs_shm_repair(ojs_shm_admin* admin) {
  return entry(admin,
               [&](Record& record) -> int64_t { return count_of(record, admin->object.repair()); });
}

int64_t ojs_shm_mend(ojs_shm_admin* admin) {
  return entry(admin,
               [&](Record& record) -> int64_t { return count_of(record, admin->object.mend()); });
}

}  // extern "C"
