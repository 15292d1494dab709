// SPDX-License-Identifier: Apache-2.0
// Permits by themselves: who may hold one, how a limit moves, and what a death leaves.

#include "engine/limits/permits.hpp"
#include "engine/tables/job_look.hpp"

#include <atomic>
#include <thread>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::Permit;
using engine::Permits;
using engine::PermitSet;

class PermitsTest : public testing::Test {
 protected:
  QuietSegment s;
  Permits permits{s.store()};
  PermitSet set{};
  std::vector<Job> jobs;

  /// A permit for a job that is active now.
  Permit work() {
    s.put();
    Job job;
    EXPECT_TRUE(s.worker.try_fetch(job));
    jobs.push_back(std::move(job));
    const std::uint32_t slot = engine::find_job(s.store(), *engine::parse_id(jobs.back().id()));
    return {slot, s.store().job(slot).generation.get()};
  }
  void limit(std::uint32_t limit) { ASSERT_TRUE(permits.set_limit(set, 7, limit)); }
};

TEST_F(PermitsTest, PRI_T22_no_more_than_the_limit_and_one_more_for_each_that_ends) {
  limit(2);
  const Permit a = work(), b = work(), c = work();
  EXPECT_TRUE(permits.take(set, a));
  EXPECT_TRUE(permits.has_room(set));
  EXPECT_TRUE(permits.take(set, b));
  EXPECT_FALSE(permits.has_room(set));
  EXPECT_FALSE(permits.take(set, c));
  EXPECT_EQ(permits.count(set), 2U);
  permits.give(set, a);
  EXPECT_TRUE(permits.has_room(set));
  EXPECT_TRUE(permits.take(set, c));
  EXPECT_FALSE(permits.take(set, a));
}

TEST_F(PermitsTest, without_a_limit_nothing_is_taken_and_nothing_refused) {
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(permits.take(set, work()));
  EXPECT_EQ(permits.count(set), 0U);
  limit(0);
  EXPECT_FALSE(permits.take(set, work()));
  EXPECT_FALSE(permits.has_room(set));
  limit(PermitSet::kNone);
  EXPECT_TRUE(permits.take(set, work()));
}

TEST_F(PermitsTest, a_permit_whose_job_is_no_longer_held_is_nobodys) {
  limit(1);
  const Permit gone = work();
  ASSERT_TRUE(permits.take(set, gone));
  const Permit next = work();
  EXPECT_FALSE(permits.take(set, next));
  ASSERT_TRUE(s.worker.ack(jobs.front()).ok());
  EXPECT_TRUE(permits.has_room(set));
  EXPECT_TRUE(permits.take(set, next));
  permits.give(set, gone);  // what it held is another's now
  EXPECT_EQ(permits.count(set), 1U);
}

TEST_F(PermitsTest, a_job_that_comes_back_takes_over_what_its_earlier_hold_left) {
  limit(1);
  const Permit job = work();
  ASSERT_TRUE(permits.take(set, job));
  EXPECT_TRUE(permits.take(set, job));
  EXPECT_EQ(permits.count(set), 1U);
  permits.give(set, job);
  EXPECT_EQ(permits.count(set), 0U);
}

TEST_F(PermitsTest, what_an_earlier_hold_left_above_a_lower_limit_is_not_in_its_way) {
  limit(2);
  const Permit other = work(), job = work();
  ASSERT_TRUE(permits.take(set, other));
  ASSERT_TRUE(permits.take(set, job));
  ASSERT_TRUE(s.worker.ack(jobs.front()).ok());
  for (const std::uint32_t place : {0U, 1U})  // of a death that no repair has swept yet
    permits.at(set, place).store(place == 0 ? 0 : Permit(0).taken_by(job).word, shm::Point::kNone);
  limit(1);
  EXPECT_TRUE(permits.take(set, job));
  permits.give(set, job);
  EXPECT_EQ(permits.count(set), 0U);
  EXPECT_TRUE(permits.take(set, work()));
}

TEST_F(PermitsTest, a_limit_below_what_is_at_work_lets_nothing_new_begin_until_that_has_fallen) {
  limit(5);
  std::vector<Permit> at_work;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(permits.take(set, at_work.emplace_back(work())));
  limit(2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(permits.take(set, work())) << i;
    permits.give(set, at_work[static_cast<std::size_t>(i)]);
  }
  EXPECT_FALSE(permits.take(set, work()));
  permits.give(set, at_work[3]);
  EXPECT_TRUE(permits.take(set, work()));
  EXPECT_FALSE(permits.take(set, work()));
  limit(3);
  EXPECT_TRUE(permits.take(set, work()));
  EXPECT_EQ(permits.count(set), 3U);
}

TEST_F(PermitsTest, a_limit_grows_run_by_run_and_no_permit_moves) {
  limit(1);
  const Permit first = work();
  ASSERT_TRUE(permits.take(set, first));
  for (const std::uint32_t size : {16U, 17U, 40U, 100U}) {
    limit(size);
    while (permits.count(set) < size) ASSERT_TRUE(permits.take(set, work())) << size;
    EXPECT_FALSE(permits.take(set, work())) << size;
  }
  permits.give(set, first);
  EXPECT_EQ(permits.count(set), 99U);
}

TEST_F(PermitsTest, a_limit_for_which_there_are_no_pages_is_refused_and_changes_nothing) {
  limit(3);
  EXPECT_FALSE(permits.set_limit(set, 7, engine::kMostPermits + 1));
  EXPECT_FALSE(permits.set_limit(set, 7, 4096));
  EXPECT_EQ(PermitSet::limit_of(set.limit.load()), 3U);
}

TEST_F(PermitsTest, pages_given_back_serve_the_next_and_a_run_half_made_is_found_again) {
  limit(30);
  PermitSet other{};
  ASSERT_TRUE(permits.set_limit(other, 8, 16));
  EXPECT_EQ(other.run[0].load(), 3U);  // behind both runs of the first
  permits.drop(set, 7);
  PermitSet third{};
  ASSERT_TRUE(permits.set_limit(third, 9, 16));
  EXPECT_EQ(third.run[0].load(), 1U);
  third.run[0].store(0, shm::Point::kNone);  // its maker died before it named the run
  ASSERT_TRUE(permits.set_limit(third, 9, 16));
  EXPECT_EQ(third.run[0].load(), 1U);
}

TEST_F(PermitsTest, a_log_leaves_nothing_in_the_pages_that_it_gives_back) {
  limit(3);
  permits.at(set, 15).store(~0ULL, shm::Point::kNone);  // as a log does, which uses all of a page
  permits.drop(set, 7);
  PermitSet other{};
  ASSERT_TRUE(permits.set_limit(other, 8, 16));
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_TRUE(Permit(permits.at(other, i).load()).free());
}

TEST_F(PermitsTest, who_begins_under_a_limit_that_is_gone_by_then_begins_again) {
  limit(5);
  const Permit a = work(), b = work();
  ASSERT_TRUE(permits.take(set, a));
  bool lowered = false;
  const AtAccess lower([&](shm::Access access, shm::Point point, const void*) {
    if (access != shm::Access::kWritten || point != shm::Point::kPermitTaken || lowered) return;
    lowered = true;
    ASSERT_TRUE(permits.set_limit(set, 7, 1));
  });
  EXPECT_FALSE(permits.take(set, b));
  EXPECT_TRUE(lowered);
  EXPECT_EQ(permits.count(set), 1U);
}

TEST_F(PermitsTest, a_job_that_worked_before_there_was_a_limit_is_counted) {
  const Permit a = work(), b = work();
  ASSERT_TRUE(permits.take(set, a));
  limit(1);
  ASSERT_TRUE(permits.adopt(set, 7, a));
  ASSERT_TRUE(permits.adopt(set, 7, b));
  EXPECT_EQ(permits.count(set), 2U);
  EXPECT_FALSE(permits.take(set, work()));
  permits.give(set, a);
  EXPECT_FALSE(permits.take(set, work()));
  permits.give(set, b);
  EXPECT_TRUE(permits.take(set, work()));
}

TEST_F(PermitsTest, a_sweep_frees_what_the_dead_held_and_nothing_else) {
  limit(4);
  const Permit a = work(), b = work();
  ASSERT_TRUE(permits.take(set, a));
  ASSERT_TRUE(permits.take(set, b));
  ASSERT_TRUE(s.worker.ack(jobs.front()).ok());
  EXPECT_EQ(permits.sweep(set), 1U);
  EXPECT_EQ(permits.sweep(set), 0U);
  EXPECT_EQ(permits.count(set), 1U);
}

// Each thread takes and gives for a job of its own, and counts who is inside; another moves the
// limit up and down. The count is compared with the highest limit that was in force, so nothing
// depends on time.
TEST_F(PermitsTest, no_schedule_of_threads_lets_in_more_than_the_limit) {
  limit(3);
  std::vector<Permit> holders;
  for (int i = 0; i < 6; ++i) holders.push_back(work());
  std::atomic<int> inside{0}, most{0}, entered{0};
  std::vector<std::thread> threads;
  for (const Permit holder : holders)
    threads.emplace_back([&, holder] {
      for (int i = 0; i < 20'000; ++i) {
        if (!permits.take(set, holder)) continue;
        const int now = ++inside;
        for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {}
        ++entered;
        --inside;
        permits.give(set, holder);
      }
    });
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(permits.set_limit(set, 7, i % 3 + 1));
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 3);
  EXPECT_GT(entered.load(), 0);
  EXPECT_EQ(permits.count(set), 0U);
}

}  // namespace
}  // namespace ojs_shm::test
