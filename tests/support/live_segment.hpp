// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/segment.hpp>

#include "tests/support/process.hpp"

namespace ojs_shm::test {

/// A broker in a directory of its own, and the command line at work on its segment. All of it goes
/// at the end.
class LiveSegment {
 public:
  /// Starts `ojs-shm-broker` with these flags added and waits for READY. Throws when it does not
  /// come.
  explicit LiveSegment(std::vector<std::string> broker_flags = {});

  SegmentName where() const { return {"test", folder_.path()}; }
  const ScratchDirectory& folder() const { return folder_; }
  std::string file() const { return folder_ / "ojs-shm.test"; }
  Process& broker() { return *broker_; }
  /// Another broker process for the same segment; the previous one must have ended.
  void start_broker(std::vector<std::string> flags = {});
  /// `ojs-shm WORDS... --name test --dir ...`, to its end.
  Finished cli(const std::vector<std::string>& words, std::string input = {}) const;
  Process start_cli(const std::vector<std::string>& words,
                    const ProcessOptions& options = {}) const;
  /// Enqueues with these flags and returns the id. Throws when it is refused.
  std::string enqueue(const std::vector<std::string>& flags) const;
  /// A member of `ojs-shm get ID --json`, as text or JSON; empty when there is none.
  std::string job(const std::string& id, std::string_view member) const;
  bool becomes(const std::string& id, std::string_view state) const;
  /// A program that prints nothing at first has begun once it maps the segment's file.
  bool is_mapped_by(const Process& process) const;

 private:
  std::vector<std::string> with_target(std::string_view name,
                                       const std::vector<std::string>& words) const;

  ScratchDirectory folder_;
  std::optional<Process> broker_;
};

/// Jobs that are not at their end, by one walk over them: the depth is a sum of its own, and a job
/// that comes back between two sums stands in neither.
std::uint64_t unfinished(const QueueInfo& queue);
/// A member of a JSON object as text (a string) or JSON (anything else); "a.b" goes into inner
/// objects.
std::string member(std::string_view object, std::string_view path);
std::vector<std::string> lines_of(std::string_view text);

}  // namespace ojs_shm::test
