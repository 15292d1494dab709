// SPDX-License-Identifier: Apache-2.0
//
// What moved between two looks, by numbers that are made by hand: no time passes and no segment is
// there.
#include "tools/top/sampler.hpp"

#include <gtest/gtest.h>

namespace ojs_shm::top {
namespace {

using std::chrono::seconds;

constexpr Clock::time_point kBegin = Clock::time_point(seconds(1000));

/// Queues with two counters, what came in and what went out.
Census census_of(const std::map<std::string, std::vector<std::uint64_t>>& queues) {
  Census census;
  census.queue_counters = {{1, "enqueued", "jobs", CounterFlow::kIn},
                           {2, "dispatched", "jobs", CounterFlow::kOut}};
  for (const auto& [name, counters] : queues) {
    QueueCensus& queue = census.queues.emplace_back();
    queue.info.name = name;
    queue.counters = counters;
  }
  return census;
}

/// What happened in ten seconds.
Sample::Span between(const Census& before, const Census& now) {
  const Mark old = mark_of(before, kBegin), young = mark_of(now, kBegin + seconds(10));
  return compare(now, young, &old);
}

using Rates = std::vector<std::optional<double>>;

TEST(Rates, are_what_moved_by_the_seconds_between_two_looks) {
  const Sample::Span span = between(census_of({{"a", {100, 50}}, {"b", {7, 7}}}),
                                    census_of({{"a", {130, 55}}, {"b", {7, 17}}}));
  EXPECT_EQ(span.queues, (std::vector<Rates>{{3, 0.5}, {0, 1}}));
  EXPECT_EQ(span.totals, (Rates{3, 1.5}));
  const Census census = census_of({});
  EXPECT_EQ(rate_of(census.queue_counters, span.totals, CounterFlow::kIn), 3);
  EXPECT_EQ(rate_of(census.queue_counters, span.totals, CounterFlow::kOut), 1.5);
  EXPECT_EQ(rate_of(census.queue_counters, span.totals, CounterFlow::kLost), std::nullopt);
}

TEST(Rates, are_unset_without_an_earlier_look) {
  const Census now = census_of({{"a", {130, 55}}});
  const Sample::Span span = compare(now, mark_of(now, kBegin), nullptr);
  EXPECT_EQ(span.queues, (std::vector<Rates>{{std::nullopt, std::nullopt}}));
  EXPECT_EQ(span.totals, (Rates{std::nullopt, std::nullopt}));
}

TEST(Rates, belong_to_the_name_of_a_queue_not_to_its_place) {
  // "a" was deleted: "b" and "c" have moved up.
  const Sample::Span span = between(census_of({{"a", {10, 0}}, {"b", {1000, 20}}, {"c", {5, 5}}}),
                                    census_of({{"b", {1040, 30}}, {"c", {5, 5}}}));
  EXPECT_EQ(span.queues, (std::vector<Rates>{{4, 1}, {0, 0}}));
  EXPECT_EQ(span.totals, (Rates{4, 1})) << "what the deleted queue counted is no loss";
}

TEST(Rates, of_a_new_queue_begin_with_nothing) {
  const Sample::Span span =
      between(census_of({{"b", {100, 100}}}), census_of({{"a", {20, 10}}, {"b", {100, 100}}}));
  EXPECT_EQ(span.queues, (std::vector<Rates>{{2, 1}, {0, 0}}));
  // A queue that was deleted and made anew counts from nothing, in all of its counters.
  const Sample::Span anew = between(census_of({{"a", {100, 5}}}), census_of({{"a", {20, 10}}}));
  EXPECT_EQ(anew.queues, (std::vector<Rates>{{2, 1}}));
  EXPECT_EQ(anew.totals, (Rates{2, 1}));
}

TEST(Rates, of_workers_and_shares_of_pools) {
  const auto census = [](std::uint64_t worker, std::uint64_t mail, std::uint64_t bulk) {
    Census made = census_of({});
    made.workers.emplace_back();
    made.workers.back().process = 3;
    made.workers.back().dispatched_total = worker;
    made.pools.emplace_back();
    made.pools.back().name = "crew";
    made.pools.back().dispatched_total = {{"mail", mail}, {"bulk", bulk}};
    return made;
  };
  const Sample::Span span = between(census(40, 100, 900), census(60, 130, 910));
  EXPECT_EQ(span.workers.at(3), 2);
  EXPECT_EQ(span.pool_shares.at("crew mail"), 0.75);
  EXPECT_EQ(span.pool_shares.at("crew bulk"), 0.25);
  // Another process has got the place: what it took is not known.
  EXPECT_EQ(between(census(40, 0, 0), census(30, 0, 0)).workers.at(3), std::nullopt);
  // Since the pool was made, when there is no earlier look.
  const Census now = census(0, 100, 900);
  EXPECT_EQ(compare(now, mark_of(now, kBegin), nullptr).pool_shares.at("crew mail"), 0.1);
}

TEST(History, finds_the_youngest_look_that_is_old_enough) {
  History history;
  EXPECT_EQ(history.before(kBegin, seconds(5)), nullptr);
  for (int second = 0; second <= 400; ++second) {
    const Clock::time_point now = kBegin + seconds(second);
    for (const seconds span : kSpans) {
      const Mark* found = history.before(now, span);
      if (second == 0) continue;
      ASSERT_NE(found, nullptr);
      const seconds age = std::chrono::duration_cast<seconds>(now - found->at);
      // As long as it has been looking, then the span; in what is older than half a minute there is
      // a look each ten seconds.
      const seconds wanted = std::min(span, seconds(second));
      EXPECT_GE(age, wanted) << second;
      EXPECT_LE(age, wanted + (span > seconds(30) ? seconds(20) : seconds(1))) << second;
    }
    history.add({now, {}, {}, {}});
  }
}

}  // namespace
}  // namespace ojs_shm::top
