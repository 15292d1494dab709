// SPDX-License-Identifier: Apache-2.0
// ojs-shm-broker as its users see it: flags, READY, signals, files, exit codes. Every test starts the real program.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <ojs_shm/producer.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

std::vector<std::string> broker_words(const ScratchDirectory& folder, std::vector<std::string> flags = {}) {
  std::vector<std::string> words = {program("ojs-shm-broker"), "--name", "test", "--dir", folder.path()};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

Finished stop(Process& broker, int signal = SIGTERM) {
  broker.signal(signal);
  return broker.wait();
}

TEST(Broker, tells_its_version_and_the_segment_format) {
  const Finished done = run({program("ojs-shm-broker"), "--version"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.out, "ojs-shm-broker " + std::string(library_version()) + " (segment format " +
                          std::to_string(segment_format()) + ")\n");
}

TEST(Broker, help_names_every_flag_and_exit_code) {
  const Finished done = run({program("ojs-shm-broker"), "--help"});
  EXPECT_EQ(done.exit_code, 0);
  for (const char* word :
       {"--name", "--dir", "--size", "--slots", "--max-queues", "--max-body", "--convention", "--config", "--keep",
        "--mode", "--group", "--retention", "--version", "EXIT STATUS", "READY"}) {
    EXPECT_NE(done.out.find(word), std::string::npos) << word;
  }
}

TEST(Broker, is_attachable_when_it_says_ready_and_removes_the_segment_on_sigterm_and_sigint) {
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

TEST(Broker, keeps_the_segment_when_asked_and_goes_on_with_its_jobs) {
  LiveSegment segment({"--keep"});
  const std::string id = segment.enqueue({"-t", "mail.send", "-i", "[1]"});
  const Finished done = stop(segment.broker());
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("1 unfinished"), std::string::npos) << done.err;
  ASSERT_TRUE(std::filesystem::exists(segment.file()));

  segment.start_broker();
  EXPECT_EQ(segment.job(id, "state"), "available");
  EXPECT_NE(segment.broker().err().find("resumed"), std::string::npos);
}

TEST(Broker, leaves_a_segment_that_others_hold_and_says_so) {
  LiveSegment segment;
  const auto held = Segment::attach(segment.where());
  ASSERT_TRUE(held) << held.error().message;
  const Finished done = stop(segment.broker());
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_NE(done.err.find("other processes are attached"), std::string::npos) << done.err;
  EXPECT_TRUE(std::filesystem::exists(segment.file()));
}

TEST(Broker, refuses_a_second_broker_with_status_3) {
  LiveSegment segment;
  const Finished second = run(broker_words(segment.folder()));
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_NE(second.err.find("broker"), std::string::npos) << second.err;
  EXPECT_EQ(second.out, "");
  EXPECT_TRUE(segment.broker().running());
  EXPECT_EQ(segment.cli({"stats"}).exit_code, 0);
}

TEST(Broker, takes_over_after_a_killed_broker_and_jobs_went_on_meanwhile) {
  LiveSegment segment;
  const std::string before = segment.enqueue({"-t", "a"});
  segment.broker().signal(SIGKILL);
  EXPECT_EQ(segment.broker().wait().exit_code, 128 + SIGKILL);
  const std::string meanwhile = segment.enqueue({"-t", "b"});
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  segment.start_broker();
  EXPECT_EQ(segment.job(before, "state"), "completed");
  EXPECT_EQ(segment.job(meanwhile, "state"), "completed");
  EXPECT_EQ(segment.cli({"audit"}).exit_code, 0);
}

TEST(Broker, holds_an_existing_segment_to_the_convention_that_was_given) {
  LiveSegment segment({"--keep", "--convention", "qo"});
  ASSERT_EQ(stop(segment.broker()).exit_code, 0);
  const Finished other = run(broker_words(segment.folder(), {"--convention", "ojs"}));
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_NE(other.err.find("qo"), std::string::npos) << other.err;
  segment.start_broker();  // none given: it keeps its own
  EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.convention"), "qo");
}

TEST(Broker, applies_its_file_and_lets_flags_win) {
  ScratchDirectory folder;
  const std::string config = folder / "broker.toml";
  std::ofstream(config) << "slots = 2000\n"
                           "max_body = \"64K\"\n"
                           "convention = \"qo\"\n"
                           "mode = \"0640\"\n"
                           "[queues.mail]\n"
                           "paused = true\n"
                           "backpressure = { max_depth = 5, max_size_bytes = \"1M\" }\n"
                           "[default_priorities]\n"
                           "\"email.send\" = \"urgent\"\n"
                           "cleanup = 10\n";
  LiveSegment segment({"--config", config, "--slots", "3000"});
  const std::string stats = segment.cli({"stats", "--json"}).out;
  EXPECT_EQ(member(stats, "segment.convention"), "qo");
  EXPECT_EQ(member(stats, "segment.max_body_bytes"), "65536");
  EXPECT_GE(std::stoul(member(stats, "segment.slots")), 3000U);
  EXPECT_LT(std::stoul(member(stats, "segment.slots")), 10000U);
  const std::string mail = segment.cli({"queue", "get", "mail", "--json"}).out;
  EXPECT_EQ(member(mail, "paused"), "true");
  EXPECT_EQ(member(mail, "backpressure.max_depth"), "5");
  EXPECT_EQ(member(mail, "backpressure.max_size_bytes"), "1048576");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "email.send"}), "priority"), "200");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "cleanup"}), "priority"), "10");
  EXPECT_EQ(segment.job(segment.enqueue({"-t", "other"}), "priority"), "128");
  struct stat file {};
  ASSERT_EQ(::stat(segment.file().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0640U);
}

struct BadConfig {
  const char *text, *place, *complaint;
};
class BrokerConfig : public testing::TestWithParam<BadConfig> {};

TEST_P(BrokerConfig, names_file_and_line_of_what_it_does_not_understand) {
  ScratchDirectory folder;
  const std::string config = folder / "broker.toml";
  std::ofstream(config) << GetParam().text;
  const Finished done = run(broker_words(folder, {"--config", config}));
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_NE(done.err.find("broker.toml:" + std::string(GetParam().place) + ": "), std::string::npos) << done.err;
  EXPECT_NE(done.err.find(GetParam().complaint), std::string::npos) << done.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "ojs-shm.test"));
}

INSTANTIATE_TEST_SUITE_P(Files, BrokerConfig,
                         testing::Values(BadConfig{"slots = 10\nqueus = 1\n", "2", "`queus`"},
                                         BadConfig{"[queues.a]\npaused = false\ndepth = 1\n", "3", "`depth`"},
                                         BadConfig{"[queues.a.backpressure]\nmax_dept = 1\n", "2", "`max_dept`"},
                                         BadConfig{"\nslots = \"many\"\n", "2", "many"},
                                         BadConfig{"convention = \"fifo\"\n", "1", "fifo"},
                                         BadConfig{"slots = = 3\n", "1", ""},
                                         BadConfig{"[queues.a.backpressure]\nstrategy = \"block\"\n", "2", "reject"}));

TEST(Broker, removes_the_segment_again_when_a_setting_turns_out_wrong) {
  ScratchDirectory folder;
  const std::string config = folder / "broker.toml";
  std::ofstream(config) << "[default_priorities]\na = \"enormous\"\n";
  const Finished done = run(broker_words(folder, {"--config", config}));
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_NE(done.err.find("enormous"), std::string::npos) << done.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "ojs-shm.test"));
}

TEST(Broker, refuses_a_file_of_another_format_and_leaves_it_alone) {
  ScratchDirectory folder;
  const std::string file = folder / "ojs-shm.test";
  const std::string foreign(1 << 20, '\x5A');
  std::ofstream(file) << foreign;
  const Finished done = run(broker_words(folder));
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_NE(done.err.find(file), std::string::npos) << done.err;
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(std::filesystem::file_size(file), foreign.size());
}

TEST(Broker, answers_wrong_usage_with_status_2) {
  ScratchDirectory folder;
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--no-such-flag"},
                                                {"--size", "huge"},
                                                {"--mode", "999"},
                                                {"--convention", "x"},
                                                {"--retention", "soon"},
                                                {"--config", folder / "missing.toml"},
                                                {"--name", "no/slash"}}) {
    const Finished done = run(broker_words(folder, flags));
    EXPECT_EQ(done.exit_code, 2) << flags.front() << ": " << done.err;
    EXPECT_NE(done.err, "");
  }
}

TEST(Broker, says_size_and_path_when_the_file_system_is_too_small) {
  ScratchDirectory folder;
  const std::string script = "mount -t tmpfs -o size=1m none \"$1\" || exit 99; exec \"$0\" --name test --dir \"$1\"";
  const Finished done = run({"unshare", "-rm", "sh", "-c", script, program("ojs-shm-broker"), folder.path()});
  if (done.exit_code == 99 || done.err.find("unshare") != std::string::npos) {
    GTEST_SKIP() << "NOT RUN: no mount namespace here: " << done.err;
  }
  EXPECT_EQ(done.exit_code, 6) << done.err;
  EXPECT_NE(done.err.find(folder.path()), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("bytes"), std::string::npos) << done.err;
  EXPECT_EQ(done.out, "");
}

TEST(Broker, tells_the_service_manager_ready_and_stopping) {
  ScratchDirectory folder;
  const std::string path = folder / "notify";
  const int manager = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(manager, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const timeval bound{30, 0};
  ::setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  const auto said = [&] {
    char text[512];
    const ssize_t n = ::recv(manager, text, sizeof text, 0);
    return std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  };

  ProcessOptions options;
  options.environment = {{"NOTIFY_SOCKET", path}};
  Process broker = Process::start(broker_words(folder), options);
  EXPECT_EQ(said().rfind("READY=1\n", 0), 0U);
  EXPECT_EQ(stop(broker).exit_code, 0);
  EXPECT_EQ(said(), "STOPPING=1");
  ::close(manager);
}

TEST(Broker, warns_of_unbounded_queues_and_names_those_it_knows) {
  ScratchDirectory folder;
  const std::string config = folder / "broker.toml";
  std::ofstream(config) << "[queues.open]\npaused = false\n[queues.bounded.backpressure]\nmax_depth = 3\n";
  LiveSegment segment({"--config", config});
  ASSERT_TRUE(eventually([&] { return segment.broker().err().find("unbounded: ") != std::string::npos; }));
  const std::string log = segment.broker().err();
  const std::string warning = log.substr(log.find("unbounded: "));
  EXPECT_NE(warning.find("open"), std::string::npos);
  EXPECT_EQ(warning.substr(0, warning.find('\n')).find("bounded, "), std::string::npos) << warning;
}

TEST(Broker, reads_name_and_directory_from_the_environment) {
  ScratchDirectory folder;
  ProcessOptions options;
  options.environment = {{"OJS_SHM_NAME", "other"}, {"OJS_SHM_DIR", folder.path()}};
  Process broker = Process::start({program("ojs-shm-broker")}, options);
  EXPECT_EQ(broker.read_line(), "READY name=other");
  EXPECT_TRUE(std::filesystem::exists(folder / "ojs-shm.other"));
  EXPECT_EQ(stop(broker).exit_code, 0);
}

}  // namespace
}  // namespace ojs_shm::test
