// SPDX-License-Identifier: Apache-2.0
#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/envelope_event.hpp"

extern "C" {

using namespace ojs_shm::c_api;

int ojs_shm_events_open(const ojs_shm_segment* segment, uint32_t flags, ojs_shm_events** events) {
  return entry([&](Record& record) -> int {
    out(events, "events");
    known_flags(flags, OJS_SHM_EVENTS_FROM_START | OJS_SHM_EVENTS_AT_ONCE, "flags");
    auto observer = ojs_shm::Observer::attach(opened(segment).object);
    if (!observer) return record.fail(observer.error());
    ojs_shm::EventOptions options;
    options.from_start = (flags & OJS_SHM_EVENTS_FROM_START) != 0;
    if ((flags & OJS_SHM_EVENTS_AT_ONCE) != 0) options.settle_ms = 0;
    *events = new ojs_shm_events(observer->events(options));
    return OJS_SHM_OK;
  });
}

int64_t ojs_shm_next_event(ojs_shm_events* events, char* buffer, size_t size) {
  return entry(events, [&](Record& record) -> int64_t {
    ojs_shm::Event event;
    if (!events->object.next(event))
      return record.fail({.code = ojs_shm::Code::kEmpty, .message = "nothing has happened since"});
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
