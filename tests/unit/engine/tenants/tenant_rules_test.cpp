// SPDX-License-Identifier: Apache-2.0
// What is said of a tenant, and of a type: written and read without an actor.
#include "engine/tenants/tenant_rules.hpp"

#include <string>

#include "engine/tables/type_ranks.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

class TenantRules : public testing::Test {
 protected:
  engine::Bounds bounds_of(const char* tenant) {
    return engine::tenant_bounds(s.store(), queue, engine::mix_key(0, engine::hash_tenant(tenant)));
  }
  std::uint64_t weight_of(const char* tenant) {
    return engine::tenant_weight(s.store(), queue, engine::hash_tenant(tenant));
  }
  QuietSegment s;
  engine::QueueRecord& queue = s.store().queue(0);
};

TEST_F(TenantRules, a_tenant_has_the_queue_s_bounds_but_where_it_has_its_own) {
  queue.tenant_max_depth.store(7, shm::Point::kNone);
  queue.tenant_max_bytes.store(900, shm::Point::kNone);
  ASSERT_TRUE(engine::set_tenant_rule_bounds(s.store(), 0, "a", 3, {}));
  EXPECT_EQ(bounds_of("a").max_depth, 3U);
  EXPECT_EQ(bounds_of("a").max_bytes, 900U);
  EXPECT_EQ(bounds_of("b").max_depth, 7U);
  ASSERT_TRUE(engine::set_tenant_rule_bounds(s.store(), 0, "a", {}, {}));
  EXPECT_EQ(bounds_of("a").max_depth, 7U);
}

TEST_F(TenantRules, a_weight_of_its_own_counts_where_the_queue_goes_by_weights) {
  ASSERT_TRUE(engine::set_tenant_weight(s.store(), 0, "a", 5));
  EXPECT_NE(weight_of("a"), 5U);
  s.actor().set_fairness(0, engine::Fairness(true, true, false, 2));
  EXPECT_EQ(weight_of("a"), 5U);
  EXPECT_EQ(weight_of("b"), 2U);
  ASSERT_TRUE(engine::set_tenant_weight(s.store(), 0, "a", 0));
  EXPECT_EQ(weight_of("a"), 2U);
}

TEST_F(TenantRules, a_full_table_refuses_a_tenant_that_it_does_not_name) {
  for (std::uint32_t i = 0; i < engine::kTenantRules; ++i)
    ASSERT_TRUE(engine::set_tenant_weight(s.store(), 0, "t" + std::to_string(i), 1));
  EXPECT_FALSE(engine::set_tenant_weight(s.store(), 0, "one-more", 1));
  EXPECT_FALSE(engine::set_tenant_rule_bounds(s.store(), 0, "one-more", 1, {}));
  EXPECT_TRUE(engine::set_tenant_weight(s.store(), 0, "one-more", 0));  // it has none anyway
  EXPECT_TRUE(engine::set_tenant_weight(s.store(), 0, "t3", 9));
}

TEST(TypeRanks, a_type_has_a_rank_until_it_is_taken_back) {
  QuietSegment s;
  const std::uint64_t hash = engine::Store::hash_name("mail.send");
  EXPECT_FALSE(engine::type_rank(s.store(), "mail.send"));
  ASSERT_TRUE(engine::set_type_rank(s.store(), hash, 0));
  EXPECT_EQ(engine::type_rank(s.store(), "mail.send"), 0);
  EXPECT_FALSE(engine::type_rank(s.store(), "mail.read"));
  ASSERT_TRUE(engine::set_type_rank(s.store(), hash, {}));
  EXPECT_FALSE(engine::type_rank(s.store(), "mail.send"));
}

}  // namespace
}  // namespace ojs_shm::test
