// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/proxy.hpp>

#include <map>

#include "engine/names.hpp"
#include "engine/turns.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {

using internal::Handle;

namespace {

/// Clients that ask for shares of the same queues share their turns; beyond so many sets the turns
/// begin anew.
constexpr std::size_t kMostTurns = 256;

using Shares = std::pair<std::vector<std::string>, std::vector<std::uint32_t>>;

}  // namespace

struct Proxy::Impl {
  std::unique_ptr<Handle> handle;
  /// An actor serves one pool, so each pool that was asked for has a handle.
  std::map<std::uint32_t, std::unique_ptr<Handle>> pools;
  std::map<Shares, engine::Turns> turns;
  std::string body;  ///< of the job fetched last

  engine::Store& store() { return handle->store(); }
  Result<engine::Snapshot> find(std::string_view id, bool texts);
  /// The job of the id, active in the attempt that is meant.
  Result<engine::Snapshot> hold(std::string_view id, std::uint64_t fence, bool texts = false);
  Error error(engine::Outcome outcome) {
    return internal::error_of(outcome, store(), engine::kNoIndex, "result");
  }

  Status check(const FetchRequest& request) const;
  Result<Handle*> handle_of_pool(std::uint32_t pool);
  /// One job of a queue, into `job`; false when it has none.
  bool take(engine::Actor& actor, std::uint32_t queue, std::uint32_t lease_ms,
            engine::Fetched& job) {
    job.body = &body;
    return queue != engine::kNoIndex &&
           actor.fetch(queue, lease_ms, true, job) == engine::Outcome::kOk;
  }
  bool take_from_queues(const FetchRequest& request, engine::Fetched& job);
  Status fill(const FetchRequest& request, std::vector<JobInfo>& jobs);
};

Proxy::Proxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Proxy::Proxy(Proxy&&) noexcept = default;
Proxy& Proxy::operator=(Proxy&&) noexcept = default;
Proxy::~Proxy() = default;

Result<Proxy> Proxy::attach(const Segment& segment) {
  auto handle = Handle::make(segment);
  if (!handle) return handle.error();
  auto impl = std::make_unique<Impl>();
  impl->handle = std::move(handle).value();
  return Proxy(std::move(impl));
}

std::uint64_t Proxy::now_ms() const { return impl_->store().now_ms(); }
const Segment& Proxy::segment() const { return impl_->handle->segment(); }

Status Proxy::Impl::check(const FetchRequest& request) const {
  if (request.queues.empty())
    return internal::invalid_setting("queues", "queues must name at least one queue");
  for (const std::string& queue : request.queues)
    if (!engine::valid_queue_name(queue))
      return internal::invalid_setting(
          "queues", "'" + queue.substr(0, 64) +
                        "' is not a queue's name: lower-case letters, digits, hyphens and dots");
  if (request.weights.empty()) return {};
  if (request.weights.size() != request.queues.size())
    return internal::invalid_setting("weights", "weights must have one number for each queue");
  for (const std::uint32_t weight : request.weights)
    if (weight < 1 || weight > 1000)
      return internal::invalid_setting("weights", "a weight is a number from 1 to 1000", 1000);
  return {};
}

Result<Handle*> Proxy::Impl::handle_of_pool(std::uint32_t pool) {
  auto& known = pools[pool];
  if (!known) {
    auto made = Handle::make(handle->segment());
    if (!made) return made.error();
    known = std::move(made).value();
  }
  known->actor().join_pool(pool, 0);
  return known.get();
}

bool Proxy::Impl::take_from_queues(const FetchRequest& request, engine::Fetched& job) {
  const auto from = [&](std::size_t place) {
    return take(handle->actor(), store().find_queue(request.queues[place]), request.lease_ms, job);
  };
  if (!request.weights.empty()) {
    if (turns.size() == kMostTurns) turns.clear();
    const Shares shares{request.queues, request.weights};
    return turns.try_emplace(shares, engine::Turns(request.weights)).first->second.serve_next(from);
  }
  for (std::size_t place = 0; place < request.queues.size(); ++place)
    if (from(place)) return true;
  return false;
}

/// Fetches until there are enough, or none is left.
Status Proxy::Impl::fill(const FetchRequest& request, std::vector<JobInfo>& jobs) {
  const bool named = !request.pool.empty();
  const std::uint32_t pool = store().find_pool(named ? request.pool : "default");
  if (named && pool == engine::kNoIndex) return internal::no_pool(request.pool);
  engine::Actor* actor = &handle->actor();
  if (pool != engine::kNoIndex) {
    const auto serving = handle_of_pool(pool);
    if (!serving) return serving.error();
    actor = &serving.value()->actor();
  }
  while (jobs.size() < request.count) {
    engine::Fetched got;
    got.body = &body;
    const bool found =
        pool == engine::kNoIndex
            ? take_from_queues(request, got)
            : actor->fetch_from_pool(pool, request.lease_ms, true, got) == engine::Outcome::kOk;
    if (!found) break;
    const auto snapshot = store().snapshot(got.slot);
    if (!snapshot || snapshot->control.word != got.word) continue;  // cancelled since
    JobInfo info = internal::info_of(store(), *snapshot);
    if (request.tenant && tenant_of(info.extra) != *request.tenant) {
      (void)actor->set_back(got.slot, got.word, engine::Setback::kRequeue, nullptr);
      break;
    }
    jobs.push_back(std::move(info));
  }
  return {};
}

Result<std::vector<JobInfo>> Proxy::fetch(const FetchRequest& request) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status checked = impl_->check(request); !checked) return checked.error();
  std::vector<JobInfo> jobs;
  if (Status filled = impl_->fill(request, jobs); !filled) return filled.error();
  return jobs;
}

Result<engine::Snapshot> Proxy::Impl::find(std::string_view id, bool texts) {
  if (handle->closed()) return internal::closed();
  const auto parsed = engine::parse_id(id);
  if (!parsed) return internal::not_an_id(id);
  for (int look = 0; look < 1000; ++look) {
    const std::uint32_t slot = store().find_job(*parsed);
    if (slot == engine::kNoIndex) break;
    auto snapshot = store().snapshot(slot, texts);
    if (snapshot && snapshot->id == *parsed) return std::move(*snapshot);
  }
  return internal::error_of(engine::Outcome::kNotFound, store(), engine::kNoIndex, id);
}

Result<engine::Snapshot> Proxy::Impl::hold(std::string_view id, std::uint64_t fence, bool texts) {
  auto found = find(id, texts);
  if (!found) return found;
  if (found->state() != engine::JobState::kActive)
    return internal::wrong_state(id, found->state(), "active");
  if (fence != 0 && found->control.tag() != fence) return error(engine::Outcome::kLost);
  return found;
}

Status Proxy::ack(std::string_view id, std::uint64_t fence, std::string_view result) {
  const auto held = impl_->hold(id, fence);
  if (!held) return held.error();
  std::uint64_t word = held->control.word;
  const engine::Outcome outcome = impl_->handle->actor().ack(held->slot, word, result);
  return outcome == engine::Outcome::kOk ? Status() : Status(impl_->error(outcome));
}

Result<NackOutcome> Proxy::nack(std::string_view id, std::uint64_t fence, const Failure& failure) {
  const auto held = impl_->hold(id, fence, true);
  if (!held) return held.error();
  const std::string_view extra =
      std::string_view(held->body)
          .substr(std::min<std::size_t>(held->body.size(),
                                        std::size_t{held->type_length} + held->args_length));
  engine::ErrorEntry entry;
  entry.at_ms = impl_->store().now_ms();
  entry.attempt = held->attempt;
  entry.code = failure.code;
  entry.type = failure.type.empty() ? failure.code : failure.type;
  entry.retryable = failure.retryable && !forbids_retry(extra, entry.type);
  entry.message = failure.message;
  entry.details = failure.details;
  const engine::Settled settled = impl_->handle->actor().set_back(held->slot, held->control.word,
                                                                  engine::Setback::kNack, &entry);
  if (settled.outcome != engine::Outcome::kOk) return impl_->error(settled.outcome);
  return NackOutcome{static_cast<State>(settled.state), settled.delay_ms, settled.due_at};
}

Status Proxy::requeue(std::string_view id, std::uint64_t fence) {
  const auto held = impl_->hold(id, fence);
  if (!held) return held.error();
  const engine::Settled settled = impl_->handle->actor().set_back(
      held->slot, held->control.word, engine::Setback::kRequeue, nullptr);
  return settled.outcome == engine::Outcome::kOk ? Status() : Status(impl_->error(settled.outcome));
}

Result<std::uint64_t> Proxy::heartbeat(std::string_view id, std::uint64_t fence,
                                       std::uint32_t lease_ms) {
  const auto held = impl_->hold(id, fence);
  if (!held) return held.error();
  std::uint64_t until = 0;
  const engine::Outcome outcome =
      impl_->handle->actor().heartbeat(held->slot, held->control.word, lease_ms, until);
  if (outcome != engine::Outcome::kOk) return impl_->error(outcome);
  return until;
}

Status Proxy::progress(std::string_view id, std::uint64_t fence, double fraction) {
  if (!(fraction >= 0.0 && fraction <= 1.0))
    return internal::invalid_setting("progress", "progress is a number from 0 to 1", 1);
  const auto held = impl_->hold(id, fence);
  if (!held) return held.error();
  const engine::Outcome outcome =
      impl_->handle->actor().progress(held->slot, held->control.word, fraction);
  return outcome == engine::Outcome::kOk ? Status() : Status(impl_->error(outcome));
}

}  // namespace ojs_shm
