// SPDX-License-Identifier: Apache-2.0
// Tenants that share a queue, with the numbers that are promised: how soon one that comes is
// served, weights of those that are not listed, and tenants in a queue that ages or whose levels
// have weights.

#include <algorithm>
#include <functional>
#include <map>

#include "tests/support/seed.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Names = std::vector<std::string>;
using Shares = std::map<std::string, int>;

SegmentOptions slots_for(std::uint32_t slots) {
  SegmentOptions options = few_slots(slots);
  options.max_tenants = 1024;
  return options;
}

QueueSettings sharing(std::uint32_t default_weight = 1,
                      std::vector<std::pair<std::string, std::uint32_t>> weights = {}) {
  QueueSettings settings;
  settings.tenant_fairness = TenantFairness{true, default_weight, std::move(weights)};
  return settings;
}

std::string put_for(QuietSegment& s, const std::string& tenant, std::int64_t priority = 2) {
  const std::string extra = R"({"meta":{"tenant_id":")" + tenant + R"("}})";
  JobSpec spec = spec_of(priority);
  spec.extra = extra;
  return s.put(spec);
}

void put_for(QuietSegment& s, const std::string& tenant, int jobs, std::int64_t priority) {
  for (int i = 0; i < jobs; ++i) put_for(s, tenant, priority);
}

std::string tenant_of(const Job& job) {
  const std::string extra(job.extra());
  const std::size_t at = extra.find("tenant_id\":\"") + 12;
  return extra.substr(at, extra.find('"', at) - at);
}

/// The tenant of the next job, which is finished; empty when there is none.
std::string next(QuietSegment& s, Worker& worker) {
  if (!worker.try_fetch(s.job)) return {};
  EXPECT_TRUE(worker.ack(s.job).ok());
  return tenant_of(s.job);
}
std::string next(QuietSegment& s) { return next(s, s.worker); }

Names next(QuietSegment& s, int times) {
  Names tenants;
  for (int i = 0; i < times; ++i) tenants.push_back(next(s));
  return tenants;
}

Shares shares_of(const Names& names) {
  Shares shares;
  for (const std::string& name : names) ++shares[name];
  return shares;
}

/// How many dispatches it takes until the tenant has one of them.
int dispatches_until(QuietSegment& s, Worker& worker, const std::string& tenant) {
  for (int dispatches = 1; dispatches <= 100; ++dispatches)
    if (next(s, worker) == tenant) return dispatches;
  return 101;
}

// ---- how soon -----------------------------------------------------------------------------------

/// Fetches of `k` workers stand still in their middle, one inside the other, each at a random
/// access of shared memory. There a job of another tenant comes.
TEST(TenantRows, FS_T16_beside_k_fetches_a_tenant_that_comes_is_served_within_2_and_k) {
  Seeded random;
  for (int k = 1; k <= 3; ++k) {
    QuietSegment s(slots_for(256));
    ASSERT_TRUE(s.admin.set_queue("default", sharing()).ok());
    std::vector<Worker> standing;
    for (int i = 0; i < k; ++i) standing.push_back(Worker::attach(s.segment, {}).value());
    int arrivals = 0, longest = 0;
    for (int trial = 0; trial < 200; ++trial) {
      put_for(s, "many", 20, 2);
      const std::string guest = "guest-" + std::to_string(trial);
      std::vector<Job> taken(static_cast<std::size_t>(k));
      std::vector<std::int64_t> accesses_left;
      for (int i = 0; i < k; ++i) accesses_left.push_back(random.between(1, 40));
      std::size_t begun = 0;
      bool arrived = false;
      const auto begin = [&] {
        const std::size_t mine = begun++;
        (void)standing[mine].try_fetch(taken[mine]);
      };
      {
        const AtAccess in_the_middle([&](shm::Access, shm::Point, const void*) {
          if (arrived || begun == 0 || --accesses_left[begun - 1] != 0) return;
          if (begun < standing.size()) return begin();
          arrived = true;
          put_for(s, guest);
          longest = std::max(longest, dispatches_until(s, s.worker, guest));
        });
        begin();
      }
      arrivals += arrived ? 1 : 0;
      for (std::size_t i = 0; i < taken.size(); ++i)
        if (taken[i].valid()) {
          ASSERT_TRUE(standing[i].ack(taken[i]).ok());
        }
      s.drain();
      ASSERT_EQ(s.findings(), "");
    }
    EXPECT_GT(arrivals, 50) << k;
    EXPECT_LE(longest, 2 + k);
  }
}

/// The others' weights in lowest terms, and one more. Where its own weight divides all others',
/// that is the ceiling of their sum by its own, and one.
TEST(TenantRows, FS_T16_with_weights_it_is_served_after_the_others_weights_in_lowest_terms) {
  struct Case {
    std::uint32_t own, a, b;
    int bound;
  };
  for (const auto& [own, a, b, bound] : {Case{1, 5, 3, 9}, Case{2, 6, 4, 6}, Case{4, 4, 4, 3},
                                         Case{5, 15, 10, 6}, Case{2, 5, 3, 9}}) {
    QuietSegment s(slots_for(2048));
    ASSERT_TRUE(s.admin.set_queue("default", sharing(own, {{"a", a}, {"b", b}})).ok());
    put_for(s, "a", 700, 2);
    put_for(s, "b", 500, 2);
    int longest = 0;
    for (int round = 0; round < 64; ++round) {
      next(s, round % 8);  // it comes at each place of the others' turns
      const std::string guest = "guest-" + std::to_string(round);
      put_for(s, guest);
      longest = std::max(longest, dispatches_until(s, s.worker, guest));
    }
    EXPECT_EQ(longest, bound) << own << " beside " << a << " and " << b;
  }
}

/// Example 14.4, as it is printed.
TEST(TenantRows,
     FS_G4_the_tenants_of_the_example_have_equal_throughput_until_the_small_one_is_done) {
  QuietSegment s(slots_for(16'384));
  const auto settings = parse_queue_settings(R"({
    "tenant_fairness": {
      "enabled": true,
      "strategy": "fair-share",
      "default_weight": 1
    }
  })");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  ASSERT_TRUE(s.admin.set_queue("default", settings.value()).ok());
  put_for(s, "A", 10'000, 2);
  put_for(s, "B", 100, 2);
  int ahead = 0;  // of A
  for (int i = 0; i < 200; ++i) {
    ahead += next(s) == "A" ? 1 : -1;
    ASSERT_LE(std::abs(ahead), 1) << "after " << i;
  }
  EXPECT_EQ(ahead, 0);
  EXPECT_EQ(shares_of(next(s, 9'900)), (Shares{{"A", 9'900}}));
  EXPECT_EQ(next(s), "");
}

// ---- weights ------------------------------------------------------------------------------------

TEST(TenantRows, FS_T18_a_tenant_that_is_not_listed_has_the_default_weight) {
  QuietSegment s(slots_for(2048));
  ASSERT_TRUE(s.admin.set_queue("default", sharing(3, {{"a", 1}, {"d", 6}})).ok());
  EXPECT_EQ(s.queue().tenant_fairness.default_weight, 3U);
  for (const char* tenant : {"a", "b", "c", "d"}) put_for(s, tenant, 200, 2);
  EXPECT_EQ(shares_of(next(s, 130)), (Shares{{"a", 10}, {"b", 30}, {"c", 30}, {"d", 60}}));
  ASSERT_TRUE(s.admin.set_queue("default", sharing(2, {{"a", 1}})).ok());
  next(s, 7);  // turns that were given before the change
  const Shares now = shares_of(next(s, 70));
  EXPECT_NEAR(now.at("a"), 10, 2);
  for (const char* tenant : {"b", "c", "d"}) EXPECT_NEAR(now.at(tenant), 20, 2) << tenant;
}

// ---- in pairs with ageing and with weights of levels --------------------------------------------

/// A level is as old as the job whose turn it is.
TEST(TenantRows, FS_T16_PRI_T18_tenants_in_a_queue_that_ages) {
  QuietSegment s(slots_for(512));
  s.stop_clock();
  QueueSettings settings = sharing();
  settings.aging = AgingSettings{.preset = "ojs", .interval_ms = kMinute};
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  put_for(s, "a", 2, 4);
  put_for(s, "b", 2, 4);
  s.move_clock(2 * kMinute - 1);
  put_for(s, "c", 2, 2);
  EXPECT_EQ(next(s), "c") << "3 is not enough";
  s.move_clock(1);
  EXPECT_EQ(next(s, 5), (Names{"a", "b", "a", "b", "c"})) << "2, and they came first";
}

/// One that is young holds up the old ones behind it no longer than until it is old itself.
TEST(TenantRows, FS_T16_PRI_T18_an_old_job_waits_for_one_more_ageing_at_most) {
  QuietSegment s(slots_for(512));
  s.stop_clock();
  QueueSettings settings = sharing();
  settings.aging = AgingSettings{.preset = "ojs", .interval_ms = kMinute};
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  put_for(s, "a", 3, 4);
  s.move_clock(3 * kMinute);
  put_for(s, "b", 4);
  EXPECT_EQ(next(s), "a");
  for (int minute = 0; minute < 2; ++minute) {  // it is b's turn, and b is young
    put_for(s, "c", 2);
    EXPECT_EQ(next(s), "c");
    s.move_clock(kMinute);
  }
  put_for(s, "c", 2);
  EXPECT_EQ(next(s, 4), (Names{"b", "a", "a", "c"}));
}

TEST(TenantRows, FS_T16_SUM_04_tenants_in_a_queue_whose_levels_have_weights) {
  QuietSegment s(slots_for(1024));
  QueueSettings settings = sharing(1, {{"b", 3}});
  settings.level_weights = {{"0", 3}, {"1", 1}};
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  for (const std::int64_t level : {0, 1}) {
    put_for(s, "a", 150, level);
    put_for(s, "b", 150, level);
  }
  std::vector<std::int64_t> levels;
  std::map<std::int64_t, Shares> shares;
  for (int i = 0; i < 160; ++i) {
    const std::string tenant = next(s);
    levels.push_back(s.job.priority());
    ++shares[levels.back()][tenant];
  }
  for (std::size_t begin = 0; begin + 4 <= levels.size(); ++begin)
    ASSERT_EQ(std::count(levels.begin() + static_cast<long>(begin),
                         levels.begin() + static_cast<long>(begin) + 4, 0),
              3)
        << begin;
  EXPECT_EQ(shares[0], (Shares{{"a", 30}, {"b", 90}}));
  EXPECT_EQ(shares[1], (Shares{{"a", 10}, {"b", 30}}));
}

}  // namespace
}  // namespace ojs_shm::test
