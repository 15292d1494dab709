// SPDX-License-Identifier: Apache-2.0
// Pools of workers as operators set them, and as processes see them that fetch one job and exit.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {
namespace {

void fill(const LiveSegment& segment, const std::vector<std::string>& queues, int jobs) {
  std::string lines;
  for (const std::string& queue : queues)
    for (int i = 0; i < jobs; ++i) lines += R"({"type":"a","args":[],"queue":")" + queue + "\"}\n";
  ASSERT_EQ(segment.cli({"enqueue"}, lines).exit_code, 0);
}

/// The queue of the job that a new process gets, which then exits; empty when it gets none.
std::string fetch_by_a_process(const LiveSegment& segment,
                               const std::vector<std::string>& words = {"--pool", "p"}) {
  std::vector<std::string> all = {"work", "--count", "1", "--until-empty"};
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"--", "sh", "-c", "printf '\"%s\"' \"$OJS_QUEUE\""});
  const Finished done = segment.cli(all);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return done.out.empty() ? "" : segment.job(done.out.substr(0, 36), "queue");
}

using Shares = std::map<std::string, int>;
Shares fetch_by_processes(const LiveSegment& segment, int times) {
  Shares shares;
  for (int i = 0; i < times; ++i) ++shares[fetch_by_a_process(segment)];
  return shares;
}

std::string config(const LiveSegment& segment, std::string_view text) {
  const std::string path = segment.folder() / "broker.toml";
  std::ofstream(path) << text;
  return path;
}

TEST(CliPools, FS_004_FS_H1_FS_H2_FS_T21_a_pool_is_set_shown_changed_and_removed) {
  const LiveSegment segment;
  const Finished made = segment.cli(
      {"pool", "set", "p", "--queue", "critical,payments", "--concurrency", "20", "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(member(made.out, "queues"), R"(["critical","payments"])");
  EXPECT_EQ(member(made.out, "strategy"), "round-robin");
  EXPECT_EQ(member(made.out, "concurrency"), "20");
  // the rest stays
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--strategy", "strict"}).exit_code, 0);
  const std::string got = segment.cli({"pool", "get", "p", "--json"}).out;
  EXPECT_EQ(member(got, "strategy"), "strict");
  EXPECT_EQ(member(got, "concurrency"), "20");
  EXPECT_EQ(member(got, "active_workers"), "0");
  EXPECT_EQ(member(got, "active_jobs"), "0");
  {
    const Segment attached = Segment::attach(segment.where()).value();
    Worker worker = Worker::attach(attached, {.pool = "p"}).value();
    segment.enqueue({"-t", "a", "--queue", "payments"});
    Job job;
    ASSERT_TRUE(worker.try_fetch(job).ok());
    const std::string busy = segment.cli({"pool", "get", "p", "--json"}).out;
    EXPECT_EQ(member(busy, "active_workers"), "1");
    EXPECT_EQ(member(busy, "active_jobs"), "1");
    ASSERT_TRUE(worker.ack(job).ok());
    EXPECT_EQ(member(segment.cli({"pool", "get", "p", "--json"}).out, "active_jobs"), "0");
  }
  EXPECT_EQ(member(segment.cli({"pool", "get", "p", "--json"}).out, "active_workers"), "0");
  ASSERT_EQ(segment.cli({"pool", "set", "q", "--queue", "a:3,b"}).exit_code, 0);
  const std::string all = segment.cli({"pool", "list", "--json"}).out;
  EXPECT_NE(all.find(R"("name":"p")"), std::string::npos) << all;
  EXPECT_NE(all.find(R"("strategy":"weighted","weights":{"a":3,"b":1})"), std::string::npos) << all;
  EXPECT_EQ(segment.cli({"pool", "rm", "p"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"pool", "rm", "p"}).exit_code, 4);
  EXPECT_EQ(segment.cli({"pool", "get", "p"}).exit_code, 4);
  EXPECT_EQ(segment.cli({"work", "--pool", "p", "--until-empty", "--", "true"}).exit_code, 4);
}

TEST(CliPools, FS_T21_what_a_pool_refuses) {
  const LiveSegment segment;
  for (const auto& [words, about] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--strategy", "strict"}, "at least one queue"},
           {{"--queue", "a", "--strategy", "fastest"}, "fastest"},
           {{"--queue", "a:0"}, "weight"},
           {{"--queue", "a", "--rotation-interval", "soon"}, "soon"},
           {{"--queue", "a,b", "--starvation-prevention", "true", "--min-dispatch-ratio", "0.6"},
            "min_dispatch_ratio"}}) {
    std::vector<std::string> all = {"pool", "set", "p"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished done = segment.cli(all);
    EXPECT_EQ(done.exit_code, 2) << about;
    EXPECT_NE(done.err.find(about), std::string::npos) << done.err;
  }
  EXPECT_EQ(segment.cli({"pool", "list"}).out, "");
}

TEST(CliPools, FS_G1_FS_G3_a_file_sets_pools) {
  LiveSegment setup;  // for the folder
  const std::string file = config(setup, R"([pools.gpu]
queues = ["images", "video"]
concurrency = 4
isolated = true
[pools.all]
queues = ["critical", "default", "analytics"]
strategy = "weighted"
weights = {critical = 5, default = 3}
[pools.all.starvation_prevention]
enabled = true
rotation_interval = "PT45S"
min_dispatch_ratio = 0.10
)");
  const LiveSegment segment({"--config", file});
  EXPECT_EQ(member(segment.cli({"pool", "get", "gpu", "--json"}).out, "isolated"), "true");
  const std::string all = segment.cli({"pool", "get", "all", "--json"}).out;
  EXPECT_EQ(member(all, "weights"), R"({"critical":5,"default":3,"analytics":1})");
  EXPECT_EQ(member(all, "starvation_prevention"),
            R"({"enabled":true,"rotation_interval":"PT45S","min_dispatch_ratio":0.1})");
}

TEST(CliPools, FS_T14_FS_T21_a_wrong_pool_is_an_error_with_file_and_line) {
  const LiveSegment setup;
  for (const auto& [text, line, about] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"\n[pools.p]\nstrategy = \"strict\"\n", ":2:", "queues"},
           {"[pools.p]\nqueues = [\"a\"]\nstrategy = \"fastest\"\n", ":3:", "fastest"},
           {"[pools.p]\nqueues = [\"a\"]\ncolour = 1\n", ":3:", "colour"},
           {"[pools.p]\nqueues = [\"a\", \"b\"]\n[pools.p.starvation_prevention]\nenabled = true\n"
            "min_dispatch_ratio = 0.6\n",
            ":5:", "min_dispatch_ratio"},
           {"[pools.p]\nqueues = [\"a\"]\n[pools.p.weights]\na = 0\n", ":4:", "weights.a"}}) {
    const Finished done = run({program("ojs-shm-broker"), "--name", "other", "--dir",
                               setup.folder().path(), "--config", config(setup, text)});
    EXPECT_EQ(done.exit_code, 2) << text;
    EXPECT_NE(done.err.find("broker.toml" + line), std::string::npos) << done.err;
    EXPECT_NE(done.err.find(about), std::string::npos) << done.err;
  }
}

TEST(CliPools, FS_R002_FS_T10_FS_T11_shares_hold_over_processes_that_fetch_once) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--queue", "a:3,b:2,c:1"}).exit_code, 0);
  fill(segment, {"a", "b", "c"}, 12);
  EXPECT_EQ(fetch_by_processes(segment, 12), (Shares{{"a", 6}, {"b", 4}, {"c", 2}}));
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--strategy", "round-robin"}).exit_code, 0);
  EXPECT_EQ(fetch_by_processes(segment, 9), (Shares{{"a", 3}, {"b", 3}, {"c", 3}}));
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--strategy", "strict"}).exit_code, 0);
  EXPECT_EQ(fetch_by_processes(segment, 3), (Shares{{"a", 3}}));
}

TEST(CliPools, FS_R003_FS_T15_the_least_share_holds_over_processes_that_fetch_once) {
  const LiveSegment segment;
  ASSERT_EQ(segment
                .cli({"pool", "set", "p", "--queue", "critical,low", "--strategy", "strict",
                      "--starvation-prevention", "true", "--min-dispatch-ratio", "0.25"})
                .exit_code,
            0);
  fill(segment, {"critical", "low"}, 12);
  EXPECT_EQ(fetch_by_processes(segment, 12)["low"], 3);
}

TEST(CliPools, FS_T06_FS_T07_FS_R006_FS_G2_isolation_and_the_pool_default) {
  const LiveSegment segment;
  fill(segment, {"gpu", "web"}, 2);
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--queue", "gpu", "--isolated", "true"}).exit_code, 0);
  EXPECT_EQ(fetch_by_a_process(segment, {"--queue", "gpu"}), "");
  EXPECT_EQ(fetch_by_a_process(segment), "gpu");
  ASSERT_EQ(segment.cli({"pool", "set", "default", "--queue", "web"}).exit_code, 0);
  EXPECT_EQ(fetch_by_a_process(segment, {"--queue", "gpu"}), "web");  // the pool decides
}

TEST(CliPools, FS_R004_FS_H3_FS_E3_FS_X1_FS_X2_FS_X3_FS_X4_FS_X5_what_operators_see) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"events", "--on"}).exit_code, 0);
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--queue", "a,b", "--concurrency", "8"}).exit_code, 0);
  fill(segment, {"a", "b"}, 3);
  fetch_by_processes(segment, 4);
  fetch_by_a_process(segment, {"--queue", "b"});
  const std::string stats = segment.cli({"stats", "--scheduling", "--json"}).out;
  EXPECT_EQ(member(stats, "window"), "PT1M");
  EXPECT_NE(stats.find(R"({"name":"a","dispatch_count_1m":2,"dispatch_ratio_1m":0.4,)"),
            std::string::npos)
      << stats;
  EXPECT_NE(stats.find(R"({"name":"b","dispatch_count_1m":3,"dispatch_ratio_1m":0.6,)"),
            std::string::npos)
      << stats;
  const std::string page = segment.cli({"stats", "--metrics"}).out;
  for (const char* line :
       {R"(ojs_scheduling_dispatch_total{queue="a",pool="p",segment="test"} 2)",
        R"(ojs_scheduling_dispatch_total{queue="b",pool="p",segment="test"} 2)",
        R"(ojs_scheduling_dispatch_total{queue="b",pool="",segment="test"} 1)",
        R"(ojs_scheduling_dispatch_ratio{queue="a",segment="test"} 0.4)",
        R"(ojs_scheduling_queue_wait_duration_count{queue="b",segment="test"} 3)",
        R"(ojs_scheduling_pool_utilization{pool="p",segment="test"} 0)",
        R"(ojs_scheduling_starvation_events_total{queue="a",segment="test"} 0)"})
    EXPECT_NE(page.find(line), std::string::npos) << line << "\n" << page;
  ASSERT_EQ(segment.cli({"pool", "set", "p", "--strategy", "least-loaded"}).exit_code, 0);
  const std::string events =
      segment.cli({"events", "--json", "--types", "scheduling.rebalanced"}).out;
  EXPECT_NE(
      events.find(
          R"("data":{"pool":"p","previous_strategy":"round-robin","new_strategy":"least-loaded"})"),
      std::string::npos)
      << events;
}

/// The broker looks once a second; the clock is moved, and no process waits for half a minute.
TEST(CliPools, FS_E1_a_queue_that_starves_is_told_by_the_broker) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"events", "--on"}).exit_code, 0);
  fill(segment, {"a"}, 2);
  const Segment attached = Segment::attach(segment.where()).value();
  const engine::Store& store = attached.attachment()->store();
  const auto looks = [&] { return store.sample_times().last.load(); };
  const auto another_look = [&, before = looks()] { return looks() != before; };
  ASSERT_TRUE(eventually(another_look, std::chrono::seconds(30)));
  attached.attachment()->segment().header().clock_offset_ms.fetch_add(40'000, shm::Point::kNone);
  const auto told = [&] {
    return segment.cli({"events", "--json", "--types", "scheduling.queue_starved"})
               .out.find(R"("available_count":2)") != std::string::npos;
  };
  EXPECT_TRUE(eventually(told, std::chrono::seconds(30)));
  EXPECT_NE(segment.cli({"stats", "--metrics"})
                .out.find(R"(ojs_scheduling_starvation_events_total{queue="a",segment="test"} 1)"),
            std::string::npos);
}

}  // namespace
}  // namespace ojs_shm::test
