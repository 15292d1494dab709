// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "shm/parking.hpp"
#include "worker_api/roles/producer_impl.hpp"
#include "worker_api/roles/results.hpp"

// The producer's dealings with full queues.

namespace ojs_shm {

using engine::Outcome;
using internal::may_be_the_dead;

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
    return {.code = Code::kTimeout,
            .message =
                "another process is in the middle of changing a job of the same unique key, "
                "and stands still or has died of it: nothing was stored, ask again",
            .subject = "unique"};
  const bool bounded = (store().queue(queue).flags.load() & engine::kBounded) != 0;
  if (outcome == Outcome::kBusy && bounded)  // a stopped process is in the middle of a drop
    return internal::error_of(Outcome::kQueueFull, store(), queue, subject);
  Error error = internal::error_of(outcome, store(), queue, subject);
  if (outcome != Outcome::kQueueFull) return error;
  if (actor().met().of_tenant) error.tenant = internal::tenant_of(specs[actor().met().refused]);
  internal::describe_refusal(actor().met(), error);
  return error;
}

std::optional<QueuePressure> Producer::pressure() const {
  const engine::Fullness& met = impl_->actor().met().fullness;
  if (met.bound == 0) return std::nullopt;
  return QueuePressure{met.depth, met.bound, met.bytes ? "bytes" : "jobs", met.pressure()};
}

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
    return impl_->refusal(outcome, jobs->front().queue,
                          specs.size() > 1 ? "batch" : specs.front().id, specs);
  return internal::texts_of(ids);
}

Result<int> Producer::room_fd() {
  if (impl_->handle->closed()) return internal::closed();
  if (!impl_->bell) {
    impl_->bell = std::make_unique<internal::RoomBell>(*impl_->handle);
    impl_->bell->waiting(impl_->waiting != 0, true);
  }
  return impl_->bell->fd();
}

// ---- for event loops ----------------------------------------------------------------------------

struct WaitingEnqueue::Impl {
  std::shared_ptr<Producer::Impl> producer;
  std::deque<std::string> texts = {};  ///< what the jobs point into
  std::deque<JobLimit> limits = {};
  std::deque<JobUnique> uniques = {};
  std::vector<JobSpec> specs = {};
  std::vector<engine::NewJob> jobs = {};
  std::optional<internal::RoomWait> wait = {};
  std::optional<Result<std::vector<JobIdText>>> decided = {};

  ~Impl() {
    wait.reset();
    if (!decided) gone();
  }
  std::string_view keep(std::string_view text) { return texts.emplace_back(text); }
  void look() {
    std::vector<engine::JobId> ids;
    const auto put = [&] {
      return producer->settled([&] { return producer->read_again(specs, jobs); },
                               [&] { return wait->look(ids); });
    };
    Outcome outcome = put();
    if (may_be_the_dead(outcome) && producer->handle->attachment().repair_the_dead() != 0)
      outcome = put();
    if (outcome == Outcome::kMustWait) return;
    if (outcome == Outcome::kDuplicate && shm::steady_ms() < wait->until_ms() &&
        producer->duplicate_of(specs).empty()) {
      producer->handle->attachment().repair_the_dead();
      return;  // a process is just bringing it, or has died at it
    }
    if (outcome == Outcome::kOk)
      decided.emplace(internal::texts_of(ids));
    else if (outcome == Outcome::kClash && producer->is_content(specs))
      decided.emplace(internal::texts_of(producer->in_the_way()));
    else
      decided.emplace(producer->refusal(outcome, jobs.front().queue, "batch", specs));
    gone();
  }
  void gone() {
    --producer->waiting;
    if (producer->bell) producer->bell->waiting(producer->waiting != 0, false);
  }
};

WaitingEnqueue::WaitingEnqueue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WaitingEnqueue::WaitingEnqueue(WaitingEnqueue&&) noexcept = default;
WaitingEnqueue& WaitingEnqueue::operator=(WaitingEnqueue&&) noexcept = default;
WaitingEnqueue::~WaitingEnqueue() = default;

Result<WaitingEnqueue> Producer::begin(std::span<const JobSpec> specs,
                                       const EnqueueOptions& options) {
  if (impl_->handle->closed()) return internal::closed();
  if (specs.empty()) return Error{Code::kInvalid, "there is no job to enqueue", "jobs", 0, 0, ""};
  if (Status checked = internal::check_block_timeout(options.block_timeout); !checked)
    return checked.error();
  auto waiting = std::make_unique<WaitingEnqueue::Impl>();
  waiting->producer = impl_;
  ++impl_->waiting;
  waiting->specs.assign(specs.begin(), specs.end());
  for (JobSpec& spec : waiting->specs) {
    for (std::string_view* text :
         {&spec.type, &spec.args, &spec.queue, &spec.id, &spec.extra, &spec.tenant})
      *text = waiting->keep(*text);
    internal::keep_result_ttl(spec, waiting->texts);
    if (spec.unique != nullptr) spec.unique = &waiting->uniques.emplace_back(*spec.unique);
    if (spec.limit != nullptr) spec.limit = &waiting->limits.emplace_back(*spec.limit);
  }
  auto jobs = impl_->read_batch(waiting->specs);
  if (!jobs) return jobs.error();
  waiting->jobs = std::move(jobs).value();
  waiting->wait.emplace(*impl_->handle, waiting->jobs, options.block_timeout);
  waiting->look();
  if (impl_->bell && !waiting->decided) impl_->bell->waiting(true, true);
  return WaitingEnqueue(std::move(waiting));
}

std::optional<Result<std::vector<JobIdText>>> WaitingEnqueue::poll() {
  if (!impl_->decided) {
    if (impl_->producer->handle->closed()) return internal::closed();
    if (impl_->producer->bell) impl_->producer->bell->hush();
    impl_->look();
  }
  return impl_->decided;
}

std::chrono::steady_clock::time_point WaitingEnqueue::deadline() const {
  return std::chrono::steady_clock::time_point(std::chrono::milliseconds(impl_->wait->until_ms()));
}

}  // namespace ojs_shm
