// SPDX-License-Identifier: Apache-2.0
// The order within queues as the C++ API sets and shows it.

#include "worker_api/roles/queue_policy.hpp"

#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm::test {
namespace {

using engine::Convention;

AgingSettings limited(std::int64_t limit) { return {.limit = limit}; }

TEST(QueuePolicy, SUM_07_a_limit_of_age_may_be_better_than_every_priority_and_not_worse) {
  for (const auto& [convention, worst, beyond] : {std::tuple(Convention::kOjs, 255, 256),
                                                  {Convention::kOjsCore, -100, -101},
                                                  {Convention::kQo, 0, -1}}) {
    const int best = worst + (worst - beyond) * 1000;
    EXPECT_TRUE(internal::read_aging(convention, limited(worst)).ok());
    EXPECT_TRUE(internal::read_aging(convention, limited(best)).ok());
    const auto refused = internal::read_aging(convention, limited(beyond));
    ASSERT_FALSE(refused.ok()) << beyond;
    EXPECT_EQ(refused.error().subject, "aging.limit");
    const engine::ConventionInfo& known = engine::info(convention);
    const std::string range =
        "(" + std::to_string(known.min) + " to " + std::to_string(known.max) + ")";
    EXPECT_NE(refused.error().message.find(range), std::string::npos) << refused.error().message;
  }
}

TEST(QueuePolicy, QO_13_a_cap_of_qo_means_the_same_rank_everywhere) {
  EXPECT_EQ(internal::limit_of_qo_cap(Convention::kQo, 200), 200);
  EXPECT_EQ(internal::limit_of_qo_cap(Convention::kOjs, 200), 55);
  EXPECT_EQ(internal::limit_of_qo_cap(Convention::kOjsCore, 200), 45);
  EXPECT_EQ(internal::limit_of_qo_cap(Convention::kOjsCore, 0), -100) << "it has no rank 255";
  for (const Convention convention : {Convention::kOjs, Convention::kOjsCore, Convention::kQo}) {
    const auto preset = internal::read_aging(convention, {.preset = "qo"});
    const auto said = internal::read_aging(
        convention, {.preset = "qo", .limit = internal::limit_of_qo_cap(convention, 200)});
    EXPECT_EQ(preset->word, said->word);
    EXPECT_EQ(preset->best(), 55);
  }
}

TEST(QueuePolicy, SUM_07_a_queue_follows_the_segment_again) {
  QuietSegment s;
  EXPECT_FALSE(s.observer.segment_info().aging.enabled);
  ASSERT_TRUE(s.admin.set_default_aging({.interval_ms = kHour, .limit = 3}).ok());
  EXPECT_EQ(s.observer.segment_info().aging.limit, 3);
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = AgingSettings{.enabled = false}}).ok());
  EXPECT_FALSE(s.queue().aging_is_default);
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = AgingSettings{.inherit = true}}).ok());
  EXPECT_TRUE(s.queue().aging_is_default);
  EXPECT_EQ(s.queue().aging.interval_ms, kHour);
  const std::string old = s.put(9);
  s.move_clock(9 * kHour);
  s.put(4);
  EXPECT_EQ(s.take(), old) << "a fetch ages it";
  EXPECT_EQ(s.admin.set_default_aging({.inherit = true}).code(), Code::kInvalid);
  ASSERT_TRUE(s.admin
                  .set_queue("web", {.aging = AgingSettings{.enabled = false},
                                     .level_weights = std::vector<LevelWeight>{{"0", 1}}})
                  .ok());
  EXPECT_EQ(s.admin.set_queue("web", {.aging = AgingSettings{.inherit = true}}).code(),
            Code::kInvalid);
}

TEST(QueuePolicy, SUM_04_a_weight_of_nothing_is_refused_by_its_level) {
  QuietSegment s;
  const Status done = s.admin.set_queue(
      "default", {.level_weights = std::vector<LevelWeight>{{"0", 1}, {"high", 0}}});
  ASSERT_EQ(done.code(), Code::kInvalid);
  EXPECT_EQ(done.error().subject, "level_weights.high");
}

TEST(QueuePolicy, SUM_04_levels_that_are_not_listed_weigh_one) {
  QuietSegment s;
  const auto weights = [&s](std::vector<LevelWeight> given) {
    EXPECT_TRUE(s.admin.set_queue("default", {.level_weights = std::move(given)}).ok());
    std::string text;
    for (const LevelWeight& each : s.queue().level_weights)
      text += each.level + ':' + std::to_string(each.weight) + ' ';
    return text;
  };
  EXPECT_EQ(weights({{"0", 5}}), "0:5 *:1 ");
  EXPECT_EQ(weights({{"0", 10}, {"1", 5}}), "0:10 1:5 *:1 ");
  EXPECT_EQ(weights({{"0", 10}, {"1", 5}, {"*", 5}}), "0:2 1:1 *:1 ");
  EXPECT_EQ(weights({{"0", 1000}, {"1", 500}}), "0:2 1:1 *:1 ") << "a cycle has 256 turns at most";
}

TEST(QueuePolicy, QO_14_rates_and_their_rings_stay_taken) {
  QuietSegment s;
  JobSpec spec = spec_of(1);
  for (const std::uint32_t rate : {0U, 255U, 7U}) {
    spec.priority_age_rate = rate;
    s.put(spec);
  }
  s.drain();
  EXPECT_EQ(s.queue().age_rates, (std::vector<std::uint32_t>{0, 255, 7}));
  EXPECT_EQ(s.pool_use("parts"), 3U);
  ASSERT_TRUE(s.admin.set_queue("a", {.shards = 16}).ok());
  ASSERT_TRUE(s.admin.set_queue("b", {.shards = 15}).ok());
  const Status full = s.admin.set_queue("c", {.shards = 2});
  ASSERT_EQ(full.code(), Code::kSegmentFull);
  EXPECT_NE(full.error().message.find("make the segment with --max-queues 32"), std::string::npos)
      << full.error().message;
  EXPECT_EQ(s.pool_use("parts"), 32U);
  EXPECT_TRUE(s.queue("a").age_rates.empty());
}

}  // namespace
}  // namespace ojs_shm::test
