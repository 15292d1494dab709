// SPDX-License-Identifier: Apache-2.0
// The proposal "Task Priorities" (qo) on the command line: its lines as it prints them, and its
// order of keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using Words = std::vector<std::string>;

/// Runs lines of a shell in which `qo` is this project's program and means this segment.
Finished shell(const LiveSegment& segment, const std::string& lines) {
  return run({"env", "OJS_SHM_NAME=test", "OJS_SHM_DIR=" + segment.folder().path(), "sh", "-ec",
              "qo() { '" + program("ojs-shm") + "' \"$@\"; }\n" +
                  "command -v jq > /dev/null || jq() { python3 -c " +
                  "'import json, sys; print(json.load(sys.stdin)[sys.argv[1][1:]])' \"$@\"; }\n" +
                  lines});
}

Words priorities_of(const LiveSegment& segment, const std::string& ids) {
  Words priorities;
  for (const std::string& id : lines_of(ids)) priorities.push_back(segment.job(id, "priority"));
  return priorities;
}

TEST(CliQo, QO_04_QO_10_the_printed_command_lines_work_as_they_stand) {
  const LiveSegment segment({"--convention", "qo"});
  const Finished submitted = shell(segment, R"(
# High priority
qo submit -t send_alert -i '{"message":"Server down!"}' --priority 255
qo submit -t send_alert -i '{"message":"Server down!"}' --priority critical

# Normal priority (default)
qo submit -t send_email -i '{"to":"user@example.com"}'

# Low priority
qo submit -t cleanup -i '{}' --priority 50
qo submit -t cleanup -i '{}' --priority low
)");
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(priorities_of(segment, submitted.out), ElementsAre("255", "255", "128", "50", "50"));
  const std::string alert = lines_of(submitted.out).at(0);
  EXPECT_EQ(segment.job(alert, "type"), "send_alert");
  EXPECT_EQ(segment.job(alert, "args"), R"([{"message":"Server down!"}])");

  std::string check = "qo get abc123 --json | jq .priority";  // abc123 stands for an id
  check.replace(check.find("abc123"), 6, alert);
  const Finished checked = shell(segment, check);
  EXPECT_EQ(checked.out, "255\n") << checked.err;
}

TEST(CliQo, QO_03_QO_04_each_printed_name_is_its_number) {
  const LiveSegment segment({"--convention", "qo"});
  const Finished submitted = shell(segment, R"(
for flag in "--priority critical" "--priority urgent" "--priority high" "--priority normal" \
            "--priority low" "--priority background" "--priority bulk"; do
  qo submit -t a $flag
done
)");
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(priorities_of(segment, submitted.out),
              ElementsAre("255", "200", "175", "128", "50", "10", "0"));
}

/// A key of the ready index: 255 less the priority in three digits, the time, and the id.
std::string key_of(const std::string& job) {
  const std::string inverted = std::to_string(255 - std::stoi(member(job, "priority")));
  return std::string(3 - inverted.size(), '0') + inverted + "/" + member(job, "created_at") + "/" +
         member(job, "id");
}

TEST(CliQo, QO_06_the_list_is_in_the_order_of_the_keys_which_is_the_order_of_claims) {
  const LiveSegment segment({"--convention", "qo"});
  for (const char* priority : {"50", "255", "0", "128", "200", "128", "255", "0", "50", "200"})
    segment.enqueue({"-t", "a", "--priority", priority});
  Words keys, listed;
  for (const std::string& job : lines_of(segment.cli({"list", "--json"}).out)) {
    keys.push_back(key_of(job));
    listed.push_back(member(job, "id"));
  }
  ASSERT_EQ(keys.size(), 10U);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end())) << testing::PrintToString(keys);
  Words inverted;
  for (std::size_t i = 0; i < keys.size(); i += 2) inverted.push_back(keys[i].substr(0, 3));
  EXPECT_THAT(inverted, ElementsAre("000", "055", "127", "205", "255"));

  Words claimed;
  for (const std::string& line : lines_of(segment.cli({"work", "--until-empty", "--", "true"}).out))
    claimed.push_back(line.substr(0, 36));
  EXPECT_EQ(claimed, listed);
}

}  // namespace
}  // namespace ojs_shm::test
