// SPDX-License-Identifier: Apache-2.0
// Full queues from the command line: settings, refusals, waiting, dropping, events and numbers.
#include <gmock/gmock.h>

#include <csignal>
#include <string>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

std::string queue_of(const LiveSegment& segment, const std::string& name = "default") {
  return segment.cli({"queue", "get", name, "--json"}).out;
}
std::vector<std::string> events_of(const LiveSegment& segment, std::string_view type) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(segment.cli({"events", "--json"}).out))
    if (member(line, "type") == type) found.push_back(line);
  return found;
}

TEST(CliBackpressure, BP_G1_BP_G3_the_examples_of_the_specification) {
  const LiveSegment segment;
  ASSERT_EQ(segment
                .cli({"queue", "set", "email", "--max-depth", "100000", "--strategy", "reject",
                      "--warning-threshold", "0.8"})
                .exit_code,
            0);
  EXPECT_EQ(member(queue_of(segment, "email"), "backpressure.max_depth"), "100000");
  EXPECT_EQ(member(queue_of(segment, "email"), "backpressure.strategy"), "reject");
  ASSERT_EQ(segment
                .cli({"queue", "set", "notifications", "--max-depth", "10000", "--strategy",
                      "drop_oldest"})
                .exit_code,
            0);
  EXPECT_EQ(member(queue_of(segment, "notifications"), "backpressure.strategy"), "drop_oldest");
}

TEST(CliBackpressure, BP_T15_settings_are_set_and_shown) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"queue", "set", "mail", "--max-depth", "3"}).exit_code, 0);
  EXPECT_EQ(member(queue_of(segment, "mail"), "backpressure.strategy"), "reject");
  EXPECT_EQ(member(queue_of(segment, "mail"), "backpressure.warning_threshold"), "0.8");
  const Finished set =
      segment.cli({"queue", "set", "mail", "--max-bytes", "64K", "--strategy", "drop_oldest",
                   "--warning-threshold", "0.25", "--drop", "lowest_priority", "--json"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(member(set.out, "backpressure.max_depth"), "3");
  EXPECT_EQ(member(set.out, "backpressure.max_size_bytes"), "65536");
  EXPECT_EQ(member(set.out, "backpressure.strategy"), "drop_oldest");
  EXPECT_EQ(member(set.out, "backpressure.warning_threshold"), "0.25");
  EXPECT_EQ(member(set.out, "backpressure.drop"), "lowest_priority");
  EXPECT_EQ(member(set.out, "pressure"), "0");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--strategy", "wait"},
                                                {"--warning-threshold", "2"},
                                                {"--warning-threshold", "x"},
                                                {"--drop", "newest"},
                                                {"--max-depth", "-1"}}) {
    std::vector<std::string> words = {"queue", "set", "mail"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(segment.cli(words).exit_code, 2) << wrong[0] << " " << wrong[1];
  }
}

TEST(CliBackpressure, BP_T19_tenants_have_bounds_that_are_set_shown_and_taken_away) {
  const LiveSegment segment;
  const Finished set =
      segment.cli({"queue", "set", "mail", "--tenant-max-depth", "1", "--tenant-max-bytes", "64K",
                   "--tenant-bound", "acme:3:1M", "--tenant-bound", "a:b:2", "--tenant-bound",
                   "gone:5", "--json"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(member(set.out, "backpressure.tenant_max_depth"), "1");
  EXPECT_EQ(member(set.out, "backpressure.tenant_max_size_bytes"), "65536");
  EXPECT_EQ(
      member(set.out, "backpressure.tenant_bounds"),
      R"({"a:b":{"max_depth":2},"acme":{"max_depth":3,"max_size_bytes":1048576},"gone":{"max_depth":5}})");
  EXPECT_EQ(segment.cli({"queue", "set", "mail", "--tenant-bound", "gone:off"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"queue", "set", "mail", "--tenant-bound", "acme::2M"}).exit_code, 0);
  EXPECT_EQ(member(queue_of(segment, "mail"), "backpressure.tenant_bounds"),
            R"({"a:b":{"max_depth":2},"acme":{"max_size_bytes":2097152}})");
  EXPECT_THAT(segment.cli({"queue", "get", "mail"}).out, HasSubstr("tenant_max_depth"));
  const auto put = [&segment](const std::string& tenant) {
    return segment.cli({"enqueue", "-t", "a", "--queue", "mail", "--meta",
                        R"({"tenant_id":")" + tenant + R"("})", "--json"});
  };
  EXPECT_EQ(put("x").exit_code, 0);
  const Finished refused = put("x");
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_EQ(member(refused.err, "error.code"), "QUEUE_FULL");
  EXPECT_EQ(member(refused.err, "error.tenant"), "x");
  EXPECT_EQ(member(refused.err, "error.queue"), "mail");
  EXPECT_EQ(member(refused.err, "error.bound"), "1");
  EXPECT_EQ(put("y").exit_code, 0);
  for (const char* wrong : {"acme", "acme:x", "acme:-1", "acme:", "acme:1:x"})
    EXPECT_EQ(segment.cli({"queue", "set", "mail", "--tenant-bound", wrong}).exit_code, 2) << wrong;
  EXPECT_THAT(segment.cli({"export"}).out, HasSubstr("tenant_bounds"));
}

TEST(CliBackpressure, BP_H2_BP_X1_BP_X3_a_refusal_as_json_and_in_numbers) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--max-depth", "2"}).exit_code, 0);
  segment.enqueue({"-t", "a"});
  EXPECT_THAT(segment.cli({"stats", "--metrics"}).out,
              HasSubstr("ojs_backpressure_pressure{queue=\"default\",segment=\"test\"} 0.5\n"));
  segment.enqueue({"-t", "a"});
  const Finished refused = segment.cli({"enqueue", "-t", "a", "--json"});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_EQ(member(refused.err, "error.code"), "QUEUE_FULL");
  EXPECT_EQ(member(refused.err, "error.message"),
            "Queue 'default' has reached its depth bound (2)");
  EXPECT_EQ(member(refused.err, "error.queue"), "default");
  EXPECT_EQ(member(refused.err, "error.depth"), "2");
  EXPECT_EQ(member(refused.err, "error.bound"), "2");
  EXPECT_EQ(member(refused.err, "error.unit"), "jobs");
  EXPECT_EQ(member(refused.err, "error.strategy"), "reject");
  EXPECT_EQ(member(refused.err, "error.retry_after_ms"), "1000");
  const std::string page = segment.cli({"stats", "--metrics"}).out;
  EXPECT_THAT(page, HasSubstr("# TYPE ojs_backpressure_rejected_total counter\n"));
  EXPECT_THAT(page,
              HasSubstr("ojs_backpressure_rejected_total{queue=\"default\",segment=\"test\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("ojs_backpressure_pressure{queue=\"default\",segment=\"test\"} 1\n"));
}

TEST(CliBackpressure, BP_X2_BP_E1_BP_E3_dropping_is_seen_in_events_and_numbers) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"events", "--on"}).exit_code, 0);
  EXPECT_EQ(
      segment.cli({"queue", "set", "default", "--max-depth", "1", "--strategy", "drop_oldest"})
          .exit_code,
      0);
  const std::string victim = segment.enqueue({"-t", "old.one"});
  segment.enqueue({"-t", "a"});
  EXPECT_EQ(segment.job(victim, "state"), "discarded");
  EXPECT_THAT(segment.cli({"stats", "--metrics"}).out,
              HasSubstr("ojs_backpressure_dropped_total{queue=\"default\",segment=\"test\"} 1\n"));
  const auto dropped = events_of(segment, "backpressure.dropped");
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(member(dropped[0], "data.queue"), "default");
  EXPECT_EQ(member(dropped[0], "data.job_id"), victim);
  EXPECT_EQ(member(dropped[0], "data.job_type"), "old.one");
  const auto warned = events_of(segment, "backpressure.warning");
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_EQ(member(warned[0], "data.depth"), "1");
  EXPECT_EQ(member(warned[0], "data.bound"), "1");
}

TEST(CliBackpressure, BP_T04_BP_T06_an_enqueue_waits_for_room_as_long_as_it_was_told) {
  const LiveSegment segment;
  EXPECT_EQ(
      segment.cli({"queue", "set", "default", "--max-depth", "1", "--strategy", "block"}).exit_code,
      0);
  segment.enqueue({"-t", "a"});
  EXPECT_EQ(segment.cli({"enqueue", "-t", "b"}).exit_code, 6);
  EXPECT_EQ(segment.cli({"enqueue", "-t", "b", "--block-timeout", "20ms"}).exit_code, 6);
  EXPECT_EQ(segment.cli({"enqueue", "-t", "b", "--block-timeout", "2h"}).exit_code, 2);
  Process waiting = segment.start_cli({"enqueue", "-t", "b", "--block-timeout", "30s"});
  ASSERT_TRUE(eventually([&] { return member(queue_of(segment), "waiting") == "1"; }));
  ProcessOptions lines;
  lines.input = "{\"type\":\"c\",\"args\":[]}\n";
  Process behind = segment.start_cli({"enqueue", "--block-timeout", "30s"}, lines);
  ASSERT_TRUE(eventually([&] {
    (void)behind.read_line(std::chrono::milliseconds(20));  // lets its input go
    return member(queue_of(segment), "waiting") == "2";
  }));
  EXPECT_EQ(segment.cli({"work", "--count", "1", "--", "true"}).exit_code, 0);
  const Finished let_in = waiting.wait();
  EXPECT_EQ(let_in.exit_code, 0) << let_in.err;
  EXPECT_EQ(segment.cli({"work", "--count", "1", "--", "true"}).exit_code, 0);
  EXPECT_EQ(behind.wait().exit_code, 0);
}

TEST(CliBackpressure, BP_T09_one_that_is_killed_or_stopped_while_it_waits_holds_nobody_up) {
  const LiveSegment segment;
  EXPECT_EQ(
      segment.cli({"queue", "set", "default", "--max-depth", "1", "--strategy", "block"}).exit_code,
      0);
  segment.enqueue({"-t", "a"});
  Process killed = segment.start_cli({"enqueue", "-t", "killed", "--block-timeout", "60s"});
  ASSERT_TRUE(eventually([&] { return member(queue_of(segment), "waiting") == "1"; }));
  Process stopped = segment.start_cli({"enqueue", "-t", "stopped", "--block-timeout", "5s"});
  ASSERT_TRUE(eventually([&] { return member(queue_of(segment), "waiting") == "2"; }));
  stopped.signal(SIGSTOP);
  Process alive = segment.start_cli({"enqueue", "-t", "alive", "--block-timeout", "60s"});
  ASSERT_TRUE(eventually([&] { return member(queue_of(segment), "waiting") == "3"; }));
  killed.signal(SIGKILL);
  EXPECT_EQ(segment.cli({"work", "--count", "1", "--", "true"}).exit_code, 0);
  const Finished let_in = alive.wait();
  EXPECT_EQ(let_in.exit_code, 0) << let_in.err;
  stopped.signal(SIGCONT);
  EXPECT_EQ(stopped.wait().exit_code, 6);
  EXPECT_EQ(member(queue_of(segment), "depth"), "1");
  EXPECT_EQ(segment.cli({"audit"}).exit_code, 0);
}

TEST(CliBackpressure, BP_T09_the_repair_needs_no_broker) {
  LiveSegment segment;
  EXPECT_EQ(
      segment.cli({"queue", "set", "default", "--max-depth", "1", "--strategy", "block"}).exit_code,
      0);
  segment.enqueue({"-t", "a"});
  Process killed = segment.start_cli({"enqueue", "-t", "killed", "--block-timeout", "60s"});
  ASSERT_TRUE(eventually([&] { return member(queue_of(segment), "waiting") == "1"; }));
  Process alive = segment.start_cli({"enqueue", "-t", "alive", "--block-timeout", "60s"});
  ASSERT_TRUE(eventually([&] { return member(queue_of(segment), "waiting") == "2"; }));
  segment.broker().signal(SIGSTOP);
  killed.signal(SIGKILL);
  EXPECT_EQ(segment.cli({"work", "--count", "1", "--", "true"}).exit_code, 0);
  const Finished let_in = alive.wait();
  EXPECT_EQ(let_in.exit_code, 0) << let_in.err;
  segment.broker().signal(SIGCONT);
}

}  // namespace
}  // namespace ojs_shm::test
