// SPDX-License-Identifier: Apache-2.0
// `ojs-shm record` and `ojs-shm simulate`: a trace of a living segment, and what a policy would do
// to it.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/live_segment.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::test {
namespace {

const std::string kLoad =
    "jobs=400,rate=200,service=10ms,queues=a:1|b:1,priorities=0:1|3:1,tenants=x:3|y:1";

Finished simulate(std::vector<std::string> words, const std::string& input = {}) {
  words.insert(words.begin(), {program("ojs-shm"), "simulate"});
  ProcessOptions options;
  options.input = input;
  return run(words, options);
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A member of the group of that name.
std::string of_group(const std::string& json, const std::string& kind, const std::string& name,
                     std::string_view path) {
  const std::string groups = member(json, kind);
  for (const std::string_view group : json::elements_of(groups))
    if (member(group, "name") == name) return member(group, path);
  return "";
}

TEST(CliSimulate, a_seed_always_gives_the_same_figures_and_needs_no_segment) {
  const Finished once = simulate({"--synthetic", kLoad, "--seed", "5", "--json"});
  ASSERT_EQ(once.exit_code, 0) << once.err;
  EXPECT_EQ(once.err, "seed 5\n");
  EXPECT_EQ(member(once.out, "all.arrived"), "400");
  EXPECT_EQ(member(once.out, "all.served"), "400");
  EXPECT_EQ(simulate({"--synthetic", kLoad, "--seed", "5", "--json"}).out, once.out);
  EXPECT_NE(simulate({"--synthetic", kLoad, "--seed", "6", "--json"}).out, once.out);
}

/// A group of two, and a job after both.
const std::string kWorkflowTrace =
    R"({"ojs_shm_trace":1,"convention":"ojs"}
{"workflow":{"id":"w","kind":"batch"}}
{"arrival":{"at_ms":0,"job":"a","queue":"default","priority":2,"workflow":"w"}}
{"arrival":{"at_ms":0,"job":"b","queue":"default","priority":2,"workflow":"w"}}
{"arrival":{"at_ms":900,"job":"c","queue":"default","priority":2,"workflow":"w","after":["a","b"]}}
{"service":{"job":"a","ms":10}}
{"service":{"job":"b","ms":30}}
{"service":{"job":"c","ms":5}}
)";

TEST(CliSimulate, workflows_are_played_told_and_saved) {
  const Finished done = simulate({"-", "--json", "--workers", "2"}, kWorkflowTrace);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(member(done.out, "all.served"), "3");
  EXPECT_EQ(member(done.out, "workflows.completed"), "1");
  EXPECT_EQ(member(done.out, "workflows.took_ms.max"), "35") << "as soon as both had ended";
  const ScratchDirectory folder;
  const Finished text = simulate(
      {"-", "--workers", "1", "--save", folder / "load.trace", "--svg", folder / "waits.svg"},
      kWorkflowTrace);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(lines_of(text.out).back().substr(0, 12), "workflow\t-\t1") << text.out;
  const Finished again = simulate({folder / "load.trace", "--json", "--workers", "2"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, done.out);
}

TEST(CliSimulate, a_trace_whose_jobs_come_after_each_other_in_a_circle_is_refused) {
  std::string circle = kWorkflowTrace;
  const std::string first = R"("job":"a",)";
  circle.insert(circle.find(first) + first.size(), R"("after":["c"],)");
  const Finished refused = simulate({"-"}, circle);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("comes after itself"), std::string::npos) << refused.err;
}

TEST(CliSimulate, unique_jobs_are_recorded_with_their_keys_and_meet_each_other) {
  const Finished done = simulate(
      {"--synthetic", "jobs=200,rate=1000,service=20ms,unique=3", "--seed", "5", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const int served = std::stoi(member(done.out, "all.served")),
            duplicates = std::stoi(member(done.out, "all.duplicates"));
  EXPECT_EQ(served + duplicates, 200);
  EXPECT_GT(duplicates, 100);
}

TEST(CliSimulate, a_row_for_each_queue_level_and_tenant) {
  const Finished done = simulate({"--synthetic", kLoad, "--seed", "5", "--queue", "a:3", "--queue",
                                  "b:1", "--strategy", "weighted", "--workers", "2"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto rows = lines_of(done.out);
  ASSERT_EQ(rows.size(), 1U + 2 + 4 + 2) << done.out;
  EXPECT_EQ(rows[0].substr(0, 9), "all\t-\t400");
  EXPECT_EQ(rows[4].substr(0, 9), "level\ta 3");
  EXPECT_EQ(rows[7].substr(0, 8), "tenant\tx");
}

TEST(CliSimulate, the_settings_under_trial_decide) {
  const std::vector<std::string> load = {"--synthetic",
                                         "jobs=3000,rate=150,service=10ms,fixed,priorities=0:1|3:1",
                                         "--seed", "3", "--json"};
  const auto with = [&load](std::vector<std::string> more) {
    more.insert(more.begin(), load.begin(), load.end());
    const Finished done = simulate(more);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  const auto p50 = [](const std::string& json) {
    return std::stod(of_group(json, "levels", "default 3", "wait_ms.p50"));
  };
  const double strict = p50(with({}));
  EXPECT_LT(p50(with({"--set", "default={\"level_weights\":{\"0\":1,\"3\":1}}"})), 0.7 * strict);
  EXPECT_LT(p50(with({"--set", "*={\"aging\":{\"interval\":\"PT1S\"}}"})), strict);
  EXPECT_EQ(member(with({}), "all.refused"), "0");
  EXPECT_GT(std::stoi(member(with({"--set", "default={\"backpressure\":{\"max_depth\":50}}"}),
                             "all.refused")),
            500);
}

TEST(CliSimulate, draws_and_saves) {
  const ScratchDirectory folder;
  const Finished drawn = simulate({"--synthetic", kLoad, "--seed", "5", "--json", "--svg",
                                   folder / "waits.svg", "--save", folder / "load.trace"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  const std::string svg = contents(folder / "waits.svg");
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_NE(svg.find("<circle"), std::string::npos);
  EXPECT_NE(svg.find(">b 3<"), std::string::npos) << "its levels are named";
  const Finished again = simulate({folder / "load.trace", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  for (const char* path : {"end_ms", "all", "queues", "levels", "tenants"})
    EXPECT_EQ(member(again.out, path), member(drawn.out, path)) << path;
}

TEST(CliSimulate, pools_are_played_told_drawn_and_saved) {
  const ScratchDirectory folder;
  const Finished drawn = simulate(
      {"--synthetic", "jobs=2000,rate=0,service=10ms,queues=a:1|b:1|c:1", "--seed", "5", "--json",
       "--pool", "web={\"queues\":{\"a\":3,\"b\":1},\"strategy\":\"weighted\"}", "--pool",
       "rest={\"queues\":[\"c\"],\"concurrency\":1}", "--workers", "web:2", "--workers", "rest:3",
       "--svg", folder / "pools.svg", "--save", folder / "load.trace"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(of_group(drawn.out, "pools", "web", "served"),
            std::to_string(std::stoi(of_group(drawn.out, "queues", "a", "served")) +
                           std::stoi(of_group(drawn.out, "queues", "b", "served"))));
  EXPECT_EQ(of_group(drawn.out, "pools", "rest", "wait_ms.p95"),
            of_group(drawn.out, "queues", "c", "wait_ms.p95"));
  EXPECT_GT(std::stod(of_group(drawn.out, "queues", "b", "wait_ms.p50")),
            std::stod(of_group(drawn.out, "queues", "a", "wait_ms.p50")))
      << "one turn of four";
  EXPECT_NE(contents(folder / "pools.svg").find(">pool web<"), std::string::npos);
  const Finished again = simulate({folder / "load.trace", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  for (const char* path : {"end_ms", "all", "pools"})
    EXPECT_EQ(member(again.out, path), member(drawn.out, path)) << path;
  const Finished other = simulate(
      {folder / "load.trace", "--pool", "web={\"queues\":[\"b\",\"a\"],\"strategy\":\"strict\"}"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(lines_of(other.out).back().substr(0, 8), "pool\tweb");
}

TEST(CliSimulate, what_it_cannot_play_is_status_2_and_says_where) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{},
        {"--synthetic", "speed=3"},
        {"--synthetic", "jobs=0"},
        {"--synthetic", "queues=a:0"},
        {"--synthetic", kLoad, "--set", "default"},
        {"--synthetic", kLoad, "--set", "*={\"shards\":2}"},
        {"--synthetic", kLoad, "--workers", "0"},
        {"--synthetic", kLoad, "--workers", "many"},
        {"--synthetic", kLoad, "--workers", "web:1"},
        {"--synthetic", kLoad, "--pool", "web"},
        {"--synthetic", kLoad, "--pool", "web={\"queue\":\"a\"}"},
        {"--synthetic", "priorities=200", "--convention", "none"},
        {"/nowhere.trace"}}) {
    const Finished done = simulate(words);
    EXPECT_EQ(done.exit_code, 2) << (words.empty() ? "" : words.back()) << done.err;
    EXPECT_NE(done.err, "");
  }
  const Finished line = simulate({"-"}, "{\"ojs_shm_trace\":1}\n{\"arrival\":{}}\n");
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_NE(line.err.find("-:2: "), std::string::npos) << line.err;
  const Finished nothing = simulate({"-"}, "\n");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_EQ(nothing.err, "- is not a trace: it is empty\n");
}

TEST(CliRecord, refuses_a_time_that_is_none_before_it_begins) {
  const Finished refused = LiveSegment().cli({"record", "--for", "-1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err.rfind("\"-1\" is not a duration", 0), 0U) << refused.err;
}

TEST(CliRecord, a_living_segment_becomes_a_trace_that_simulate_plays) {
  const LiveSegment segment;
  Process recording = segment.start_cli({"record"});
  const auto head = recording.read_line();
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(member(*head, "ojs_shm_trace"), "1") << *head;
  EXPECT_EQ(member(*head, "convention"), "ojs");
  const std::string first =
      segment.enqueue({"-t", "mail.send", "--queue", "mail", "--priority", "1", "--meta",
                       "{\"tenant_id\":\"acme\"}", "-i", "[\"text\"]", "--unique", "args"});
  segment.enqueue({"-t", "mail.send", "--queue", "mail", "--priority", "2", "--retry",
                   "max_attempts=2,initial=1ms"});
  ASSERT_EQ(segment.cli({"work", "--queue", "mail", "--count", "1", "--", "true"}).exit_code, 0);
  (void)segment.cli({"work", "--queue", "mail", "--count", "1", "--", "false"});
  ASSERT_EQ(segment.cli({"work", "--queue", "mail", "--count", "1", "--", "true"}).exit_code, 0);
  std::string lines = *head + "\n";  // two arrivals, three services
  for (int i = 0; i < 5; ++i) {
    const auto line = recording.read_line();
    ASSERT_TRUE(line.has_value()) << recording.err();
    lines += *line + "\n";
  }
  recording.signal(SIGTERM);
  const Finished recorded = recording.wait();
  EXPECT_EQ(recorded.exit_code, 0);
  EXPECT_NE(recorded.err.find("events --off"), std::string::npos) << recorded.err;
  EXPECT_EQ(segment.cli({"events"}).err.find("events are off"), std::string::npos)
      << "another reader may need them by now";

  const std::string arrival = member(lines_of(lines).at(1), "arrival");
  EXPECT_EQ(member(arrival, "job"), first) << lines;
  EXPECT_EQ(member(arrival, "queue") + member(arrival, "type"), "mailmail.send");
  EXPECT_EQ(member(arrival, "priority") + member(arrival, "tenant"), "1acme");
  EXPECT_GT(std::stoi(member(arrival, "size")), 8);
  EXPECT_EQ(member(arrival, "unique.fingerprint").size(), 32U) << arrival;
  const Finished played = simulate({"-", "--json"}, lines);
  ASSERT_EQ(played.exit_code, 0) << played.err;
  EXPECT_EQ(member(played.out, "all.served"), "2");
  EXPECT_EQ(of_group(played.out, "tenants", "acme", "arrived"), "1");
}

TEST(CliRecord, a_workflow_is_recorded_with_what_came_after_what) {
  const LiveSegment segment;
  Process recording = segment.start_cli({"record", "--jobs", "4"});
  ASSERT_TRUE(recording.read_line().has_value());
  const Finished made = segment.cli(
      {"workflow", "run", "-"},
      R"({"type":"chain","name":"order","steps":[{"type":"a","args":[]},)"
      R"({"type":"batch","jobs":[{"type":"b","args":[]},{"type":"c","args":[]}],)"
      R"("callbacks":{"on_success":{"type":"good","args":[]},"on_failure":{"type":"bad","args":[]}}}]})");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string id = made.out.substr(0, 36);
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  const Finished done = recording.wait();
  ASSERT_EQ(done.exit_code, 0) << done.err;
  std::string trace = "{\"ojs_shm_trace\":1}\n" + done.out;
  std::map<std::string, std::string> jobs, after;
  int told = 0;
  for (const std::string& line : lines_of(done.out)) {
    if (member(line, "workflow.id") == id) {
      ++told;
      EXPECT_EQ(member(line, "workflow.kind") + member(line, "workflow.name"), "chainorder");
    }
    const std::string arrival = member(line, "arrival");
    if (arrival.empty()) continue;
    EXPECT_EQ(member(arrival, "workflow"), id) << line;
    jobs[member(arrival, "type")] = member(arrival, "job");
    after[member(arrival, "type")] = member(arrival, "after");
  }
  EXPECT_EQ(told, 1) << done.out;
  const auto list = [&](const std::vector<std::string>& types) {
    std::string text = "[";
    for (const std::string& type : types)
      text += (text.size() > 1 ? ",\"" : "\"") + jobs[type] + "\"";
    return text + "]";
  };
  ASSERT_EQ(jobs.size(), 4U) << done.out;
  EXPECT_EQ(after["a"], "");
  EXPECT_EQ(after["b"], list({"a"}));
  EXPECT_EQ(after["c"], list({"a"}));
  EXPECT_EQ(after["good"], list({"b", "c"}));
  const Finished played = simulate({"-", "--json"}, trace);
  ASSERT_EQ(played.exit_code, 0) << played.err;
  EXPECT_EQ(member(played.out, "all.served"), "4");
  EXPECT_EQ(member(played.out, "workflows.completed"), "1");
  EXPECT_EQ(simulate({"-", "--json"}, trace).out, played.out);
}

TEST(CliRecord, the_pools_of_the_segment_are_in_the_trace_as_they_last_were) {
  const LiveSegment segment;
  const auto set = [&](const char* queues) {
    ASSERT_EQ(
        segment.cli({"pool", "set", "web", "--queue", queues, "--concurrency", "3"}).exit_code, 0);
  };
  set("mail:3,bulk:1");
  Process recording = segment.start_cli({"record", "--jobs", "2"});
  ASSERT_TRUE(recording.read_line().has_value());
  const auto first = recording.read_line();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(member(*first, "pool.settings.weights.mail"), "3") << *first;
  set("mail:1,bulk:2");
  for (const char* queue : {"mail", "bulk"}) segment.enqueue({"-t", "a", "--queue", queue});
  const Finished done = recording.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::string trace = "{\"ojs_shm_trace\":1}\n" + *first + "\n" + done.out;
  EXPECT_NE(trace.find("\"bulk\":2"), std::string::npos) << trace;
  const Finished played = simulate({"-", "--json", "--workers", "web:1"}, trace);
  ASSERT_EQ(played.exit_code, 0) << played.err;
  EXPECT_EQ(of_group(played.out, "pools", "web", "served"), "2");
}

TEST(CliRecord, stops_after_so_many_arrivals_and_looks_at_one_queue) {
  const LiveSegment segment;
  Process recording = segment.start_cli({"record", "--jobs", "2", "--queue", "mail"});
  ASSERT_TRUE(recording.read_line().has_value());
  for (const char* queue : {"mail", "other", "mail"})
    segment.enqueue({"-t", "a", "--queue", queue});
  const Finished done = recording.wait();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  int arrivals = 0;
  for (const std::string& line : lines_of(done.out)) {
    if (member(line, "arrival").empty()) continue;
    ++arrivals;
    EXPECT_EQ(member(line, "arrival.queue"), "mail") << line;
  }
  EXPECT_EQ(arrivals, 2) << done.out;
}

}  // namespace
}  // namespace ojs_shm::test
