// SPDX-License-Identifier: Apache-2.0
// ojs-shm-broker as its users see it: flags, READY, signals, files, exit codes. Every test starts
// the real program.
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
#include <tuple>

#include <ojs_shm/producer.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

std::vector<std::string> broker_words(const ScratchDirectory& folder,
                                      std::vector<std::string> flags = {}) {
  std::vector<std::string> words = {program("ojs-shm-broker"), "--name", "test", "--dir",
                                    folder.path()};
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
  for (const char* word : {"--name", "--dir", "--size", "--slots", "--max-queues", "--max-body",
                           "--convention", "--config", "--keep", "--remove", "--mode", "--group",
                           "--retention", "--version", "EXIT STATUS", "READY"}) {
    EXPECT_NE(done.out.find(word), std::string::npos) << word;
  }
}

TEST(Broker, help_shows_a_file_that_it_takes_with_every_table_that_it_reads) {
  const std::string help = run({program("ojs-shm-broker"), "--help"}).out;
  const std::size_t begin = help.find('\n', help.find("then tables:")),
                    end = help.find("  See docs/operations.md");
  ASSERT_LT(begin, end);
  const std::string file = help.substr(begin, end - begin);
  for (const char* word : {"[queues.mail]", "level_weights", "shards", "[aging]", "[worker]",
                           "priority_aging", "[pools.web]", "[limits.", "[default_priorities]"})
    EXPECT_NE(file.find(word), std::string::npos) << word;
  ScratchDirectory folder;
  const std::string config = folder / "broker.toml";
  std::ofstream(config) << file;
  const LiveSegment segment({"--config", config});
  EXPECT_EQ(member(segment.cli({"queue", "get", "mail", "--json"}).out, "level_weights"),
            R"({"0":5,"*":1})");
}

TEST(Broker, a_name_that_ends_in_lock_is_refused) {
  const LiveSegment segment;
  for (const char* name : {"test.lock", ".lock"}) {
    const Finished done =
        run({program("ojs-shm-broker"), "--name", name, "--dir", segment.folder().path()});
    EXPECT_EQ(done.exit_code, 2) << name << done.err;
  }
  EXPECT_EQ(
      run({program("ojs-shm"), "rm", "test.lock", "--force", "--dir", segment.folder().path()})
          .exit_code,
      2);
  EXPECT_TRUE(std::filesystem::exists(segment.file() + ".lock"));
}

TEST(Broker, refuses_a_living_segment_whose_lock_file_is_gone) {
  LiveSegment segment;
  ASSERT_TRUE(std::filesystem::remove(segment.file() + ".lock"));
  const Finished second = run(broker_words(segment.folder()));
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_NE(second.err.find(segment.file() + ".lock"), std::string::npos) << second.err;
  EXPECT_NE(second.err.find(std::to_string(segment.broker().pid())), std::string::npos)
      << second.err;
  EXPECT_EQ(segment.cli({"enqueue", "-t", "a"}).exit_code, 3);
  EXPECT_EQ(segment.cli({"rm", "test"}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(segment.file() + ".lock"));
  segment.broker().signal(SIGKILL);
  segment.broker().wait();
  segment.start_broker();  // its process is gone: no process needs the old locks
  EXPECT_NE(segment.broker().err().find("1 dead"), std::string::npos) << segment.broker().err();
  EXPECT_EQ(segment.cli({"audit"}).exit_code, 0);
}

TEST(Broker, a_stale_segment_without_its_lock_file_is_removed) {
  LiveSegment segment;
  segment.broker().signal(SIGKILL);
  segment.broker().wait();
  ASSERT_TRUE(std::filesystem::remove(segment.file() + ".lock"));
  EXPECT_EQ(segment.cli({"rm", "test"}).exit_code, 0);
}

TEST(Broker, a_resuming_one_logs_which_of_its_options_the_segment_does_not_have) {
  LiveSegment segment(
      {"--keep", "--slots", "2000", "--size", "24M", "--handles", "20", "--mode", "0640"});
  ASSERT_EQ(stop(segment.broker()).exit_code, 0);
  segment.start_broker({"--keep", "--slots", "2000", "--size", "24M", "--handles", "20"});
  const Finished same = stop(segment.broker());
  EXPECT_EQ(same.err.find("stays"), std::string::npos) << same.err;
  segment.start_broker({"--slots", "3000", "--size", "25M", "--mode", "0600", "--max-queues", "7"});
  const Finished other = stop(segment.broker());
  for (const char* kept : {"slots 2000 instead of 3000", "size ", "mode 640 instead of 600",
                           "max_queues 64 instead of 7"})
    EXPECT_NE(other.err.find(kept), std::string::npos) << kept << " in " << other.err;
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
  std::ofstream(config)
      << "slots = 2000\n"
         "max_body = \"64K\"\n"
         "convention = \"qo\"\n"
         "mode = \"0640\"\n"
         "[queues.mail]\n"
         "paused = true\n"
         "backpressure = { max_depth = 5, max_size_bytes = \"1M\", strategy = \"drop_oldest\", "
         "warning_threshold = 0.5, clear_threshold = 0.25, drop = \"lowest_priority\", "
         "tenant_max_depth = 4, "
         "tenant_max_size_bytes = \"2K\", "
         "tenant_bounds = { acme = { max_depth = 3, max_size_bytes = \"1K\" } } }\n"
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
  EXPECT_EQ(member(mail, "backpressure.strategy"), "drop_oldest");
  EXPECT_EQ(member(mail, "backpressure.warning_threshold"), "0.5");
  EXPECT_EQ(member(mail, "backpressure.clear_threshold"), "0.25");
  EXPECT_EQ(member(mail, "backpressure.drop"), "lowest_priority");
  EXPECT_EQ(member(mail, "backpressure.tenant_max_depth"), "4");
  EXPECT_EQ(member(mail, "backpressure.tenant_max_size_bytes"), "2048");
  EXPECT_EQ(member(mail, "backpressure.tenant_bounds"),
            R"({"acme":{"max_depth":3,"max_size_bytes":1024}})");
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
  EXPECT_NE(done.err.find("broker.toml:" + std::string(GetParam().place) + ": "), std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find(GetParam().complaint), std::string::npos) << done.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "ojs-shm.test"));
}

INSTANTIATE_TEST_SUITE_P(
    Files, BrokerConfig,
    testing::Values(
        BadConfig{"slots = 10\nqueus = 1\n", "2", "`queus`"},
        BadConfig{"[queues.a]\npaused = false\ndepth = 1\n", "3", "`depth`"},
        BadConfig{"[queues.a.backpressure]\nmax_dept = 1\n", "2", "`max_dept`"},
        BadConfig{"\nslots = \"many\"\n", "2", "many"},
        BadConfig{"convention = \"fifo\"\n", "1", "fifo"}, BadConfig{"slots = = 3\n", "1", ""},
        BadConfig{"[queues.a.backpressure]\nstrategy = \"wait\"\n", "2", "drop_oldest"},
        BadConfig{"[queues.a.backpressure]\nstrategy = 1\n", "2", "drop_oldest"},
        BadConfig{"[queues.a.backpressure]\n\nwarning_threshold = 1.5\n", "3", "0 to 1"},
        BadConfig{"[queues.a.backpressure]\ndrop = \"newest\"\n", "2", "lowest_priority"},
        BadConfig{"[queues.a.backpressure]\ndrop = {}\n", "2", "lowest_priority"},
        BadConfig{"\n[queues.\"bad queue\"]\n", "2", "bad queue"},
        BadConfig{"[queues.a.backpressure]\nmax_depth = 16777216\n", "1", "16777215"},
        BadConfig{"[queues.a.backpressure]\ntenant_max_depth = -1\n", "2", "tenant_max_depth"},
        BadConfig{"[queues.a.backpressure.tenant_bounds]\nb = 1\n", "2", "`b`"},
        BadConfig{"[queues.a.backpressure.tenant_bounds]\nb.depth = 1\n", "2", "`depth`"},
        BadConfig{"[default_priorities]\na = \"foo\"\n", "2", "foo"},
        BadConfig{"[default_priorities]\n\na = 256\n", "3", "maximum is 255"},
        BadConfig{"convention = \"qo\"\n[default_priorities]\na = 256\n", "3", "255"},
        BadConfig{"[default_priorities]\na = \"99999999999999999999\"\n", "2", "maximum is 255"},
        BadConfig{"[default_priorities]\n\"A b\" = 1\n", "2", "A b"},
        BadConfig{"\nhandles = 5000\n", "2", "maximum is 1016"},
        BadConfig{"max_body = \"16M\"\n", "1", "maximum is 16777215"},
        BadConfig{"slots = 0\n", "1", "minimum is 1"}, BadConfig{"slots = -1\n", "1", "-1"},
        BadConfig{"mode = 660\n", "1", "0o660"}, BadConfig{"mode = 400\n", "1", "0o660"}));

TEST(Broker, takes_an_octal_mode_as_a_number_or_as_text) {
  for (const char* mode : {"0o640", "\"0640\"", "\"640\""}) {
    ScratchDirectory folder;
    const std::string config = folder / "broker.toml";
    std::ofstream(config) << "mode = " << mode << "\n";
    const LiveSegment segment({"--config", config});
    struct stat file {};
    ASSERT_EQ(::stat(segment.file().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777U, 0640U) << mode;
  }
}

TEST(Broker, says_why_a_file_of_settings_cannot_be_read) {
  ScratchDirectory folder;
  const Finished missing = run(broker_words(folder, {"--config", folder / "nope.toml"}));
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("nope.toml: No such file"), std::string::npos) << missing.err;
  const Finished directory = run(broker_words(folder, {"--config", folder.path()}));
  EXPECT_EQ(directory.exit_code, 2);
  EXPECT_NE(directory.err.find(folder.path() + ": Is a directory"), std::string::npos)
      << directory.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Broker, makes_nothing_when_a_setting_needs_more_room_than_there_is) {
  ScratchDirectory folder;
  const std::string config = folder / "broker.toml";
  std::ofstream(config) << "max_queues = 1\n[queues.a]\n[queues.b]\n";
  const Finished done = run(broker_words(folder, {"--config", config}));
  EXPECT_EQ(done.exit_code, 6) << done.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "ojs-shm.test"));
  EXPECT_FALSE(std::filesystem::exists(folder / "ojs-shm.test.lock"));
}

TEST(Broker, refuses_sizes_that_no_segment_can_have_and_names_the_bound) {
  ScratchDirectory folder;
  for (const auto& [flag, value, bound] :
       {std::tuple{"--slots", "0", "minimum is 1"},
        {"--handles", "0", "minimum is 1"},
        {"--max-queues", "0", "minimum is 1"},
        {"--max-body", "0", "minimum is 1"},
        {"--size", "0", "minimum is 1"},
        {"--size", "1000G", "--size: 1073741824000 is too large: the maximum is 274877906944"},
        {"--size", "1125899906842624", "maximum is 274877906944"},
        {"--slots", "99999999999", "maximum is 16777215"},
        {"--handles", "5000", "--handles: 5000 is too large: the maximum is 1016"}}) {
    const Finished done = run(broker_words(folder, {flag, value}));
    EXPECT_EQ(done.exit_code, 2) << flag << " " << value << ": " << done.err;
    EXPECT_NE(done.err.find(bound), std::string::npos) << flag << " " << value << ": " << done.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << flag << " " << value;
  }
}

TEST(Broker, a_directory_or_group_that_is_not_there_is_named) {
  ScratchDirectory folder;
  std::ofstream(folder / "file") << "x";
  for (const std::string& dir : {folder / "none", folder / "file"}) {
    const Finished done = run({program("ojs-shm-broker"), "--dir", dir});
    EXPECT_EQ(done.exit_code, 3) << done.err;
    EXPECT_NE(done.err.find("no directory " + dir), std::string::npos) << done.err;
  }
  const Finished group = run(broker_words(folder, {"--group", "no-such-group-here"}));
  EXPECT_EQ(group.exit_code, 2) << group.err;
  EXPECT_NE(group.err.find("no-such-group-here"), std::string::npos) << group.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "ojs-shm.test.lock"));
}

TEST(Broker, a_directory_where_no_file_can_be_made_is_named) {
  if (::access("/proc", W_OK) != 0)
    GTEST_SKIP() << "NOT RUN: root alone may try to make a file in /proc";
  const Finished done = run({program("ojs-shm-broker"), "--dir", "/proc", "--name", "z"});
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_NE(done.err.find("no file can be made in /proc: "), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("choose another directory (--dir)"), std::string::npos) << done.err;
}

TEST(Broker, a_link_to_a_segment_is_that_segment) {
  LiveSegment segment({"--keep"});
  segment.broker().signal(SIGKILL);  // its lock file stays
  segment.broker().wait();
  std::filesystem::create_symlink("ojs-shm.test", segment.folder() / "ojs-shm.alias");
  const std::vector<std::string> words = {program("ojs-shm-broker"), "--name", "alias", "--dir",
                                          segment.folder().path(),   "--keep"};
  Process alias = Process::start(words);
  ASSERT_EQ(alias.read_line(), "READY name=alias");
  EXPECT_FALSE(std::filesystem::exists(segment.folder() / "ojs-shm.alias.lock"));
  const Finished second = run(broker_words(segment.folder()));
  EXPECT_EQ(second.exit_code, 3) << "two brokers would serve one segment: " << second.out;
  EXPECT_NE(second.err.find("process " + std::to_string(alias.pid())), std::string::npos)
      << second.err;
  EXPECT_EQ(stop(alias).exit_code, 0);
}

TEST(Broker, a_lock_file_that_is_a_link_is_named) {
  ScratchDirectory folder;
  const std::string lock = folder / "ojs-shm.test.lock";
  std::filesystem::create_symlink("gone", lock);
  const Finished done = run(broker_words(folder));
  EXPECT_EQ(done.exit_code, 3) << done.err;
  EXPECT_NE(done.err.find(lock + " is a symbolic link"), std::string::npos) << done.err;
  EXPECT_TRUE(std::filesystem::is_symlink(lock));
}

TEST(Broker, finds_a_size_of_its_own_for_whatever_it_shall_hold) {
  for (const char* body : {"1", "100", "1300"}) {
    const LiveSegment segment(
        {"--slots", "1", "--max-queues", "1", "--handles", "2", "--max-body", body});
    EXPECT_EQ(member(segment.cli({"stats", "--json"}).out, "segment.name"), "test") << body;
  }
}

TEST(Broker, a_limit_on_the_size_of_files_is_an_error_and_no_signal) {
  ScratchDirectory folder;
  const Finished done = run({"sh", "-c", "ulimit -f 100; exec \"$0\" --name test --dir \"$1\"",
                             program("ojs-shm-broker"), folder.path()});
  EXPECT_EQ(done.exit_code, 6) << done.err;
  EXPECT_NE(done.err.find("ulimit -f"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find(folder.path()), std::string::npos) << done.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
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
  const std::string script =
      "mount -t tmpfs -o size=1m none \"$1\" || exit 99; exec \"$0\" --name test --dir \"$1\"";
  const Finished done =
      run({"unshare", "-rm", "sh", "-c", script, program("ojs-shm-broker"), folder.path()});
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

TEST(Broker, BP_T17_warns_of_unbounded_queues_and_names_those_it_knows) {
  ScratchDirectory folder;
  const std::string config = folder / "broker.toml";
  std::ofstream(config)
      << "[queues.open]\npaused = false\n[queues.bounded.backpressure]\nmax_depth = 3\n";
  LiveSegment segment({"--config", config});
  ASSERT_TRUE(
      eventually([&] { return segment.broker().err().find("unbounded: ") != std::string::npos; }));
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
