// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "engine/supervision/supervisor.hpp"
#include "shm/member.hpp"
#include "tests/support/process.hpp"
#include "tests/support/seat.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {

inline SegmentOptions few_slots(std::uint32_t slots = 512, std::string convention = {}) {
  SegmentOptions options;
  options.slots = slots;
  options.max_queues = 8;
  options.max_handles = 32;
  options.max_body_bytes = 65'536;
  options.convention = std::move(convention);
  return options;
}

inline JobSpec spec_of(std::optional<std::int64_t> priority = {},
                       std::string_view queue = "default") {
  JobSpec spec;
  spec.type = "unit.test";
  spec.priority = priority;
  spec.queue = queue;
  return spec;
}

inline Failure failure(bool retryable = true) {
  Failure failed;
  failed.code = "boom";
  failed.message = "it did not work";
  failed.retryable = retryable;
  return failed;
}

constexpr std::uint64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;

/// A segment in a directory of its own where nothing happens by itself: no keeper supervises,
/// because this object sits in the broker's seat, and timers and leases move only in tick(). Time
/// runs on, so tests deal in hours.
class QuietSegment {
 public:
  explicit QuietSegment(const SegmentOptions& options = few_slots())
      : where_{"quiet", folder_.path()},
        seat_(take_seat(where_)),
        segment(Segment::create(where_, options).value()),
        supervising_(internal::Handle::make(segment).value()),
        supervisor_(supervising_->actor(), &forbids_retry),
        producer(Producer::attach(segment).value()),
        worker(Worker::attach(segment, {}).value()),
        admin(Admin::attach(segment).value()),
        observer(Observer::attach(segment).value()) {}
  ~QuietSegment() { EXPECT_EQ(findings(), ""); }
  QuietSegment(const QuietSegment&) = delete;

  const SegmentName& where() const { return where_; }
  engine::Store& store() { return supervising_->store(); }
  engine::Actor& actor() { return supervising_->actor(); }
  std::uint64_t now_ms() { return store().now_ms(); }

  void move_clock(std::uint64_t ms) {
    shm::Word& offset = segment.attachment()->segment().header().clock_offset_ms;
    offset.store(offset.load() + ms, shm::Point::kNone);
  }
  /// From now on time passes by move_clock() alone, so times are exact.
  void stop_clock() {
    segment.attachment()->segment().header().clock_offset_ms.store(shm::kStandingClock | now_ms(),
                                                                   shm::Point::kNone);
  }
  /// What a supervisor does until nothing is due.
  engine::Supervisor::Report tick() {
    engine::Supervisor::Report report;
    for (int i = 0; i < 100; ++i)
      if (const std::uint64_t now = now_ms(); supervisor_.tick(now, report) > now) break;
    return report;
  }
  void pass(std::uint64_t ms) {
    move_clock(ms);
    tick();
  }

  std::string put(const JobSpec& spec) {
    const auto id = producer.enqueue(spec);
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    return id.ok() ? id->str() : std::string();
  }
  std::string put(std::optional<std::int64_t> priority = {}, std::string_view queue = "default") {
    return put(spec_of(priority, queue));
  }
  /// The id of the job that is fetched next, or nothing; it stays active in `job`.
  std::string take() { return worker.try_fetch(job) ? std::string(job.id()) : std::string(); }
  /// Works everything off; the ids in the order in which they came.
  std::vector<std::string> drain() {
    std::vector<std::string> ids;
    while (worker.try_fetch(job)) {
      ids.emplace_back(job.id());
      EXPECT_TRUE(worker.ack(job).ok());
    }
    return ids;
  }
  JobInfo get(std::string_view id) const {
    const auto info = observer.get(id);
    EXPECT_TRUE(info.ok()) << id << ": " << (info.ok() ? "" : info.error().message);
    return info.ok() ? info.value() : JobInfo{};
  }
  State state_of(std::string_view id) const { return get(id).state; }
  QueueInfo queue(std::string_view name = "default") const { return observer.queue(name).value(); }
  std::uint64_t pool_use(std::string_view name) const {
    for (const PoolInfo& pool : observer.segment_info().pools)
      if (pool.name == name) return pool.used;
    ADD_FAILURE() << "no pool " << name;
    return 0;
  }
  std::string findings() const {
    std::string text;
    for (const Violation& v : observer.audit())
      text += "I" + std::to_string(v.invariant) + " " + v.text + "\n";
    return text;
  }

 private:
  ScratchDirectory folder_;
  SegmentName where_;
  shm::LockFile seat_;

 public:
  Segment segment;

 private:
  std::unique_ptr<internal::Handle> supervising_;
  engine::Supervisor supervisor_;

 public:
  Producer producer;
  Worker worker;
  Admin admin;
  Observer observer;
  Job job;
};

}  // namespace ojs_shm::test
