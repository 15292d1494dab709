// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ojs_shm/proxy.hpp>

#include "engine/fetch/turns.hpp"
#include "engine/rules/names.hpp"
#include "engine/tenants/tenant_fetch.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/awaited_ends.hpp"
#include "worker_api/roles/event_bell.hpp"
#include "worker_api/roles/producer_impl.hpp"
#include "worker_api/roles/registered_workers.hpp"
#include "worker_api/roles/room_line.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm {

namespace internal {

/// Errors: kInvalid.
inline Status check_names(const std::vector<std::string>& queues) {
  for (const std::string& queue : queues)
    if (!engine::valid_queue_name(queue))
      return internal::invalid_setting(
          "queues", "'" + queue.substr(0, 64) +
                        "' is not a queue's name: lower-case letters, digits, hyphens and dots");
  return {};
}

}  // namespace internal

struct Proxy::Impl {
  std::shared_ptr<Producer::Impl> producer;
  internal::Handle* handle;  ///< the producer's
  /// An actor serves one pool, so each pool that was asked for has a handle.
  std::map<std::uint32_t, std::unique_ptr<internal::Handle>> pools;
  /// by queues and shares
  std::map<std::pair<std::vector<std::string>, std::vector<std::uint32_t>>, engine::Turns> turns;
  std::string body;  ///< of the job fetched last
  /// Where the workers are that fetched last.
  std::unordered_map<std::string, engine::WorkerKey> workers;
  std::unique_ptr<internal::AwaitedEnds> ends;
  internal::EventBell::Wanted awaited;
  std::shared_ptr<internal::EventBell> bell;
  std::shared_ptr<internal::RoomLine> line;

  /// The descriptor, when it tells of `awaited`.
  Result<int> await();
  engine::Store& store() { return handle->store(); }
  Result<engine::Snapshot> find(std::string_view id, bool texts);
  /// The job of the id, active in the attempt that is meant.
  Result<engine::Snapshot> hold(std::string_view id, std::uint64_t fence, bool texts);
  /// What `act` does to it. The job may be handed over between the look and the act, which is the
  /// same attempt under another word, so that it is looked at once more.
  template <class Act>
  Status with_held(std::string_view id, std::uint64_t fence, bool texts, const Act& act,
                   std::string_view subject = "result") {
    for (bool again = false;; again = true) {
      const auto held = hold(id, fence, texts);
      if (!held) return held.error();
      const engine::Outcome outcome = act(*held);
      if (outcome == engine::Outcome::kOk) return {};
      if (outcome != engine::Outcome::kLost || again) return error(outcome, subject);
      fence = held->control.tag();
    }
  }
  Error error(engine::Outcome outcome, std::string_view subject = "result") {
    return internal::error_of(outcome, store(), engine::kNoIndex, subject);
  }
  Status report(std::string_view id, std::uint64_t fence, const engine::Report& report);

  engine::Settled set_back(const engine::Snapshot& job, engine::Setback why,
                           const engine::ErrorEntry* error) {
    const engine::Settled settled =
        handle->actor().set_back(job.slot, job.control.word, why, error);
    if (settled.outcome == engine::Outcome::kOk) leaves(job);
    return settled;
  }
  /// Its worker has it no more.
  void leaves(const engine::Snapshot& job) {
    engine::Registry(handle->actor()).count(job.worker, -1);
  }

  Status check(const FetchRequest& request) const;
  Result<internal::Handle*> handle_of_pool(std::uint32_t pool, bool for_worker);
  /// The registered worker that asks, if it is named; a sign of its life.
  engine::WorkerKey worker_of(const FetchRequest& request);
  bool takes_jobs(engine::WorkerKey worker);
  /// How many more jobs the worker may have, where the pool's strategy looks at that.
  std::uint32_t own_pool(engine::WorkerKey worker);
  std::uint32_t pool_of(engine::WorkerKey worker);
  std::size_t room_of(engine::WorkerKey worker, std::uint32_t pool);
  /// One job of a queue, into `job`; false when it has none.
  bool take(std::uint32_t queue, const FetchRequest& request, engine::Fetched& job) {
    return queue != engine::kNoIndex &&
           handle->actor().fetch(queue, request.lease_ms, !request.held, job) ==
               engine::Outcome::kOk;
  }
  /// Asks the queues of the request in the order of their turns, until one gives a job.
  template <class Take>
  bool in_turn(const FetchRequest& request, const Take& from_queue);
  bool take_of_tenant(engine::TenantFetch& fetch, engine::PoolWorker& worker, std::uint32_t pool,
                      const FetchRequest& request, engine::Fetched& job);
  Status fill(const FetchRequest& request, std::vector<JobInfo>& jobs);
};

}  // namespace ojs_shm
