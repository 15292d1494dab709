// SPDX-License-Identifier: Apache-2.0
// What is told of registered workers.

#include "tests/unit/engine/workers/registered.hpp"
#include "worker_api/json/envelope_event.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Registry, the_end_is_told) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  const std::string id = "a-worker-with-a-name-of-more-than-thirty-two-bytes";
  report({.id = id});
  s.put();
  ASSERT_NE(fetch_as(id), "");
  s.pass(kMinute);
  std::vector<Event> lost;
  for (Event event; reader.next(event);)
    if (event.type == "worker.lost") lost.push_back(event);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost.front().worker_id, id);
  EXPECT_EQ(lost.front().count, 1U);
  EXPECT_EQ(lost.front().duration_ms, kMinute);
  EXPECT_NE(print_event(lost.front()).find(R"("returned_jobs":1)"), std::string::npos);
}

TEST_F(Registry, what_is_told_of_a_running_job_names_its_worker) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  report({.id = "w"});
  const std::string id = s.put();
  ASSERT_EQ(fetch_as("w"), id);
  ASSERT_TRUE(proxy.progress(id, 0, 0.5).ok());
  ASSERT_TRUE(proxy.heartbeat(id, 0, kMinute).ok());
  const std::uint64_t fence = s.get(id).fence;
  int named = 0;
  for (Event event; reader.next(event);) {
    if (event.job_id != id || event.type == "job.enqueued") continue;
    ++named;
    EXPECT_EQ(event.worker_id, "w") << event.type;
    EXPECT_EQ(event.fence, fence) << event.type;
    const std::string text = print_event(event);
    EXPECT_NE(text.find(R"("worker_id":"w","attempt":1)"), std::string::npos) << text;
    EXPECT_NE(text.find("\"subject\":\"" + id), std::string::npos) << text;
  }
  EXPECT_EQ(named, 3);
  s.put();
  s.take();
  for (Event event; reader.next(event);)
    EXPECT_EQ(print_event(event).find("worker_id"), std::string::npos) << "it is not registered";
}

TEST_F(Registry, what_a_worker_does_is_told_until_it_stops) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  auto reader = s.observer.events({.from_start = false, .settle_ms = 0});
  const std::string id = "a-worker-with-a-name-of-more-than-thirty-two-bytes";
  s.stop_clock();
  report({.id = id, .queues = std::vector<std::string>{"a", "b"}, .concurrency = 3});
  report({.id = id, .concurrency = 3});
  s.put();
  ASSERT_NE(fetch_as(id), "");
  // In one millisecond the events of two handles have no order.
  s.move_clock(kSecond);
  report({.id = id, .active_jobs = 1, .state = "draining"});
  ASSERT_TRUE(s.admin.direct_worker(id, WorkerDirective::kQuiet).ok());  // it is quiet already
  s.move_clock(kSecond);
  report({.id = id, .state = "running", .registers = true});  // an order is over then
  s.move_clock(kSecond);
  ASSERT_TRUE(s.admin.direct_worker(id, WorkerDirective::kTerminate).ok());
  std::vector<Event> told;
  for (Event event; reader.next(event);)
    if (event.type.starts_with("worker.")) told.push_back(event);
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0].type, "worker.started");
  EXPECT_EQ(told[0].worker_queues, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(told[0].worker_concurrency, 3U);
  EXPECT_NE(print_event(told[0]).find(R"("queues":["a","b"],"concurrency":3)"), std::string::npos);
  EXPECT_EQ(told[1].type, "worker.quiet");
  EXPECT_EQ(told[1].active_jobs, 1U);
  EXPECT_EQ(told[2].type, "worker.resumed");
  EXPECT_EQ(told[3].type, "worker.quiet");
  for (const Event& event : told) EXPECT_EQ(event.worker_id, id);

  ASSERT_TRUE(s.admin.remove_worker(id).ok());
  Event stopped;
  ASSERT_TRUE(reader.next(stopped));
  EXPECT_EQ(stopped.type, "worker.stopped");
  EXPECT_EQ(stopped.reason, "shutdown");
  EXPECT_EQ(stopped.duration_ms, 3 * kSecond);
  EXPECT_NE(print_event(stopped).find(R"("reason":"shutdown","uptime_ms":3000)"),
            std::string::npos);
  EXPECT_FALSE(reader.next(stopped));
}

}  // namespace
}  // namespace ojs_shm::test
