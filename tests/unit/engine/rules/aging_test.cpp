// SPDX-License-Identifier: Apache-2.0
// Ageing: the formulas, and the order they give over a backlog whose clock is moved by hand.

#include "engine/rules/aging.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

AgingSettings ojs_aging(std::uint32_t interval_ms = kMinute) {
  AgingSettings aging;
  aging.preset = "ojs";
  aging.interval_ms = interval_ms;
  return aging;
}

QueueSettings aged(AgingSettings aging = ojs_aging()) {
  QueueSettings settings;
  settings.aging = std::move(aging);
  return settings;
}

TEST(Aging, SUM_07_the_effective_value_is_the_base_less_the_whole_intervals_and_may_be_negative) {
  const engine::Aging aging(true, false, kMinute, 1, engine::Aging::kNoBest);
  EXPECT_EQ(aging.effective(4, 0, 1), 4);
  EXPECT_EQ(aging.effective(4, kMinute - 1, 1), 4);
  EXPECT_EQ(aging.effective(4, kMinute, 1), 3);
  EXPECT_EQ(aging.effective(4, 5 * kMinute, 1), -1);
  EXPECT_EQ(aging.effective(0, 100 * kMinute, 1), -100);
}

TEST(Aging, PRI_T20_a_floor_is_respected_and_what_is_better_stays) {
  const engine::Aging aging(true, false, kMinute, 1, 2);
  EXPECT_EQ(aging.effective(4, 60 * kMinute, 1), 2);
  EXPECT_EQ(aging.effective(1, 60 * kMinute, 1), 1);
}

TEST(Aging, QO_12_QO_13_QO_14_values_of_qo) {
  const auto effective = [](int priority, std::uint64_t minutes, std::uint8_t rate, int cap) {
    const engine::Aging aging(true, true, kMinute, rate, 255 - cap);
    return 255 -
           aging.effective(static_cast<std::uint8_t>(255 - priority), minutes * kMinute, rate);
  };
  EXPECT_EQ(effective(50, 77, 1, 255), 127);
  EXPECT_EQ(effective(50, 78, 1, 255), 128);
  EXPECT_EQ(effective(50, 1000, 1, 255), 255);
  EXPECT_EQ(effective(50, 1000, 1, 200), 200);
  EXPECT_EQ(effective(230, 1000, 1, 200), 230);
  EXPECT_EQ(effective(50, 10, 5, 200), 100);
}

TEST(Aging, PRI_T18_an_old_low_job_overtakes_a_fresh_better_one_after_the_computed_time) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  const std::string old = s.put(4);
  s.move_clock(2 * kMinute - kSecond);
  const std::string fresh = s.put(2);  // 4 - 1 = 3: not yet
  EXPECT_EQ(s.take(), fresh);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  s.move_clock(kSecond);
  s.put(2);  // 4 - 2 = 2, and it came first
  EXPECT_EQ(s.take(), old);
}

TEST(Aging, SUM_07_a_job_below_zero_beats_a_stored_zero) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  const std::string old = s.put(4);
  s.move_clock(5 * kMinute);
  const std::string urgent = s.put(0);
  EXPECT_EQ(s.drain(), (std::vector{old, urgent}));
}

TEST(Aging, PRI_T19_the_stored_priority_never_changes) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  const std::string id = s.put(4);
  s.move_clock(kHour);
  EXPECT_EQ(s.get(id).priority, 4);
  EXPECT_EQ(s.queue().available_by_priority,
            (std::vector<std::pair<std::int64_t, std::uint64_t>>{{4, 1}}));
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.priority(), 4);
  EXPECT_EQ(s.get(id).priority, 4);
}

TEST(Aging, PRI_T20_the_floor_of_a_queue_holds_in_its_order) {
  QuietSegment s;
  AgingSettings aging = ojs_aging();
  aging.limit = 1;
  ASSERT_TRUE(s.admin.set_queue("default", aged(aging)).ok());
  const std::string old = s.put(4);
  s.move_clock(kHour);
  const std::string urgent = s.put(0), high = s.put(1);
  EXPECT_EQ(s.drain(), (std::vector{urgent, old, high}));
}

TEST(Aging, SUM_03_without_it_the_order_is_the_strict_one) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  QueueSettings off = aged();
  off.aging->enabled = false;
  ASSERT_TRUE(s.admin.set_queue("default", off).ok());
  const std::string low = s.put(4);
  s.move_clock(24 * kHour);
  const std::string high = s.put(3);
  EXPECT_EQ(s.drain(), (std::vector{high, low}));
}

TEST(Aging, PRI_T18_switched_on_it_takes_in_the_whole_backlog) {
  QuietSegment s;
  const std::string low = s.put(200);
  s.move_clock(201 * kMinute);
  const std::string high = s.put(0);
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  EXPECT_EQ(s.drain(), (std::vector{low, high}));
}

TEST(Aging, QO_14_each_job_may_bring_a_rate_of_its_own) {
  QuietSegment s(few_slots(512, "qo"));
  AgingSettings aging;
  aging.preset = "qo";
  ASSERT_TRUE(s.admin.set_queue("default", aged(aging)).ok());
  const std::string slow = s.put(50);
  JobSpec spec = spec_of(40);
  spec.priority_age_rate = 5;
  const std::string quick = s.put(spec);
  spec.priority_age_rate = 0;
  const std::string never = s.put(spec);
  EXPECT_EQ(s.get(quick).priority_age_rate, 5U);
  EXPECT_EQ(s.get(never).priority_age_rate, 0U);
  EXPECT_FALSE(s.get(slow).priority_age_rate.has_value());
  s.move_clock(3 * kMinute);  // 53, 55, 40
  const std::string fresh = s.put(54);
  EXPECT_EQ(s.drain(), (std::vector{quick, fresh, slow, never}));
}

TEST(Aging, QO_13_the_cap_is_200_unless_set) {
  QuietSegment s(few_slots(512, "qo"));
  AgingSettings aging;
  ASSERT_TRUE(s.admin.set_queue("default", aged(aging)).ok());  // qo's preset in qo's convention
  EXPECT_EQ(s.queue().aging.limit, 200);
  const std::string old = s.put(10);
  s.move_clock(1000 * kMinute);
  const std::string urgent = s.put(201), equal = s.put(200);
  EXPECT_EQ(s.drain(), (std::vector{urgent, old, equal}));
}

TEST(Aging, QO_14_a_ninth_rate_in_a_queue_is_refused_and_nothing_is_stored) {
  QuietSegment s;
  JobSpec spec = spec_of(4);
  for (std::uint32_t rate = 1; rate <= 8; ++rate) {
    spec.priority_age_rate = rate;
    s.put(spec);
  }
  spec.priority_age_rate = 9;
  const auto refused = s.producer.enqueue(spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_EQ(refused.error().subject, "priority_age_rate");
  EXPECT_EQ(s.queue().depth, 8U);
  spec.priority_age_rate = 3;
  s.put(spec);
  EXPECT_EQ(s.drain().size(), 9U);
}

TEST(Aging,
     PRI_T18_age_counts_from_becoming_available_again_after_a_retry_but_not_after_a_new_priority) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  JobSpec spec = spec_of(3);
  spec.retry.initial_ms = 1;
  spec.retry.jitter = false;
  const std::string retried = s.put(spec);
  ASSERT_EQ(s.take(), retried);
  s.move_clock(kHour);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(kSecond);  // available again, with an age of nothing
  const std::string fresh = s.put(2);
  EXPECT_EQ(s.drain(), (std::vector{fresh, retried}));

  const std::string moved = s.put(4);
  s.move_clock(3 * kMinute);
  ASSERT_TRUE(s.producer.reprioritize(moved, 3).ok());
  const std::string later = s.put(1);
  EXPECT_EQ(s.drain(), (std::vector{moved, later}));  // 3 - 3 = 0
}

TEST(Aging, PRI_T18_equal_values_go_to_the_one_that_waits_longer) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  const std::string first = s.put(5);
  s.move_clock(kMinute);
  const std::string second = s.put(4);
  s.move_clock(kMinute);
  const std::string third = s.put(3);
  EXPECT_EQ(s.drain(), (std::vector{first, second, third}));
}

/// A job of rank r is not passed by any job that becomes available r + 1 intervals after it. Here
/// the best level is fed without end, and each fetch finds a fresh job there.
TEST(Aging, PRI_T18_the_lowest_level_waits_no_longer_than_the_bound_says) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  const std::string low = s.put(255);
  int minutes = 0;
  for (std::string got; got != low && minutes < 1000; ++minutes) {
    s.put(0);
    got = s.take();
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    s.move_clock(kMinute);
  }
  // fetched when it has waited 255 intervals: then it is equal to 0, and older
  EXPECT_EQ(minutes, 256);
}

TEST(Aging, PRI_T18_jobs_of_eight_rates_leave_in_the_order_of_their_effective_values) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", aged()).ok());
  struct Expected {
    std::int64_t value;
    int number;
    std::string id;
  };
  std::vector<Expected> expected;
  for (int i = 0; i < 40; ++i) {
    JobSpec spec = spec_of(i * 37 % 60);
    spec.priority_age_rate = static_cast<std::uint32_t>(i % 8);
    expected.push_back({*spec.priority - (40 - i) * (i % 8), i, s.put(spec)});
    s.move_clock(kMinute);
  }
  std::sort(expected.begin(), expected.end(), [](const Expected& a, const Expected& b) {
    return std::tuple(a.value, a.number) < std::tuple(b.value, b.number);
  });
  std::vector<std::string> ids;
  for (const Expected& each : expected) ids.push_back(each.id);
  EXPECT_EQ(s.drain(), ids);
}

TEST(Aging, QO_13_a_segment_s_default_reaches_queues_that_have_none_of_their_own) {
  QuietSegment s;
  s.put(4, "before");
  ASSERT_TRUE(s.admin.set_queue("own", aged(ojs_aging(kHour))).ok());
  ASSERT_TRUE(s.admin.set_default_aging(ojs_aging()).ok());
  s.put(4, "after");
  for (const std::string_view name : {"before", "after"}) {
    EXPECT_TRUE(s.queue(name).aging.enabled) << name;
    EXPECT_TRUE(s.queue(name).aging_is_default) << name;
    EXPECT_EQ(s.queue(name).aging.interval_ms, kMinute) << name;
  }
  EXPECT_EQ(s.queue("own").aging.interval_ms, kHour);
  AgingSettings off;
  off.enabled = false;
  ASSERT_TRUE(s.admin.set_default_aging(off).ok());
  EXPECT_FALSE(s.queue("before").aging.enabled);
  EXPECT_TRUE(s.queue("own").aging.enabled);
}

TEST(Aging, PRI_T20_settings_that_make_no_sense_are_refused) {
  QuietSegment s;
  for (const auto& [json, subject] : std::vector<std::pair<std::string, std::string>>{
           {R"({"aging":{"interval":0}})", "aging.interval"},
           {R"({"aging":{"rate":256}})", "aging.rate"},
           {R"({"aging":{"preset":"fast"}})", "aging.preset"},
           {R"({"aging":{"cap":1,"floor":1}})", "aging.cap"},
           {R"({"aging":{"speed":1}})", "aging.speed"},
           {R"({"aging":true})", "aging"}}) {
    const auto settings = parse_queue_settings(json);
    const Status set =
        settings ? s.admin.set_queue("default", settings.value()) : Status(settings.error());
    ASSERT_FALSE(set.ok()) << json;
    EXPECT_EQ(set.code(), Code::kInvalid) << json;
    EXPECT_EQ(set.error().subject, subject) << json << ": " << set.error().message;
  }
  EXPECT_FALSE(s.observer.queue("default").ok() && s.queue().aging.enabled);
}

}  // namespace
}  // namespace ojs_shm::test
