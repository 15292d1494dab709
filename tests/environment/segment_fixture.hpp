// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/segment.hpp>
#include <ojs_shm/worker.hpp>

#include <string>

#include "tests/environment/forked.hpp"
#include "tests/support/process.hpp"

namespace ojs_shm::test {

/// A small segment in a directory of its own, and the few calls that these tests make over and
/// over.
class SegmentFixture : public testing::Test {
 protected:
  static SegmentOptions small_options() {
    SegmentOptions options;
    options.slots = 1024;
    options.max_queues = 4;
    options.max_body_bytes = 4096;
    return options;
  }
  static JobSpec job_spec(std::uint32_t lease_ms = 0) {
    JobSpec spec;
    spec.type = "environment.test";
    spec.args = R"(["an argument"])";
    spec.lease_ms = lease_ms;
    spec.retry.max_attempts = 100;
    return spec;
  }
  void create() {
    const auto made = Segment::create(name, small_options());
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  std::string enqueue_one(std::uint32_t lease_ms = 0) {
    auto producer = Producer::attach(name);
    const auto id = producer->enqueue(job_spec(lease_ms));
    return id->str();
  }
  /// The body of a child that holds one job: tells "held ID FENCE DEADLINE", then does as it is
  /// told ("ack", "heartbeat", each answered with the code's name) until it hears nothing more.
  Forked::Body holder() const {
    return [segment_name = name](Parent& parent) {
      auto worker = Worker::attach(segment_name, {});
      if (!worker.ok()) return parent.tell(worker.error().message), 1;
      Job job;
      const Status fetched = worker->fetch(job, kBound);
      if (!fetched.ok()) return parent.tell(fetched.error().message), 1;
      parent.tell("held " + std::string(job.id()) + " " + std::to_string(job.fence()) + " " +
                  std::to_string(job.deadline_ms()) + " " + std::to_string(::getpid()));
      for (std::string order; !(order = parent.hear()).empty();) {
        Code code = Code::kInvalid;
        if (order == "ack") code = worker->ack(job).code();
        if (order == "heartbeat") code = worker->heartbeat(job).code();
        if (order == "fetch") code = worker->try_fetch(job).code();
        parent.tell(code_name(code));
      }
      return 0;
    };
  }
  std::string ask(Forked& child, std::string_view order) {
    child.tell(order);
    return child.listen().value_or("(silence)");
  }
  /// The next job that comes back to this process.
  void expect_to_fetch(Worker& worker, std::string_view id, std::uint16_t attempt) {
    Job job;
    const Status fetched = worker.fetch(job, kBound);
    ASSERT_TRUE(fetched.ok()) << fetched.error().message;
    EXPECT_EQ(job.id(), id);
    EXPECT_EQ(job.attempt(), attempt);
    EXPECT_TRUE(worker.ack(job).ok());
  }
  void expect_clean_audit() {
    const auto observer = Observer::attach(name);
    ASSERT_TRUE(observer.ok()) << observer.error().message;
    for (const Violation& violation : observer->audit())
      ADD_FAILURE() << "invariant " << violation.invariant << ": " << violation.text;
  }

  ScratchDirectory scratch;
  SegmentName name{"environment", scratch.path()};
};

/// The words of "held ID FENCE DEADLINE PID".
struct HeldJob {
  explicit HeldJob(const std::optional<std::string>& line);
  std::string id;
  std::uint64_t fence = 0, deadline_ms = 0, pid = 0;
};

inline HeldJob::HeldJob(const std::optional<std::string>& line) {
  char text[64] = {};
  unsigned long long number[3] = {};
  const std::string heard = line.value_or("");
  if (std::sscanf(heard.c_str(), "held %63s %llu %llu %llu", text, &number[0], &number[1],
                  &number[2]) != 4)
    ADD_FAILURE() << "no job was held: " << heard;
  id = text;
  fence = number[0];
  deadline_ms = number[1];
  pid = number[2];
}

}  // namespace ojs_shm::test
