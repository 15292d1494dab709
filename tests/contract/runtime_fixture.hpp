// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/runtime.hpp>

#include "tests/support/process.hpp"

namespace ojs_shm::test {

/// A number that threads raise and wait for.
class Tally {
 public:
  void add(int amount = 1) {
    const std::lock_guard lock(mutex_);
    count_ += amount;
    changed_.notify_all();
  }
  /// False when the bound of all tests passed first.
  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kBound, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

/// A segment with its broker in a thread of this process, a producer and an observer.
class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override { begin("ojs"); }

  void begin(const std::string& convention) {
    end();
    SegmentOptions options;
    options.slots = 256;
    options.convention = convention;
    auto broker = Broker::start({.name = "runtime-" + convention, .dir = scratch_.path()}, options);
    ASSERT_TRUE(broker.ok()) << broker.error().message;
    broker_.emplace(std::move(*broker));
    supervision_ = std::thread([this] { (void)broker_->run([](std::string_view) {}); });
    segment_.emplace(broker_->segment());
    auto producer = Producer::attach(*segment_);
    ASSERT_TRUE(producer.ok()) << producer.error().message;
    producer_.emplace(std::move(*producer));
  }

  void TearDown() override { end(); }

  void end() {
    producer_.reset();
    if (broker_) broker_->stop();
    if (supervision_.joinable()) supervision_.join();
    segment_.reset();
    broker_.reset();
  }

  Runtime runtime(RuntimeOptions options = {}) {
    auto made = Runtime::create(*segment_, options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }

  std::string enqueue(JobSpec job) {
    auto id = producer_->enqueue(job);
    EXPECT_TRUE(id.ok()) << id.error().message;
    return id.ok() ? id->str() : std::string();
  }

  std::string enqueue(std::string_view type, std::optional<std::int64_t> priority = {}) {
    JobSpec job;
    job.type = type;
    job.priority = priority;
    return enqueue(job);
  }

  JobInfo finished(const std::string& id) {
    auto info = producer_->wait(id, kBound);
    EXPECT_TRUE(info.ok()) << info.error().message;
    return info.ok() ? *info : JobInfo{};
  }

  JobInfo now(const std::string& id) {
    auto info = producer_->get(id);
    EXPECT_TRUE(info.ok()) << info.error().message;
    return info.ok() ? *info : JobInfo{};
  }

  /// Until the job has that state, for states that are no end.
  bool becomes(const std::string& id, State state) {
    return eventually([&] { return now(id).state == state; });
  }

  ScratchDirectory scratch_;
  std::optional<Broker> broker_;
  std::thread supervision_;
  std::optional<Segment> segment_;
  std::optional<Producer> producer_;
};

/// run() in a thread of its own; stops and joins at the end of a test, however it ends.
class Running {
 public:
  explicit Running(Runtime& runtime)
      : runtime_(runtime), thread_([this] { status_ = runtime_.run(); }) {}
  ~Running() { (void)stop(); }
  Status stop() {
    runtime_.stop();
    return join();
  }
  Status join() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  Runtime& runtime_;
  Status status_;
  std::thread thread_;
};

}  // namespace ojs_shm::test
