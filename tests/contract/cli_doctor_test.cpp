// SPDX-License-Identifier: Apache-2.0
// What `ojs-shm doctor` sees, and what it says to do about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <ojs_shm/producer.hpp>

#include "tests/support/live_segment.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The letter of a process's state in /proc.
char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = text.rfind(") ");
  return name_end == std::string::npos ? '?' : text[name_end + 2];
}

void stop(Process& process) {
  process.signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(process.pid()) == 'T'; }));
}

TEST(CliDoctor, is_content_with_a_healthy_segment) {
  const LiveSegment segment;
  const Finished done = segment.cli({"doctor"});
  EXPECT_EQ(done.exit_code, 0) << done.out;
  for (const char* check : {"program\tok", "directory\tok", "segment\tok", "permissions\tok",
                            "pool slots\tok", "audit\tok"}) {
    EXPECT_NE(done.out.find(check), std::string::npos) << check << " in\n" << done.out;
  }
}

TEST(CliDoctor, names_stale_files_full_queues_and_what_to_do) {
  LiveSegment segment;
  segment.cli({"queue", "set", "small", "--max-depth", "1"});
  segment.enqueue({"-t", "a", "--queue", "small"});
  const Finished full = segment.cli({"doctor"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.out.find("queue small\tproblem\tfull"), std::string::npos) << full.out;
  segment.broker().signal(SIGKILL);
  segment.broker().wait();
  const Finished stale = segment.cli({"doctor"});
  EXPECT_NE(stale.out.find("file test\twarning\tstale"), std::string::npos) << stale.out;
  EXPECT_NE(stale.out.find("ojs-shm rm test"), std::string::npos) << stale.out;
}

TEST(CliDoctor, says_how_to_start_when_there_is_no_segment) {
  ScratchDirectory folder;
  const Finished done =
      run({program("ojs-shm"), "doctor", "--name", "nobody", "--dir", folder.path(), "--json"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_NE(done.out.find("ojs-shm-broker --name nobody"), std::string::npos) << done.out;
  for (const std::string& line : lines_of(done.out)) EXPECT_NE(member(line, "verdict"), "") << line;
}

TEST(CliDoctor, does_not_send_a_broker_to_a_file_that_no_broker_takes) {
  const LiveSegment segment;
  const ScratchDirectory folder;
  std::ofstream(folder / "ojs-shm.empty") << "";
  std::ofstream(folder / "ojs-shm.random") << std::string(100'000, 'x');
  std::filesystem::copy_file(segment.file(), folder / "ojs-shm.short");
  std::filesystem::resize_file(folder / "ojs-shm.short", 1 << 20);
  std::filesystem::create_directory(folder / "ojs-shm.folder");
  for (const char* name : {"empty", "random", "short", "folder"}) {
    const Finished done =
        run({program("ojs-shm"), "doctor", "--name", name, "--dir", folder.path(), "--json"});
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_EQ(done.out.find("start one"), std::string::npos) << name << ": " << done.out;
    for (const std::string& line : lines_of(done.out)) {
      if (member(line, "check") != "segment") continue;
      const std::string way_out = name == std::string("folder")
                                      ? "move "
                                      : "`rm " + (folder / ("ojs-shm." + std::string(name))) + "`";
      EXPECT_NE(member(line, "advice").find(way_out), std::string::npos) << line;
    }
  }
}

TEST(CliDoctor, a_stopped_broker_is_a_problem_and_its_way_out_works) {
  LiveSegment segment;
  const std::string pid = std::to_string(segment.broker().pid());
  EXPECT_THAT(segment.cli({"doctor"}).out, HasSubstr("timers\tok\t"));
  ASSERT_NO_FATAL_FAILURE(stop(segment.broker()));
  const Finished seen = segment.cli({"doctor"});
  EXPECT_EQ(seen.exit_code, 1);
  EXPECT_THAT(seen.out, HasSubstr("broker\twarning\t1 alive, but the broker is stopped\t"));
  EXPECT_THAT(seen.out, HasSubstr("process " + pid + "\tproblem\tthe broker is stopped"));
  EXPECT_THAT(seen.out, HasSubstr("`kill -CONT " + pid + "` lets it go on"));
  EXPECT_THAT(seen.out, HasSubstr("`kill -KILL " + pid +
                                  "`, and start another: ojs-shm-broker --name test --dir " +
                                  segment.folder().path()));
  EXPECT_THAT(segment.cli({"stats"}).out, HasSubstr("process\t" + pid + "\tstopped\tbroker"));
  EXPECT_THAT(segment.cli({"stats", "--json"}).out, HasSubstr("\"stopped\":true"));
  const Finished second =
      run({program("ojs-shm-broker"), "--name", "test", "--dir", segment.folder().path()});
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_THAT(second.err, HasSubstr("process " + pid + ", which is stopped; `kill -CONT " + pid +
                                    "` lets it go on"));

  segment.broker().signal(SIGCONT);
  ASSERT_TRUE(eventually([&] { return state_of(segment.broker().pid()) != 'T'; }));
  const Finished well = segment.cli({"doctor"});
  EXPECT_EQ(well.exit_code, 0) << well.out;
  EXPECT_THAT(well.out, HasSubstr("broker\tok\t1 alive, a broker among them"));
  EXPECT_THAT(well.out, Not(HasSubstr("stopped")));
}

TEST(CliDoctor, a_stopped_worker_is_a_warning_and_a_problem_once_it_supervises) {
  LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  Process worker = segment.start_cli({"work", "--", "sleep", "1000"});
  ASSERT_TRUE(segment.becomes(id, "active"));
  const std::string name = "process " + std::to_string(worker.pid());
  ASSERT_NO_FATAL_FAILURE(stop(worker));
  const Finished idle = segment.cli({"doctor"});
  EXPECT_EQ(idle.exit_code, 0) << idle.out;
  EXPECT_THAT(
      idle.out,
      HasSubstr(name + "\twarning\tit is stopped (SIGSTOP, or a debugger) with 1 active jobs"));
  EXPECT_THAT(idle.out, HasSubstr("broker\tok\t"));

  worker.signal(SIGCONT);
  segment.broker().signal(SIGKILL);
  segment.broker().wait();
  ASSERT_TRUE(eventually(
      [&] { return segment.cli({"stats"}).out.find("\tsupervisor\t") != std::string::npos; }));
  ASSERT_NO_FATAL_FAILURE(stop(worker));
  const Finished seat = segment.cli({"doctor"});
  EXPECT_EQ(seat.exit_code, 1) << seat.out;
  EXPECT_THAT(seat.out, HasSubstr(name + "\tproblem\tthe supervisor is stopped"));
  EXPECT_THAT(seat.out, HasSubstr("another process takes over"));
}

TEST(CliDoctor, late_timers_show_a_stopped_broker_that_cannot_be_seen) {
  LiveSegment segment;
  const std::string pid = std::to_string(segment.broker().pid());
  const Segment attached = Segment::attach(segment.where()).value();
  ASSERT_NO_FATAL_FAILURE(stop(segment.broker()));
  segment.enqueue({"-t", "a", "--at", "1h"});
  shm::Segment& inside = attached.attachment()->segment();
  // as if each had a pid namespace of its own
  for (std::uint32_t i = 0; i < inside.geometry().processes; ++i)
    inside.process(i).namespace_id.store(1, shm::Point::kNone);
  EXPECT_THAT(segment.cli({"doctor"}).out, HasSubstr("timers\tok\tno job is late"));
  inside.header().clock_offset_ms.fetch_add(7'200'000, shm::Point::kNone);
  const Finished seen = segment.cli({"doctor"});
  EXPECT_EQ(seen.exit_code, 1);
  EXPECT_THAT(seen.out, HasSubstr("broker\tok\t")) << "its state is not to be seen";
  EXPECT_THAT(seen.out, HasSubstr("timers\tproblem\ta delayed job or a retry was due 36"));
  EXPECT_THAT(seen.out, HasSubstr("process " + pid +
                                  " should do it: if it is stopped, `kill -CONT " + pid + "`"));
}

TEST(CliDoctor, chunks_of_jobs_that_are_gone_are_no_reason_for_a_larger_segment) {
  const LiveSegment segment(
      {"--slots", "500", "--max-queues", "2", "--max-tenants", "2", "--handles", "4"});
  Producer producer = Producer::attach(segment.where()).value();
  const Observer observer = Observer::attach(segment.where()).value();
  const auto percent = [&] {
    for (const PoolInfo& pool : observer.segment_info().pools)
      if (pool.name == "chunks") return pool.used * 100 / pool.capacity;
    return std::uint64_t{0};
  };
  for (int round = 0; round < 1000 && percent() < 92; ++round)
    for (int i = 0; i < 140; ++i) {
      const auto id = producer.enqueue({.type = "a"});
      ASSERT_TRUE(id) << id.error().message;
      ASSERT_TRUE(producer.cancel(id->view()));
    }
  const Finished done = segment.cli({"doctor"});
  const bool crowded = percent() >= 90;  // still, so they were not packed before doctor looked
  EXPECT_EQ(done.exit_code, 0) << done.out;
  EXPECT_THAT(done.out, HasSubstr("pool chunks\tok\t"));
  if (crowded) {
    EXPECT_THAT(done.out, HasSubstr(", of which 0 unfinished jobs need no more than "));
  }
  EXPECT_THAT(done.out, Not(HasSubstr("make the next one with")));
  for (int i = 0; i < 450; ++i)
    ASSERT_TRUE(producer.enqueue({.type = "a"})) << "what doctor promised";
}

TEST(CliDoctor, a_directory_that_is_a_file_is_a_problem_with_its_reason) {
  const ScratchDirectory folder;
  std::ofstream(folder / "file") << "";
  const Finished done =
      run({program("ojs-shm"), "doctor", "--name", "z", "--dir", folder / "file"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.out,
              HasSubstr("directory\tproblem\t" + (folder / "file") + ": Not a directory"));
}

TEST(CliDoctor, a_directory_where_no_file_can_be_made_is_a_problem) {
  if (::access("/proc", W_OK) != 0)
    GTEST_SKIP() << "NOT RUN: root alone may try to make a file in /proc";
  const Finished done = run({program("ojs-shm"), "doctor", "--name", "z", "--dir", "/proc"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.out, HasSubstr("directory\tproblem\tno file can be made in /proc: "));
  EXPECT_THAT(done.out, HasSubstr("choose another directory with --dir"));
}

}  // namespace
}  // namespace ojs_shm::test
