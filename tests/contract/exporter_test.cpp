// SPDX-License-Identifier: Apache-2.0
//
// ojs-shm-exporter as Prometheus meets it: over HTTP, read by the parsers of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <ojs_shm/census.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kOpenMetrics = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";

/// The program with a port of its own.
class Exporter {
 public:
  explicit Exporter(const std::vector<std::string>& flags)
      : process_(Process::start(with_port(flags))) {
    const std::string line = process_.read_line().value_or("");
    if (line.starts_with("READY http://127.0.0.1:")) url_ = line.substr(6);
    EXPECT_FALSE(url_.empty()) << line << process_.err();
  }
  const std::string& url() const { return url_; }
  Process& process() { return process_; }
  /// The content type, then the samples, as prometheus_client reads them.
  std::vector<std::string> read(const std::string& accept = "") const {
    std::vector<std::string> words = {"/usr/bin/python3",
                                      OJS_SHM_SOURCE_DIR "/tests/contract/read_metrics.py", url_};
    if (!accept.empty()) words.push_back(accept);
    const Finished finished = run(words);
    missing_ = finished.exit_code == 77;
    EXPECT_TRUE(missing_ || finished.exit_code == 0) << finished.err;
    return lines_of(finished.out);
  }
  bool parser_is_missing() const { return missing_; }

 private:
  static std::vector<std::string> with_port(const std::vector<std::string>& flags) {
    std::vector<std::string> words = {program("ojs-shm-exporter"), "--listen", "127.0.0.1:0"};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }
  Process process_;
  std::string url_;
  mutable bool missing_ = false;
};

/// What an operator's machine says over HTTP, with status and headers.
std::string spoken(const std::string& url, const std::string& method, const std::string& accept) {
  return run({"/usr/bin/python3", "-c",
              "import sys, http.client, urllib.parse\n"
              "u = urllib.parse.urlsplit(sys.argv[1])\n"
              "c = http.client.HTTPConnection(u.netloc, timeout=30)\n"
              "c.request(sys.argv[2], u.path, headers={'Accept': sys.argv[3]})\n"
              "r = c.getresponse()\n"
              "print(r.status, r.headers['Content-Type'], r.headers['Allow'], sep='\\n')\n"
              "print(r.read().decode())\n",
              url, method, accept})
      .out;
}

/// One job done, one that waits, one dead letter.
void fill(const LiveSegment& segment) {
  auto producer = Producer::attach(segment.where()).value();
  auto worker = Worker::attach(segment.where(), {}).value();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(producer.enqueue({.type = "a", .retry = {.max_attempts = 1, .dead_letter = true}}));
    Job job;
    ASSERT_TRUE(worker.try_fetch(job));
    if (i == 0) {
      ASSERT_TRUE(worker.ack(job));
    } else {
      ASSERT_TRUE(worker.nack(job, {.code = "broken"}));
    }
  }
  ASSERT_TRUE(producer.enqueue({.type = "a"}));
}

TEST(Exporter, both_formats_are_read_by_prometheus_client_and_say_the_same) {
  const LiveSegment segment;
  fill(segment);
  Exporter exporter({"--dir", segment.folder().path()});
  std::vector<std::string> text = exporter.read(), openmetrics = exporter.read(kOpenMetrics);
  if (exporter.parser_is_missing())
    GTEST_SKIP() << "NOT RUN: there is no python3-prometheus-client";
  ASSERT_FALSE(text.empty() || openmetrics.empty());
  EXPECT_EQ(text.front(), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(openmetrics.front(), "application/openmetrics-text; version=1.0.0; charset=utf-8");
  for (const auto& page : {text, openmetrics}) {
    EXPECT_THAT(page, Contains("ojs_segment_up{segment=\"test\"} 1"));
    EXPECT_THAT(page, Contains("ojs_job_completed_total{queue=\"default\",segment=\"test\"} 1"));
    EXPECT_THAT(page, Contains("ojs_queue_dead_letters{queue=\"default\",segment=\"test\"} 1"));
    EXPECT_THAT(
        page, Contains("ojs_queue_jobs{queue=\"default\",segment=\"test\",state=\"available\"} 1"));
    EXPECT_THAT(page, Contains("ojs_scheduling_queue_wait_duration_count{queue=\"default\","
                               "segment=\"test\"} 2"));
    EXPECT_THAT(page, Contains("ojs_segment_brokers{segment=\"test\"} 1"));
  }
  // The same series, whatever their values have become meanwhile.
  const auto names = [](const std::vector<std::string>& page) {
    std::set<std::string> found;
    for (auto line = page.begin() + 1; line != page.end(); ++line)
      found.insert(line->substr(0, line->rfind(' ')));
    return found;
  };
  EXPECT_EQ(names(text), names(openmetrics));
}

TEST(Exporter, every_metric_of_the_documents_is_there) {
  const LiveSegment segment;
  fill(segment);
  ASSERT_EQ(
      segment.cli({"pool", "set", "web", "--queue", "default", "--concurrency", "2"}).exit_code, 0);
  Exporter exporter({"--dir", segment.folder().path()});
  const std::string page = spoken(exporter.url(), "GET", "*/*");
  for (const char* name : {"ojs_queue_available_by_priority",
                           "ojs_job_wait_duration_by_priority",
                           "ojs_job_priority_changes_total",
                           "ojs_scheduling_dispatch_total",
                           "ojs_scheduling_dispatch_ratio",
                           "ojs_scheduling_queue_wait_duration",
                           "ojs_scheduling_pool_utilization",
                           "ojs_scheduling_starvation_events_total",
                           "ojs_backpressure_rejected_total",
                           "ojs_backpressure_dropped_total",
                           "ojs_backpressure_pressure",
                           "ojs_job_enqueued_total",
                           "ojs_job_completed_total",
                           "ojs_job_failed_total",
                           "ojs_job_retried_total",
                           "ojs_job_cancelled_total",
                           "ojs_job_expired_total",
                           "ojs_job_duration_seconds",
                           "ojs_job_queue_time_seconds",
                           "ojs_workers_active",
                           "ojs_queue_depth",
                           "ojs_workers_busy",
                           "ojs_segment_deaths_total",
                           "ojs_segment_pool_used",
                           "ojs_segment_processes_dead"})
    EXPECT_THAT(page, HasSubstr(std::string("\n# TYPE ") + name + " "));
}

TEST(Exporter, promtool_finds_nothing_to_complain_of) {
  const LiveSegment segment;
  fill(segment);
  Exporter exporter({"--dir", segment.folder().path()});
  const Finished checked =
      run({"sh", "-c",
           "/usr/bin/python3 -c 'import sys, urllib.request; "
           "print(urllib.request.urlopen(sys.argv[1]).read().decode(), end=\"\")' " +
               exporter.url() + " | promtool check metrics 2>&1"});
  if (checked.exit_code == 127) GTEST_SKIP() << "NOT RUN: there is no promtool";
  EXPECT_EQ(checked.out, "");
}

TEST(Exporter, segments_come_and_go_and_one_that_cannot_be_read_is_told) {
  const LiveSegment segment;
  std::ofstream(segment.folder() / "ojs-shm.broken") << "not a segment";
  Exporter all({"--dir", segment.folder().path()});
  const std::string page = spoken(all.url(), "GET", "");
  EXPECT_THAT(page, HasSubstr("ojs_segment_up{segment=\"broken\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("ojs_segment_up{segment=\"test\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("ojs_segment_info{format="));

  Exporter one({"--dir", segment.folder().path(), "--name", "later"});
  EXPECT_THAT(spoken(one.url(), "GET", ""), HasSubstr("ojs_segment_up{segment=\"later\"} 0\n"));
  Process broker = Process::start(
      {program("ojs-shm-broker"), "--name", "later", "--dir", segment.folder().path()});
  ASSERT_EQ(broker.read_line(), "READY name=later");
  const std::string of_one = spoken(one.url(), "GET", "");
  EXPECT_THAT(of_one, HasSubstr("ojs_segment_up{segment=\"later\"} 1\n"));
  EXPECT_THAT(of_one, Not(HasSubstr("segment=\"test\"")));
  const std::string of_all = spoken(all.url(), "GET", "");
  EXPECT_THAT(of_all, HasSubstr("ojs_segment_up{segment=\"later\"} 1\n"));
  // each family stands once, whatever the number of segments
  EXPECT_EQ(of_all.find("# TYPE ojs_segment_processes gauge"),
            of_all.rfind("# TYPE ojs_segment_processes gauge"));
  broker.signal(SIGTERM);
  EXPECT_EQ(broker.wait().exit_code, 0);
  EXPECT_THAT(spoken(all.url(), "GET", ""), Not(HasSubstr("segment=\"later\"")));
}

TEST(Exporter, shows_tenants_in_use_and_no_more_than_it_may) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"queue", "set", "fair", "--tenant-fairness", "on"}).exit_code, 0);
  auto producer = Producer::attach(segment.where()).value();
  for (const auto& [tenant, jobs] :
       {std::pair("big", 3), std::pair("middle", 2), std::pair("small", 1)})
    for (int i = 0; i < jobs; ++i)
      ASSERT_TRUE(
          producer.enqueue({.type = "a",
                            .queue = "fair",
                            .extra = R"({"meta":{"tenant_id":")" + std::string(tenant) + "\"}}",
                            .tenant = tenant}));
  Exporter few({"--dir", segment.folder().path(), "--max-tenants", "2"});
  const std::string page = spoken(few.url(), "GET", "");
  EXPECT_THAT(page,
              HasSubstr("ojs_tenant_depth{queue=\"fair\",tenant=\"big\",segment=\"test\"} 3"));
  EXPECT_THAT(page,
              HasSubstr("ojs_tenant_depth{queue=\"fair\",tenant=\"middle\",segment=\"test\"} 2"));
  EXPECT_THAT(page, Not(HasSubstr("tenant=\"small\"")));
  EXPECT_THAT(page, HasSubstr("ojs_tenants_not_shown{queue=\"fair\",segment=\"test\"} 1"));
  // of 256 levels only those in use
  EXPECT_EQ(page.find("ojs_queue_available_by_priority{"),
            page.rfind("ojs_queue_available_by_priority{"));
}

TEST(Exporter, shows_the_limits_that_matter_and_no_more_than_it_may) {
  const LiveSegment segment;
  ASSERT_EQ(segment.cli({"limit", "set", "type:quiet", "--concurrency", "3"}).exit_code, 0);
  auto producer = Producer::attach(segment.where()).value();
  const auto put = [&](const std::string& key) {
    const JobLimit limit{key, {.concurrency = 1}};
    return producer.enqueue({.type = "a", .limit = &limit}).ok();
  };
  // Each job brings a key of its own, but for three, of which two wait.
  for (int i = 0; i < 120; ++i) ASSERT_TRUE(put("key-" + std::to_string(i)));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(put("busy"));
  auto worker = Worker::attach(segment.where(), {}).value();
  for (int i = 0; i < 121; ++i) {
    Job job;
    ASSERT_TRUE(worker.try_fetch(job));
    if (i < 120) {
      ASSERT_TRUE(worker.ack(job));
    }
  }
  Job held;
  ASSERT_FALSE(worker.try_fetch(held));
  const std::size_t keys = Observer::attach(segment.where()).value().census().limits.size();
  ASSERT_GT(keys, 100U);
  const auto series = [](const std::string& page) {
    const std::string name = "ojs_rate_limit_active{";
    std::size_t found = 0;
    for (std::size_t at = 0; (at = page.find(name, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  Exporter exporter({"--dir", segment.folder().path()});
  const std::string page = spoken(exporter.url(), "GET", "");
  EXPECT_EQ(series(page), 100U);
  EXPECT_THAT(page, HasSubstr("ojs_limits_not_shown{segment=\"test\"} " +
                              std::to_string(keys - 100) + "\n"));
  Process gateway = Process::start({program("ojs-shm-gateway"), "--name", segment.where().name,
                                    "--dir", segment.folder().path(), "--listen", "127.0.0.1:0"});
  const std::string ready = gateway.read_line().value_or("");
  ASSERT_THAT(ready, StartsWith("READY http://")) << gateway.err();
  const std::string served = ready.substr(6, ready.find(' ', 6) - 6) + "/metrics";
  EXPECT_EQ(series(spoken(served, "GET", "")), 100U) << "the gateway's page has the same bound";
  for (const std::string& few :
       {spoken(Exporter({"--dir", segment.folder().path(), "--max-limits", "2"}).url(), "GET", ""),
        segment.cli({"stats", "--metrics", "--max-limits", "2"}).out}) {
    EXPECT_EQ(series(few), 2U);
    EXPECT_THAT(few, HasSubstr("ojs_rate_limit_active{key=\"type:quiet\""));
    EXPECT_THAT(few, HasSubstr("ojs_rate_limit_waiting{key=\"busy\",segment=\"test\"} 2\n"));
    EXPECT_THAT(few, HasSubstr("ojs_limits_not_shown{segment=\"test\"} " +
                               std::to_string(keys - 2) + "\n"));
  }
  EXPECT_EQ(segment.cli({"stats", "--max-limits", "2"}).exit_code, 2) << "belongs to --metrics";
}

TEST(Exporter, answers_what_it_is_asked_and_refuses_the_rest) {
  const LiveSegment segment;
  Exporter exporter({"--dir", segment.folder().path()});
  const std::string base = exporter.url().substr(0, exporter.url().rfind('/'));
  EXPECT_THAT(spoken(base + "/nowhere", "GET", ""), StartsWith("404\n"));
  EXPECT_THAT(spoken(exporter.url(), "POST", ""),
              StartsWith("405\ntext/plain; charset=utf-8\nGET, "));
  EXPECT_THAT(spoken(base + "/", "GET", ""), HasSubstr("href=\"/metrics\""));
  EXPECT_EQ(spoken(exporter.url(), "HEAD", ""),
            "200\ntext/plain; version=0.0.4; charset=utf-8\nNone\n\n");
  const auto type_for = [&](const std::string& accept) {
    return lines_of(spoken(exporter.url(), "GET", accept)).at(1);
  };
  EXPECT_THAT(type_for("application/openmetrics-text"), StartsWith("application/openmetrics"));
  EXPECT_THAT(type_for("text/plain, application/OpenMetrics-Text;q=0.9"), StartsWith("text/plain"));
  EXPECT_THAT(type_for("application/openmetrics-text;q=0"), StartsWith("text/plain"));
  EXPECT_THAT(type_for("*/*"), StartsWith("text/plain"));
}

TEST(Exporter, tells_by_its_status_what_went_wrong_and_ends_cleanly) {
  const LiveSegment segment;
  const std::string exporter = program("ojs-shm-exporter"), dir = segment.folder().path();
  EXPECT_EQ(run({exporter, "--help"}).exit_code, 0);
  EXPECT_THAT(run({exporter, "--version"}).out, HasSubstr("segment format"));
  EXPECT_EQ(run({exporter, "--no-such-flag"}).exit_code, 2);
  const Finished misspelt = run({exporter, "--dir", dir, "--listen", "9464"});
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("'9464' is not HOST:PORT; 127.0.0.1:9464 is one"));
  EXPECT_EQ(run({exporter, "--dir", dir + "/nowhere"}).exit_code, 3);

  for (const auto& [end, name] :
       {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}}) {
    Exporter first({"--dir", dir});
    const std::string address = first.url().substr(7, first.url().rfind('/') - 7);
    const Finished second = run({exporter, "--dir", dir, "--listen", address});
    EXPECT_EQ(second.exit_code, 3);
    EXPECT_THAT(second.err, HasSubstr("cannot listen on " + address));
    first.process().signal(end);
    const Finished ended = first.process().wait();
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_THAT(ended.err, StartsWith(std::string("ojs-shm-exporter: ") + name + " from process " +
                                      std::to_string(::getpid()) + " ("));
    EXPECT_THAT(ended.err, HasSubstr("): stopping\n"));
  }
}

}  // namespace
}  // namespace ojs_shm::test
