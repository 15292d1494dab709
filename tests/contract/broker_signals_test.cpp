// SPDX-License-Identifier: Apache-2.0
// What a broker does when it is asked to stop or to read its configuration again, and when a
// segment may go. Every test starts the real programs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ojs_shm/producer.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

Finished stop(Process& broker, int signal = SIGTERM) {
  broker.signal(signal);
  return broker.wait();
}

bool says(const Finished& done, std::string_view what) {
  return done.err.find(what) != std::string::npos;
}

TEST(BrokerStop, removes_an_empty_segment_on_sigterm_and_sigint) {
  for (const int signal : {SIGTERM, SIGINT}) {
    LiveSegment segment;
    EXPECT_TRUE(std::filesystem::exists(segment.file()));
    EXPECT_EQ(segment.cli({"stats"}).exit_code, 0);
    const Finished done = stop(segment.broker(), signal);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, "") << "stdout carries READY and nothing else";
    EXPECT_FALSE(std::filesystem::exists(segment.file()));
    EXPECT_TRUE(std::filesystem::is_empty(segment.folder().path())) << "the lock file goes too";
  }
}

TEST(BrokerStop, a_segment_whose_jobs_are_all_finished_is_empty) {
  LiveSegment segment;
  segment.enqueue({"-t", "a"});
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  EXPECT_EQ(stop(segment.broker()).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(segment.file()));
}

TEST(BrokerStop, keeps_unfinished_jobs_says_how_many_and_the_next_broker_goes_on_with_them) {
  for (const std::vector<std::string>& kind :
       {std::vector<std::string>{}, {"--delay", "1h"}, {"--pending"}}) {
    LiveSegment segment;
    std::vector<std::string> flags = {"-t", "mail.send"};
    flags.insert(flags.end(), kind.begin(), kind.end());
    const std::string id = segment.enqueue(flags), state = segment.job(id, "state");
    segment.enqueue(flags);
    const Finished done = stop(segment.broker());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_TRUE(says(done, "the segment is kept: segment 'test' holds 2 unfinished jobs;"))
        << done.err;
    ASSERT_TRUE(std::filesystem::exists(segment.file()));
    segment.start_broker();
    EXPECT_TRUE(segment.broker().err().find("resumed") != std::string::npos)
        << segment.broker().err();
    EXPECT_EQ(segment.job(id, "state"), state);
  }
}

TEST(BrokerStop, keeps_dead_letters) {
  LiveSegment segment;
  const std::string id =
      segment
          .cli({"enqueue"},
               R"({"type":"a","args":[],"retry":{"max_attempts":1,"on_exhaustion":"dead_letter"}})")
          .out.substr(0, 36);
  segment.cli({"work", "--until-empty", "--", "false"});
  ASSERT_EQ(segment.job(id, "state"), "discarded");
  const Finished done = stop(segment.broker());
  EXPECT_TRUE(says(done, "holds 1 dead letter;")) << done.err;
  const Finished refused = segment.cli({"rm", "test"});
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  EXPECT_NE(refused.err.find("1 dead letter"), std::string::npos) << refused.err;
  segment.start_broker();
  EXPECT_EQ(segment.cli({"dead", "retry", id}).exit_code, 0);
}

TEST(BrokerStop, removes_whatever_is_in_it_when_asked) {
  LiveSegment segment({"--remove"});
  segment.enqueue({"-t", "a"});
  const Finished done = stop(segment.broker());
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_FALSE(std::filesystem::exists(segment.file()));
}

TEST(BrokerStop, keeps_an_empty_segment_when_asked) {
  LiveSegment segment({"--keep"});
  EXPECT_EQ(stop(segment.broker()).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(segment.file()));
  const std::vector<std::string> both = {program("ojs-shm-broker"), "--name", "b",       "--dir",
                                         segment.folder().path(),   "--keep", "--remove"};
  EXPECT_EQ(run(both).exit_code, 2);
}

TEST(BrokerStop, a_flag_wins_over_the_file_that_says_the_opposite) {
  const ScratchDirectory folder;
  std::ofstream(folder / "b.toml") << "keep = true\n";
  LiveSegment segment({"--config", folder / "b.toml", "--remove"});
  EXPECT_EQ(stop(segment.broker()).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(segment.file()));
}

TEST(BrokerStop, leaves_a_segment_that_others_hold_and_says_so) {
  LiveSegment segment;
  const auto held = Segment::attach(segment.where());
  ASSERT_TRUE(held) << held.error().message;
  const Finished done = stop(segment.broker());
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(says(done, "other processes are attached")) << done.err;
  EXPECT_TRUE(std::filesystem::exists(segment.file()));
}

TEST(BrokerStop, leaves_another_segment_of_its_name_alone) {
  LiveSegment segment;
  ASSERT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
  Process second = Process::start(
      {program("ojs-shm-broker"), "--name", "test", "--dir", segment.folder().path(), "--keep"});
  ASSERT_EQ(second.read_line(), "READY name=test");
  const std::string id = segment.enqueue({"-t", "a"});
  EXPECT_EQ(stop(second).exit_code, 0);
  const Finished first = stop(segment.broker());
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(says(first, "was removed by another process")) << first.err;
  EXPECT_EQ(segment.job(id, "state"), "available");
  EXPECT_TRUE(std::filesystem::exists(segment.file() + ".lock"));
}

TEST(BrokerStop, logs_which_signal_came_from_which_process) {
  LiveSegment segment;
  const Finished done = stop(segment.broker());
  EXPECT_TRUE(says(done, "SIGTERM from process " + std::to_string(::getpid()) + " (")) << done.err;
}

/// A worker that holds a job and is killed there. Its pid.
std::string kill_a_worker(const LiveSegment& segment) {
  segment.enqueue({"-t", "a"});
  Process worker = segment.start_cli({"work", "--", "sleep", "60"});
  EXPECT_TRUE(eventually([&] {
    return segment.cli({"stats", "--json"}).out.find("\"active\":1") != std::string::npos;
  }));
  const std::string pid = std::to_string(worker.pid());
  worker.signal(SIGKILL);
  worker.wait();
  return pid;
}

std::string log_line(const std::string& by, const std::string& pid) {
  return "process " + by + " repaired after 1 dead process (pid " + pid +
         "; ended without detaching): 1 slot mended";
}

TEST(BrokerRepair, is_logged_counted_and_told_with_the_pids_of_both_and_the_reason) {
  LiveSegment segment({"--events"});
  const std::string pid = kill_a_worker(segment), broker = std::to_string(segment.broker().pid());
  EXPECT_TRUE(eventually([&] {
    return segment.broker().err().find(log_line(broker, pid)) != std::string::npos;
  })) << segment.broker().err();
  const std::string stats = segment.cli({"stats", "--json"}).out;
  EXPECT_EQ(member(stats, "segment.last_repair.pid"), pid) << stats;
  EXPECT_EQ(member(stats, "segment.last_repair.repaired_by"), broker);
  EXPECT_EQ(member(stats, "segment.last_repair.slots_mended"), "1");
  EXPECT_NE(segment.cli({"stats"}).out.find("repair\t" + pid + "\t" + broker + "\t1\t"),
            std::string::npos);
  std::string event;
  EXPECT_TRUE(eventually([&] {
    event = segment.cli({"events", "--json", "--types", "process.repaired"}).out;
    return !event.empty();
  }));
  EXPECT_EQ(member(event, "subject"), "process-" + pid) << event;
  EXPECT_EQ(member(event, "data"), "{\"pid\":" + pid + ",\"repaired_by\":" + broker +
                                       ",\"repaired_at_once\":1,\"slots_mended\":1}");
}

TEST(BrokerRepair, of_another_process_is_logged_with_its_pid) {
  LiveSegment segment;
  ASSERT_TRUE(eventually([&] {  // else it begins to look when the repair is over
    return segment.cli({"stats"}).out.find("broker, supervisor") != std::string::npos;
  }));
  segment.broker().signal(SIGSTOP);
  const std::string pid = kill_a_worker(segment);
  Process mender = segment.start_cli({"audit", "--mend"});
  const std::string line = log_line(std::to_string(mender.pid()), pid);
  EXPECT_NE(mender.wait().err.find("repaired after 1 dead process"), std::string::npos);
  segment.broker().signal(SIGCONT);
  segment.enqueue({"-t", "a", "--delay", "100ms"});  // wakes the supervisor, which may sleep
  EXPECT_TRUE(eventually([&] { return segment.broker().err().find(line) != std::string::npos; }))
      << segment.broker().err();
}

class BrokerReload : public ::testing::Test {
 protected:
  void write(std::string_view text) const { std::ofstream(folder_ / "b.toml") << text; }
  std::vector<std::string> flags() const { return {"--config", folder_ / "b.toml"}; }
  static bool logs(LiveSegment& segment, std::string_view what) {
    return eventually([&] { return segment.broker().err().find(what) != std::string::npos; });
  }
  ScratchDirectory folder_;
};

TEST_F(BrokerReload, sighup_reads_the_configuration_again_and_ends_nothing) {
  write("[queues.mail]\nbackpressure = { max_depth = 10 }\n");
  LiveSegment segment(flags());
  write("[queues.mail]\nbackpressure = { max_depth = 20 }\n[queues.new]\npaused = true\n");
  segment.broker().signal(SIGHUP);
  ASSERT_TRUE(logs(segment, "SIGHUP from process " + std::to_string(::getpid())))
      << segment.broker().err();
  ASSERT_TRUE(logs(segment, "the configuration was read again and is in force"))
      << segment.broker().err();
  EXPECT_EQ(member(segment.cli({"queue", "get", "mail", "--json"}).out, "backpressure.max_depth"),
            "20");
  EXPECT_EQ(member(segment.cli({"queue", "get", "new", "--json"}).out, "paused"), "true");
  EXPECT_TRUE(segment.broker().running());
  EXPECT_EQ(stop(segment.broker()).exit_code, 0);
}

TEST_F(BrokerReload, a_broken_file_is_reported_and_changes_nothing) {
  write("[queues.mail]\nbackpressure = { max_depth = 10 }\n");
  LiveSegment segment(flags());
  write("[queues.mail]\nbackpressure = { max_depth = 20 }\n[quues.x]\n");
  segment.broker().signal(SIGHUP);
  ASSERT_TRUE(logs(segment, "all settings stay as they were")) << segment.broker().err();
  EXPECT_NE(segment.broker().err().find("b.toml:3"), std::string::npos) << segment.broker().err();
  EXPECT_EQ(member(segment.cli({"queue", "get", "mail", "--json"}).out, "backpressure.max_depth"),
            "10");
  EXPECT_TRUE(segment.broker().running());
}

TEST_F(BrokerReload, what_is_chosen_when_a_segment_is_made_stays_and_is_named) {
  write("slots = 2000\n");
  LiveSegment segment(flags());
  write("slots = 3000\nkeep = true\n");
  segment.broker().signal(SIGHUP);
  ASSERT_TRUE(logs(segment, "slots 2000 instead of 3000")) << segment.broker().err();
  ASSERT_TRUE(logs(segment, "is in force")) << segment.broker().err();
  EXPECT_EQ(stop(segment.broker()).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(segment.file())) << "keep was read";
}

TEST(SegmentRemoval, refuses_while_unfinished_jobs_are_in_it_and_says_how_many) {
  LiveSegment segment;
  segment.enqueue({"-t", "a"});
  segment.broker().signal(SIGKILL);
  segment.broker().wait();
  const Finished refused = segment.cli({"rm", "test", "--json"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_EQ(member(refused.err, "error.code"), "conflict") << refused.err;
  EXPECT_NE(member(refused.err, "error.message").find("holds 1 unfinished job;"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(std::filesystem::exists(segment.file()));
  EXPECT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(segment.file()));
}

TEST(SegmentRemoval, never_removes_what_is_not_a_segment) {
  const ScratchDirectory folder;
  const std::string file = folder / "ojs-shm.junk";
  for (const std::string& content :
       {std::string(100'000, 'x'), std::string("short"), std::string()}) {
    std::ofstream(file) << content;
    for (const bool force : {false, true}) {
      std::vector<std::string> words = {program("ojs-shm"), "rm", "junk", "--dir", folder.path()};
      if (force) words.emplace_back("--force");
      const Finished done = run(words);
      EXPECT_EQ(done.exit_code, 3) << done.err;
      EXPECT_NE(done.err.find("left alone"), std::string::npos) << done.err;
      EXPECT_EQ(std::filesystem::file_size(file), content.size());
    }
  }
}

TEST(SegmentRemoval, one_that_cannot_be_read_goes_by_force_alone) {
  LiveSegment segment({"--keep"});
  ASSERT_EQ(stop(segment.broker()).exit_code, 0);
  std::filesystem::resize_file(segment.file(), std::filesystem::file_size(segment.file()) / 2);
  const Finished refused = segment.cli({"rm", "test"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find("cannot be counted"), std::string::npos) << refused.err;
  EXPECT_EQ(segment.cli({"rm", "test", "--force"}).exit_code, 0);
}

}  // namespace
}  // namespace ojs_shm::test
