// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/waiting_enqueue.hpp"

#include "shm/parking.hpp"
#include "worker_api/roles/results.hpp"

namespace ojs_shm {

using engine::Outcome;
using internal::may_be_the_dead;

Result<WaitingEnqueue> WaitingEnqueue::Impl::begin(std::shared_ptr<Producer::Impl> producer,
                                                   std::span<const JobSpec> specs,
                                                   const EnqueueOptions& options,
                                                   std::shared_ptr<internal::RoomLine> line,
                                                   std::uint64_t tag) {
  if (producer->handle->closed()) return internal::closed();
  if (specs.empty()) return Error{Code::kInvalid, "there is no job to enqueue"}.about("jobs");
  if (Status checked = internal::check_block_timeout(options.block_timeout); !checked)
    return checked.error();
  auto waiting = std::make_unique<Impl>();
  waiting->producer = std::move(producer);
  waiting->keep(specs);
  auto jobs = waiting->producer->read_batch(waiting->specs);
  if (!jobs) return jobs.error();
  waiting->jobs = std::move(jobs).value();
  waiting->wait.emplace(*waiting->producer->handle, waiting->jobs, options.block_timeout);
  waiting->tag = tag;
  const bool decided = waiting->look();
  if (line) {
    waiting->line = std::move(line);
    waiting->line->join(*waiting, decided);
  }
  return WaitingEnqueue(std::move(waiting));
}

WaitingEnqueue::Impl::~Impl() {
  if (line && !producer->handle->closed()) line->leave(*this);
  wait.reset();
}

void WaitingEnqueue::Impl::keep(std::span<const JobSpec> given) {
  specs.assign(given.begin(), given.end());
  for (JobSpec& spec : specs) {
    for (std::string_view* text :
         {&spec.type, &spec.args, &spec.queue, &spec.id, &spec.extra, &spec.tenant})
      *text = keep(*text);
    internal::keep_result_ttl(spec, texts);
    if (spec.unique != nullptr) spec.unique = &uniques.emplace_back(*spec.unique);
    if (spec.limit != nullptr) spec.limit = &limits.emplace_back(*spec.limit);
  }
}

bool WaitingEnqueue::Impl::look() {
  std::vector<engine::JobId> ids;
  const auto put = [&] {
    return producer->settled([&] { return producer->read_again(specs, jobs); },
                             [&] { return wait->look(ids); });
  };
  producer->ignored = false;
  Outcome outcome = put();
  if (may_be_the_dead(outcome) && producer->handle->attachment().repair_the_dead() != 0)
    outcome = put();
  if (outcome == Outcome::kMustWait) return false;
  if (outcome == Outcome::kDuplicate && shm::steady_ms() < wait->until_ms() &&
      producer->duplicate_of(specs).empty()) {
    producer->handle->attachment().repair_the_dead();
    return false;  // a process is just bringing it, or has died at it
  }
  if (outcome == Outcome::kOk)
    decided.emplace(internal::texts_of(ids));
  else if (outcome == Outcome::kClash && producer->is_content(specs))
    decided.emplace(internal::texts_of(producer->in_the_way()));
  else
    decided.emplace(producer->refusal(outcome, producer->refusing(jobs), "batch", specs));
  for (std::size_t i = 0; i < specs.size(); ++i)
    deduplicated.push_back(specs[i].unique != nullptr && producer->deduplicated(i));
  pressure = producer->pressure();
  return true;
}

WaitingEnqueue::WaitingEnqueue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WaitingEnqueue::WaitingEnqueue(WaitingEnqueue&&) noexcept = default;
WaitingEnqueue& WaitingEnqueue::operator=(WaitingEnqueue&&) noexcept = default;
WaitingEnqueue::~WaitingEnqueue() = default;

std::optional<Result<std::vector<JobIdText>>> WaitingEnqueue::poll() {
  Impl& i = *impl_;
  if (!i.decided) {
    if (i.producer->handle->closed()) return internal::closed();
    i.line ? (void)i.line->look_at(i) : (void)i.look();
  }
  if (i.decided && i.line) i.line->told(i);
  return i.decided;
}

bool WaitingEnqueue::deduplicated(std::size_t at) const {
  return at < impl_->deduplicated.size() && impl_->deduplicated[at];
}

std::optional<QueuePressure> WaitingEnqueue::pressure() const { return impl_->pressure; }

std::chrono::steady_clock::time_point WaitingEnqueue::deadline() const {
  return std::chrono::steady_clock::time_point(std::chrono::milliseconds(impl_->wait->until_ms()));
}

Result<WaitingEnqueue> Producer::begin(std::span<const JobSpec> jobs,
                                       const EnqueueOptions& options) {
  return WaitingEnqueue::Impl::begin(impl_, jobs, options);
}

}  // namespace ojs_shm
