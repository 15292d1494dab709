// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

/// What a child process that will be killed has at hand.
struct Hands {
  explicit Hands(const SegmentName& where);
  explicit Hands(Segment attached);
  Segment segment;
  /// for operations of the engine that no public call makes
  std::unique_ptr<internal::Handle> handle;
  std::optional<Producer> producer;
  std::optional<Worker> worker;
  std::optional<Admin> admin;
  Job job;                              ///< what setup fetched
  std::string id;                       ///< what setup enqueued last
  std::map<unsigned, std::string> ids;  ///< of the jobs that basic operations know by number
  /// told of each job that put() has enqueued, when it is set
  std::function<void(const std::string& id)> accepted;

  std::string put(const JobSpec& spec);
  std::string put(std::int64_t priority = 2, std::string_view queue = "default");
  void take(Job& into);
  std::string first(const JobFilter& filter);  ///< the id of the first job in a list
  void move_clock(std::uint64_t ms);
  /// The segment's time stands until a lane moves it.
  void stop_clock();
  void tick();  ///< as a supervisor
};

/// A job as the operations enqueue it. `args` must outlive it.
JobSpec spec_of(std::string_view args = "[1]");

/// Args of that many bytes, brackets and quotes aside.
std::string big_args(std::size_t size);
Failure failure(bool retryable = true);

/// A segment small enough for a quick audit.
SegmentOptions small_segment();

}  // namespace ojs_shm::test
