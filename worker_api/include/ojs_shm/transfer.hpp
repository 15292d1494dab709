// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <ojs_shm/export.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>

namespace ojs_shm {

/// The version of the export's text that this library writes; it reads every one up to it.
inline constexpr std::uint32_t kExportVersion = 2;

/// A segment's default ageing, queues, pools of workers, limits, crons, default priorities and jobs
/// as lines of JSON, without line ends; docs/export.md has the format. Only reads, so it also works
/// on a segment that is mapped read-only. Exact in a quiet segment; else each job is as it was at
/// some instant. Ends with the first error that `line` returns. Errors: also kTimeout (a workflow
/// does not stand still).
OJS_SHM_API Status export_segment(const Segment& segment,
                                  const std::function<Status(std::string_view line)>& line);

/// What an import did.
struct ImportReport {
  /// put in; once finish() was called, those of them that are there
  std::uint64_t jobs = 0;
  std::uint64_t existing = 0;  ///< whose id was here already: left as they are
  std::uint64_t queues = 0;    ///< with their bounds and pauses
  std::uint64_t pools = 0;     ///< of workers
  std::uint64_t limits = 0;    ///< keys that have one
  std::uint64_t crons = 0;
  std::uint64_t default_priorities = 0;  ///< of types
  std::uint64_t defaulted = 0;           ///< of the jobs: brought no priority
  /// of the jobs: their rank is beyond this convention, so they got its last
  std::uint64_t clamped = 0;
  /// finished jobs that were put in and gave their room to other jobs by finish()
  std::uint64_t displaced = 0;
};

/// Puts an export into a segment, line by line. A kill leaves each line's job whole or not at all,
/// and the same lines again put in what is missing. One thread at a time.
class OJS_SHM_API Import {
 public:
  /// Errors: kSegmentFull (no free handle), kPermission (the segment only observes), kClosed.
  static Result<Import> attach(const Segment& segment);
  Import(Import&&) noexcept;
  Import& operator=(Import&&) noexcept;
  ~Import();

  /// The first line of an export first. Errors: kInvalid (the line is at fault), kOtherFormat (the
  /// first line is not an export's, or that of an export that this library cannot read), kTooLarge,
  /// kDuplicate (another job has its unique key, or a job of the workflow is here without it),
  /// kSegmentFull, kTimeout (a stopped process is in its way). The message names the line.
  Status take(std::string_view line);
  /// After the last line: puts in the jobs without a priority, so that they are behind the rest.
  /// Errors: as above; what is left is put in by the next call.
  Status finish();
  const ImportReport& report() const;

 private:
  struct Impl;
  explicit Import(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Whether an error of Import::take() is the line's alone, so that the next may fare better.
inline bool refuses_one_line(Code code) {
  return code == Code::kInvalid || code == Code::kTooLarge || code == Code::kDuplicate;
}

}  // namespace ojs_shm
