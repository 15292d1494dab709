// SPDX-License-Identifier: Apache-2.0
#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/envelope_event.hpp"

namespace {

using namespace ojs_shm::c_api;

ojs_shm::EventOptions options_of(std::uint32_t flags, const char* name) {
  known_flags(flags, OJS_SHM_EVENTS_FROM_START | OJS_SHM_EVENTS_AT_ONCE, name);
  ojs_shm::EventOptions options;
  options.from_start = (flags & OJS_SHM_EVENTS_FROM_START) != 0;
  if ((flags & OJS_SHM_EVENTS_AT_ONCE) != 0) options.settle_ms = 0;
  return options;
}

ojs_shm::EventOptions options_of(const ojs_shm_event_options* given) {
  const ojs_shm_event_options read = read_struct(given, "options");
  ojs_shm::EventOptions options = options_of(read.flags, "options.flags");
  options.after = text_or(read.after);
  options.after_position = read.after_position;
  options.types = names_of(read.types, read.type_count, "options.types");
  options.queues = names_of(read.queues, read.queue_count, "options.queues");
  options.jobs = names_of(read.jobs, read.job_count, "options.jobs");
  options.job_types = names_of(read.job_types, read.job_type_count, "options.job_types");
  options.tenant = text_or(read.tenant);
  return options;
}

int open_events(Record& record, const ojs_shm_segment* segment,
                const ojs_shm::EventOptions& options, ojs_shm_events** events) {
  if (const ojs_shm::Status fits = ojs_shm::check(options); !fits) return record.fail(fits.error());
  auto observer = ojs_shm::Observer::attach(opened(segment).object);
  if (!observer) return record.fail(observer.error());
  *events = new ojs_shm_events(observer->events(options));
  return OJS_SHM_OK;
}

}  // namespace

extern "C" {

int ojs_shm_events_open(const ojs_shm_segment* segment, uint32_t flags, ojs_shm_events** events) {
  return entry([&](Record& record) -> int {
    out(events, "events");
    return open_events(record, segment, options_of(flags, "flags"), events);
  });
}

int ojs_shm_events_choose(const ojs_shm_segment* segment, const ojs_shm_event_options* options,
                          ojs_shm_events** events) {
  return entry([&](Record& record) -> int {
    out(events, "events");
    return open_events(record, segment, options_of(options), events);
  });
}

int64_t ojs_shm_event_position(ojs_shm_events* events) {
  return entry(events,
               [&](Record&) -> int64_t { return static_cast<int64_t>(events->object.position()); });
}

int ojs_shm_events_resumed(ojs_shm_events* events) {
  return entry(events, [&](Record&) -> int { return events->object.resumed() ? 1 : 0; });
}

int64_t ojs_shm_next_event(ojs_shm_events* events, char* buffer, size_t size) {
  return entry(events, [&](Record& record) -> int64_t {
    check_buffer(buffer, size);
    ojs_shm::Event event;
    if (!events->object.next(event))
      return record.fail(ojs_shm::Error{ojs_shm::Code::kEmpty, "nothing has happened since"});
    return record.give(ojs_shm::print_event(event), buffer, size);
  });
}

int64_t ojs_shm_events_lost(ojs_shm_events* events) {
  return entry(events,
               [&](Record&) -> int64_t { return static_cast<int64_t>(events->object.lost()); });
}

int ojs_shm_set_strict_envelopes(ojs_shm_admin* admin, int on) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.set_strict_envelopes(on != 0));
  });
}

int ojs_shm_set_immutable_priorities(ojs_shm_admin* admin, int on) {
  return entry(admin, [&](Record& record) -> int {
    return record.done(admin->object.set_immutable_priorities(on != 0));
  });
}

int ojs_shm_set_events(ojs_shm_admin* admin, int on) {
  return entry(
      admin, [&](Record& record) -> int { return record.done(admin->object.set_events(on != 0)); });
}

}  // extern "C"
