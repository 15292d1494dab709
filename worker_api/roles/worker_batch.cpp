// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "engine/straight/fetch_batch.hpp"
#include "worker_api/roles/worker_impl.hpp"

// What a worker does with several jobs at once.

namespace ojs_shm {

Result<std::vector<Job>> Worker::fetch_batch(std::size_t count, std::chrono::milliseconds timeout) {
  std::vector<Job> jobs;
  while (jobs.size() < count) {
    const std::size_t before = jobs.size();
    const std::size_t wanted = std::min<std::size_t>(count - before, engine::kPlainBatch);
    jobs.resize(before + wanted);
    const Result<std::size_t> got = fetch_batch(std::span(jobs).subspan(before), timeout);
    if (!got && before == 0) return got.error();
    const std::size_t more = got ? *got : 0;
    jobs.resize(before + more);
    if (more < wanted) break;
    timeout = {};
  }
  return jobs;
}

struct Worker::Impl::Receiver {
  Impl& worker;
  Job* jobs;
  OJS_SHM_INLINE Places at(std::size_t i) const { return Places(jobs[i]); }
  OJS_SHM_INLINE void took(std::size_t i, const Places& got) const {
    worker.hand_over(jobs[i], got.queue, got.rank);
  }
};

/// As many plain jobs of the first queue as there are.
[[gnu::flatten]] std::size_t Worker::Impl::fetch_plain_batch(std::span<Job> into) {
  if (has_options) return 0;
  Receiver receiver{*this, into.data()};
  return actor().fetch_batch_plain(queues.front(), options.lease_ms, options.lease_owned,
                                   into.size(), receiver);
}

Result<std::size_t> Worker::fetch_batch(std::span<Job> into, std::chrono::milliseconds timeout) {
  std::size_t count = 0;
  if (!impl_->handle->closed() && !impl_->held_up.any()) [[likely]]
    count = impl_->fetch_plain_batch(into);
  while (count < into.size()) {
    const Status got =
        count == 0 && timeout.count() > 0 ? fetch(into[0], timeout) : try_fetch(into[count]);
    if (!got) {
      if (count != 0 || got.code() == Code::kEmpty || got.code() == Code::kTimeout) break;
      return got.error();
    }
    ++count;
  }
  return count;
}

[[gnu::flatten]] Result<AckedBatch> Worker::ack_batch(std::span<Job> jobs) {
  if (impl_->handle->closed()) return internal::closed();
  for (const Job& job : jobs)
    if (!impl_->fetched_here(job)) [[unlikely]]
      if (Status may = impl_->may_end_foreign(job); !may) return may.error();
  AckedBatch done;
  std::array<engine::Ack, engine::kPlainBatch> acks;
  for (std::size_t first = 0; first < jobs.size(); first += acks.size()) {
    const std::size_t count = std::min(jobs.size() - first, acks.size());
    for (std::size_t i = 0; i < count; ++i)
      acks[i] = {jobs[first + i].word_, jobs[first + i].slot_, false};
    impl_->actor().ack_batch({acks.data(), count});
    for (std::size_t i = 0; i < count; ++i)
      if (acks[i].lost) [[unlikely]]
        done.lost.push_back(first + i);
  }
  done.acked = jobs.size() - done.lost.size();
  return done;
}

}  // namespace ojs_shm
