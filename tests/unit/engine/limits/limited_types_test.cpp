// SPDX-License-Identifier: Apache-2.0
// Limits on types and tenants: set while jobs wait and work, and beside one another.

#include "engine/supervision/repairer.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/limits/limited_jobs.hpp"

namespace ojs_shm::test {
namespace {

TEST_F(Limits, a_limit_on_a_type_acts_at_once_on_what_waits_and_counts_what_is_at_work) {
  for (int i = 0; i < 4; ++i) s.put();
  hold();
  ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(2)).ok());
  EXPECT_EQ(limit("type:unit.test").active, 1U);
  hold();
  EXPECT_EQ(hold(), "");
  JobSpec other = spec_of(4);
  other.type = "unit.other";
  const std::string plain = s.put(other);
  EXPECT_EQ(hold(), plain);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
}

/// A lane that sets it counts the job, and its worker sees the limit.
TEST_F(Limits, a_job_that_is_being_claimed_while_its_type_gets_a_limit_has_one_permit) {
  s.put();
  bool set = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (access != shm::Access::kWritten || point != shm::Point::kSlotClaimed || set) return;
    set = true;
    ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(2)).ok());
  });
  hold();
  EXPECT_TRUE(set);
  EXPECT_EQ(limit("type:unit.test").active, 1U);
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Limits, a_job_that_ends_while_its_type_gets_a_limit_leaves_no_permit) {
  s.put();
  hold();
  bool set = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (access == shm::Access::kWritten || point != shm::Point::kSlotSettled || set) return;
    set = true;
    ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(1)).ok());
  });
  ack(0);
  EXPECT_TRUE(set);
  EXPECT_EQ(worthless(), 0U);
}

/// The permit that the setter took for it is worth nothing once the job is in the lot. It goes with
/// the next hold, or with a repair.
TEST_F(Limits, a_job_that_is_being_held_back_while_its_type_gets_a_limit_anew_keeps_nobody_out) {
  ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(1)).ok());
  s.put(), s.put();
  hold();
  bool set = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (access == shm::Access::kWritten || point != shm::Point::kSlotParked || set) return;
    set = true;
    ASSERT_TRUE(s.admin.clear_limit("type:unit.test").ok());
    ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(1)).ok());
  });
  EXPECT_EQ(hold(), "");
  EXPECT_TRUE(set);
  EXPECT_EQ(s.findings(), "");
  EXPECT_EQ(worthless(), 1U);
  const std::uint32_t lane = doomed_handle(s.segment)->lane();
  engine::Repairer::repair(s.store(), std::span(&lane, 1));
  s.segment.attachment()->give_lane(lane);
  EXPECT_EQ(worthless(), 0U);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(limit("type:unit.test").active, 1U);
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Limits, a_limit_on_a_tenant_holds_for_its_jobs_alone) {
  ASSERT_TRUE(s.admin.set_limit("tenant:Acme & Sons", at_once(1)).ok());
  const auto of = [&](std::string_view tenant) {
    JobSpec spec = spec_of();
    spec.tenant = tenant;
    return s.put(spec);
  };
  const std::string a = of("Acme & Sons");
  of("Acme & Sons");
  const std::string b1 = of("b"), b2 = of("b");
  EXPECT_EQ(hold(), a);
  EXPECT_EQ(hold(), b1);
  EXPECT_EQ(hold(), b2);
  EXPECT_EQ(hold(), "");
}

TEST_F(Limits, a_limit_on_a_tenant_acts_at_once_on_what_waits_and_counts_what_is_at_work) {
  JobSpec spec = spec_of();
  spec.tenant = "t";
  for (int i = 0; i < 4; ++i) s.put(spec);
  hold();
  ASSERT_TRUE(s.admin.set_limit("tenant:t", at_once(2)).ok());
  EXPECT_EQ(limit("tenant:t").active, 1U);
  hold();
  EXPECT_EQ(hold(), "");
  const std::string nobodys = s.put();
  EXPECT_EQ(hold(), nobodys);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.clear_limit("tenant:t").ok());
  EXPECT_NE(hold(), "");
}

TEST_F(Limits, a_job_that_brings_the_key_of_a_tenant_limits_itself_alone) {
  put("tenant:t", 1);
  JobSpec spec = spec_of();
  spec.tenant = "t";
  for (int i = 0; i < 2; ++i) s.put(spec);
  for (int i = 0; i < 3; ++i) EXPECT_NE(hold(), "");
}

TEST_F(Limits, several_limits_on_one_job_are_taken_all_or_none) {
  ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(2)).ok());
  ASSERT_TRUE(s.admin.set_limit("tenant:t", at_once(3)).ok());
  ASSERT_TRUE(s.admin.set_limit("queue:default", at_once(4)).ok());
  const JobLimit own{"own", at_once(1)};
  JobSpec spec = spec_of();
  spec.limit = &own;
  spec.tenant = "t";
  const std::string first = s.put(spec), second = s.put(spec);
  JobSpec other = spec_of();
  other.tenant = "t";
  const std::string third = s.put(other), fourth = s.put(other);
  EXPECT_EQ(hold(), first);
  // second waits for `own`, and holds nothing of the other limits meanwhile
  EXPECT_EQ(hold(), third);
  EXPECT_EQ(limit("type:unit.test").active, 2U);
  EXPECT_EQ(limit("tenant:t").active, 2U);
  EXPECT_EQ(hold(), "");  // the type's two are at work
  ack(1);
  EXPECT_EQ(hold(), fourth);
  ack(0);
  EXPECT_EQ(hold(), second);
}

}  // namespace
}  // namespace ojs_shm::test
