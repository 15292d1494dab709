// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

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
  Segment segment;
  /// for operations of the engine that no public call makes
  std::unique_ptr<internal::Handle> handle;
  std::optional<Producer> producer;
  std::optional<Worker> worker;
  std::optional<Admin> admin;
  Job job;         ///< what setup fetched
  std::string id;  ///< what setup enqueued last
  /// told of each job that put() has enqueued, when it is set
  std::function<void(const std::string& id)> accepted;

  std::string put(const JobSpec& spec);
  std::string put(std::int64_t priority = 2, std::string_view queue = "default");
  void take(Job& into);
  void move_clock(std::uint64_t ms);
  /// The segment's time stands until a lane moves it.
  void stop_clock();
  void tick();  ///< as a supervisor
};

/// One operation of the engine. A new one joins every crash lane by one entry in operations().
struct Operation {
  std::string name;
  std::function<void(Hands&)> prepare;  ///< runs unharmed
  std::function<void(Hands&)> act;      ///< is killed after each of its shared writes in turn
};
const std::vector<Operation>& operations();
/// Those in which two threads write (thread_operations.cpp): for lanes that watch every thread. Who
/// steps one of them through its instructions could neither kill at those of the other nor tell
/// whose a change was.
const std::vector<Operation>& operations_of_threads();
/// With those of the order in a queue (order_operations.cpp).
std::vector<Operation> with_order_operations(std::vector<Operation> all);
/// With those of unique jobs (unique_operations.cpp).
std::vector<Operation> with_id_operations(std::vector<Operation> all);
std::vector<Operation> with_unique_operations(std::vector<Operation> all);
/// With those of limits (limit_operations.cpp).
std::vector<Operation> with_limit_operations(std::vector<Operation> all);
/// Those of pools of workers behind all others.
std::vector<Operation> with_pool_operations(std::vector<Operation> all);
/// With those of workflows (workflow_operations.cpp).
std::vector<Operation> with_workflow_operations(std::vector<Operation> all);
/// With those of crons (cron_operations.cpp).
std::vector<Operation> with_cron_operations(std::vector<Operation> all);
/// With those of registered workers (worker_operations.cpp).
std::vector<Operation> with_worker_operations(std::vector<Operation> all);
/// With those of what goes by itself or with its queue (removal_operations.cpp).
std::vector<Operation> with_removal_operations(std::vector<Operation> all);
/// With those on full queues (full_queues.cpp).
std::vector<Operation> with_full_queues(std::vector<Operation> others);

/// A job as the operations enqueue it. `args` must outlive it.
JobSpec spec_of(std::string_view args = "[1]");

/// A segment small enough for a quick audit.
SegmentOptions small_segment();

}  // namespace ojs_shm::test
