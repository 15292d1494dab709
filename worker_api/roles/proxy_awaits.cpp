// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/proxy_impl.hpp"
#include "worker_api/roles/waiting_enqueue.hpp"

// The one descriptor of a proxy, and what it tells of.

namespace ojs_shm {

using internal::check_names;
using internal::Handle;

Result<int> Proxy::await_jobs(const std::vector<std::string>& queues,
                              const std::vector<std::string>& pools) {
  if (impl_->handle->closed()) return internal::closed();
  if (Status checked = check_names(queues); !checked) return checked.error();
  impl_->awaited.queues = queues;
  impl_->awaited.pools = pools;
  return impl_->await();
}

Result<int> Proxy::Impl::await() {
  if (bell) {
    bell->look_after(awaited);
    if (line) line->tell_decided();
    return bell->fd();
  }
  auto second = Handle::make(handle->segment());
  if (!second) return second.error();
  bell = std::make_shared<internal::EventBell>(std::move(second).value(),
                                               std::vector<std::uint32_t>(), awaited);
  if (bell->fd() >= 0) return bell->fd();
  bell.reset();
  return internal::no_descriptor();
}

Result<int> Proxy::await_end(std::string_view id) {
  Impl& i = *impl_;
  if (i.handle->closed()) return internal::closed();
  const auto job = engine::parse_id(id);
  if (!job) return internal::not_an_id(id);
  if (!i.awaited.news.ends || !i.bell) {
    i.awaited.news.ends = true;
    if (const auto made = i.await(); !made) return made.error();
  }
  if (!i.ends) i.ends = std::make_unique<internal::AwaitedEnds>(i.store());
  i.bell->await_ends(true);
  if (i.ends->add(*job)) i.bell->tell();
  return i.bell->fd();
}

void Proxy::forget_end(std::string_view id) {
  const auto job = engine::parse_id(id);
  if (job && impl_->ends) impl_->ends->remove(*job);
}

std::vector<std::string> Proxy::take_ended() {
  Impl& i = *impl_;
  std::vector<std::string> ended;
  if (!i.ends || i.handle->closed()) return ended;
  std::vector<engine::JobId> jobs;
  if (i.ends->collect(jobs)) i.bell->tell_soon();
  i.bell->await_ends(!i.ends->empty());
  for (const engine::JobId job : jobs) ended.push_back(engine::to_string(job));
  return ended;
}

Result<int> Proxy::descriptor() {
  if (impl_->handle->closed()) return internal::closed();
  return impl_->bell ? Result<int>(impl_->bell->fd()) : impl_->await();
}

Result<WaitingEnqueue> Proxy::begin_enqueue(std::span<const JobSpec> jobs,
                                            const EnqueueOptions& options, std::uint64_t tag) {
  Impl& i = *impl_;
  if (const auto made = descriptor(); !made) return made.error();
  if (!i.line) i.line = std::make_shared<internal::RoomLine>(*i.handle, i.bell);
  return WaitingEnqueue::Impl::begin(i.producer, jobs, options, i.line, tag);
}

std::vector<std::uint64_t> Proxy::take_decided(std::size_t most) {
  if (!impl_->line || impl_->handle->closed()) return {};
  return impl_->line->take_decided(most);
}

Result<int> Proxy::await_events(bool on) {
  if (impl_->handle->closed()) return internal::closed();
  impl_->awaited.news.events = on;
  return impl_->await();
}

}  // namespace ojs_shm
