// SPDX-License-Identifier: Apache-2.0
// Weights of levels: exact shares in each window, whichever lane fetches, and nothing left lying.

#include <algorithm>
#include <map>
#include <thread>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

QueueSettings weighted(std::vector<LevelWeight> weights) {
  QueueSettings settings;
  settings.level_weights = std::move(weights);
  return settings;
}
const std::vector<LevelWeight> kFiveThreeTwo = {{"0", 5}, {"1", 3}, {"2", 2}};

void load(QuietSegment& s, int jobs, std::initializer_list<int> levels) {
  for (int i = 0; i < jobs; ++i)
    for (const int level : levels) s.put(level);
}

/// The priorities in the order of dispatch.
std::vector<std::int64_t> dispatches(QuietSegment& s, std::size_t most) {
  std::vector<std::int64_t> trace;
  while (trace.size() < most && s.worker.try_fetch(s.job)) {
    trace.push_back(s.job.priority());
    EXPECT_TRUE(s.worker.ack(s.job).ok());
  }
  return trace;
}

TEST(WeightedLevels, SUM_04_each_window_of_the_weights_sum_has_the_exact_shares) {
  QuietSegment s(few_slots(4096));
  load(s, 600, {0, 1, 2});
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  const auto trace = dispatches(s, 1000);
  ASSERT_EQ(trace.size(), 1000U);
  for (std::size_t begin = 0; begin + 10 <= trace.size(); ++begin) {
    const auto share = [&](std::int64_t level) {
      return std::count(trace.begin() + static_cast<long>(begin),
                        trace.begin() + static_cast<long>(begin) + 10, level);
    };
    ASSERT_EQ(share(0), 5) << begin;
    ASSERT_EQ(share(1), 3) << begin;
    ASSERT_EQ(share(2), 2) << begin;
  }
}

TEST(WeightedLevels, SUM_04_shares_hold_when_each_fetch_comes_from_a_new_worker) {
  QuietSegment s(few_slots(1024));
  load(s, 120, {0, 1, 2});
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  std::map<std::int64_t, int> shares;
  for (int i = 0; i < 100; ++i) {
    Worker once = Worker::attach(s.segment, {}).value();
    ASSERT_TRUE(once.try_fetch(s.job).ok());
    ++shares[s.job.priority()];
    ASSERT_TRUE(once.ack(s.job).ok());
  }
  EXPECT_EQ(shares, (std::map<std::int64_t, int>{{0, 50}, {1, 30}, {2, 20}}));
}

TEST(WeightedLevels, SUM_04_shares_hold_over_workers_that_fetch_at_once) {
  QuietSegment s(few_slots(8192));
  load(s, 1500, {0, 1, 2});
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  std::atomic<int> shares[3] = {}, left{2000};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Worker worker = Worker::attach(s.segment, {}).value();
      for (Job job; left.fetch_sub(1) > 0;) {
        if (!worker.try_fetch(job)) return;
        ++shares[job.priority()];
        (void)worker.ack(job);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shares[0], 1000);
  EXPECT_EQ(shares[1], 600);
  EXPECT_EQ(shares[2], 400);
}

TEST(WeightedLevels, SUM_04_an_empty_level_gives_its_share_away) {
  QuietSegment s;
  load(s, 60, {0, 2});
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  const auto trace = dispatches(s, 70);
  EXPECT_EQ(std::count(trace.begin(), trace.end(), 0), 50);
  EXPECT_EQ(std::count(trace.begin(), trace.end(), 2), 20);
  EXPECT_EQ(dispatches(s, 1000).size(), 50U);  // and nothing stays behind
}

TEST(WeightedLevels, SUM_04_levels_without_a_weight_share_one_turn_in_strict_order) {
  QuietSegment s;
  load(s, 100, {0, 1});
  load(s, 10, {7, 9});
  ASSERT_TRUE(s.admin.set_queue("default", weighted({{"0", 2}, {"1", 1}})).ok());
  const auto trace = dispatches(s, 80);
  EXPECT_EQ(std::count(trace.begin(), trace.end(), 0), 40);
  EXPECT_EQ(std::count(trace.begin(), trace.end(), 1), 20);
  std::vector<std::int64_t> others;
  std::copy_if(trace.begin(), trace.end(), std::back_inserter(others),
               [](std::int64_t p) { return p > 1; });
  EXPECT_EQ(others.size(), 20U);
  EXPECT_TRUE(std::is_sorted(others.begin(), others.end()));
}

TEST(WeightedLevels, SUM_04_fifo_holds_within_a_level) {
  QuietSegment s;
  std::map<std::int64_t, std::vector<std::string>> put, got;
  for (int i = 0; i < 60; ++i) put[i % 3].push_back(s.put(i % 3));
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  while (!s.take().empty()) got[s.job.priority()].emplace_back(s.job.id());
  EXPECT_EQ(put, got);
}

TEST(WeightedLevels, SUM_03_SUM_05_strict_is_the_default_and_comes_back_at_once) {
  QuietSegment s;
  load(s, 30, {0, 1, 2});
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  dispatches(s, 20);
  ASSERT_TRUE(s.admin.set_queue("default", weighted({})).ok());
  EXPECT_TRUE(s.queue().level_weights.empty());
  const auto trace = dispatches(s, 1000);
  EXPECT_EQ(trace.size(), 70U);
  EXPECT_TRUE(std::is_sorted(trace.begin(), trace.end()));
}

TEST(WeightedLevels, SUM_04_weights_take_names_are_shown_reduced_and_change_at_runtime) {
  QuietSegment s;
  ASSERT_TRUE(
      s.admin.set_queue("default", weighted({{"critical", 50}, {"high", 30}, {"*", 20}})).ok());
  const auto shown = s.queue().level_weights;
  ASSERT_EQ(shown.size(), 3U);
  EXPECT_EQ(shown[0].level + shown[1].level + shown[2].level, "01*");
  EXPECT_EQ(shown[0].weight * 100 + shown[1].weight * 10 + shown[2].weight, 532U);
  load(s, 40, {0, 1});
  ASSERT_TRUE(s.admin.set_queue("default", weighted({{"0", 1}, {"1", 3}})).ok());
  const auto trace = dispatches(s, 40);
  EXPECT_EQ(std::count(trace.begin(), trace.end(), 1), 30);
}

TEST(WeightedLevels, SUM_04_a_turn_is_lost_with_who_dies_in_it_and_nothing_else) {
  QuietSegment s;
  load(s, 20, {0, 1});
  ASSERT_TRUE(s.admin.set_queue("default", weighted({{"0", 1}, {"1", 1}, {"*", 0}})).ok());
  EXPECT_NE(print_queue_policy(s.queue()).find(R"("level_weights":{"0":1,"1":1,"*":0})"),
            std::string::npos);
  engine::QueueRecord& queue = s.store().queue(s.store().find_queue("default"));
  const engine::Turn turn(queue.turn.load());
  ASSERT_TRUE(queue.turn.cas_once(turn.word, turn.after(turn.next()).word, shm::Point::kNone));
  const auto trace = dispatches(s, 1000);
  EXPECT_EQ(trace.size(), 40U);
  EXPECT_EQ(trace[0], 1);
}

TEST(WeightedLevels, SUM_04_what_cannot_be_is_refused) {
  QuietSegment s;
  QueueSettings both = weighted(kFiveThreeTwo);
  both.aging.emplace();
  for (const QueueSettings& settings :
       {weighted({{"0", 0}}), weighted({{"0", 1}, {"1", 0}}), weighted({{"*", 0}}),
        weighted({{"urgent", 1}}), weighted({{"256", 1}}), weighted({{"0", 1}, {"critical", 2}}),
        weighted({{"0", 255}, {"1", 254}}), both}) {
    const Status set = s.admin.set_queue("default", settings);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.code(), Code::kInvalid);
    EXPECT_TRUE(set.error().subject.starts_with("level_weights")) << set.error().message;
  }
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  QueueSettings ages;
  ages.aging.emplace();
  EXPECT_EQ(s.admin.set_queue("default", ages).code(), Code::kInvalid);
  EXPECT_EQ(s.admin.set_default_aging({}).code(), Code::kInvalid);
}

TEST(WeightedLevels,
     a_queue_that_a_death_left_with_ageing_and_weights_can_be_paused_and_put_right) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", weighted(kFiveThreeTwo)).ok());
  s.actor().order().set_default_aging(
      engine::Aging(true, false, 60'000, 1, engine::Aging::kNoBest));
  ASSERT_EQ(s.admin.set_queue("default", {.aging = AgingSettings{}}).code(), Code::kInvalid);
  ASSERT_TRUE(s.admin.set_queue("default", {.paused = true}).ok());
  EXPECT_TRUE(s.queue().paused);
  EXPECT_TRUE(s.admin.set_queue("default", weighted({})).ok());
}

TEST(WeightedLevels, PRI_T16_a_job_that_moves_is_served_in_its_new_level) {
  QuietSegment s;
  const std::string id = s.put(2);
  s.put(1);
  ASSERT_TRUE(s.admin.set_queue("default", weighted({{"0", 1}, {"1", 1}, {"2", 1}})).ok());
  ASSERT_TRUE(s.producer.reprioritize(id, 0).ok());
  EXPECT_EQ(s.take(), id);
  EXPECT_EQ(s.drain().size(), 1U);
}

}  // namespace
}  // namespace ojs_shm::test
