// SPDX-License-Identifier: Apache-2.0
// Crons as JSON, and over an export.
#include <gtest/gtest.h>

#include <ojs_shm/transfer.hpp>

#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/cron_text.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kNow = 1'767'571'200'000;

std::string subject_of(std::string_view json) {
  const auto read = parse_cron(json, kNow);
  if (read.ok()) return "none";
  EXPECT_EQ(read.code(), Code::kInvalid);
  return read.error().subject;
}

TEST(CronText, the_job_stands_beside_or_inside) {
  const auto beside = parse_cron(R"({"name":"a","cron":"@daily","type":"t.t","args":[1],
      "meta":{"k":1},"options":{"queue":"q","priority":1}})",
                                 kNow);
  ASSERT_TRUE(beside.ok()) << beside.error().message;
  const auto inside = parse_cron(R"({"name":"a","expression":"@daily","timezone":"UTC",
      "job_template":{"type":"t.t","args":[1],"meta":{"k":1},"options":{"queue":"q","priority":1}}})",
                                 kNow);
  ASSERT_TRUE(inside.ok()) << inside.error().message;
  for (const auto* read : {&*beside, &*inside}) {
    const CronSpec& spec = (*read)->spec;
    EXPECT_EQ(spec.name, "a");
    EXPECT_EQ(spec.expression, "@daily");
    EXPECT_EQ(spec.timezone, "UTC");
    EXPECT_EQ(spec.overlap, CronOverlap::kSkip);
    EXPECT_TRUE(spec.enabled);
    EXPECT_EQ(spec.job.type, "t.t");
    EXPECT_EQ(spec.job.args, "[1]");
    EXPECT_EQ(spec.job.queue, "q");
    EXPECT_EQ(spec.job.priority, 1);
    EXPECT_EQ(spec.job.extra, R"({"meta":{"k":1}})");
  }
}

TEST(CronText, args_may_be_left_out_and_lives_are_relative) {
  const auto read =
      parse_cron(R"({"name":"a","cron":"@daily","type":"t","expires_at":"+PT90S"})", kNow);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read)->spec.job.args, "[]");
  EXPECT_EQ((*read)->spec.job.expires_at_ms, 90'000U);
}

TEST(CronText, what_is_wrong_is_named) {
  EXPECT_EQ(subject_of("[]"), "cron");
  EXPECT_EQ(subject_of("{"), "json");
  EXPECT_EQ(subject_of(R"({"name":1,"type":"t"})"), "name");
  EXPECT_EQ(subject_of(R"({"name":"a","cron":"@daily","expression":"@hourly","type":"t"})"),
            "expression");
  EXPECT_EQ(subject_of(R"({"name":"a","type":"t","enabled":1})"), "enabled");
  EXPECT_EQ(subject_of(R"({"name":"a","type":"t","overlap_policy":"often"})"), "overlap_policy");
  EXPECT_EQ(subject_of(R"({"name":"a","job_template":[]})"), "job_template");
  EXPECT_EQ(subject_of(R"({"name":"a","job_template":{"args":[]}})"), "job_template.type");
  EXPECT_EQ(subject_of(R"({"name":"a","type":"t","priority":"urgent"})"), "priority");
}

TEST(CronText, what_is_printed_is_read_as_the_same) {
  QuietSegment s;
  const auto first = parse_cron(R"({"name":"a","cron":"0 9 * * MON","timezone":"Europe/Berlin",
      "overlap_policy":"cancel_previous","enabled":false,"description":"of a \"kind\"",
      "type":"t.t","args":[{"x":1}],"meta":{"tenant_id":"b"},
      "options":{"queue":"q","priority":1,"timeout":30,"retry":{"max_attempts":7},
                 "unique":{"keys":["type"]},"expires_at":"+PT5M"}})",
                                s.now_ms());
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_TRUE(s.admin.set_cron((*first)->spec).ok());
  const std::string printed = print_cron(s.observer.cron("a").value());
  ASSERT_TRUE(json::check(printed).ok()) << printed;
  const auto again = parse_cron(printed, s.now_ms());
  ASSERT_TRUE(again.ok()) << printed << ": " << again.error().message;
  EXPECT_TRUE((*again)->unknown.empty());
  const auto made = s.admin.set_cron((*again)->spec);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_FALSE(*made);
  EXPECT_EQ(print_cron(s.observer.cron("a").value()), printed);
  EXPECT_EQ((*again)->spec.job.expires_at_ms, 300'000U);
}

TEST(CronText, an_export_takes_crons_along) {
  QuietSegment s;
  CronSpec spec;
  spec.name = "a";
  spec.expression = "@every 1h";
  spec.description = "goes along";
  spec.job = spec_of(1);
  ASSERT_TRUE(s.admin.set_cron(spec).ok());
  QuietSegment other(few_slots(512, "qo"));
  Import import = Import::attach(other.segment).value();
  ASSERT_TRUE(
      export_segment(s.segment, [&](std::string_view line) { return import.take(line); }).ok());
  ASSERT_TRUE(import.finish().ok());
  const CronInfo there = other.observer.cron("a").value();
  EXPECT_EQ(there.expression, "@every 1h");
  EXPECT_EQ(there.description, "goes along");
  EXPECT_EQ(there.job.type, "unit.test");
  EXPECT_EQ(there.job.priority, other.observer.segment_info().priority_max - 1)
      << "by rank, which begins at the other end";
}

}  // namespace
}  // namespace ojs_shm::test
