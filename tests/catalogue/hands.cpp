// SPDX-License-Identifier: Apache-2.0
#include "tests/catalogue/hands.hpp"

#include <utility>

#include "engine/supervision/supervisor.hpp"

namespace ojs_shm::test {

JobSpec spec_of(std::string_view args) {
  JobSpec spec;
  spec.type = "crash.test";
  spec.args = args;
  spec.retry.max_attempts = 20;
  return spec;
}

SegmentOptions small_segment() {
  SegmentOptions options;
  options.slots = 96;
  options.max_queues = 4;
  options.max_handles = 24;
  options.max_body_bytes = 8192;
  options.max_tenants = 16;
  return options;
}

Hands::Hands(const SegmentName& where) : Hands(must(Segment::attach(where))) {}

Hands::Hands(Segment attached) : segment(std::move(attached)) {
  handle = must(internal::Handle::make(segment));
  producer.emplace(must(Producer::attach(segment)));
  worker.emplace(must(Worker::attach(segment, {})));
  admin.emplace(must(Admin::attach(segment)));
}

std::string Hands::put(const JobSpec& spec) {
  id = must(producer->enqueue(spec)).str();
  if (accepted) accepted(id);
  return id;
}

std::string Hands::put(std::int64_t priority, std::string_view queue) {
  JobSpec spec = spec_of();
  spec.priority = priority;
  spec.queue = queue;
  return put(spec);
}

void Hands::take(Job& into) { must(worker->try_fetch(into)); }

std::string Hands::first(const JobFilter& filter) {
  const std::vector<JobInfo> found = must(Observer::attach(segment)).list(filter);
  if (found.empty()) throw std::runtime_error("there is no such job any more: it was taken");
  return found.front().id;
}

void Hands::move_clock(std::uint64_t ms) {
  shm::Word& offset = segment.attachment()->segment().header().clock_offset_ms;
  offset.store(offset.load() + ms, shm::Point::kNone);
}

void Hands::stop_clock() {
  segment.attachment()->segment().header().clock_offset_ms.store(
      shm::kStandingClock | handle->store().now_ms(), shm::Point::kNone);
}

void Hands::tick() {
  engine::Supervisor supervisor(handle->actor());
  engine::Supervisor::Report report;
  const std::uint64_t now = handle->store().now_ms();
  for (int i = 0; i < 4; ++i) supervisor.tick(now, report);
}

std::string big_args(std::size_t size) { return "[\"" + std::string(size, 'b') + "\"]"; }

Failure failure(bool retryable) {
  Failure failed;
  failed.code = "boom";
  failed.message = "it did not work";
  failed.retryable = retryable;
  return failed;
}

}  // namespace ojs_shm::test
