// SPDX-License-Identifier: Apache-2.0
// How long a queue keeps its jobs after their end. The clock stands, and each test ends with an
// audit.
#include <gtest/gtest.h>

#include <functional>

#include "engine/supervision/retention.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kDay = 24 * kHour;

class QueueRetentions : public testing::Test {
 protected:
  QueueRetentions() { s.stop_clock(); }

  void keep(const QueueRetention& retention, std::string_view queue = "default") {
    ASSERT_TRUE(s.admin.set_queue(queue, {.retention = retention}).ok());
    s.tick();
  }
  std::string completed(const JobSpec& spec = spec_of()) {
    const std::string id = s.put(spec);
    EXPECT_EQ(s.take(), id);
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    return id;
  }
  std::string discarded(bool dead = false) {
    JobSpec spec = spec_of();
    spec.retry.max_attempts = 1;
    spec.retry.dead_letter = dead;
    const std::string id = s.put(spec);
    EXPECT_EQ(s.take(), id);
    EXPECT_TRUE(s.worker.nack(s.job, failure()).ok());
    return id;
  }
  std::string cancelled() {
    const std::string id = s.put();
    EXPECT_TRUE(s.producer.cancel(id).ok());
    return id;
  }
  bool there(const std::string& id) { return s.observer.get(id).ok(); }
  /// Another lane sets the time of completed jobs: `before` comes before that store, `behind`
  /// behind it, where it may die.
  void set_elsewhere(std::uint64_t completed_ms, const std::function<void()>& before,
                     const std::function<void()>& behind) {
    engine::Actor& other = doomed_handle(s.segment)->actor();
    const std::uint32_t queue = s.store().find_queue("default");
    const void* const time = s.store().queue(queue).kept_completed.address();
    try {
      const AtAccess between([&](shm::Access access, shm::Point, const void* word) {
        if (word == time && access == shm::Access::kStore) before();
        if (word == time && access == shm::Access::kWritten) behind();
      });
      engine::set_retention(other, queue, {.completed_ms = completed_ms});
    } catch (const Died&) {}
  }
  struct Died {};
  static void die() { throw Died{}; }
  static void nothing() {}

  QuietSegment s{few_slots(2048)};
};

TEST_F(QueueRetentions, each_way_to_end_has_its_own_time) {
  keep({.completed_ms = kHour, .discarded_ms = 2 * kHour, .cancelled_ms = 3 * kHour});
  const std::string done = completed(), lost = discarded(), off = cancelled(), waits = s.put();
  s.pass(kHour - 1);
  EXPECT_TRUE(there(done));
  s.pass(kHour / 16 + 1);
  EXPECT_FALSE(there(done));
  EXPECT_TRUE(there(lost));
  s.pass(kHour);
  EXPECT_FALSE(there(lost));
  EXPECT_TRUE(there(off));
  s.pass(kHour);
  EXPECT_FALSE(there(off));
  EXPECT_EQ(s.state_of(waits), State::kAvailable);
}

TEST_F(QueueRetentions, a_job_goes_when_its_time_is_over_not_a_period_later) {
  keep({.completed_ms = kHour});
  s.pass(kHour / 2);
  const std::string id = completed();
  s.pass(kHour - 1);
  EXPECT_TRUE(there(id));
  s.pass(1 + kMinute);
  EXPECT_FALSE(there(id));
}

TEST_F(QueueRetentions, are_of_their_queue_alone) {
  keep({.completed_ms = kHour}, "other");
  const std::string id = completed();
  s.pass(kDay);
  EXPECT_TRUE(there(id));
}

TEST_F(QueueRetentions, dead_letters_have_their_own) {
  keep({.discarded_ms = kHour});
  const std::string dead = discarded(true), plain = discarded();
  s.pass(kDay);
  EXPECT_TRUE(there(dead));
  EXPECT_FALSE(there(plain));
}

TEST_F(QueueRetentions, hold_at_once_and_are_taken_back) {
  const std::string old = completed();
  s.pass(kDay);
  EXPECT_TRUE(there(old));
  keep({.completed_ms = kHour});
  EXPECT_FALSE(there(old));
  EXPECT_EQ(s.queue().retention.completed_ms, kHour);
  EXPECT_FALSE(s.queue().retention.cancelled_ms);
  keep({.completed_ms = 0});
  EXPECT_FALSE(s.queue().retention.completed_ms);
  const std::string young = completed();
  s.pass(kDay);
  EXPECT_TRUE(there(young));
}

TEST_F(QueueRetentions, what_is_not_given_stays) {
  keep({.completed_ms = kHour, .cancelled_ms = kDay});
  keep({.completed_ms = 2 * kHour});
  EXPECT_EQ(s.queue().retention.completed_ms, 2 * kHour);
  EXPECT_EQ(s.queue().retention.cancelled_ms, kDay);
}

TEST_F(QueueRetentions, a_key_that_is_taken_for_a_while_is_kept_so_long) {
  keep({.completed_ms = kHour});
  UniquePolicy policy = policy_with(OnConflict::kReject);
  policy.states = 0b1'1111;  // also completed ones
  policy.period_ms = kDay;
  const UniqueSpec job(spec_of(), policy);
  const std::string id = completed(job.spec);
  s.pass(kDay - kHour);
  EXPECT_TRUE(there(id)) << "it is in the way of others of its key";
  EXPECT_EQ(s.producer.enqueue(job.spec).code(), Code::kDuplicate);
  s.pass(2 * kHour);
  EXPECT_FALSE(there(id));
}

TEST_F(QueueRetentions, many_go_and_their_slots_come_again) {
  keep({.completed_ms = kHour});
  for (int i = 0; i < 1500; ++i) completed();
  s.pass(2 * kHour);
  EXPECT_EQ(s.queue().by_state[static_cast<std::size_t>(State::kCompleted)], 0U);
  EXPECT_EQ(s.queue().completed_total, 1500U);
  for (int i = 0; i < 2000; ++i) s.put();
  EXPECT_EQ(s.queue().depth, 2000U);
}

TEST_F(QueueRetentions, are_read_as_they_are_printed) {
  const auto read = parse_queue_settings(
      R"({"retention":{"completed":"P7D","discarded":86400,"cancelled":null}})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->retention.completed_ms, 7 * kDay);
  EXPECT_EQ(read->retention.discarded_ms, kDay);
  EXPECT_EQ(read->retention.cancelled_ms, 0U);
  keep(read->retention);
  EXPECT_NE(
      print_queue_policy(s.queue()).find(R"("retention":{"completed":"P7D","discarded":"P1D"})"),
      std::string::npos)
      << print_queue_policy(s.queue());
  const auto again = parse_queue_settings(print_queue_policy(s.queue()));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->retention.completed_ms, 7 * kDay);
}

TEST_F(QueueRetentions, wrong_ones_are_refused_by_name) {
  for (const char* wrong :
       {R"({"retention":{"complete":"P7D"}})", R"({"retention":{"completed":"soon"}})",
        R"({"retention":{"completed":-1}})", R"({"retention":{"completed":true}})",
        R"({"retention":"P7D"})"}) {
    const auto read = parse_queue_settings(wrong);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_EQ(read.error().subject.substr(0, 9), "retention") << wrong;
  }
  const Status refused =
      s.admin.set_queue("default", {.retention = {.discarded_ms = 3'153'600'000'001}});
  EXPECT_EQ(refused.error().subject, "retention.discarded");
}

TEST_F(QueueRetentions, the_first_one_holds_although_a_death_cuts_it_off) {
  const std::string id = completed();
  s.tick();
  set_elsewhere(kHour, nothing, die);
  s.pass(kHour);
  EXPECT_FALSE(there(id));
}

TEST_F(QueueRetentions, cut_off_behind_a_look_of_the_supervisor_hold_a_minute_later) {
  const std::string id = completed();
  s.pass(kHour);
  set_elsewhere(
      kHour, [this] { s.tick(); }, die);
  s.pass(kMinute);
  EXPECT_FALSE(there(id));
}

TEST_F(QueueRetentions, whole_behind_a_look_of_the_supervisor_hold_at_once) {
  const std::string id = completed();
  s.pass(kHour);
  set_elsewhere(
      kHour, [this] { s.tick(); }, nothing);
  s.tick();
  EXPECT_FALSE(there(id));
}

TEST_F(QueueRetentions, end_with_their_queue) {
  keep({.completed_ms = kHour});
  ASSERT_TRUE(s.admin.delete_queue("default").ok());
  const std::string id = completed();
  s.pass(kDay);
  EXPECT_TRUE(there(id));
}

}  // namespace
}  // namespace ojs_shm::test
