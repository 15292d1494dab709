// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "worker_api/c_api/c_api_json.hpp"
#include "worker_api/c_api/c_api_structs.hpp"

namespace {

using namespace ojs_shm::c_api;

ojs_shm::SegmentName name_of(const char* name, const char* dir) {
  ojs_shm::SegmentName chosen = ojs_shm::segment_name_from_environment();
  if (name != nullptr) chosen.name = name;
  if (dir != nullptr) chosen.dir = dir;
  return chosen;
}

ojs_shm::SegmentOptions options_of(const ojs_shm_segment_options* given) {
  ojs_shm::SegmentOptions options;
  if (given == nullptr) return options;
  const ojs_shm_segment_options read = read_struct(given, "options");
  options.size_bytes = read.size_bytes;
  options.slots = read.slots;
  options.max_queues = read.max_queues;
  options.max_tenants = read.max_tenants;
  options.max_body_bytes = read.max_body_bytes;
  options.max_handles = read.max_handles;
  options.max_waiting = read.max_waiting;
  options.convention = text_or(read.convention);
  if (read.mode != 0) options.mode = read.mode;
  options.group = text_or(read.group);
  options.retention_ms = read.retention_ms;
  return options;
}

int keep(Record& record, ojs_shm::Result<ojs_shm::Segment> made, ojs_shm_segment** segment) {
  if (!made) return record.fail(made.error());
  *segment = new ojs_shm_segment(std::move(made).value());
  return OJS_SHM_OK;
}

}  // namespace

extern "C" {

int ojs_shm_segment_attach(const char* name, const char* dir, ojs_shm_segment** segment) {
  return entry([&](Record& record) -> int {
    return keep(record, ojs_shm::Segment::attach(name_of(name, dir)), &out(segment, "segment"));
  });
}

int ojs_shm_segment_create(const char* name, const char* dir,
                           const ojs_shm_segment_options* options, ojs_shm_segment** segment) {
  return entry([&](Record& record) -> int {
    out(segment, "segment");
    return keep(record, ojs_shm::Segment::create(name_of(name, dir), options_of(options)), segment);
  });
}

int ojs_shm_segment_observe(const char* name, const char* dir, ojs_shm_segment** segment) {
  return entry([&](Record& record) -> int {
    return keep(record, ojs_shm::Segment::observe(name_of(name, dir)), &out(segment, "segment"));
  });
}

int ojs_shm_segment_examine(const char* path, ojs_shm_segment** segment) {
  return entry([&](Record& record) -> int {
    return keep(record, ojs_shm::Segment::examine(std::string(text(path, "path"))),
                &out(segment, "segment"));
  });
}

int64_t ojs_shm_segment_convention(const ojs_shm_segment* segment, char* buffer, size_t size) {
  return entry([&](Record& record) -> int64_t {
    return record.give(std::string(opened(segment).object.convention()), buffer, size);
  });
}

int64_t ojs_shm_segment_path(const ojs_shm_segment* segment, char* buffer, size_t size) {
  return entry([&](Record& record) -> int64_t {
    return record.give(opened(segment).object.path(), buffer, size);
  });
}

int64_t ojs_shm_segment_size_bytes(const ojs_shm_segment* segment) {
  return entry([&](Record&) -> int64_t {
    return static_cast<int64_t>(opened(segment).object.size_bytes());
  });
}

int ojs_shm_segment_remove(const char* name, const char* dir, int force) {
  return entry([&](Record& record) -> int {
    return record.done(ojs_shm::remove_segment(
        name_of(name, dir), force != 0 ? ojs_shm::Removal::kForced : ojs_shm::Removal::kUnused));
  });
}

int64_t ojs_shm_segment_list(const char* dir, char* buffer, size_t size) {
  return entry([&](Record& record) -> int64_t {
    return record.give(print(ojs_shm::list_segments(name_of(nullptr, dir).dir)), buffer, size);
  });
}

}  // extern "C"
