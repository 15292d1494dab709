// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <ojs_shm/admin.hpp>

#include "engine/tables/make.hpp"
#include "engine/tables/store.hpp"
#include "shm/member.hpp"
#include "worker_api/roles/attachment.hpp"

// The files of segments: which there are, and when one may go.

namespace ojs_shm {

std::vector<SegmentFile> list_segments(const std::string& dir) {
  std::vector<SegmentFile> files;
  DIR* stream = ::opendir(dir.c_str());
  if (stream == nullptr) return files;
  constexpr std::string_view kPrefix = "ojs-shm.", kLock = ".lock";
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix) || name.ends_with(kLock)) continue;
    SegmentFile file;
    file.name = name.substr(kPrefix.size());
    file.path = dir + "/" + std::string(name);
    struct stat status {};
    if (::stat(file.path.c_str(), &status) == 0)
      file.size_bytes = static_cast<std::uint64_t>(status.st_size);
    const auto segment = Segment::observe({file.name, dir});
    file.readable = segment.ok();
    if (segment)
      file.alive = segment.value().attachment()->others_attached();
    else
      file.problem = segment.error().message;
    files.push_back(std::move(file));
  }
  ::closedir(stream);
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

namespace {

Status remove_files(const std::string& path) {
  const bool removed = ::unlink(path.c_str()) == 0;
  const int error = errno;
  ::unlink(shm::LockFile::path_of(path).c_str());
  if (removed) return {};
  if (error == ENOENT) return Error{Code::kNotFound, "no segment " + path}.about("segment");
  return Error{error == EACCES || error == EPERM ? Code::kPermission : Code::kInternal,
               path + ": " + std::generic_category().message(error)}
      .about("segment");
}

/// While it stands no process attaches to the segment.
class Closure {
 public:
  explicit Closure(internal::Attachment& attachment) {
    const std::string& path = attachment.segment().path();
    // Who may not lock may not remove, mostly; and no lock file is made to be removed.
    if (::access(shm::LockFile::path_of(path).c_str(), R_OK | W_OK) != 0 ||
        !locks_.open(path, true, 0, {}).empty())
      return;
    for (std::uint32_t i = 0; i < attachment.segment().geometry().processes; ++i)
      if (i != attachment.process() && !locks_.try_lock(shm::kProcessByte + i)) in_use_ = true;
  }
  bool in_use() const { return in_use_; }

 private:
  shm::LockFile locks_;
  bool in_use_ = false;
};

/// What would be lost with a segment.
struct Remains {
  std::uint64_t unfinished = 0, dead_letters = 0, crons = 0;
  bool any() const { return unfinished + dead_letters + crons != 0; }
};

Remains remains_of(const engine::Store& store) {
  Remains remains;
  for (std::uint32_t i = 0; i < store.slots(); ++i) {
    const engine::JobRecord& job = store.job(i);
    const engine::Control control(job.control.load());
    const unsigned state = control.state();
    if (state == engine::kSlotHead) continue;  // its members tell
    if (engine::is_finished(state))
      remains.dead_letters +=
          state == engine::kSlotDiscarded && job.flags().has(engine::Policy::kDead) ? 1 : 0;
    else if (state == engine::kSlotTemplate)
      ++remains.crons;
    else if (state != engine::kSlotFree && state != engine::kSlotFilling)
      ++remains.unfinished;
  }
  return remains;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

Error leads_elsewhere(internal::Attachment& attachment) {
  return Error{Code::kNotFound, attachment.segment().path() + " no longer leads to this segment"}
      .about("segment");
}

/// `path` may be a link to it.
Status remove_if_unused(internal::Attachment& attachment, const std::string& path,
                        Removal removal) {
  const SegmentName& name = attachment.name();
  if (!attachment.segment().named()) return leads_elsewhere(attachment);
  const bool others =
      attachment.others_attached();  // asked first: it takes the closure for another
  const Closure closure(attachment);
  if (others || closure.in_use())
    return Error{Code::kInUse, attachment.segment().path() + " is in use by a living process"}
        .about("segment");
  if (!attachment.segment().named()) return leads_elsewhere(attachment);
  if (removal != Removal::kUnused) return remove_files(path);
  const Remains remains = remains_of(attachment.store());
  if (!remains.any()) return remove_files(path);
  std::string what;
  if (remains.unfinished != 0)
    what = counted(remains.unfinished, "unfinished job", "unfinished jobs");
  if (remains.dead_letters != 0)
    what += (what.empty() ? "" : " and ") +
            counted(remains.dead_letters, "dead letter", "dead letters");
  if (remains.crons != 0)
    what += (what.empty() ? "" : " and ") + counted(remains.crons, "cron", "crons");
  return Error{Code::kWrongState, "segment '" + name.name + "' holds " + what + "; `ojs-shm rm " +
                                      name.name + " --dir " + name.dir +
                                      " --force` removes it all the same"}
      .about("jobs")
      .uses(remains.unfinished + remains.dead_letters, 0, "jobs");
}

/// Of a file that cannot be attached to: it goes when it holds no job for certain, or by force when
/// it is a segment.
Status may_go_unread(const SegmentName& name, const shm::Opened& opened, Removal removal) {
  const std::string path = internal::path_of(name);
  switch (opened.code) {
    case shm::OpenCode::kNoFile:  // a link that leads nowhere, or nothing at all
    case shm::OpenCode::kNotReady: return {};
    case shm::OpenCode::kNotASegment:
      return Error{Code::kOtherFormat,
                   opened.detail + ": it is left alone; delete it by hand if it is not needed"}
          .about("segment");
    case shm::OpenCode::kOtherFormat:
    case shm::OpenCode::kOtherLayout:
    case shm::OpenCode::kTorn:
      if (removal == Removal::kForced) return {};
      return Error{Code::kOtherFormat,
                   opened.detail + ", so its jobs cannot be counted; `ojs-shm rm " + name.name +
                       " --dir " + name.dir + " --force` removes it all the same"}
          .about("segment");
    default: return internal::error_of(opened);
  }
}

}  // namespace

Status remove_segment(const Segment& segment, Removal removal) {
  internal::Attachment& attachment = *segment.attachment();
  if (attachment.forked()) return internal::closed();
  return remove_if_unused(attachment, segment.path(), removal);
}

Status remove_segment(const SegmentName& name, Removal removal) {
  if (const std::string problem = internal::problem_of(name); !problem.empty())
    return Error{Code::kInvalid, problem}.about("name");
  const std::string path = internal::path_of(name);
  if (const shm::Opened opened = engine::open(path, shm::Mapping::kReadOnly);
      opened.code != shm::OpenCode::kOk) {
    if (const Status checked = may_go_unread(name, opened, removal); !checked) return checked;
  } else if (removal != Removal::kForced) {
    const auto segment = Segment::observe(name);
    if (!segment) return segment.error();
    return remove_if_unused(*segment.value().attachment(), path, removal);
  }
  return remove_files(path);
}

}  // namespace ojs_shm
