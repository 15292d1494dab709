// SPDX-License-Identifier: Apache-2.0
// Events and measures from the command line, told by one process and read by another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <string>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string type_of(const std::string& line) { return member(line, "type"); }

/// The types of the events that are kept, in order.
std::vector<std::string> kept(const LiveSegment& segment, std::vector<std::string> words = {}) {
  words.insert(words.begin(), {"events", "--json"});
  const Finished done = segment.cli(words);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  std::vector<std::string> types;
  for (const std::string& line : lines_of(done.out)) types.push_back(type_of(line));
  return types;
}

TEST(CliEvents, PRI_E1_PRI_R004_a_follower_sees_one_priority_changed_for_each_effective_change) {
  const LiveSegment segment({"--events"});
  Process follower = segment.start_cli({"events", "--follow", "--json", "--since-start"});
  const std::string id = segment.enqueue({"-t", "mail.send", "--priority", "3"});
  EXPECT_EQ(segment.cli({"reprioritize", id, "0"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"reprioritize", id, "0"}).exit_code, 0) << "the same value";
  EXPECT_NE(segment.cli({"reprioritize", id, "256"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"cancel", id}).exit_code, 0);
  EXPECT_EQ(segment.cli({"reprioritize", id, "1"}).exit_code, 5) << "cancelled";
  const std::string last = segment.enqueue({"-t", "the.last"});
  std::vector<std::string> types;
  for (auto line = follower.read_line(); line; line = follower.read_line()) {
    types.push_back(type_of(*line));
    EXPECT_EQ(member(*line, "specversion"), "1.0");
    EXPECT_EQ(member(*line, "id").rfind("evt_", 0), 0U);
    EXPECT_EQ(member(*line, "source").rfind("ojs://test/handles/", 0), 0U);
    EXPECT_EQ(member(*line, "time").back(), 'Z');
    if (member(*line, "subject") == last) break;
    EXPECT_EQ(member(*line, "subject"), id);
    if (types.back() != "priority.changed") continue;
    EXPECT_EQ(member(*line, "data.job_id"), id);
    EXPECT_EQ(member(*line, "data.previous_priority"), "3");
    EXPECT_EQ(member(*line, "data.new_priority"), "0");
    EXPECT_EQ(member(*line, "data.job_type"), "mail.send");
  }
  EXPECT_THAT(types,
              ElementsAre("job.enqueued", "priority.changed", "job.cancelled", "job.enqueued"));
  follower.signal(SIGTERM);
  EXPECT_EQ(follower.wait().exit_code, 0);
}

TEST(CliEvents, of_several_processes_come_in_the_order_of_each_job) {
  const LiveSegment segment({"--events"});
  Process follower = segment.start_cli({"events", "--follow", "--json", "--since-start"});
  Process workers = segment.start_cli({"work", "--concurrency", "2", "--", "true"});
  constexpr int kJobs = 100;
  Producer producer = Producer::attach(Segment::attach(segment.where()).value()).value();
  JobSpec spec;
  spec.type = "ordered.job";
  for (int i = 0; i < kJobs; ++i) ASSERT_TRUE(producer.enqueue(spec).ok());
  std::map<std::string, std::vector<std::string>> lives;
  for (int completed = 0; completed < kJobs;) {
    const auto line = follower.read_line();
    ASSERT_TRUE(line.has_value()) << completed << " jobs; " << follower.err();
    lives[member(*line, "subject")].push_back(type_of(*line));
    completed += type_of(*line) == "job.completed" ? 1 : 0;
  }
  EXPECT_EQ(lives.size(), std::size_t{kJobs});
  for (const auto& [job, types] : lives)
    EXPECT_THAT(types, ElementsAre("job.enqueued", "job.started", "job.completed")) << job;
  EXPECT_EQ(follower.err(), "");
}

TEST(CliEvents, of_a_killed_holder_are_told_by_who_mends) {
  const LiveSegment segment({"--events"});
  const std::string id = segment.enqueue({"-t", "mail.send"});
  Process worker = segment.start_cli({"work", "--", "sleep", "60"});
  ASSERT_TRUE(segment.becomes(id, "active"));
  worker.signal(SIGKILL);
  worker.wait();
  ASSERT_TRUE(segment.becomes(id, "available"));
  const Finished done = segment.cli({"events", "--json", "--types", "job.failed,job.enqueued"});
  const auto lines = lines_of(done.out);
  ASSERT_EQ(lines.size(), 3U) << done.out;
  EXPECT_EQ(type_of(lines[1]), "job.failed");
  EXPECT_EQ(member(lines[1], "data.error.code"), "holder_died");
  EXPECT_EQ(member(lines[1], "data.attempt"), "1");
  EXPECT_EQ(type_of(lines[2]), "job.enqueued");
  EXPECT_EQ(segment.cli({"audit"}).exit_code, 0);
}

TEST(CliEvents, are_off_at_first_and_the_command_says_so) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  const Finished off = segment.cli({"events"});
  EXPECT_EQ(off.exit_code, 0);
  EXPECT_EQ(off.out, "");
  EXPECT_THAT(off.err, HasSubstr("events are off in segment 'test'"));
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.events"), "false");
  EXPECT_EQ(segment.cli({"events", "--on"}).exit_code, 0);
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.events"), "true");
  segment.enqueue({"-t", "a", "--queue", "mail"});
  segment.enqueue({"-t", "b"});
  EXPECT_THAT(kept(segment), ElementsAre("job.enqueued", "job.enqueued"));
  EXPECT_THAT(kept(segment, {"--queue", "mail"}), ElementsAre("job.enqueued"));
  EXPECT_EQ(segment.cli({"events", "--off"}).exit_code, 0);
  segment.enqueue({"-t", "a"});
  EXPECT_EQ(kept(segment).size(), 2U);
  EXPECT_EQ(segment.cli({"events", "--on", "--off"}).exit_code, 2);
}

TEST(CliEvents, the_broker_s_file_turns_them_on_and_off) {
  ScratchDirectory folder;
  std::ofstream(folder / "on.toml") << "events = true\n";
  std::ofstream(folder / "off.toml") << "events = false\n";
  LiveSegment segment({"--keep", "--config", folder / "on.toml"});
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.events"), "true");
  segment.broker().signal(SIGTERM);
  segment.broker().wait();
  segment.start_broker({"--keep"});
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.events"), "true") << "as it was";
  segment.broker().signal(SIGTERM);
  segment.broker().wait();
  segment.start_broker({"--keep", "--config", folder / "off.toml"});
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.events"), "false");
}

TEST(CliEvents, a_row_for_people_and_scripts) {
  const LiveSegment segment({"--events"});
  const std::string id = segment.enqueue({"-t", "mail.send", "--priority", "3"});
  EXPECT_EQ(segment.cli({"reprioritize", id, "1"}).exit_code, 0);
  const auto rows = lines_of(segment.cli({"events"}).out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0], HasSubstr("\tjob.enqueued\tdefault\t3\t" + id + "\tmail.send\t"));
  EXPECT_THAT(rows[1], HasSubstr("\tpriority.changed\tdefault\t1\t" + id + "\tmail.send\t3 -> 1"));
}

TEST(CliEvents, are_chosen_by_what_they_are_about_and_go_on_behind_one) {
  const LiveSegment segment({"--events", "--slots", "64", "--handles", "8"});
  const std::string first = segment.enqueue({"-t", "a"});
  const std::string bill = segment.enqueue(
      {"-t", "print.bill", "--meta", R"({"tenant_id":"acme"})", "--queue", "bills"});
  EXPECT_EQ(segment.cli({"reprioritize", bill, "1"}).exit_code, 0);
  EXPECT_THAT(kept(segment, {"--types", "job.*"}), ElementsAre("job.enqueued", "job.enqueued"));
  EXPECT_THAT(kept(segment, {"--job", bill}), ElementsAre("job.enqueued", "priority.changed"));
  EXPECT_THAT(kept(segment, {"--tenant", "acme"}), ElementsAre("job.enqueued", "priority.changed"));
  EXPECT_THAT(kept(segment, {"--job-type", "a,b"}), ElementsAre("job.enqueued"));
  EXPECT_EQ(kept(segment, {"--queue", "bills,default"}).size(), 3U);
  const std::string id = member(lines_of(segment.cli({"events", "--json"}).out)[0], "id");
  EXPECT_THAT(kept(segment, {"--after", id}), ElementsAre("job.enqueued", "priority.changed"));
  EXPECT_EQ(segment.cli({"events", "--after", id}).err, "");
  EXPECT_EQ(segment.cli({"events", "--after", "evt_x"}).exit_code, 2);
  Producer producer = Producer::attach(Segment::attach(segment.where()).value()).value();
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(producer.reprioritize(first, i % 2).ok());
  EXPECT_THAT(segment.cli({"events", "--after", id}).err, HasSubstr(id + " is kept no more"));
  Process follower =
      segment.start_cli({"events", "--follow", "--after", id, "--types", "queue.paused"});
  EXPECT_EQ(segment.cli({"queue", "pause", "bills"}).exit_code, 0);
  EXPECT_THAT(follower.read_line().value_or(""), HasSubstr("\tqueue.paused\tbills\t"));
  EXPECT_THAT(follower.err(), HasSubstr(id + " is kept no more"));
  follower.signal(SIGTERM);
  EXPECT_EQ(follower.wait().exit_code, 0);
}

TEST(CliEvents, what_was_lost_is_told) {
  const LiveSegment segment({"--events", "--slots", "64", "--handles", "4"});
  Producer producer = Producer::attach(Segment::attach(segment.where()).value()).value();
  const std::string id = segment.enqueue({"-t", "a"});
  constexpr std::uint64_t kChanges = 5000;
  for (std::uint64_t i = 0; i < kChanges; ++i)
    ASSERT_TRUE(producer.reprioritize(id, static_cast<std::int64_t>(i % 2)).ok());
  const Finished done = segment.cli({"events", "--json"});
  const std::uint64_t lost = std::stoull("0" + member(done.err, "events_lost"));
  EXPECT_EQ(lines_of(done.out).size() + lost, kChanges + 1);
  EXPECT_GT(lost, 0U);
  EXPECT_THAT(segment.cli({"events"}).err, HasSubstr(std::to_string(lost) + " events lost"));
}

TEST(CliStats, PRI_H3_PRI_R003_counts_of_available_jobs_by_priority) {
  const LiveSegment segment;
  for (const char* priority : {"0", "0", "0", "2", "17"})
    segment.enqueue({"-t", "a", "--priority", priority});
  segment.enqueue({"-t", "a", "--delay", "1h", "--priority", "5"});
  EXPECT_EQ(
      segment.cli({"stats", "--priorities", "default", "--json"}).out,
      "{\"queue\":\"default\",\"counts_by_priority\":{\"0\":3,\"2\":1,\"17\":1},\"total\":5}\n");
  EXPECT_EQ(segment.cli({"stats", "--priorities"}).out,
            "default\t0\t3\ndefault\t2\t1\ndefault\t17\t1\n");
  EXPECT_EQ(segment.cli({"queue", "set", "empty", "--max-depth", "9"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"stats", "--priorities", "empty", "--json"}).out,
            "{\"queue\":\"empty\",\"counts_by_priority\":{},\"total\":0}\n");
  EXPECT_EQ(segment.cli({"stats", "--priorities", "nobody"}).exit_code, 4);
  EXPECT_EQ(lines_of(segment.cli({"stats", "--priorities", "--json"}).out).size(), 2U);
  EXPECT_EQ(segment.cli({"stats", "default"}).exit_code, 2) << "a queue without --priorities";
}

TEST(CliEvents, a_type_that_there_is_not_is_refused_with_those_that_there_are) {
  const LiveSegment segment({"--events"});
  const Finished done =
      segment.cli({"events", "--follow", "--types", "job.failed,priority.changd"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_THAT(done.err, HasSubstr("no event has the type 'priority.changd'"));
  for (const char* type :
       {"job.enqueued, ", "priority.changed", "queue.paused", "backpressure.dropped"})
    EXPECT_THAT(done.err, HasSubstr(type));
  segment.enqueue({"-t", "a"});
  EXPECT_EQ(
      lines_of(segment.cli({"events", "--types", "job.enqueued,priority.changed"}).out).size(), 1U);
}

/// The value of a sample in an exposition, or an empty text.
std::string sample(const std::string& page, const std::string& name) {
  for (const std::string& line : lines_of(page))
    if (line.rfind(name + " ", 0) == 0) return line.substr(name.size() + 1);
  return {};
}

TEST(CliStats, PRI_X1_PRI_X2_PRI_X3_a_page_for_prometheus) {
  const LiveSegment segment;
  std::string id;
  for (const char* priority : {"0", "2", "2"})
    id = segment.enqueue({"-t", "a", "--priority", priority});
  EXPECT_EQ(segment.cli({"reprioritize", id, "7"}).exit_code, 0);
  const std::string before = segment.cli({"stats", "--metrics"}).out;
  for (const char* priority : {"0", "2", "7"})
    EXPECT_EQ(sample(before,
                     std::string("ojs_queue_available_by_priority{queue=\"default\",priority=\"") +
                         priority + "\",segment=\"test\"}"),
              "1");
  EXPECT_EQ(sample(before, "ojs_job_priority_changes_total{queue=\"default\",segment=\"test\"}"),
            "1");
  EXPECT_THAT(before, HasSubstr("# TYPE ojs_queue_available_by_priority gauge\n"));
  EXPECT_THAT(before, HasSubstr("# TYPE ojs_job_wait_duration_by_priority histogram\n"));
  EXPECT_THAT(before, HasSubstr("# TYPE ojs_job_priority_changes_total counter\n"));
  EXPECT_EQ(sample(before, "ojs_queue_depth{queue=\"default\",segment=\"test\"}"), "3");

  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  const std::string after = segment.cli({"stats", "--metrics"}).out;
  for (const char* priority : {"0", "2", "7"}) {
    const std::string labels =
        std::string("{queue=\"default\",priority=\"") + priority + "\",segment=\"test\"";
    EXPECT_EQ(sample(after, "ojs_job_wait_duration_by_priority_count" + labels + "}"), "1");
    EXPECT_EQ(
        sample(after, "ojs_job_wait_duration_by_priority_bucket" + labels + ",le=\"4194.304\"}"),
        "1");
    EXPECT_EQ(sample(after, "ojs_job_wait_duration_by_priority_bucket" + labels + ",le=\"+Inf\"}"),
              "1");
    EXPECT_EQ(sample(after, "ojs_queue_available_by_priority" + labels + "}"), "")
        << "nothing is available";
  }
  const Finished json = segment.cli({"stats", "--metrics", "--json"});
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_EQ(member(json.err, "error.code"), "invalid_request") << json.err;
  EXPECT_EQ(sample(after, "ojs_job_completed_total{queue=\"default\",segment=\"test\"}"), "3");
  EXPECT_EQ(sample(after, "ojs_job_dispatched_total{queue=\"default\",segment=\"test\"}"), "3");
}

/// A job that is scheduled for an hour, and whose time comes when the clock is moved by two.
TEST(CliStats, PRI_X2_FS_X3_a_wait_from_enqueue_is_told_apart_from_one_from_availability) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a", "--priority", "1", "--delay", "1h"});
  const Segment attached = Segment::attach(segment.where()).value();
  attached.attachment()->segment().header().clock_offset_ms.fetch_add(7'200'000, shm::Point::kNone);
  ASSERT_TRUE(segment.becomes(id, "available"));
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  const std::string page = segment.cli({"stats", "--metrics"}).out;
  const auto is = [&page](const std::string& name, const std::string& labels) {
    return sample(page, name + "{queue=\"default\"," + labels + "}");
  };
  const std::string hour = "segment=\"test\",le=\"4194.304\"";
  const std::string all = "segment=\"test\",le=\"+Inf\"";
  const std::string by_priority = "ojs_job_wait_duration_by_priority_bucket";
  EXPECT_EQ(is(by_priority, "priority=\"1\"," + all), "1");
  EXPECT_EQ(is(by_priority, "priority=\"1\"," + hour), "0") << "two hours since its enqueue";
  EXPECT_EQ(is("ojs_scheduling_queue_wait_duration_bucket", all), "1");
  EXPECT_EQ(is("ojs_scheduling_queue_wait_duration_bucket", hour), "1") << "just available";
  EXPECT_EQ(is("ojs_job_queue_time_seconds_bucket", hour), "0") << "two hours since its enqueue";
  EXPECT_EQ(is("ojs_job_queue_time_seconds_bucket", all), "1");
  EXPECT_EQ(sample(page, "ojs_job_duration_seconds_count{queue=\"default\",segment=\"test\"}"),
            "1");

  const std::string times = segment.cli({"stats", "--times"}).out;
  EXPECT_THAT(times, HasSubstr("default\t1\twait from enqueue\t1\t7"));
  EXPECT_THAT(times, HasSubstr("default\t1\trun\t1\t"));
  EXPECT_THAT(
      segment.cli({"stats", "--times", "--json"}).out,
      AllOf(HasSubstr(R"("from_enqueue":{"count":1,)"), HasSubstr(R"("runs":{"count":1,)")));
}

}  // namespace
}  // namespace ojs_shm::test
