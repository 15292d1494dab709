// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker_api/roles/producer_impl.hpp"
#include "worker_api/roles/room_line.hpp"

namespace ojs_shm {

struct WaitingEnqueue::Impl final : internal::InLine {
  std::shared_ptr<Producer::Impl> producer;
  std::shared_ptr<internal::RoomLine> line;  ///< that looks after it; none: its caller does
  std::deque<std::string> texts;             ///< what the jobs point into
  std::deque<JobLimit> limits;
  std::deque<JobUnique> uniques;
  std::vector<JobSpec> specs;
  std::vector<engine::NewJob> jobs;
  std::optional<Result<std::vector<JobIdText>>> decided;
  std::vector<bool> deduplicated;
  std::optional<QueuePressure> pressure;

  /// Begins one, and looks for the first time.
  static Result<WaitingEnqueue> begin(std::shared_ptr<Producer::Impl> producer,
                                      std::span<const JobSpec> specs, const EnqueueOptions& options,
                                      std::shared_ptr<internal::RoomLine> line = {},
                                      std::uint64_t tag = 0);
  ~Impl() override;
  bool look() override;

 private:
  void keep(std::span<const JobSpec> given);
  std::string_view keep(std::string_view text) { return texts.emplace_back(text); }
};

}  // namespace ojs_shm
