// SPDX-License-Identifier: Apache-2.0
// The specification's own examples of priorities, on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

/// Enqueues an envelope as a client would send it, and returns the id.
std::string send(const LiveSegment& segment, const std::string& envelope) {
  const Finished done = segment.cli({"enqueue"}, envelope);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return done.out.substr(0, done.out.find('\n'));
}

constexpr const char* kReport =
    R"({"type":"report.generate","queue":"default","args":[{"report_id":"rpt_123"}],"priority":1})";

TEST(CliPriority, PRI_H1_a_job_is_enqueued_with_its_priority_at_the_top) {
  const LiveSegment segment;
  const std::string id = send(segment, kReport);
  EXPECT_EQ(segment.job(id, "priority"), "1");
  EXPECT_EQ(segment.job(id, "state"), "available");
  EXPECT_EQ(segment.job(id, "args"), R"([{"report_id":"rpt_123"}])");
}

TEST(CliPriority, PRI_H2_a_change_answers_with_the_old_and_the_new_one) {
  const LiveSegment segment;
  const std::string id = send(segment, kReport);
  const Finished done = segment.cli({"reprioritize", id, "0", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "{\"id\":\"" + id + "\",\"priority\":0,\"previous_priority\":1}\n");
  EXPECT_EQ(segment.job(id, "priority"), "0");
  const std::string nobody = "01961234-5678-7abc-8def-0123456789ab";
  EXPECT_EQ(segment.cli({"reprioritize", nobody, "0"}).exit_code, 4);
  for (const char* bad : {"-1", "256", "first", "1.5"}) {
    const Finished refused = segment.cli({"reprioritize", "--", id, bad});
    EXPECT_EQ(refused.exit_code, 2) << bad;
  }
  segment.cli({"work", "--until-empty", "--", "true"});
  EXPECT_EQ(segment.cli({"reprioritize", id, "1"}).exit_code, 5);
}

TEST(CliPriority,
     PRI_G1_PRI_G2_PRI_G3_the_examples_have_the_priorities_and_the_order_that_they_say) {
  const LiveSegment segment;
  const std::string bulk =
      send(segment, R"({"type":"analytics.aggregate","queue":"default",)"
                    R"("args":[{"date":"2026-02-15","metric":"page_views"}],"priority":4})");
  const std::string normal = send(
      segment, R"({"type":"email.send","queue":"default","args":["user@example.com","welcome"]})");
  const std::string other =
      send(segment, R"({"type":"email.send","queue":"notifications","args":[]})");
  const std::string alert =
      send(segment, R"({"type":"incident.alert","queue":"notifications",)"
                    R"("args":[{"severity":"critical","service":"payments"}],"priority":0})");
  EXPECT_EQ(segment.job(bulk, "priority"), "4");
  EXPECT_EQ(segment.job(normal, "priority"), "2");
  EXPECT_EQ(segment.job(alert, "priority"), "0");
  std::vector<std::string> order;
  for (const char* queue : {"notifications", "default"})
    for (const std::string& line :
         lines_of(segment.cli({"work", "--queue", queue, "--until-empty", "--", "true"}).out))
      order.push_back(line.substr(0, 36));
  EXPECT_EQ(order, (std::vector<std::string>{alert, other, normal, bulk}));
}

TEST(CliPriority, an_error_in_json_says_what_belongs_to_it) {
  const LiveSegment segment({"--max-queues", "1"});
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"enqueue", "-t", "a", "--priority", "256", "--json"},
        {"enqueue", "-t", "a", "--priority", "-1", "--json"},
        {"enqueue", "-t", "a", "--priority", "99999999999999999999", "--json"}}) {
    const Finished done = segment.cli(words);
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_EQ(member(done.err, "error.subject"), "priority");
    EXPECT_THAT(member(done.err, "error.message"), testing::HasSubstr("the maximum is 255"));
    EXPECT_THAT(done.err, testing::Not(testing::AnyOf(testing::HasSubstr("depth"),
                                                      testing::HasSubstr("bound"))));
  }
  ASSERT_EQ(segment.cli({"queue", "set", "default", "--max-depth", "1"}).exit_code, 0);
  segment.enqueue({"-t", "a"});
  const Finished full = segment.cli({"enqueue", "-t", "a", "--json"});
  EXPECT_EQ(member(full.err, "error.depth"), "1") << full.err;
  EXPECT_EQ(member(full.err, "error.bound"), "1") << full.err;
}

TEST(CliPriority, an_unknown_name_lists_those_of_the_segments_convention) {
  const std::pair<const char*, const char*> names[] = {
      {"ojs", "critical (0), high (1), normal (2), low (3), bulk (4)"},
      {"ojs-core", "high (10), normal (0), low (-10)"},
      {"qo",
       "critical (255), urgent (200), high (175), normal (128), low (50), background (10), bulk "
       "(0)"}};
  for (const auto& [convention, known] : names) {
    const LiveSegment segment({"--convention", convention});
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"enqueue", "-t", "a", "--priority", "asap"},
          {"default-priority", "a.b", "asap"}}) {
      const Finished done = segment.cli(words);
      EXPECT_EQ(done.exit_code, 2) << convention;
      EXPECT_THAT(done.err, testing::HasSubstr(known)) << convention;
    }
    EXPECT_EQ(segment.job(segment.enqueue({"-t", "a", "--priority", "normal"}), "priority"),
              segment.job(segment.enqueue({"-t", "a"}), "priority"));
  }
}

}  // namespace
}  // namespace ojs_shm::test
