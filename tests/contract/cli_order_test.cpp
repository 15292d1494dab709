// SPDX-License-Identifier: Apache-2.0
// The order within a queue as operators set it, and as processes see it that fetch one job and
// exit.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/live_segment.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kMinute = 60'000;

void move_clock(const LiveSegment& segment, std::uint64_t ms) {
  const Segment attached = Segment::attach(segment.where()).value();
  attached.attachment()->segment().header().clock_offset_ms.fetch_add(ms, shm::Point::kNone);
}

/// The id and the priority of the job that a new process gets, which then exits.
std::pair<std::string, std::string> fetch_by_a_process(const LiveSegment& segment) {
  const Finished done = segment.cli(
      {"work", "--count", "1", "--until-empty", "--", "sh", "-c", "echo $OJS_PRIORITY"});
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
  ASSERT_EQ(
      segment.cli({"queue", "set", "default", "--aging", "preset=ojs,interval=60s"}).exit_code, 0);
  const std::string old = segment.enqueue({"-t", "a", "--priority", "4"});
  move_clock(segment, 2 * kMinute - 30'000);
  const std::string fresh = segment.enqueue({"-t", "a", "--priority", "2"});
  EXPECT_EQ(fetch_by_a_process(segment).first, fresh);
  move_clock(segment, 3 * kMinute + 30'000);  // 4 - 5 = -1
  const std::string urgent = segment.enqueue({"-t", "a", "--priority", "critical"});
  EXPECT_EQ(segment.job(old, "priority"), "4");
  const auto [first, priority] = fetch_by_a_process(segment);
  EXPECT_EQ(first, old);
  EXPECT_EQ(priority, "4");  // as stored
  EXPECT_EQ(fetch_by_a_process(segment).first, urgent);
}

/// Level 0 gets two jobs while one is fetched, so it never runs dry and its backlog grows. A job of
/// rank 4 waits for what came within 4 intervals of it, 8 jobs here, and for nothing that comes
/// later (docs/scheduling.md, the bound).
TEST(
    CliOrder,
    PRI_T18_the_lowest_level_waits_no_longer_than_the_bound_says_through_processes_that_fetch_once) {
  const LiveSegment segment;
  ASSERT_EQ(
      segment.cli({"queue", "set", "default", "--aging", "preset=ojs,interval=60m"}).exit_code, 0);
  const std::string low = segment.enqueue({"-t", "a", "--priority", "4"});
  std::vector<std::string> fresh, fetched;
  while (fetched.size() < 20 && (fetched.empty() || fetched.back() != low)) {
    for (int i = 0; i < 2; ++i) fresh.push_back(segment.enqueue({"-t", "a", "--priority", "0"}));
    fetched.push_back(fetch_by_a_process(segment).first);
    move_clock(segment, 60 * kMinute);
  }
  std::vector<std::string> expected(fresh.begin(), fresh.begin() + 8);
  expected.push_back(low);
  EXPECT_EQ(fetched, expected);
}

TEST(CliOrder, QO_12_QO_13_QO_14_the_worker_section_of_qo_and_a_rate_of_a_job) {
  LiveSegment setup;  // for the folder
  const std::string file =
      config(setup,
             "[worker]\npriority_aging = true\npriority_age_rate = 1  # points per minute\n"
             "priority_age_cap = 200  # max effective priority from aging\n");
  const LiveSegment segment({"--convention", "qo", "--config", file});
  const std::string slow = segment.enqueue({"-t", "a", "--priority", "50"});
  const std::string quick =
      segment.enqueue({"-t", "a", "--priority", "40", "--priority-age-rate", "3"});
  // 128 and, at its cap, 200
  move_clock(segment, 78 * kMinute);
  // waits for less long
  const std::string equal = segment.enqueue({"-t", "a", "--priority", "128"});
  const std::string above = segment.enqueue({"-t", "a", "--priority", "201"});
  for (const std::string& id : {above, quick, slow, equal})
    EXPECT_EQ(fetch_by_a_process(segment).first, id);
  const Finished got = segment.cli({"queue", "get", "default", "--json"});
  EXPECT_EQ(member(got.out, "aging"),
            R"({"enabled":true,"preset":"qo","interval":"PT1M","rate":1,"cap":200})");
  EXPECT_EQ(segment.job(quick, "priority_age_rate"), "3");
}

TEST(CliOrder, SUM_04_weights_hold_over_processes_that_fetch_once) {
  const LiveSegment segment;
  std::string jobs;
  for (int i = 0; i < 20; ++i)
    for (int level = 0; level < 3; ++level)
      jobs += R"({"type":"a","args":[],"priority":)" + std::to_string(level) + "}\n";
  ASSERT_EQ(segment.cli({"enqueue"}, jobs).exit_code, 0);
  const Finished set =
      segment.cli({"queue", "set", "default", "--level-weights", "0:5,high:3,2:2", "--json"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(member(set.out, "level_weights"), R"({"0":5,"1":3,"2":2,"*":1})");
  EXPECT_EQ(member(set.out, "order"), "weighted");
  std::map<std::string, int> shares;
  for (int i = 0; i < 20; ++i) ++shares[fetch_by_a_process(segment).second];
  EXPECT_EQ(shares, (std::map<std::string, int>{{"0", 10}, {"1", 6}, {"2", 4}}));
}

TEST(CliOrder, FS_R005_FS_T16_FS_T18_tenants_share_over_processes_that_fetch_once) {
  LiveSegment setup;
  const std::string file = config(
      setup, "[queues.default.tenant_fairness]\nenabled = true\nweights = {\"tenant:a\" = 3}\n");
  const LiveSegment segment({"--config", file});
  std::map<std::string, std::string> tenant;
  for (const char* of : {"a", "a", "a", "a", "a", "a", "b", "b"})
    tenant[segment.enqueue(
        {"-t", "a", "--meta", std::string(R"({"tenant_id":")") + of + R"("})"})] = of;
  std::string order;
  for (int i = 0; i < 8; ++i) order += tenant[fetch_by_a_process(segment).first];
  EXPECT_EQ(order, "aaabaaab");
  const Finished set =
      segment.cli({"queue", "set", "default", "--tenant-weights", "b:2", "--json"});
  EXPECT_EQ(member(set.out, "tenant_fairness"),
            R"({"enabled":true,"strategy":"fair-share","scope":"within","default_weight":1,)"
            R"("weights":{"b":2}})");
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-weights", "b:0"}).exit_code, 2);
  EXPECT_EQ(
      segment.cli({"queue", "set", "default", "--tenant-fairness", "strategy=first"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-fairness", "off"}).exit_code, 0);
}

TEST(CliOrder, shares_and_weights_of_tenants_are_set_each_for_itself) {
  const LiveSegment segment;
  const auto set = [&segment](const char* flag, const char* value) {
    return segment.cli({"queue", "set", "default", flag, value, "--json"}).out;
  };
  EXPECT_EQ(member(set("--tenant-weights", "a:3"), "tenant_fairness.weights"), R"({"a":3})");
  const std::string across = set("--tenant-fairness", "across");
  EXPECT_EQ(member(across, "tenant_fairness.weights"), R"({"a":3})");
  EXPECT_EQ(member(across, "tenant_fairness.scope"), "across");
  const std::string weighted = set("--tenant-weights", "b:2");
  EXPECT_EQ(member(weighted, "tenant_fairness.weights"), R"({"b":2})");
  EXPECT_EQ(member(weighted, "tenant_fairness.scope"), "across");
  const std::string base = set("--tenant-fairness", "default_weight=3");
  EXPECT_EQ(member(base, "tenant_fairness.default_weight"), "3");
  EXPECT_EQ(member(base, "tenant_fairness.weights"), R"({"b":2})");
  EXPECT_EQ(member(set("--tenant-weights", "off"), "tenant_fairness.weights"), "{}");
  const std::string whole = set("--tenant-fairness", R"({"scope":"within","weights":{"d":6}})");
  EXPECT_EQ(member(whole, "tenant_fairness.weights"), R"({"d":6})");
  EXPECT_EQ(member(whole, "tenant_fairness.scope"), "within");
  EXPECT_EQ(member(set("--tenant-fairness", "off"), "tenant_fairness.enabled"), "false");
  EXPECT_EQ(member(set("--tenant-fairness", "on"), "tenant_fairness.weights"), R"({"d":6})");
}

TEST(CliOrder, SUM_11_tenants_share_across_levels_over_processes_that_fetch_once) {
  LiveSegment setup;
  const std::string file = config(setup, "[queues.default.tenant_fairness]\nscope = \"across\"\n");
  const LiveSegment segment({"--config", file});
  std::map<std::string, std::string> name;
  const auto put = [&](const std::string& of, const std::string& priority) {
    name[segment.enqueue({"-t", "a", "--priority", priority, "--meta",
                          R"({"tenant_id":")" + of + R"("})"})] = of + priority + " ";
  };
  for (const char* priority : {"2", "0", "1"}) put("a", priority);
  for (const char* priority : {"5", "3"}) put("b", priority);
  std::string order;
  for (int i = 0; i < 5; ++i) order += name[fetch_by_a_process(segment).first];
  EXPECT_EQ(order, "a0 b3 a1 b5 a2 ");
  const Finished weights = segment.cli({"queue", "set", "default", "--level-weights", "0:2"});
  EXPECT_EQ(weights.exit_code, 2);
  EXPECT_NE(weights.err.find("share across levels"), std::string::npos) << weights.err;
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-fairness", "scope=off"}).exit_code,
            2);
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-fairness", "on"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--level-weights", "0:2"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"queue", "set", "default", "--tenant-fairness", "across"}).exit_code, 2);
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
  EXPECT_EQ(member(mail, "aging"),
            R"({"enabled":true,"preset":"ojs","interval":"PT30S","rate":1,"floor":-5})");
  EXPECT_EQ(member(mail, "shards"), "2");
  EXPECT_EQ(member(mail, "order"), "aged, within a shard");
  EXPECT_EQ(member(segment.cli({"queue", "get", "web", "--json"}).out, "level_weights"),
            R"({"0":3,"*":1})");
}

TEST(CliOrder, SUM_05_an_unknown_key_is_an_error_with_file_and_line) {
  const LiveSegment setup;
  for (const auto& [text, line, about] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"[queues.mail.aging]\nenabled = true\nspeed = 3\n", ":3:", "speed"},
           {"[queues.mail]\nlevel_weights = {\"0\" = -1}\n", ":2:", "level_weights.0"},
           {"\n[worker]\npriority_age_speed = 3\n", ":3:", "priority_age_speed"},
           {"[worker]\npriority_age_cap = 300\n", ":2:", "priority_age_cap"},
           {"[queues.mail]\n\nshards = 17\n", ":3:", "shards must be an integer from 1 to 16"},
           {"[queues.mail]\n\nshards = 0\n", ":3:", "shards must be an integer from 1 to 16"},
           {"[queues.mail.level_weights]\n1 = 1\n0 = 0\n", ":3:", "level_weights.0 must be"},
           {"[queues.mail.level_weights]\n1 = 1\nfoo = 1\n", ":3:", "'foo' is not a priority"},
           {"[queues.mail]\naging = {}\nlevel_weights = {\"0\" = 1}\n",
            ":3:", "both ageing and level weights"},
           {"[aging]\n[queues.mail]\nlevel_weights = {\"0\" = 1}\n",
            ":3:", "both ageing and level weights"},
           {"[aging]\n\npreset = \"zz\"\n", ":3:", "no ageing preset 'zz'"},
           {"[queues.mail.aging]\n\npreset = \"zz\"\n", ":3:", "no ageing preset 'zz'"},
           {"[queues.mail.aging]\n\nfloor = 300\n", ":3:", "(0 to 255)"},
           {"convention = \"ojs-core\"\n[aging]\n\ncap = -101\n", ":4:", "(-100 to 100)"},
           {"\naging = \"default\"\n", ":2:", "on or off"},
           {"\naging = \"none\"\n", ":2:", "\"default\""},
           {"[aging]\nenabled = false\n[worker]\npriority_aging = true\n",
            ":4:", "contradicts `enabled`"},
           {"[worker]\npriority_aging = false\n[aging]\n", ":2:", "contradicts `enabled`"},
           {"[aging]\nrate = 2\n[worker]\npriority_age_rate = 1\n", ":4:", "contradicts `rate`"},
           {"[aging]\nfloor = 200\n[worker]\npriority_age_cap = 200\n",
            ":4:", "contradicts `floor`"},
           {"[aging]\npreset = \"ojs\"\n[worker]\npriority_aging = true\n",
            ":2:", "contradicts the preset"},
           {"[aging]\npreset = 1\n", ":2:", "preset"}}) {
    const std::string file = config(setup, text);
    const Finished done = run({program("ojs-shm-broker"), "--name", "other", "--dir",
                               setup.folder().path(), "--config", file});
    EXPECT_EQ(done.exit_code, 2) << text;
    EXPECT_NE(done.err.find("broker.toml" + line), std::string::npos) << done.err;
    EXPECT_NE(done.err.find(about), std::string::npos) << done.err;
    EXPECT_FALSE(std::filesystem::exists(setup.folder() / "ojs-shm.other")) << text;
  }
}

TEST(CliOrder, QO_13_the_cap_of_qo_is_one_of_its_own_priorities_in_every_convention) {
  LiveSegment setup;
  for (const auto& [cap, shown] : std::vector<std::pair<std::string, std::string>>{
           {"", "55"}, {"priority_age_cap = 200\n", "55"}, {"priority_age_cap = 255\n", "0"}}) {
    const std::string file =
        config(setup, "[worker]\npriority_aging = true\npriority_age_rate = 1\n" + cap);
    const LiveSegment segment({"--config", file});
    EXPECT_EQ(member(segment.cli({"default-aging", "--json"}).out, "floor"), shown);
    const std::string old = segment.enqueue({"-t", "a", "--priority", "200"});
    move_clock(segment, 100 * kMinute);
    const std::string fresh = segment.enqueue({"-t", "a", "--priority", "150"});
    EXPECT_EQ(fetch_by_a_process(segment).first, old) << "200 - 100";
  }
  const std::string core =
      config(setup, "[worker]\npriority_aging = true\npriority_age_cap = 10\n");
  const LiveSegment segment({"--convention", "ojs-core", "--config", core});
  EXPECT_EQ(member(segment.cli({"default-aging", "--json"}).out, "cap"), "-100")
      << "it has no rank 245";
}

TEST(CliOrder, QO_12_two_tables_that_say_the_same_are_one_setting) {
  LiveSegment setup;
  const std::string file =
      config(setup,
             "[aging]\ninterval = \"PT30S\"\nfloor = 55\n"
             "[worker]\npriority_aging = true\npriority_age_rate = 2\npriority_age_cap = 200\n");
  const LiveSegment segment({"--config", file});
  EXPECT_EQ(segment.cli({"default-aging", "--json"}).out,
            R"({"enabled":true,"preset":"qo","interval":"PT30S","rate":2,"floor":55})"
            "\n");
}

TEST(CliOrder, SUM_07_the_default_ageing_can_be_read_and_returned_to) {
  const LiveSegment segment;
  EXPECT_EQ(segment.cli({"default-aging", "--json"}).out, "{\"enabled\":false}\n");
  const std::string set = "{\"enabled\":true,\"preset\":\"ojs\",\"interval\":\"PT30S\",\"rate\":1}";
  EXPECT_EQ(segment.cli({"default-aging", "on,interval=30s", "--json"}).out, set + "\n");
  EXPECT_NE(segment.cli({"default-aging"}).out.find("interval\tPT30S"), std::string::npos);
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.aging"), set);
  const auto get = [&](std::string_view name) {
    return member(segment.cli({"queue", "get", "mail", "--json"}).out, name);
  };
  ASSERT_EQ(segment.cli({"queue", "set", "mail", "--aging", "off,rate=3"}).exit_code, 0);
  EXPECT_EQ(get("aging_inherited"), "false");
  EXPECT_EQ(get("aging.enabled"), "false");
  EXPECT_EQ(get("order"), "strict");
  ASSERT_EQ(segment.cli({"queue", "set", "mail", "--aging", "default"}).exit_code, 0);
  EXPECT_EQ(get("aging_inherited"), "true");
  EXPECT_EQ(get("aging"), set);
  EXPECT_EQ(get("order"), "aged");
  const Finished both =
      segment.cli({"queue", "set", "mail", "--aging", "default", "--level-weights", "0:1"});
  EXPECT_EQ(both.exit_code, 2) << both.out;
  EXPECT_EQ(segment.cli({"default-aging", "default"}).exit_code, 2);
  ASSERT_EQ(
      segment.cli({"queue", "set", "web", "--aging", "off", "--level-weights", "0:1"}).exit_code,
      0);
  const Finished back = segment.cli({"queue", "set", "web", "--aging", "default"});
  EXPECT_EQ(back.exit_code, 2) << "it has weights, and the segment ages";
  EXPECT_EQ(segment.cli({"queue", "set", "web", "--aging", "default", "--level-weights", "none"})
                .exit_code,
            0);
}

TEST(CliOrder, QO_14_the_rates_that_are_taken_are_listed_and_stay_taken) {
  const LiveSegment segment;
  std::string jobs;
  for (int rate = 10; rate < 18; ++rate)
    jobs += R"({"type":"a","args":[],"priority_age_rate":)" + std::to_string(rate) + "}\n";
  ASSERT_EQ(segment.cli({"enqueue"}, jobs).exit_code, 0);
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  const Finished ninth = segment.cli({"enqueue", "-t", "a", "--priority-age-rate", "9"});
  EXPECT_EQ(ninth.exit_code, 2);
  EXPECT_NE(ninth.err.find("also when no job of it waits"), std::string::npos) << ninth.err;
  const std::string queue = segment.cli({"queue", "get", "default", "--json"}).out;
  EXPECT_EQ(member(queue, "depth"), "0");
  EXPECT_EQ(member(queue, "age_rates"), "[10,11,12,13,14,15,16,17]");
  EXPECT_NE(segment.cli({"queue", "get", "default"}).out.find("age_rates\t[10,11,"),
            std::string::npos);
}

TEST(CliOrder, the_sets_of_rings_are_a_pool_that_is_shown_and_named) {
  const LiveSegment segment;
  for (const char* queue : {"a", "b", "c", "d"})
    ASSERT_EQ(segment.cli({"queue", "set", queue, "--shards", "16"}).exit_code, 0);
  const auto pool = [&] {
    for (const std::string& line : lines_of(segment.cli({"stats"}).out))
      if (line.starts_with("pool\tparts\t")) return line;
    return std::string();
  };
  EXPECT_TRUE(pool().starts_with("pool\tparts\t60\t64")) << pool();
  const Finished short_of = segment.cli({"queue", "set", "e", "--shards", "16"});
  EXPECT_EQ(short_of.exit_code, 6);
  EXPECT_NE(short_of.err.find("60 of 64 sets of rings"), std::string::npos) << short_of.err;
  EXPECT_TRUE(pool().starts_with("pool\tparts\t60\t64"))
      << "what is refused takes none: " << pool();
  ASSERT_EQ(segment.cli({"queue", "set", "e", "--shards", "5"}).exit_code, 0);
  const Finished full = segment.cli({"queue", "set", "f", "--shards", "2"});
  EXPECT_EQ(full.exit_code, 6);
  EXPECT_NE(full.err.find("64 of 64 sets of rings"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("each ageing rate"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("no segment can have more"), std::string::npos) << full.err;
  EXPECT_NE(segment.cli({"doctor"}).out.find("pool parts\tproblem\t64 of 64"), std::string::npos);
  const LiveSegment small({"--max-queues", "8"});
  for (const char* queue : {"a", "b"})
    ASSERT_EQ(small.cli({"queue", "set", queue, "--shards", "16"}).exit_code, 0);
  const Finished more = small.cli({"queue", "set", "c", "--shards", "16"});
  EXPECT_EQ(more.exit_code, 6);
  EXPECT_NE(more.err.find("make the segment with --max-queues 32"), std::string::npos) << more.err;
}

TEST(CliOrder, SUM_04_SUM_07_what_cannot_be_is_refused_with_the_reason) {
  const LiveSegment segment;
  for (const auto& [words, about] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--level-weights", "0:1", "--aging", "on"}, "turn one of them off"},
           {{"--level-weights", "urgent:1"}, "normal (2)"},
           {{"--level-weights", "0:x"}, "level_weights"},
           {{"--level-weights", "0:0,1:1"}, "level_weights.0 must be an integer of at least 1"},
           {{"--level-weights", "0:2000000,1:1"}, "the most is 256"},
           {{"--level-weights", "0:-1"}, "at most 256 turns"},
           {{"--aging", "floor=300"}, "(0 to 255)"},
           {{"--aging", "enabled"}, "aging.enabled must be"},
           {{"--aging", "default,rate=1"}, "aging.default is unknown"},
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
