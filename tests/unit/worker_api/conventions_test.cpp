// SPDX-License-Identifier: Apache-2.0
// What a priority means is chosen with the segment: ojs, ojs-core or qo.

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

TEST(Conventions, QO_01_in_qo_255_goes_first_and_0_last) {
  QuietSegment s(few_slots(512, "qo"));
  EXPECT_EQ(s.segment.convention(), "qo");
  const std::string last = s.put(0), normal = s.put(128), first = s.put(255), high = s.put(175);
  EXPECT_EQ(s.get(first).priority, 255);
  for (const std::int64_t outside : {-1, 256})
    EXPECT_EQ(s.producer.enqueue(spec_of(outside)).code(), Code::kInvalid);
  EXPECT_EQ(s.drain(), (Ids{first, high, normal, last}));
}

TEST(Conventions, QO_02_in_qo_a_job_without_priority_has_128) {
  QuietSegment s(few_slots(512, "qo"));
  EXPECT_EQ(s.get(s.put()).priority, 128);
  EXPECT_EQ(s.observer.segment_info().priority_default, 128);
}

TEST(Conventions, QO_03_QO_04_names_are_numbers_of_the_segments_own_convention) {
  QuietSegment qo(few_slots(512, "qo")), ojs;
  const std::pair<const char*, std::int64_t> expected[] = {
      {"critical", 255}, {"urgent", 200},    {"high", 175}, {"normal", 128},
      {"low", 50},       {"background", 10}, {"bulk", 0}};
  for (const auto& [name, priority] : expected)
    EXPECT_EQ(qo.observer.priority_by_name(name).value(), priority) << name;
  const std::pair<const char*, std::int64_t> named[] = {
      {"critical", 0}, {"high", 1}, {"normal", 2}, {"low", 3}, {"bulk", 4}};
  for (const auto& [name, priority] : named)
    EXPECT_EQ(ojs.observer.priority_by_name(name).value(), priority) << name;
  EXPECT_EQ(ojs.observer.priority_by_name("urgent").code(), Code::kInvalid);
  EXPECT_NE(ojs.observer.priority_by_name("urgent").error().message.find("critical (0)"),
            std::string::npos);
}

TEST(Conventions, QO_09_in_qo_a_priority_stays_what_it_was_and_in_the_others_it_may_change) {
  QuietSegment qo(few_slots(512, "qo"));
  const std::string id = qo.put(100);
  EXPECT_EQ(qo.producer.reprioritize(id, 200).code(), Code::kWrongState);
  EXPECT_EQ(qo.get(id).priority, 100);
  for (const char* convention : {"ojs", "ojs-core"}) {
    QuietSegment s(few_slots(512, convention));
    EXPECT_EQ(s.producer.reprioritize(s.put(1), 50).value(), 1) << convention;
  }
}

TEST(Conventions, QO_09_immutable_priorities_are_a_setting_of_every_convention) {
  for (const char* convention : {"ojs", "ojs-core", "qo"}) {
    QuietSegment s(few_slots(512, convention));
    const bool by_convention = convention == std::string_view("qo");
    EXPECT_EQ(s.observer.segment_info().immutable_priorities, by_convention);
    const std::string id = s.put(1);
    for (const bool immutable : {!by_convention, by_convention}) {
      ASSERT_TRUE(s.admin.set_immutable_priorities(immutable).ok());
      EXPECT_EQ(s.observer.segment_info().immutable_priorities, immutable);
      const std::int64_t before = s.get(id).priority, wanted = before + 1;
      const auto changed = s.producer.reprioritize(id, wanted);
      EXPECT_EQ(changed.code(), immutable ? Code::kWrongState : Code::kOk) << convention;
      EXPECT_EQ(s.get(id).priority, immutable ? before : wanted) << convention;
    }
  }
}

TEST(Conventions, QO_16_a_type_may_have_a_default_and_an_explicit_priority_wins) {
  QuietSegment s(few_slots(512, "qo"));
  ASSERT_TRUE(s.admin.set_default_priority("unit.test", 200).ok());
  EXPECT_EQ(s.get(s.put()).priority, 200);
  EXPECT_EQ(s.get(s.put(7)).priority, 7);
  JobSpec other = spec_of();
  other.type = "another.type";
  EXPECT_EQ(s.get(s.put(other)).priority, 128);
  EXPECT_EQ(s.observer.default_priority("unit.test"), 200);
  EXPECT_EQ(s.observer.default_priority("another.type"), std::nullopt);
  ASSERT_TRUE(s.admin.set_default_priority("unit.test", 10).ok());
  EXPECT_EQ(s.get(s.put()).priority, 10);
  EXPECT_EQ(s.admin.set_default_priority("Not a type", 10).code(), Code::kInvalid);
  ASSERT_TRUE(s.admin.set_default_priority("unit.test", {}).ok());
  EXPECT_EQ(s.observer.default_priority("unit.test"), std::nullopt);
  EXPECT_EQ(s.get(s.put()).priority, 128);
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(s.admin.set_default_priority("never.had.one" + std::to_string(i), {}).ok())
        << "takes no room";
}

TEST(Conventions, ojs_core_counts_from_minus_100_to_100_and_higher_goes_first) {
  QuietSegment s(few_slots(512, "ojs-core"));
  const std::string low = s.put(-100), zero = s.put(), high = s.put(100);
  EXPECT_EQ(s.get(zero).priority, 0);
  for (const std::int64_t outside : {-101, 101})
    EXPECT_EQ(s.producer.enqueue(spec_of(outside)).code(), Code::kInvalid);
  EXPECT_EQ(s.drain(), (Ids{high, zero, low}));
}

TEST(Conventions, an_unknown_one_is_refused_and_names_the_known) {
  const ScratchDirectory folder;
  const auto made = Segment::create({"x", folder.path()}, few_slots(512, "lifo"));
  ASSERT_EQ(made.code(), Code::kInvalid);
  EXPECT_NE(made.error().message.find("ojs, ojs-core, qo"), std::string::npos);
}

}  // namespace
}  // namespace ojs_shm::test
