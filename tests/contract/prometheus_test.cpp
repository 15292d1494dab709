// SPDX-License-Identifier: Apache-2.0
//
// The files of docs/monitoring against Prometheus itself: its rules are tested by promtool, and a
// server scrapes an exporter of a segment at work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

const std::string kFolder = OJS_SHM_SOURCE_DIR "/docs/monitoring";

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool installed(const std::string& name) {
  return run({"sh", "-c", "command -v " + name}).exit_code == 0;
}

TEST(Prometheus, each_alert_fires_when_it_should_and_is_silent_else) {
  if (!installed("promtool")) GTEST_SKIP() << "NOT RUN: there is no promtool";
  const Finished tested = run({"promtool", "test", "rules", kFolder + "/alerts_test.yml"});
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.err;
  const Finished checked = run({"promtool", "check", "config", kFolder + "/prometheus.yml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

/// Asks for a free port and gives it back: Prometheus does not say which one it took.
std::string free_address() {
  return "127.0.0.1:" + lines_of(run({"/usr/bin/python3", "-c",
                                      "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
                                      "print(s.getsockname()[1])"})
                                     .out)
                            .at(0);
}

/// A server with the configuration of docs/monitoring, but for addresses and intervals.
class Server {
 public:
  explicit Server(const std::string& exporter) : address_(free_address()) {
    std::string config = contents(kFolder + "/prometheus.yml");
    config = std::regex_replace(config, std::regex("127\\.0\\.0\\.1:9464"), exporter);
    config = std::regex_replace(config, std::regex("15s"), "1s");
    config = std::regex_replace(config, std::regex("alerts\\.yml"), kFolder + "/alerts.yml");
    std::ofstream(folder_ / "prometheus.yml") << config;
    process_ = Process::start({"prometheus", "--config.file", folder_ / "prometheus.yml",
                               "--storage.tsdb.path", folder_ / "data", "--web.listen-address",
                               address_, "--log.level", "warn"});
  }
  /// The reply to an instant query; empty while there is none.
  std::string query(const std::string& expression) const { return get("query?query=", expression); }
  std::string rules() const { return get("rules", ""); }

 private:
  std::string get(const std::string& what, const std::string& quoted) const {
    return run({"/usr/bin/python3", "-c",
                "import sys, urllib.parse, urllib.request\n"
                "print(urllib.request.urlopen(sys.argv[1] + urllib.parse.quote(sys.argv[2]), "
                "timeout=30).read().decode())",
                "http://" + address_ + "/api/v1/" + what, quoted})
        .out;
  }
  ScratchDirectory folder_;
  std::string address_;
  std::optional<Process> process_;
};

TEST(Prometheus, a_server_scrapes_a_run_and_has_what_the_dashboard_and_the_alerts_ask_for) {
  if (!installed("prometheus")) GTEST_SKIP() << "NOT RUN: there is no prometheus";
  const LiveSegment segment;
  for (int i = 0; i < 3; ++i) segment.enqueue({"-t", "a"});
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  segment.enqueue({"-t", "a"});
  Process exporter = Process::start(
      {program("ojs-shm-exporter"), "--listen", "127.0.0.1:0", "--dir", segment.folder().path()});
  const std::string ready = exporter.read_line().value_or("");
  ASSERT_TRUE(ready.starts_with("READY http://")) << ready;
  const Server server(ready.substr(13, ready.rfind('/') - 13));

  std::string seen;
  ASSERT_TRUE(eventually([&] {
    seen = server.query("ojs_job_completed_total{segment=\"test\",queue=\"default\"}");
    return seen.find(",\"3\"]") != std::string::npos;
  })) << seen;
  EXPECT_THAT(server.query("up{job=\"ojs-shm\"}"), HasSubstr(",\"1\"]"));
  EXPECT_THAT(server.query("ojs_queue_depth"), HasSubstr(",\"1\"]"));
  const std::string rules = server.rules();
  EXPECT_THAT(rules, HasSubstr("OjsDeadProcessNotRepaired"));
  EXPECT_EQ(rules.find("\"health\":\"err\""), std::string::npos) << rules;

  // Every name that the dashboard and the alerts use is one that the exporter has said of its own.
  const std::string page = run({"/usr/bin/python3", "-c",
                                "import sys, urllib.request; "
                                "print(urllib.request.urlopen(sys.argv[1]).read().decode())",
                                ready.substr(6)})
                               .out;
  std::set<std::string> names;
  const std::string all = contents(kFolder + "/grafana.json") + contents(kFolder + "/alerts.yml");
  const std::regex name("ojs_[a-z_]+");
  for (std::sregex_iterator found(all.begin(), all.end(), name), end; found != end; ++found)
    names.insert(std::regex_replace(found->str(), std::regex("_bucket$"), ""));
  EXPECT_GT(names.size(), 25U);
  for (const std::string& each : names) {
    if (each.starts_with("ojs_tenant_")) continue;  // only where a queue knows tenants
    EXPECT_THAT(page, HasSubstr("# TYPE " + each + " "));
  }
  exporter.signal(SIGTERM);
  EXPECT_EQ(exporter.wait().exit_code, 0);
}

}  // namespace
}  // namespace ojs_shm::test
