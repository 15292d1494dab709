// SPDX-License-Identifier: Apache-2.0
// What a priority is, through the public API: accepted, defaulted, refused, kept, and what it
// orders.

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "engine/tables/job_look.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

TEST(Priority, PRI_001_SUM_01_each_integer_from_0_to_255_is_kept_as_given) {
  QuietSegment s;
  for (std::int64_t priority = 0; priority <= 255; ++priority) {
    const std::string id = s.put(priority);
    EXPECT_EQ(s.get(id).priority, priority);
  }
  for (std::int64_t priority = 0; priority <= 255; ++priority) {
    ASSERT_NE(s.take(), "");
    EXPECT_EQ(s.job.priority(), priority);
    ASSERT_TRUE(s.worker.ack(s.job).ok());
  }
}

TEST(Priority, PRI_001_only_whole_numbers_are_priorities_in_an_envelope) {
  for (const char* wrong : {"1.5", "\"1\"", "true", "\"null\"", "[1]", "{}", "1e400"})
    EXPECT_FALSE(
        parse_envelope(R"({"type":"a","args":[],"priority":)" + std::string(wrong) + "}", 0).ok())
        << wrong;
  for (const char* right : {"0", "1", "255"})
    EXPECT_TRUE(
        parse_envelope(R"({"type":"a","args":[],"priority":)" + std::string(right) + "}", 0).ok())
        << right;
}

TEST(Priority, PRI_002_PRI_T08_SUM_01_a_job_without_priority_has_2) {
  QuietSegment s;
  const std::string id = s.put();
  EXPECT_EQ(s.get(id).priority, 2);
  EXPECT_EQ(s.observer.list({}).at(0).priority, 2);
  const JobSpec plain[] = {spec_of(), spec_of(0), spec_of()};
  const auto batch = s.producer.enqueue_batch(plain);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(s.get(batch->at(0).view()).priority, 2);
  EXPECT_EQ(s.get(batch->at(1).view()).priority, 0);
  ASSERT_EQ(s.take(), batch->at(1).str());
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.priority(), 2);
}

TEST(Priority, PRI_003_PRI_T09_jobs_leave_by_priority_and_then_in_the_order_they_came) {
  Seeded random;
  QuietSegment s(few_slots(2048));
  std::vector<std::pair<std::int64_t, std::string>> expected;
  const std::int64_t highest = random.coin() ? 255 : 4;
  for (int i = 0; i < 2000; ++i) {  // many of them within one millisecond
    const std::int64_t priority = random.between(0, highest);
    expected.emplace_back(priority, s.put(priority));
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const Ids got = s.drain();
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], expected[i].second) << "at place " << i;
}

/// The same against a model while jobs keep coming, are worked off, given back, cancelled and
/// re-prioritised.
TEST(Priority, PRI_003_a_random_history_leaves_in_the_order_of_a_sorted_list) {
  Seeded random;
  QuietSegment s(few_slots(1024));
  struct Waiting {
    std::int64_t priority;
    std::uint64_t order;
    std::string id;
    bool operator<(const Waiting& other) const {
      return std::pair(priority, order) < std::pair(other.priority, other.order);
    }
  };
  std::vector<Waiting> model;
  std::uint64_t order = 0;
  for (int step = 0; step < 6000; ++step) {
    const std::int64_t dice = random.between(0, 9);
    const std::int64_t priority =
        random.between(0, 9) == 0 ? random.between(0, 255) : random.between(0, 4);
    if (dice < 4 && model.size() < 400) {
      const std::string id = s.put(priority);
      model.push_back({priority, ++order, id});
    } else if (dice < 8) {
      const auto best = std::min_element(model.begin(), model.end());
      const std::string id = s.take();
      ASSERT_EQ(id, best == model.end() ? "" : best->id) << "at step " << step;
      if (best == model.end()) continue;
      ASSERT_TRUE(s.worker.ack(s.job).ok());
      model.erase(best);
    } else if (!model.empty()) {
      auto& one = model[static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(model.size()) - 1))];
      if (dice == 8) {
        ASSERT_TRUE(s.producer.cancel(one.id).ok());
        model.erase(model.begin() + (&one - model.data()));
      } else {
        const auto previous = s.producer.reprioritize(one.id, priority);
        ASSERT_TRUE(previous.ok());
        ASSERT_EQ(previous.value(), one.priority);
        // joins the end of its new level
        if (one.priority != priority) one.priority = priority, one.order = ++order;
      }
    }
  }
  std::sort(model.begin(), model.end());
  const Ids got = s.drain();
  ASSERT_EQ(got.size(), model.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], model[i].id);
}

TEST(Priority, PRI_004_PRI_T10_a_fetch_returns_the_best_eligible_job) {
  QuietSegment s;
  JobSpec expiring = spec_of(0);
  expiring.expires_at_ms = s.now_ms() + kHour;
  const std::string expired = s.put(expiring);
  const std::string cancelled = s.put(0);
  JobSpec later = spec_of(0);
  later.scheduled_at_ms = s.now_ms() + 10 * kHour;
  const std::string scheduled = s.put(later);
  JobSpec parked = spec_of(0);
  parked.pending = true;
  const std::string pending = s.put(parked);
  s.put(0, "other");
  const std::string low = s.put(7), best = s.put(3);
  ASSERT_TRUE(s.producer.cancel(cancelled).ok());
  s.move_clock(2 * kHour);
  EXPECT_EQ(s.take(), best);
  EXPECT_EQ(s.take(), low);
  EXPECT_EQ(s.take(), "");
  EXPECT_EQ(s.state_of(expired), State::kDiscarded);
}

TEST(Priority, PRI_004_a_batch_of_n_is_the_n_best_in_order) {
  QuietSegment s;
  const std::string e = s.put(9), c = s.put(2), a = s.put(0), d = s.put(2), b = s.put(1);
  const auto got = s.worker.fetch_batch(4);
  ASSERT_TRUE(got.ok());
  Ids ids;
  for (const Job& job : got.value()) ids.emplace_back(job.id());
  EXPECT_EQ(ids, (Ids{a, b, c, d}));
  EXPECT_EQ(s.take(), e);
}

TEST(Priority, PRI_005_PRI_T12_PRI_T13_a_negative_priority_is_refused_and_nothing_is_stored) {
  QuietSegment s;
  s.put(1);
  const QueueInfo before = s.queue();
  for (const std::int64_t priority : {std::int64_t{-1}, std::int64_t{-2147483648LL}, INT64_MIN}) {
    const auto put = s.producer.enqueue(spec_of(priority));
    ASSERT_EQ(put.code(), Code::kInvalid) << priority;
    EXPECT_EQ(put.error().subject, "priority");
    const JobSpec batch[] = {spec_of(1), spec_of(priority)};
    EXPECT_EQ(s.producer.enqueue_batch(batch).code(), Code::kInvalid);
  }
  const QueueInfo after = s.queue();
  EXPECT_EQ(after.depth, before.depth);
  EXPECT_EQ(after.enqueued_total, before.enqueued_total);
  EXPECT_EQ(s.observer.list({}).size(), 1U);
}

TEST(Priority, PRI_006_PRI_T07_SUM_02_255_is_accepted_and_comes_after_254) {
  QuietSegment s;
  const std::string last = s.put(255), before = s.put(254);
  EXPECT_EQ(s.drain(), (Ids{before, last}));
  EXPECT_EQ(s.observer.segment_info().priority_max, 255);
}

TEST(Priority, PRI_T01_the_lower_number_goes_first) {
  QuietSegment s;
  const std::string two = s.put(2), one = s.put(1), zero = s.put(0);
  EXPECT_EQ(s.drain(), (Ids{zero, one, two}));
}

TEST(Priority, PRI_T02_an_urgent_job_leaves_an_active_one_alone) {
  QuietSegment s;
  const std::string low = s.put(9);
  Job held;
  ASSERT_TRUE(s.worker.try_fetch(held).ok());
  const JobInfo before = s.get(low);
  const std::uint64_t deadline = held.deadline_ms();
  const std::string urgent = s.put(0);
  EXPECT_FALSE(held.cancel_requested());
  const JobInfo after = s.get(low);
  EXPECT_EQ(after.state, State::kActive);
  EXPECT_EQ(after.fence, before.fence);
  EXPECT_EQ(after.started_at_ms, before.started_at_ms);
  EXPECT_EQ(after.priority, 9);
  EXPECT_EQ(engine::Deadline(
                s.store().job(engine::find_job(s.store(), *engine::parse_id(low))).deadline.load())
                .ms(),
            deadline);
  EXPECT_EQ(s.take(), urgent);
  ASSERT_TRUE(s.worker.ack(held, "\"done\"").ok());
  EXPECT_EQ(s.get(low).result, "\"done\"");
}

TEST(Priority, PRI_T03_equal_priorities_leave_in_the_order_they_came_from_any_producer) {
  QuietSegment s(few_slots(1024));
  Producer other = Producer::attach(s.segment).value();
  Ids expected;
  for (int i = 0; i < 500; ++i) {
    const auto id = (i % 3 == 0 ? other : s.producer).enqueue(spec_of(2));
    expected.push_back(id.value().str());
  }
  EXPECT_EQ(s.drain(), expected);
}

TEST(Priority, PRI_T03_a_requeued_job_keeps_its_place_and_an_expired_lease_loses_it) {
  QuietSegment s;
  JobSpec leased = spec_of(2);
  leased.lease_ms = 1000;
  const std::string a = s.put(leased), b = s.put(2);
  ASSERT_EQ(s.take(), a);
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  ASSERT_EQ(s.take(), a);
  s.pass(kMinute);
  EXPECT_EQ(s.drain(), (Ids{b, a}));
}

TEST(Priority, PRI_T04_every_worker_sees_the_same_order) {
  QuietSegment s;
  Worker second = Worker::attach(s.segment, {}).value(),
         third = Worker::attach(s.segment, {}).value();
  Worker* workers[] = {&s.worker, &second, &third};
  Ids put(60);
  for (int i = 59; i >= 0; --i) put[static_cast<std::size_t>(i)] = s.put(i);
  for (std::size_t i = 0; i < 60; ++i) {
    Job job;
    ASSERT_TRUE(workers[i % 3]->try_fetch(job).ok());
    EXPECT_EQ(job.id(), put[i]);
    ASSERT_TRUE(workers[i % 3]->ack(job).ok());
  }
}

/// Four threads fetch from one queue. A fetch that ended before another began has the better job;
/// what began and ended is told by one counter.
TEST(Priority, PRI_T04_concurrent_workers_in_threads_observe_one_order) {
  QuietSegment s(few_slots(8192));
  Seeded random;
  constexpr std::size_t kJobs = 6000, kWorkers = 4;
  std::vector<std::pair<std::int64_t, std::string>> put;
  for (std::size_t i = 0; i < kJobs; ++i) {
    const std::int64_t priority = random.between(0, 19);
    put.emplace_back(priority, s.put(priority));
  }
  std::stable_sort(put.begin(), put.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < kJobs; ++i) place[put[i].second] = i;

  struct Fetched {
    std::uint64_t began, ended;
    std::string id;
  };
  std::atomic<std::uint64_t> moment{0};
  std::vector<std::vector<Fetched>> seen(kWorkers);
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&s, &moment, &mine] {
      Worker worker = Worker::attach(s.segment, {}).value();
      for (Job job;;) {
        const std::uint64_t began = moment.fetch_add(1);
        if (!worker.try_fetch(job)) return;
        mine.push_back({began, moment.fetch_add(1), std::string(job.id())});
        (void)worker.ack(job);
      }
    });
  for (std::thread& thread : threads) thread.join();

  std::vector<Fetched> all;
  for (const auto& mine : seen) all.insert(all.end(), mine.begin(), mine.end());
  ASSERT_EQ(all.size(), kJobs);
  std::map<std::uint64_t, std::size_t> ends;  // of each end, the worst place until then
  std::sort(all.begin(), all.end(),
            [](const Fetched& a, const Fetched& b) { return a.ended < b.ended; });
  std::size_t worst = 0;
  for (const Fetched& each : all) {
    worst = std::max(worst, place.at(each.id));
    ends[each.ended] = worst;
  }
  for (const Fetched& each : all) {
    const auto before = ends.lower_bound(each.began);
    if (before == ends.begin()) continue;
    EXPECT_GT(place.at(each.id), std::prev(before)->second) << each.id;
  }
}

TEST(Priority, PRI_T05_every_queue_has_256_levels_and_gets_on_with_them) {
  QuietSegment s(few_slots(4096));
  std::vector<std::string> queues{"default"};
  // as many as the segment has
  while (queues.size() < 8) queues.push_back("queue." + std::to_string(queues.size()));
  for (unsigned round = 0; round < 2; ++round) {
    for (const std::string& queue : queues)
      for (unsigned level = 0; level < 256; ++level) ASSERT_NE(s.put(level, queue), "");
    for (const std::string& queue : queues) {
      WorkerOptions options;
      options.queues = {queue};
      Worker worker = Worker::attach(s.segment, options).value();
      for (std::int64_t level = 0; level < 256; ++level) {
        ASSERT_TRUE(worker.try_fetch(s.job).ok());
        EXPECT_EQ(s.job.priority(), level);
        ASSERT_TRUE(worker.ack(s.job).ok());
      }
    }
  }
}

TEST(Priority, PRI_T05_priorities_are_not_restricted_to_the_named_levels) {
  QuietSegment s;
  const std::string c = s.put(254), b = s.put(100), a = s.put(3);
  EXPECT_EQ(s.drain(), (Ids{a, b, c}));
}

TEST(Priority, PRI_T11_priority_is_a_member_of_the_envelope_itself) {
  QuietSegment s;
  const auto outside = parse_envelope(R"({"type":"a","args":[],"priority":1})", 0);
  ASSERT_TRUE(outside.ok());
  const std::string id = s.put(outside->spec());
  EXPECT_EQ(s.get(id).priority, 1);
}

TEST(Priority,
     PRI_T14_PRI_T15_SUM_02_above_the_maximum_is_refused_and_the_error_names_the_maximum) {
  QuietSegment s;
  const std::string id = s.put(1);
  for (const std::int64_t priority : {std::int64_t{256}, std::int64_t{100'000}, INT64_MAX}) {
    for (const Error& error : {s.producer.enqueue(spec_of(priority)).error(),
                               s.producer.reprioritize(id, priority).error(),
                               s.admin.set_default_priority("a", priority).error()}) {
      EXPECT_EQ(error.code, Code::kInvalid);
      EXPECT_NE(error.message.find("maximum is 255"), std::string::npos) << error.message;
      EXPECT_EQ(error.bound, 255U);
    }
  }
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(s.get(id).priority, 1);
}

TEST(Priority, PRI_S8_a_strategy_in_an_envelope_changes_nothing) {
  QuietSegment s;
  const std::string second = s.put(1);
  const auto strange =
      parse_envelope(R"({"type":"a","args":[],"priority":2,"strategy":"weighted"})", 0);
  ASSERT_TRUE(strange.ok());
  const std::string third = s.put(strange->spec()), first = s.put(0);
  EXPECT_EQ(s.drain(), (Ids{first, second, third}));
}

TEST(Priority, PRI_001_a_paused_queue_gives_nothing_and_takes_everything) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", {{}, {}, true}).ok());
  const std::string b = s.put(5), a = s.put(4);
  EXPECT_EQ(s.take(), "");
  EXPECT_TRUE(s.queue().paused);
  ASSERT_TRUE(s.admin.set_queue("default", {{}, {}, false}).ok());
  EXPECT_EQ(s.drain(), (Ids{a, b}));
}

TEST(Priority, PRI_004_a_worker_takes_from_the_best_unpaused_of_its_queues) {
  QuietSegment s;
  Worker both = Worker::attach(s.segment, {.queues = {"first", "second"}}).value();
  s.put(0, "first");
  const std::string id = s.put(200, "second");
  ASSERT_TRUE(s.admin.set_queue("first", {{}, {}, true}).ok());
  Job job;
  ASSERT_TRUE(both.try_fetch(job).ok());
  EXPECT_EQ(job.id(), id);
  EXPECT_EQ(job.queue(), "second");
  EXPECT_EQ(both.try_fetch(job).code(), Code::kEmpty);
}

}  // namespace
}  // namespace ojs_shm::test
