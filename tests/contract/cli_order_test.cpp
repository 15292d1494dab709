// SPDX-License-Identifier: Apache-2.0
// The order within a queue as operators set it, and as processes see it that fetch one job and exit.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "tests/support/live_segment.hpp"
#include "worker_api/attachment.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kMinute = 60'000;

void move_clock(const LiveSegment& segment, std::uint64_t ms) {
  const Segment attached = Segment::attach(segment.where()).value();
  attached.attachment()->segment().header().clock_offset_ms.fetch_add(ms, shm::Point::kNone);
}

/// The id and the priority of the job that a new process gets, which then exits.
std::pair<std::string, std::string> fetch_by_a_process(const LiveSegment& segment) {
  const Finished done = segment.cli({"work", "--count", "1", "--until-empty", "--", "sh", "-c", "echo $OJS_PRIORITY"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::string id = done.out.substr(0, 36);
  return {id, segment.job(id, "result")};
}

std::string config(const LiveSegment& segment, std::string_view text) {
  const std::string path = segment.folder() / "broker.toml";
  std::ofstream(path) << text;
  return path;
}

TEST(CliOrder, PRI_T18_PRI_T19_SUM_07_ageing_through_processes_that_fetch_once) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"queue", "set", "default", "--aging", "preset=ojs,interval=60s"}).exit_code, 0);
  const std::string old = segment.enqueue({"-t", "a", "--priority", "4"});
  move_clock(segment, 2 * kMinute - 1000);
  const std::string fresh = segment.enqueue({"-t", "a", "--priority", "2"});
  EXPECT_EQ(fetch_by_a_process(segment).first, fresh);
  move_clock(segment, 3 * kMinute + 1000);  // 4 - 5 = -1
  const std::string urgent = segment.enqueue({"-t", "a", "--priority", "critical"});
  EXPECT_EQ(segment.job(old, "priority"), "4");
  const auto [first, priority] = fetch_by_a_process(segment);
  EXPECT_EQ(first, old);
  EXPECT_EQ(priority, "4");  // as stored
  EXPECT_EQ(fetch_by_a_process(segment).first, urgent);
}

TEST(CliOrder, QO_12_QO_13_QO_14_the_worker_section_of_qo_and_a_rate_of_a_job) {
  LiveSegment setup;  // for the folder
  const std::string file = config(setup,
                                  "[worker]\npriority_aging = true\npriority_age_rate = 1  # points per minute\n"
                                  "priority_age_cap = 200  # max effective priority from aging\n");
  const LiveSegment segment({"--convention", "qo", "--config", file});
  const std::string slow = segment.enqueue({"-t", "a", "--priority", "50"});
  const std::string quick = segment.enqueue({"-t", "a", "--priority", "40", "--priority-age-rate", "3"});
  move_clock(segment, 78 * kMinute);                                            // 128 and, at its cap, 200
  const std::string equal = segment.enqueue({"-t", "a", "--priority", "128"});  // waits for less long
  const std::string above = segment.enqueue({"-t", "a", "--priority", "201"});
  for (const std::string& id : {above, quick, slow, equal}) EXPECT_EQ(fetch_by_a_process(segment).first, id);
  const Finished got = segment.cli({"queue", "get", "default", "--json"});
  EXPECT_EQ(member(got.out, "aging"), R"({"enabled":true,"preset":"qo","interval":"PT1M","rate":1,"cap":200})");
  EXPECT_EQ(segment.job(quick, "priority_age_rate"), "3");
}

TEST(CliOrder, SUM_04_weights_hold_over_processes_that_fetch_once) {
  const LiveSegment segment;
  std::string jobs;
  for (int i = 0; i < 20; ++i)
    for (int level = 0; level < 3; ++level)
      jobs += R"({"type":"a","args":[],"priority":)" + std::to_string(level) + "}\n";
  ASSERT_EQ(segment.cli({"enqueue"}, jobs).exit_code, 0);
  const Finished set = segment.cli({"queue", "set", "default", "--level-weights", "0:5,high:3,2:2", "--json"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(member(set.out, "level_weights"), R"({"0":5,"1":3,"2":2,"*":1})");
  EXPECT_EQ(member(set.out, "order"), "weighted");
  std::map<std::string, int> shares;
  for (int i = 0; i < 20; ++i) ++shares[fetch_by_a_process(segment).second];
  EXPECT_EQ(shares, (std::map<std::string, int>{{"0", 10}, {"1", 6}, {"2", 4}}));
}

TEST(CliOrder, FS_R005_FS_T16_FS_T18_tenants_share_over_processes_that_fetch_once) {
  LiveSegment setup;
  const std::string file =
      config(setup, "[queues.default.tenant_fairness]\nenabled = true\nweights = {\"tenant:a\" = 3}\n");
  const LiveSegment segment({"--config", file});
  std::map<std::string, std::string> tenant;
  for (const char* of : {"a", "a", "a", "a", "a", "a", "b", "b"})
    tenant[segment.enqueue({"-t", "a", "--meta", std::string(R"({"tenant_id":")") + of + R"("})"})] = of;
  std::string order;
  for (int i = 0; i < 8; ++i) order += tenant[fetch_by_a_process(segment).first];
  EXPECT_EQ(order, "aaabaaab");
  const Finished set = segment.cli({"queue", "set", "default", "--tenant-weights", "b:2", "--json"});
  EXPECT_EQ(member(set.out, "tenant_fairness"),
            R"({"enabled":true,"strategy":"fair-share","default_weight":1,"weights":{"b":2}})");
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-weights", "b:0"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-fairness", "strategy=first"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-fairness", "off"}).exit_code, 0);
}

TEST(CliOrder, SUM_05_PRI_S8_a_file_sets_the_order_of_queues) {
  LiveSegment setup;
  const std::string file = config(setup, R"([queues.mail]
paused = false
shards = 2
[queues.mail.aging]
enabled = true
interval = "PT30S"
floor = -5
[queues.web]
level_weights = {critical = 3, "*" = 1}
)");
  const LiveSegment segment({"--config", file});
  const std::string mail = segment.cli({"queue", "get", "mail", "--json"}).out;
  EXPECT_EQ(member(mail, "aging"), R"({"enabled":true,"preset":"ojs","interval":"PT30S","rate":1,"floor":-5})");
  EXPECT_EQ(member(mail, "shards"), "2");
  EXPECT_EQ(member(mail, "order"), "within a shard");
  EXPECT_EQ(member(segment.cli({"queue", "get", "web", "--json"}).out, "level_weights"), R"({"0":3,"*":1})");
}

TEST(CliOrder, SUM_05_an_unknown_key_is_an_error_with_file_and_line) {
  const LiveSegment setup;
  for (const auto& [text, line, about] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"[queues.mail.aging]\nenabled = true\nspeed = 3\n", ":3:", "speed"},
           {"[queues.mail]\nlevel_weights = {\"0\" = -1}\n", ":2:", "level_weights.0"},
           {"\n[worker]\npriority_age_speed = 3\n", ":3:", "priority_age_speed"},
           {"[worker]\npriority_age_cap = 300\n", ":2:", "priority_age_cap"},
           {"[queues.mail]\n\nshards = 17\n", ":3:", "shards"},
           {"[aging]\npreset = 1\n", ":2:", "preset"}}) {
    const std::string file = config(setup, text);
    const Finished done =
        run({program("ojs-shm-broker"), "--name", "other", "--dir", setup.folder().path(), "--config", file});
    EXPECT_EQ(done.exit_code, 2) << text;
    EXPECT_NE(done.err.find("broker.toml" + line), std::string::npos) << done.err;
    EXPECT_NE(done.err.find(about), std::string::npos) << done.err;
  }
}

TEST(CliOrder, SUM_04_SUM_07_what_cannot_be_is_refused_with_the_reason) {
  const LiveSegment segment;
  for (const auto& [words, about] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--level-weights", "0:1", "--aging", "on"}, "turn one of them off"},
           {{"--level-weights", "urgent:1"}, "normal (2)"},
           {{"--level-weights", "0:x"}, "level_weights"},
           {{"--aging", "interval=never"}, "aging.interval"},
           {{"--aging", "pace=1"}, "aging.pace"},
           {{"--shards", "0"}, "1 to 16"}}) {
    std::vector<std::string> all = {"queue", "set", "default"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished done = segment.cli(all);
    EXPECT_EQ(done.exit_code, 2) << about;
    EXPECT_NE(done.err.find(about), std::string::npos) << done.err;
  }
  EXPECT_EQ(segment.cli({"default-aging", "interval=30s"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"queue", "set", "web", "--paused", "false"}).exit_code, 0);
  EXPECT_EQ(member(segment.cli({"queue", "get", "web", "--json"}).out, "aging.interval"), "PT30S");
}

}  // namespace
}  // namespace ojs_shm::test
