// SPDX-License-Identifier: Apache-2.0
// What a tracer outside finds: static probes in the library, and the trace context of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

constexpr const char* kScript = OJS_SHM_SOURCE_DIR "/docs/monitoring/waits.bt";

std::string script_text() {
  std::ostringstream text;
  text << std::ifstream(kScript).rdbuf();
  return text.str();
}

std::size_t words_in(const std::string& text) {
  std::istringstream stream(text);
  return static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(stream), {}));
}

/// How many arguments each probe has, the fewest of all the places where it stands.
std::map<std::string, std::size_t> probes_of(const std::string& notes) {
  static const std::regex kNote("Provider: ojs_shm\\n +Name: (\\w+)\\n.*\\n +Arguments: (.*)\\n");
  std::map<std::string, std::size_t> probes;
  for (std::sregex_iterator note(notes.begin(), notes.end(), kNote), end; note != end; ++note) {
    const auto [at, fresh] = probes.emplace((*note)[1], words_in((*note)[2]));
    if (!fresh) at->second = std::min(at->second, words_in((*note)[2]));
  }
  return probes;
}

TEST(Tracing, the_script_of_the_documents_names_probes_and_arguments_that_there_are) {
#if __has_include(<sys/sdt.h>)
  const Finished notes = run({"readelf", "-n", OJS_SHM_LIB_DIR "/libojs_shm.so"});
  ASSERT_EQ(notes.exit_code, 0) << notes.err;
  const auto probes = probes_of(notes.out);
  const std::string script = script_text();
  static const std::regex kBlock(R"(usdt:\S+:ojs_shm:(\w+)([^}]*)\})"), kArgument("\\barg(\\d+)");
  std::set<std::string> traced;
  for (std::sregex_iterator block(script.begin(), script.end(), kBlock), end; block != end;
       ++block) {
    const std::string name = (*block)[1], body = (*block)[2];
    traced.insert(name);
    ASSERT_TRUE(probes.contains(name)) << name;
    for (std::sregex_iterator used(body.begin(), body.end(), kArgument); used != end; ++used)
      EXPECT_LT(std::stoul((*used)[1]), probes.at(name)) << name << ": " << body;
  }
  EXPECT_EQ(traced.size(), probes.size()) << "the script shows each probe";
#else
  GTEST_SKIP() << "NOT RUN: there is no sys/sdt.h, so no probe is compiled";
#endif
}

/// Why bpftrace cannot run here; empty: it can.
std::string no_tracer() {
#if !__has_include(<sys/sdt.h>)
  return "there is no sys/sdt.h, so no probe is compiled";
#endif
  if (run({"sh", "-c", "command -v bpftrace"}).exit_code != 0) return "bpftrace is missing";
  const Finished tried = run({"bpftrace", "-e", "BEGIN { exit(); }"});
  return tried.exit_code == 0 ? "" : "the machine does not let bpftrace trace: " + tried.err;
}

TEST(Tracing, the_script_of_the_documents_counts_what_jobs_go_through) {
  if (const std::string why = no_tracer(); !why.empty()) GTEST_SKIP() << "NOT RUN: " << why;
  const LiveSegment segment;
  // As its head says: a program that has the library built in stands in the library's place.
  const std::string script = segment.folder() / "waits.bt";
  std::ofstream(script) << std::regex_replace(script_text(),
                                              std::regex("/usr/local/lib/libojs_shm\\.so"),
                                              OJS_SHM_BIN_DIR "/ojs-shm")
                        << "interval:ms:200 { print(@enqueued); print(@wait_ms); print(@run_us); "
                           "print(@failed); printf(\"printed\\n\"); }\n";
  Process tracer = Process::start({"bpftrace", "-B", "line", script});
  std::set<std::string> counted;
  const std::set<std::string> wanted{"@enqueued[0]", "@wait_ms[0]", "@run_us[0]", "@failed[0]"};
  const auto end = std::chrono::steady_clock::now() + kBound;
  // Whatever else runs the same program on this machine is counted as well.
  const auto complete = [&] { return std::ranges::includes(counted, wanted); };
  while (!complete() && std::chrono::steady_clock::now() < end) {
    const std::string job = R"({"type":"a","args":[],"retry":{"max_attempts":1}})";
    ASSERT_EQ(segment.cli({"enqueue"}, job + "\n" + job + "\n").exit_code, 0);
    segment.cli({"work", "--count", "1", "--", "true"});
    segment.cli({"work", "--count", "1", "--", "false"});
    for (auto line = tracer.read_line(); line != "printed"; line = tracer.read_line()) {
      ASSERT_TRUE(line) << "it ended: " << tracer.err();
      if (line->starts_with('@')) counted.insert(line->substr(0, line->find(']') + 1));
    }
  }
  EXPECT_TRUE(complete()) << testing::PrintToString(counted) << tracer.err();
  tracer.signal(SIGINT);
  EXPECT_EQ(tracer.wait().exit_code, 0);
}

TEST(Tracing, readelf_lists_every_probe) {
#if __has_include(<sys/sdt.h>)
  const Finished notes = run({"readelf", "-n", OJS_SHM_LIB_DIR "/libojs_shm.so"});
  ASSERT_EQ(notes.exit_code, 0) << notes.err;
  for (const char* name : {"enqueue", "fetch", "ack", "nack", "return", "expire", "drop", "repair"})
    EXPECT_THAT(notes.out, HasSubstr("Provider: ojs_shm\n    Name: " + std::string(name) + "\n"));
#else
  GTEST_SKIP() << "NOT RUN: there is no sys/sdt.h, so no probe is compiled";
#endif
}

TEST(Tracing, traceparent_reaches_the_worker_unchanged_and_is_shown_by_get) {
  const LiveSegment segment;
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const std::string meta =
      R"({"traceparent":")" + parent + R"(","tracestate":"ojs=p:8;r:62,other=1","tenant_id":"t"})";
  const Finished done =
      segment.cli({"enqueue"}, R"({"type":"email.send","args":[],"meta":)" + meta + "}\n");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::string id = lines_of(done.out).front();
  EXPECT_EQ(segment.job(id, "meta"), meta);
  EXPECT_EQ(segment.job(id, "meta.traceparent"), parent);
  EXPECT_THAT(segment.cli({"get", id}).out, HasSubstr(parent)) << "also for people";

  auto worker = Worker::attach(segment.where(), {}).value();
  Job job;
  ASSERT_TRUE(worker.try_fetch(job));
  EXPECT_EQ(member(job.extra(), "meta"), meta);
  // the next attempt belongs to the same trace
  ASSERT_TRUE(worker.nack(job, {.code = "broken"}));
  EXPECT_EQ(segment.job(id, "meta"), meta);
}

}  // namespace
}  // namespace ojs_shm::test
