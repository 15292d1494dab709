// SPDX-License-Identifier: Apache-2.0
// How a Runtime ends: after the longest times there are, and beside a child of a fork.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include <ojs_shm/runtime.hpp>

#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/runtime/runtime_bell.hpp"
#include "worker_api/runtime/runtime_station.hpp"

namespace ojs_shm::test {
namespace {

using std::chrono::milliseconds;

/// Runs `body` in the child of a fork, to its end.
template <class Body>
void in_child(const Body& body) {
  const pid_t child = ::fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(RuntimeEnd, the_longest_grace_there_is_is_waited_for) {
  QuietSegment s;
  RuntimeOptions options;
  options.worker.id = "ends";
  options.grace = milliseconds::max();
  Runtime runtime = Runtime::create(s.segment, options).value();
  std::promise<void> begun, goes_on;
  ASSERT_TRUE(runtime.handle("unit.test", [&](JobContext&) {
    begun.set_value();
    goes_on.get_future().wait();
    return std::string("7");
  }));
  const std::string id = s.put();
  auto ended = std::async(std::launch::async, [&] { return runtime.run(); });
  begun.get_future().wait();
  runtime.stop();
  EXPECT_TRUE(eventually(
      [&] { return s.observer.registered_worker("ends").value().state() == "terminate"; }));
  EXPECT_EQ(ended.wait_for(milliseconds(50)), std::future_status::timeout);
  goes_on.set_value();
  EXPECT_TRUE(ended.get().ok());
  EXPECT_EQ(s.get(id).result, "7");
}

TEST(RuntimeEnd, the_longest_heartbeat_there_is_is_not_due_at_once) {
  QuietSegment s;
  s.put();
  internal::Station station;
  ASSERT_TRUE(s.worker.try_fetch(station.to_fetch_into()).ok());
  const auto now = internal::Station::Clock::now();
  EXPECT_GT(station.begin(now, milliseconds::max()), now + std::chrono::hours(24));
  EXPECT_TRUE(station.give_back(s.worker));
}

TEST(RuntimeEnd, a_forked_child_does_not_ring_its_parents_bell) {
  const internal::Bell bell;
  pollfd rung{bell.descriptor(), POLLIN, 0};
  in_child([&] { bell.ring(); });
  EXPECT_EQ(::poll(&rung, 1, 0), 0);
  bell.ring();
  EXPECT_EQ(::poll(&rung, 1, 0), 1);
}

TEST(RuntimeEnd, a_forked_child_does_not_wake_its_parents_worker) {
  QuietSegment s;
  const auto wakes = [&s] {
    std::uint64_t sum = 0;
    for (std::uint32_t lane = 0; lane < s.store().lanes(); ++lane)
      sum += s.segment.attachment()->segment().lane(lane).park.load();
    return sum;
  };
  const std::uint64_t before = wakes();
  in_child([&] { s.worker.quiet(), s.worker.resume(), s.worker.interrupt(); });
  EXPECT_EQ(wakes(), before);
  s.put();
  EXPECT_NE(s.take(), "");
  s.worker.interrupt();
  EXPECT_EQ(wakes(), before + 1);
}

}  // namespace
}  // namespace ojs_shm::test
