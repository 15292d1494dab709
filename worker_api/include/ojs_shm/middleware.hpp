// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ojs_shm/backpressure.hpp>
#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

class JobContext;

/// What middlewares of one job tell each other.
using Metadata = std::map<std::string, std::string, std::less<>>;

/// The rest of the chain, with the handler at its end. Calling it a second time throws
/// std::logic_error; not calling it leaves the handler out.
using HandlerNext = std::function<std::string()>;
/// Around a handler: returns the job's result, that of next() or its own. It must rethrow what
/// next() throws, or handle it: if it returns, the job completes. Called from several threads at
/// once.
using HandlerMiddleware = std::function<std::string(JobContext&, const HandlerNext& next)>;

/// The id of the stored job; nothing when a middleware dropped it.
using Enqueued = Result<std::optional<JobIdText>>;
/// The rest of the chain, with the enqueue at its end. Takes the job as it is to be stored; its id
/// stays as it was. Errors: as Producer::enqueue, and kInvalid for another id or a second call.
using EnqueueNext = std::function<Enqueued(const JobSpec&)>;
/// Around an enqueue: passes the job, or a changed copy of it, to next(); returns nothing without
/// it, and so drops the job; or returns an error, and nothing is stored. What views of a changed
/// job point to needs to live until next() returns.
using EnqueueMiddleware = std::function<Enqueued(const JobSpec&, const EnqueueNext& next)>;

/// Middlewares in their order: the first is the outermost. Each has a name of its own in its chain;
/// one function may have several names there.
template <class Middleware>
class MiddlewareChain {
 public:
  /// Errors of all four that add: kInvalid (no name, no function), kInUse (the name), kNotFound
  /// (`existing`), kWrongState (jobs go through the chain already).
  Status add(std::string name, Middleware middleware) {
    return put(entries_.size(), std::move(name), std::move(middleware));
  }
  Status prepend(std::string name, Middleware middleware) {
    return put(0, std::move(name), std::move(middleware));
  }
  Status insert_before(std::string_view existing, std::string name, Middleware middleware) {
    return put_at(existing, 0, std::move(name), std::move(middleware));
  }
  Status insert_after(std::string_view existing, std::string name, Middleware middleware) {
    return put_at(existing, 1, std::move(name), std::move(middleware));
  }
  /// Errors: kNotFound, kWrongState.
  Status remove(std::string_view name) {
    if (frozen_) return refuse(Code::kWrongState, "jobs go through the chain already", name);
    const std::size_t at = find(name);
    if (at == entries_.size()) return refuse(Code::kNotFound, "the chain has no middleware", name);
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : entries_) names.push_back(entry.first);
    return names;
  }
  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  const Middleware& at(std::size_t place) const { return entries_.at(place).second; }
  /// From now on the chain does not change.
  void freeze() noexcept { frozen_ = true; }

 private:
  static Error refuse(Code code, std::string_view why, std::string_view name) {
    return {.code = code,
            .message = std::string(why) + ": " + std::string(name),
            .subject = std::string(name)};
  }
  std::size_t find(std::string_view name) const noexcept {
    std::size_t at = 0;
    while (at < entries_.size() && entries_[at].first != name) ++at;
    return at;
  }
  Status put_at(std::string_view existing, std::size_t behind, std::string name,
                Middleware middleware) {
    const std::size_t at = find(existing);
    if (at == entries_.size())
      return refuse(Code::kNotFound, "the chain has no middleware", existing);
    return put(at + behind, std::move(name), std::move(middleware));
  }
  Status put(std::size_t at, std::string name, Middleware middleware) {
    if (frozen_) return refuse(Code::kWrongState, "jobs go through the chain already", name);
    if (name.empty() || !middleware)
      return refuse(Code::kInvalid, "a middleware needs a name and a function", name);
    if (find(name) != entries_.size())
      return refuse(Code::kInUse, "the chain has a middleware of that name", name);
    entries_.emplace(entries_.begin() + static_cast<std::ptrdiff_t>(at), std::move(name),
                     std::move(middleware));
    return {};
  }

  std::vector<std::pair<std::string, Middleware>> entries_;
  bool frozen_ = false;
};

using HandlerChain = MiddlewareChain<HandlerMiddleware>;
using EnqueueChain = MiddlewareChain<EnqueueMiddleware>;

/// Enqueues through the chain. A chain that several threads use must be complete before. Errors:
/// what a middleware or Producer::enqueue returns.
OJS_SHM_API Enqueued enqueue_through(const EnqueueChain& chain, Producer& producer,
                                     const JobSpec& job, const EnqueueOptions& options = {});
/// Each job goes through the chain by itself. If one returns an error, nothing is stored. The
/// jobs that are not dropped are stored together or not at all, and have an id at their place.
OJS_SHM_API Result<std::vector<std::optional<JobIdText>>> enqueue_batch_through(
    const EnqueueChain& chain, Producer& producer, std::span<const JobSpec> jobs,
    const EnqueueOptions& options = {});

}  // namespace ojs_shm
