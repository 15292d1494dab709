// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/segment.hpp>

#include <cstdlib>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {

using internal::Attachment;

SegmentName segment_name_from_environment() {
  SegmentName name;
  if (const char* text = std::getenv("OJS_SHM_NAME"); text != nullptr && *text != '\0')
    name.name = text;
  if (const char* text = std::getenv("OJS_SHM_DIR"); text != nullptr && *text != '\0')
    name.dir = text;
  return name;
}

Result<Segment> Segment::attach(const SegmentName& name) {
  auto opened = Attachment::open(name, Attachment::Role::kMember);
  if (!opened) return opened.error();
  return Segment(std::move(opened).value());
}

Result<Segment> Segment::create(const SegmentName& name, const SegmentOptions& options) {
  auto made = Attachment::create(name, options, Attachment::Role::kMember);
  if (!made) return made.error();
  return Segment(std::move(made).value());
}

Result<Segment> Segment::observe(const SegmentName& name) {
  auto opened = Attachment::open(name, Attachment::Role::kObserver);
  if (!opened) return opened.error();
  return Segment(std::move(opened).value());
}

Result<Segment> Segment::examine(const std::string& path) {
  auto opened = Attachment::examine(path);
  if (!opened) return opened.error();
  return Segment(std::move(opened).value());
}

std::string_view Segment::convention() const {
  return engine::info(attachment_->store().convention()).name;
}
std::string Segment::path() const { return attachment_->segment().path(); }
std::uint64_t Segment::size_bytes() const { return attachment_->segment().size(); }

}  // namespace ojs_shm
