// SPDX-License-Identifier: Apache-2.0
// `ojs-shm work` with several queues: --strategy, --queue NAME:WEIGHT and --config.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using Shares = std::map<std::string, int>;
using Words = std::vector<std::string>;

const Shares kWeighted = {{"critical", 5}, {"default", 2}, {"low", 1}};
const Shares kStrict = {{"critical", 8}};

class CliStrategy : public testing::Test {
 protected:
  void SetUp() override {
    std::string envelopes;
    for (const char* queue : {"critical", "default", "low"})
      for (int i = 0; i < 8; ++i)
        envelopes += std::string(R"({"type":"a","args":[],"queue":")") + queue + "\"}\n";
    ASSERT_EQ(segment_.cli({"enqueue"}, envelopes).exit_code, 0);
  }

  /// How many of eight jobs came from which queue.
  Shares eight(Words flags) const {
    Words words = {"work", "--count", "8"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "sh", "-c", "echo $OJS_QUEUE"});
    const Finished done = segment_.cli(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    Shares shares;
    for (const std::string& line : lines_of(done.out))
      ++shares[segment_.job(line.substr(0, 36), "result")];
    return shares;
  }

  Finished refused(Words flags) const {
    Words words = {"work", "--until-empty"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "true"});
    return segment_.cli(words);
  }

  std::string config(const std::string& text) const {
    const std::string path = segment_.folder() / "work.conf";
    std::ofstream(path) << text;
    return path;
  }

  LiveSegment segment_;
};

TEST_F(CliStrategy, PRI_S9_weighted_by_flags) {
  EXPECT_EQ(eight({"--strategy", "weighted", "--queue", "critical:5", "--queue", "default:2",
                   "--queue", "low:1"}),
            kWeighted);
}

TEST_F(CliStrategy, PRI_S9_strict_by_flags_and_by_default) {
  EXPECT_EQ(eight({"--strategy", "strict", "--queue", "critical,default,low"}), kStrict);
  EXPECT_EQ(eight({"--queue", "critical,default,low"}), (Shares{{"default", 8}}));
}

TEST_F(CliStrategy, PRI_S10_the_form_of_the_specification_as_json) {
  EXPECT_EQ(eight({"--config", config(R"({
    "queues": [
      { "name": "critical", "weight": 5 },
      { "name": "default", "weight": 2 },
      { "name": "low", "weight": 1 }
    ],
    "strategy": "weighted"
  })")}),
            kWeighted);
}

TEST_F(CliStrategy, PRI_S10_the_same_as_toml) {
  EXPECT_EQ(eight({"--config", config("strategy = \"weighted\"\n"
                                      "[[queues]]\nname = \"critical\"\nweight = 5\n"
                                      "[[queues]]\nname = \"default\"\nweight = 2\n"
                                      "[[queues]]\nname = \"low\"\n")}),
            kWeighted);
}

TEST_F(CliStrategy, flags_win_over_the_file) {
  const std::string file =
      config(R"({"queues":["low",{"name":"default","weight":2}],"strategy":"weighted"})");
  EXPECT_EQ(eight({"--config", file, "--strategy", "strict", "--queue", "critical,low"}), kStrict);
}

TEST_F(CliStrategy, what_does_not_fit_is_refused_before_any_queue_is_made) {
  const std::pair<Words, const char*> wrong[] = {
      {{"--strategy", "random"}, "strategy \"random\" is none of strict, weighted"},
      {{"--queue", "new:2"}, "weights belong to the strategy weighted"},
      {{"--strategy", "weighted", "--queue", "new:0"}, "a queue's weight is 1 to 1000, not 0"},
      {{"--strategy", "weighted", "--queue", "new:-1"}, "a queue's weight is 1 to 1000"},
      {{"--strategy", "weighted", "--queue", "new:99999999999"}, "a queue's weight is 1 to 1000"},
      {{"--strategy", "weighted", "--queue", "new:x"}, "\"new:x\" is no QUEUE:WEIGHT"},
  };
  for (const auto& [flags, message] : wrong) {
    const Finished done = refused(flags);
    EXPECT_EQ(done.exit_code, 2) << flags[1];
    EXPECT_THAT(done.err, HasSubstr(message));
  }
  EXPECT_EQ(lines_of(segment_.cli({"queue", "list"}).out).size(), 3U);
}

TEST_F(CliStrategy, a_mistake_in_the_file_is_named_with_its_line) {
  const std::pair<const char*, const char*> wrong[] = {
      {"{\n\"queues\": 7}", ":2: `queues` must be an array"},
      {"{\"queues\":\n[\n{\"name\":\"a\",\"share\":1}]}", ":3: unknown key `share` of a queue"},
      {"{\"queues\":[\n{\"weight\":1}]}", ":2: a queue has no `name`"},
      {"{\"queues\":[{\"name\":\"a\",\"weight\":1.5}]}", ":1: `weight` must be an integer"},
      {"{\"queue\":[]}", ":1: unknown key `queue`; there are queues, strategy"},
      {"{\"strategy\":", ": "},
      {"\nstrategy = 1\n", ":2: `strategy` must be a string"},
      {"queues = [1]\n", ":1: `queues` must be an array"},
      {"[[queues]]\nname = 1\n", ":2: `name` must be a string"},
      {"speed = 1\n", ":1: unknown key `speed`"},
      {"strategy =\n", ":1: "},
  };
  for (const auto& [text, message] : wrong) {
    const std::string file = config(text);
    const Finished done = refused({"--config", file});
    EXPECT_EQ(done.exit_code, 2) << text;
    EXPECT_THAT(done.err, HasSubstr(file + message)) << text;
  }
  EXPECT_EQ(refused({"--config", segment_.folder() / "nowhere"}).exit_code, 2);
}

/// What strict costs is said where it is chosen.
TEST(Strategy, PRI_S4_the_documents_and_the_help_say_that_strict_starves) {
  const Finished help = run({program("ojs-shm"), "work", "--help"});
  EXPECT_THAT(help.out, HasSubstr("starves"));
  std::ifstream file(OJS_SHM_SOURCE_DIR "/docs/scheduling.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("Strict starves"));
}

}  // namespace
}  // namespace ojs_shm::test
