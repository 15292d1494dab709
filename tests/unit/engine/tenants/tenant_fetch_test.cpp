// SPDX-License-Identifier: Apache-2.0
// A fetch of one tenant's jobs alone, and of one job that was seen.
#include "engine/tenants/tenant_fetch.hpp"

#include "engine/tenants/tenant_rules.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::Outcome;

class TenantFetches : public testing::Test {
 protected:
  TenantFetches() { out.body = &body; }
  std::string put_for(std::string_view tenant, std::int64_t priority) {
    JobSpec spec = spec_of(priority);
    spec.tenant = tenant;
    const std::string id = s.put(spec);
    s.move_clock(10);
    return id;
  }
  /// The id of the tenant's job that comes next, or nothing.
  std::string next_of(std::string_view tenant) {
    engine::TenantFetch fetch(actor, s.store(), engine::hash_tenant(tenant));
    return next_by(fetch);
  }
  std::string next_by(engine::TenantFetch& fetch) {
    const Outcome outcome = fetch.fetch(actor.ensure_queue("default"), 0, true, out);
    return outcome == Outcome::kOk ? engine::to_string(out.id) : std::string();
  }
  QuietSegment s;
  engine::Actor& actor = s.actor();
  std::string body;
  engine::Fetched out;
};

TEST_F(TenantFetches, the_best_of_its_jobs_comes_whatever_stands_before_it) {
  put_for("a", 0);
  const std::string low = put_for("b", 3), first = put_for("b", 1), second = put_for("b", 1);
  EXPECT_EQ(next_of("b"), first);
  EXPECT_EQ(next_of("b"), second);
  EXPECT_EQ(next_of("b"), low);
  EXPECT_EQ(next_of("b"), "");
  EXPECT_EQ(next_of("c"), "");
}

TEST_F(TenantFetches, several_come_by_one_look_and_what_others_took_is_passed_over) {
  const std::string low = put_for("b", 3), first = put_for("b", 1), second = put_for("b", 1),
                    last = put_for("b", 4);
  engine::TenantFetch fetch(actor, s.store(), engine::hash_tenant("b"), 3);
  EXPECT_EQ(next_by(fetch), first);
  const std::string late = put_for("b", 0);
  ASSERT_TRUE(s.producer.cancel(second).ok());
  EXPECT_EQ(next_by(fetch), low);
  EXPECT_EQ(next_by(fetch), late) << "there were more than it wanted";
  EXPECT_EQ(next_by(fetch), last);
  EXPECT_EQ(next_by(fetch), "");
}

TEST_F(TenantFetches, one_that_loses_all_that_it_saw_looks_again) {
  const std::string first = put_for("b", 1), second = put_for("b", 1);
  engine::TenantFetch fetch(actor, s.store(), engine::hash_tenant("b"), 3);
  EXPECT_EQ(next_by(fetch), first);
  ASSERT_TRUE(s.producer.cancel(second).ok());
  const std::string late = put_for("b", 2);
  EXPECT_EQ(next_by(fetch), late);
}

TEST_F(TenantFetches, PRI_T03_what_a_limit_holds_back_keeps_its_place) {
  for (const std::string_view limited : {"queue:default", "tenant:b"}) {
    RateLimit one;
    one.concurrency = 1;
    ASSERT_TRUE(s.admin.set_limit(limited, one).ok());
    put_for("b", 2);
    ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
    const std::string older = put_for("a", 2), own = put_for("b", 2);
    EXPECT_EQ(next_of("b"), "");
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    EXPECT_EQ(s.drain(), (std::vector{older, own}));
    ASSERT_TRUE(s.admin.clear_limit(limited).ok());
  }
}

TEST_F(TenantFetches, a_limit_that_drops_does_so) {
  RateLimit drops;
  drops.concurrency = 0;
  drops.on_limit = OnLimit::kDrop;
  ASSERT_TRUE(s.admin.set_limit("tenant:b", drops).ok());
  const std::string id = put_for("b", 2);
  EXPECT_EQ(next_of("b"), "");
  EXPECT_EQ(s.state_of(id), State::kDiscarded);
}

TEST_F(TenantFetches, a_paused_queue_gives_nothing) {
  const std::string id = put_for("a", 0);
  actor.set_paused(actor.ensure_queue("default"), true);
  EXPECT_EQ(next_of("a"), "");
  actor.set_paused(actor.ensure_queue("default"), false);
  EXPECT_EQ(next_of("a"), id);
}

TEST_F(TenantFetches, a_job_that_was_seen_is_taken_while_it_is_as_it_was) {
  const std::string first = put_for("a", 0), second = put_for("a", 0);
  const std::uint32_t slot = engine::find_job(s.store(), *engine::parse_id(second));
  const engine::Control seen(s.store().job(slot).control.load());
  const std::uint32_t queue = actor.ensure_queue("default");
  ASSERT_EQ(actor.fetch_seen(queue, slot, seen, 0, true, out), Outcome::kOk);
  EXPECT_EQ(engine::to_string(out.id), second);
  EXPECT_EQ(actor.fetch_seen(queue, slot, seen, 0, true, out), Outcome::kLost);
  EXPECT_EQ(s.take(), first);
}

}  // namespace
}  // namespace ojs_shm::test
