// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>

#include <ojs_shm/segment.hpp>

namespace ojs_shm::cli {

/// Whether a segment that a command watches still has its file: one that was removed shows what
/// stood there, and nothing comes to it. One thread.
class Presence {
 public:
  explicit Presence(Segment segment) : segment_(std::move(segment)) {}
  /// Looks once a second at most. Throws shell::Refusal (kCannotAttach) when the file was removed,
  /// or another has its name.
  void must_last();

 private:
  Segment segment_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace ojs_shm::cli
