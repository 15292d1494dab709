// SPDX-License-Identifier: Apache-2.0
#include "shm/parking.hpp"
#include "worker_api/roles/producer_impl.hpp"
#include "worker_api/roles/results.hpp"

// The producer's dealings with full queues.

namespace ojs_shm {

using engine::Outcome;

Error Producer::Impl::refusal(Outcome outcome, std::uint32_t queue, std::string_view subject,
                              std::span<const JobSpec> specs) {
  if (outcome == Outcome::kDuplicate) {
    const std::string_view id = duplicate_of(specs);
    return id.empty() ? internal::just_brought(subject)
                      : internal::error_of(outcome, store(), queue, id);
  }
  if (outcome == Outcome::kClash) return clash_error(specs);
  const bool unique =
      std::ranges::any_of(specs, [](const JobSpec& spec) { return spec.unique != nullptr; });
  if (outcome == Outcome::kBusy && unique)
    return Error{Code::kTimeout,
                 "another process was changing a job of the same unique key and has stopped or "
                 "died; nothing was stored: try again"}
        .about("unique");
  const bool bounded = (store().queue(queue).flags.load() & engine::kBounded) != 0;
  if (outcome == Outcome::kBusy && bounded)  // a stopped process is in the middle of a drop
    return internal::error_of(Outcome::kQueueFull, store(), queue, subject);
  Error error = internal::error_of(outcome, store(), queue, subject);
  if (outcome != Outcome::kQueueFull) return error;
  if (actor().met().of_tenant) error.tenant = internal::tenant_of(specs[actor().met().refused]);
  internal::describe_refusal(actor().met(), error);
  return error;
}

std::optional<QueuePressure> Producer::Impl::pressure() {
  const engine::Fullness& met = actor().met().fullness;
  if (met.bound == 0) return std::nullopt;
  return QueuePressure{met.depth, met.bound, met.bytes ? "bytes" : "jobs", met.pressure()};
}

std::optional<QueuePressure> Producer::pressure() const { return impl_->pressure(); }

Result<JobIdText> Producer::enqueue(const JobSpec& spec, const EnqueueOptions& options) {
  if (options.block_timeout.count() == 0) return enqueue(spec);
  auto ids = enqueue_batch(std::span(&spec, 1), options);
  if (!ids) return ids.error();
  return ids->front();
}

Result<std::vector<JobIdText>> Producer::enqueue_batch(std::span<const JobSpec> given,
                                                       const EnqueueOptions& options) {
  if (options.block_timeout.count() == 0 || given.empty()) return enqueue_batch(given);
  const internal::KeptSpecs kept(given);
  const std::span specs = kept.all();
  if (impl_->handle->closed()) return internal::closed();
  if (Status checked = internal::check_block_timeout(options.block_timeout); !checked)
    return checked.error();
  impl_->ignored = false;
  auto jobs = impl_->read_batch(specs);
  if (!jobs) return jobs.error();
  std::vector<engine::JobId> ids;
  internal::RoomWait wait(*impl_->handle, *jobs, options.block_timeout);
  const Outcome outcome = impl_->patiently(specs, [&] {
    return impl_->settled([&] { return impl_->read_again(specs, *jobs); },
                          [&] { return wait.wait(ids); });
  });
  if (outcome == Outcome::kClash && impl_->is_content(specs))
    return internal::texts_of(impl_->in_the_way());
  if (outcome != Outcome::kOk)
    return impl_->refusal(outcome, impl_->refusing(*jobs),
                          specs.size() > 1 ? "batch" : specs.front().id, specs);
  return internal::texts_of(ids);
}

}  // namespace ojs_shm
