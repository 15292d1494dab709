// SPDX-License-Identifier: Apache-2.0
// The promise of a fetch: inside the call there was an instant at which the job was available and
// no better one was; and when it returns nothing, there was one at which nothing was. And no job is
// ever handed out twice.

#include <optional>
#include <set>
#include <thread>

#include "engine/tables/job_look.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(FetchPromise, FS_001_FS_T01_each_job_goes_to_exactly_one_of_many_workers) {
  QuietSegment s(few_slots(8192));
  constexpr int kJobs = 6000;
  std::set<std::string> put;
  for (int i = 0; i < kJobs; ++i) put.insert(s.put(i % 7));
  std::vector<std::vector<std::string>> got(4);
  std::vector<std::thread> threads;
  for (auto& ids : got)
    threads.emplace_back([&s, &ids] {
      Worker worker = Worker::attach(s.segment, {}).value();
      for (Job job; worker.try_fetch(job);) {
        ids.emplace_back(job.id());
        (void)worker.ack(job);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::string> all;
  for (const auto& ids : got) all.insert(ids.begin(), ids.end());
  EXPECT_TRUE(std::equal(put.begin(), put.end(), all.begin(), all.end()));  // none lost, none twice
}

TEST(FetchPromise, FS_T02_an_assignment_is_one_compare_and_swap_which_the_second_taker_loses) {
  QuietSegment s;
  const std::string id = s.put(1);
  Worker second = Worker::attach(s.segment, {}).value();
  ASSERT_EQ(s.take(), id);
  Job other;
  EXPECT_EQ(second.try_fetch(other).code(), Code::kEmpty);
  const engine::Control held(
      s.store().job(engine::find_job(s.store(), *engine::parse_id(id))).control.load());
  EXPECT_EQ(held.state(), engine::kSlotActive);
  EXPECT_NE(held.owner(), 0U);
}

/// No worker needs another one: of five each subset works all off in order, by turns, while the
/// others never look, hold a job, or are gone.
TEST(FetchPromise, FS_T03_any_subset_of_the_workers_is_enough) {
  for (unsigned subset = 1; subset < 32; ++subset) {
    QuietSegment s;
    std::vector<std::optional<Worker>> workers;
    for (int i = 0; i < 5; ++i) workers.emplace_back(Worker::attach(s.segment, {}).value());
    std::vector<Worker*> active;
    std::vector<Job> held(5);
    for (std::size_t i = 0; i < 5; ++i) {
      if ((subset >> i & 1) != 0) {
        active.push_back(&*workers[i]);
      } else if (i % 3 == 1) {
        s.put(0);
        ASSERT_TRUE(workers[i]->try_fetch(held[i]).ok());
      } else if (i % 3 == 2) {
        workers[i].reset();
      }
    }
    std::vector<std::string> ids, got;
    for (int i = 0; i < 20; ++i) ids.push_back(s.put(2));
    for (std::size_t turn = 0; got.size() < ids.size(); ++turn) {
      ASSERT_TRUE(active[turn % active.size()]->try_fetch(s.job).ok()) << "subset " << subset;
      got.emplace_back(s.job.id());
      ASSERT_TRUE(active[turn % active.size()]->ack(s.job).ok());
    }
    EXPECT_EQ(got, ids) << "subset " << subset;
  }
}

/// Pairs of a low job and, after it, an urgent one. A worker with the low one of pair i must have
/// seen every urgent one before i: each of those was available before the low one came.
TEST(FetchPromise, PRI_004_no_job_is_taken_while_a_better_one_that_came_before_it_waits) {
  QuietSegment s(few_slots(8192));
  constexpr int kPairs = 10'000;
  std::thread producing([&s] {
    Producer producer = Producer::attach(s.segment).value();
    for (int i = 0; i < kPairs; ++i) {
      const std::string args = "[" + std::to_string(i) + "]";
      for (const std::int64_t priority : {5, 1}) {
        JobSpec spec = spec_of(priority);
        spec.args = args;
        while (!producer.enqueue(spec).ok()) std::this_thread::yield();
      }
    }
  });
  int urgent = 0, low = 0;
  for (Job job; urgent + low < 2 * kPairs && s.worker.fetch(job, std::chrono::seconds(30));) {
    const int pair = std::stoi(std::string(job.args().substr(1)));
    if (job.priority() == 1) {
      ASSERT_EQ(pair, urgent++);
    } else {
      ASSERT_EQ(pair, low++);
      ASSERT_GE(urgent, pair);
    }
    ASSERT_TRUE(s.worker.ack(job).ok());
  }
  producing.join();
  EXPECT_EQ(urgent, kPairs);
  EXPECT_EQ(low, kPairs);
}

/// One job is moved between two levels without a pause: it is always available, so no fetch may
/// miss it.
TEST(FetchPromise, a_job_that_is_being_moved_is_never_missed) {
  QuietSegment s;
  const std::string id = s.put(4);
  shm::LocalFlag done, moved_once;
  std::uint64_t strange = 0;
  std::thread moving([&] {
    Producer producer = Producer::attach(s.segment).value();
    for (int i = 0; !done.get(); ++i) {
      const auto moved = producer.reprioritize(id, i % 2 == 0 ? 5 : 3);
      if (moved.ok())
        moved_once.set();
      else if (moved.code() != Code::kWrongState)
        ++strange;
    }
  });
  int missed = 0;
  // until the mover had its turn
  for (int i = 0; i < 20'000 || (!moved_once.get() && i < 100'000'000); ++i) {
    if (s.take() != id)
      ++missed;
    else if (!s.worker.requeue(s.job).ok())
      ++missed;
  }
  done.set();
  moving.join();
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(strange, 0U);
  EXPECT_TRUE(moved_once.get());
}

TEST(FetchPromise, a_fetch_sleeps_until_a_job_comes_and_returns_at_the_end_of_its_time) {
  QuietSegment s;
  EXPECT_EQ(s.worker.fetch(s.job, std::chrono::milliseconds(1)).code(), Code::kTimeout);
  std::string id;
  std::thread producing([&] {
    Producer producer = Producer::attach(s.segment).value();
    id = producer.enqueue(spec_of(1)).value().str();
  });
  ASSERT_TRUE(s.worker.fetch(s.job, std::chrono::seconds(30)).ok());
  producing.join();
  EXPECT_EQ(s.job.id(), id);
  s.worker.interrupt();
  EXPECT_EQ(s.worker.fetch(s.job, std::chrono::seconds(30)).code(), Code::kClosed);
}

}  // namespace
}  // namespace ojs_shm::test
