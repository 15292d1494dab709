// SPDX-License-Identifier: Apache-2.0
// Tenants that share a queue across its levels: turns of tenants first, priorities within each.

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/seed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Names = std::vector<std::string>;

QueueSettings across(std::vector<std::pair<std::string, std::uint32_t>> weights = {}) {
  QueueSettings settings;
  settings.tenant_fairness = TenantFairness{true, 1, std::move(weights), true};
  return settings;
}

SegmentOptions many_slots(std::uint32_t tenants = 1024) {
  SegmentOptions options = few_slots(4096);
  options.max_tenants = tenants;
  return options;
}

class Across : public testing::Test {
 protected:
  explicit Across(std::uint32_t tenants = 1024) : s(many_slots(tenants)) {}
  void share(const QueueSettings& settings = across()) {
    ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  }
  std::string put(const std::string& tenant, std::int64_t priority, int jobs = 1) {
    const std::string extra = R"({"meta":{"tenant_id":")" + tenant + R"("}})";
    JobSpec spec = spec_of(priority);
    spec.extra = extra;
    std::string id;
    for (int i = 0; i < jobs; ++i) id = s.put(spec);
    return id;
  }
  /// Tenant and priority of the next job, which is finished; empty when there is none.
  std::string next() {
    if (!s.worker.try_fetch(s.job)) return {};
    const std::string extra(s.job.extra());
    const std::size_t at = extra.find("tenant_id\":\"") + 12;
    const std::string name = (extra.empty() ? "" : extra.substr(at, extra.find('"', at) - at)) +
                             std::to_string(s.job.priority());
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    return name;
  }
  Names next(int times) {
    Names names;
    for (int i = 0; i < times; ++i) names.push_back(next());
    return names;
  }
  std::map<char, int> shares(int times) {
    std::map<char, int> count;
    for (const std::string& name : next(times)) ++count[name.empty() ? '-' : name.front()];
    return count;
  }
  QuietSegment s;
};

TEST_F(Across, SUM_11_priority_orders_the_jobs_within_each_tenants_share) {
  share();
  put("a", 1, 3), put("a", 3, 2);
  put("b", 3, 2), put("b", 2, 2);
  EXPECT_EQ(next(9), (Names{"a1", "b2", "a1", "b2", "a1", "b3", "a3", "b3", "a3"}));
  EXPECT_EQ(next(), "");
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Across, SUM_11_a_tenant_with_urgent_jobs_does_not_hold_up_one_with_idle_work) {
  share();
  put("a", 0, 500), put("b", 9, 20);
  EXPECT_EQ(shares(40), (std::map<char, int>{{'a', 20}, {'b', 20}}));
  EXPECT_EQ(shares(10), (std::map<char, int>{{'a', 10}})) << "b's share is given away";
  put("b", 9);
  const Names soon = next(2);
  EXPECT_NE(std::ranges::find(soon, "b9"), soon.end());
}

TEST_F(Across, SUM_11_shares_are_as_the_weights) {
  share(across({{"a", 3}}));
  put("a", 5, 100), put("b", 1, 100), put("c", 0, 100);
  EXPECT_EQ(shares(100), (std::map<char, int>{{'a', 60}, {'b', 20}, {'c', 20}}));
}

TEST_F(Across, is_switched_on_and_off_while_jobs_wait) {
  put("a", 1, 4), put("b", 2, 4);
  share();
  EXPECT_EQ(next(4), (Names{"a1", "b2", "a1", "b2"}));
  QueueSettings within = across();
  within.tenant_fairness->across = false;
  share(within);
  EXPECT_EQ(next(4), (Names{"a1", "a1", "b2", "b2"}));
  put("a", 1, 2), put("b", 2, 2);
  share();
  EXPECT_EQ(shares(2), (std::map<char, int>{{'a', 1}, {'b', 1}}));
  within.tenant_fairness->enabled = false;
  share(within);
  EXPECT_EQ(next(3), (Names{"a1", "b2", ""}));
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Across, jobs_that_have_left_their_flow_hold_up_no_turn) {
  QueueSettings within = across();
  within.tenant_fairness->across = false;
  share(within);
  put("a", 2, 2);
  within.tenant_fairness->enabled = false;
  share(within);
  EXPECT_EQ(next(2), (Names{"a2", "a2"}));
  share();
  put("a", 1), put("b", 3, 2);
  EXPECT_EQ(next(4), (Names{"a1", "b3", "b3", ""}));
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Across, a_job_that_was_given_back_or_got_another_priority_is_found) {
  share();
  const std::string id = put("a", 5);
  put("b", 3, 2);
  ASSERT_TRUE(s.worker.try_fetch(s.job));
  ASSERT_EQ(s.job.id(), id);
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  EXPECT_EQ(next(), "b3");
  ASSERT_TRUE(s.producer.reprioritize(id, 0).ok());
  EXPECT_EQ(next(3), (Names{"a0", "b3", ""}));
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Across, SUM_11_a_job_that_went_to_the_front_has_its_tenants_turn) {
  share();
  put("b", 5);
  Job held;
  ASSERT_TRUE(s.worker.try_fetch(held));
  EXPECT_EQ(next(), "") << "its tenant leaves the line";
  ASSERT_TRUE(s.worker.requeue(held).ok());
  put("a", 0, 20);
  const Names got = next(4);
  EXPECT_EQ(std::ranges::count(got, "b5"), 1);
}

TEST_F(Across, SUM_11_a_job_that_came_behind_anothers_flow_has_its_tenants_turn) {
  share();
  put("a", 5);
  const std::string id = put("b", 6);
  ASSERT_TRUE(s.producer.reprioritize(id, 5).ok());
  put("a", 0, 20);
  const Names got = next(4);
  EXPECT_EQ(std::ranges::count(got, "b5"), 1);
}

TEST_F(Across, ages_within_each_tenant) {
  QueueSettings settings = across();
  settings.aging = AgingSettings{.enabled = true, .interval_ms = 1'000, .rate = 1};
  share(settings);
  put("a", 9);
  s.move_clock(20'000);
  put("a", 5), put("b", 5, 2);
  EXPECT_EQ(next(4), (Names{"a9", "b5", "a5", "b5"}));
}

TEST_F(Across, level_weights_are_refused_beside_it_and_it_beside_them) {
  share();
  QueueSettings weights;
  weights.level_weights = {{"1", 2}};
  EXPECT_EQ(s.admin.set_queue("default", weights).error().subject, "tenant_fairness.scope");
  ASSERT_TRUE(s.admin.set_queue("other", weights).ok());
  EXPECT_EQ(s.admin.set_queue("other", across()).error().subject, "tenant_fairness.scope");
}

TEST_F(Across, a_tenant_that_lost_its_place_is_listed_by_the_supervisor) {
  share();
  put("b", 9, 3), put("a", 1, 40);
  engine::QueueRecord& queue = s.store().queue(0);
  // as if each had died before it came to the line
  const std::uint32_t line = queue.tenants_ring.load() - 1;
  ASSERT_EQ(next(2), (Names{"b9", "a1"}));
  shm::Rings& rings = s.actor().rings();
  const shm::Peeked head = rings.peek(line);
  engine::FlowRecord& turn = s.store().flows[head.hint().index()];
  turn.control.store(engine::FlowControl(engine::FlowControl::kIdle, 0,
                                         engine::FlowControl(turn.control.load()).next_tag())
                         .word,
                     shm::Point::kNone);
  shm::Rings::retire(head);
  EXPECT_EQ(shares(4), (std::map<char, int>{{'a', 4}})) << "b has no turn";
  s.move_clock(2'000);
  s.tick();
  EXPECT_EQ(shares(2), (std::map<char, int>{{'a', 1}, {'b', 1}}));
}

TEST_F(Across, whatever_happens_nothing_is_lost) {
  share();
  Seeded random;
  std::multiset<std::string> put_in, got;
  for (int i = 0; i < 1'500; ++i) {
    const std::string tenant(1, static_cast<char>('a' + random.between(0, 12)));
    const auto priority = static_cast<std::int64_t>(random.between(0, 4));
    put(tenant, priority);
    put_in.insert(tenant + std::to_string(priority));
    if (random.coin()) got.insert(next());
    if (i % 100 == 99) {
      ASSERT_EQ(s.findings(), "");
    }
  }
  for (std::string name = next(); !name.empty(); name = next()) got.insert(name);
  EXPECT_EQ(put_in, got);
  EXPECT_EQ(s.findings(), "");
}

class AcrossOfMany : public Across {
 protected:
  AcrossOfMany() : Across(8) {}
};

TEST_F(AcrossOfMany, more_tenants_than_there_is_room_for_lose_nothing) {
  share();
  for (int i = 0; i < 200; ++i) put("t" + std::to_string(i), i % 3);
  int got = 0;
  while (!next().empty()) ++got;
  EXPECT_EQ(got, 200);
  EXPECT_EQ(s.findings(), "");
}

}  // namespace
}  // namespace ojs_shm::test
