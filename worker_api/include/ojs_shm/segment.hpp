// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <ojs_shm/export.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

namespace internal {
class Attachment;
}

/// Where a segment lives: the files DIR/ojs-shm.NAME and DIR/ojs-shm.NAME.lock.
struct SegmentName {
  /// 1..64 bytes of [A-Za-z0-9._-], not beginning with a dot and not ending in .lock
  std::string name = "default";
  std::string dir = "/dev/shm";
};

/// OJS_SHM_NAME and OJS_SHM_DIR, else the defaults above.
OJS_SHM_API SegmentName segment_name_from_environment();

/// What can be chosen only once, when the segment is made. 0: a default that fits the size.
struct SegmentOptions {
  /// default: what the rest needs, at most 60 MiB with all defaults
  std::uint64_t size_bytes = 0;
  /// jobs the segment can hold, finished ones included (default 102,400)
  std::uint32_t slots = 0;
  std::uint32_t max_queues = 0;  ///< default 64
  /// with jobs waiting at one level of one queue, summed up (default 1,024)
  std::uint32_t max_tenants = 0;
  std::uint32_t max_body_bytes = 0;  ///< largest body, result or error (default 1 MiB)
  /// producers, workers, admins, supervisor at once (default 120, at most 1,016)
  std::uint32_t max_handles = 0;
  /// enqueues that wait for room at once (default eight for each handle, at most 1,048,576)
  std::uint32_t max_waiting = 0;
  std::string convention =
      {};  ///< "ojs" (also when empty), "ojs-core" or "qo"; of an existing segment: must match
  std::uint32_t mode = 0660;  ///< permission bits, set whatever the umask is
  std::string group = {};     ///< empty: the creator's
  /// finished jobs older than this are dropped; 0: kept until room is needed
  std::uint64_t retention_ms = 0;
};

/// One attachment of this process to a segment. Copies share it; it is detached when the last copy
/// and the last handle made from it are gone. Thread-safe. After fork() the child's copy answers
/// kClosed to all but observers.
class OJS_SHM_API Segment {
 public:
  /// Attaches read-write as a living member. Errors: kInvalid (the name), kCannotAttach,
  /// kOtherFormat, kPermission, kSegmentFull (no free record), kInUse (its lock file is gone, and a
  /// process lives in it).
  static Result<Segment> attach(const SegmentName& name);
  /// Makes the segment whole or not at all. Errors: kInUse (exists), kCannotAttach (no such
  /// directory), kNoSpace, kInvalid, kPermission.
  static Result<Segment> create(const SegmentName& name, const SegmentOptions& options);
  /// Maps read-only, is not a member, takes no lock. Only Observer can be made from it.
  static Result<Segment> observe(const SegmentName& name);
  /// Opens a copy of a segment's file, to look at it after a crash: the file is only read, every
  /// process counts as dead, and the time is that of its last trace. Only Observer can be made from
  /// it. Errors: kCannotAttach, kOtherFormat, kPermission.
  static Result<Segment> examine(const std::string& path);

  std::string_view convention() const;
  std::string path() const;
  std::uint64_t size_bytes() const;
  const std::shared_ptr<internal::Attachment>& attachment() const { return attachment_; }
  /// For the library's own rooms.
  static Segment of(std::shared_ptr<internal::Attachment> attachment) {
    return Segment(std::move(attachment));
  }

 private:
  explicit Segment(std::shared_ptr<internal::Attachment> attachment)
      : attachment_(std::move(attachment)) {}
  std::shared_ptr<internal::Attachment> attachment_;
};

/// The segment format this library reads and writes.
OJS_SHM_API std::uint32_t segment_format() noexcept;
OJS_SHM_API std::string_view library_version() noexcept;

}  // namespace ojs_shm
