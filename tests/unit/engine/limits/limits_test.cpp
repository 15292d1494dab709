// SPDX-License-Identifier: Apache-2.0
// Limits on concurrency: on jobs, queues, types and tenants. Windows and throttles are
// rates_test's.

#include "engine/limits/limits.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/supervision/repairer.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/doomed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::Test;

RateLimit at_once(std::uint32_t concurrency) {
  RateLimit limit;
  limit.concurrency = concurrency;
  return limit;
}

class Limits : public Test {
 protected:
  QuietSegment s;
  std::vector<Job> held;

  std::string put(std::string_view key, std::uint32_t concurrency, std::int64_t priority = 2,
                  std::string_view queue = "default") {
    const JobLimit limit{std::string(key), at_once(concurrency)};
    JobSpec spec = spec_of(priority, queue);
    spec.limit = &limit;
    return s.put(spec);
  }
  /// The id of the job fetched next, which stays held.
  std::string hold(std::string_view queue = "default") {
    WorkerOptions options;
    options.queues = {std::string(queue)};
    Worker worker = Worker::attach(s.segment, options).value();
    Job job;
    if (!worker.try_fetch(job)) return "";
    workers.push_back(std::move(worker));
    held.push_back(std::move(job));
    return std::string(held.back().id());
  }
  void ack(std::size_t i) { EXPECT_TRUE(workers[i].ack(held[i]).ok()); }
  LimitInfo limit(std::string_view key) { return s.observer.limit(key).value(); }
  /// Permits of the type's limit whose jobs no lane holds.
  std::uint32_t worthless() {
    const engine::PermitSet& set =
        s.store().limit_keys[engine::find_limit(s.store(), "type:unit.test")].permits;
    const engine::Permits permits(s.store());
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < set.high.load(); ++i) {
      const engine::Permit permit(permits.at(set, i).load());
      count += !permit.free() && !permits.holds(permit) ? 1 : 0;
    }
    return count;
  }
  std::vector<Worker> workers;
};

TEST_F(Limits,
       PRI_G4_a_job_with_a_limit_goes_first_and_is_passed_by_lower_ones_once_the_limit_is_reached) {
  std::vector<std::string> limited;
  for (int i = 0; i < 6; ++i) limited.push_back(put("payment-api", 5, 1));
  const std::string plain = s.put(2);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(hold(), limited[i]);
  EXPECT_EQ(hold(), plain);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.state_of(limited[5]), State::kAvailable);
  ack(2);
  EXPECT_EQ(hold(), limited[5]);
}

TEST_F(Limits, PRI_T23_PRI_004_a_held_back_job_stays_available_counts_as_depth_and_blocks_nobody) {
  const std::string first = put("k", 1, 0);
  EXPECT_EQ(hold(), first);
  std::vector<std::string> waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(put("k", 1, 0));
  const std::string low = s.put(4);
  EXPECT_EQ(hold(), low);
  for (const std::string& id : waiting) EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_EQ(s.queue().depth, 50U);
  EXPECT_EQ(limit("k").waiting, 50U);
  EXPECT_EQ(limit("k").active, 1U);
}

TEST_F(Limits, PRI_T21_QO_20_those_held_back_are_let_go_by_priority_and_then_in_their_order) {
  put("k", 1, 0);
  hold();
  const std::string c = put("k", 1, 3), a = put("k", 1, 1), b1 = put("k", 1, 2),
                    b2 = put("k", 1, 2);
  EXPECT_EQ(hold(), "");
  const std::string d = put("k", 1, 3);  // born into the lot
  std::size_t at_work = 0;
  for (const std::string& expected : {a, b1, b2, c, d}) {
    ack(at_work);
    at_work = held.size();
    const std::string plain = s.put(3);  // who is let go keeps its priority
    EXPECT_EQ(hold(), expected);
    EXPECT_EQ(hold(), plain);
    EXPECT_EQ(hold(), "");
  }
}

/// Jobs of two keys and of none in random order: at each moment the best of those goes whose key has
/// room.
TEST_F(Limits, PRI_T21_of_mixed_keys_the_eligible_jobs_leave_in_the_order_of_their_priorities) {
  Seeded random;
  std::vector<std::int64_t> priorities(150);
  std::iota(priorities.begin(), priorities.end(), 0);
  std::shuffle(priorities.begin(), priorities.end(), random.numbers());
  const std::map<std::string, std::uint32_t> room = {{"one", 1}, {"three", 3}, {"", 1000}};
  std::map<std::int64_t, std::pair<std::string, std::string>> waiting;  // by priority: key and id
  std::map<std::string, std::vector<Job>> at_work;                      // by key
  std::size_t step = 0;
  while (step < priorities.size() || !waiting.empty()) {
    if (step < priorities.size() && random.coin()) {
      const std::int64_t priority = priorities[step++];
      const std::string key = std::vector<std::string>{"one", "three", ""}[random.bits() % 3];
      const std::string id = key.empty() ? s.put(priority) : put(key, room.at(key), priority);
      waiting[priority] = {key, id};
      continue;
    }
    const auto best = std::find_if(waiting.begin(), waiting.end(), [&](const auto& job) {
      return at_work[job.second.first].size() < room.at(job.second.first);
    });
    Job job;
    const bool got = s.worker.try_fetch(job).ok();
    ASSERT_EQ(got ? job.id() : "", best == waiting.end() ? "" : best->second.second) << step;
    if (got) {
      at_work[best->second.first].push_back(std::move(job));
      waiting.erase(best);
    }
    for (auto& [key, jobs] : at_work)
      if (!jobs.empty() && random.bits() % 3 == 0) {
        ASSERT_TRUE(s.worker.ack(jobs.back()).ok());
        jobs.pop_back();
      }
  }
}

TEST_F(Limits, PRI_T22_the_limit_is_kept_however_a_job_ends) {
  for (int i = 0; i < 8; ++i) put("k", 2);
  hold(), hold();
  EXPECT_EQ(hold(), "");
  EXPECT_TRUE(workers[0].nack(held[0], failure(false)).ok());
  EXPECT_NE(hold(), "");
  EXPECT_TRUE(s.producer.cancel(held[1].id()).ok());
  EXPECT_NE(hold(), "");
  EXPECT_TRUE(workers[2].nack(held[2], failure()).ok());
  EXPECT_NE(hold(), "");
  EXPECT_TRUE(workers[3].requeue(held[3]).ok());
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  s.pass(kHour);  // the leases end
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(limit("k").active, 2U);
}

TEST_F(Limits, PRI_T22_keys_are_told_apart_by_their_names_and_share_nothing) {
  put("a", 1), put("b", 1), put("a", 1), put("b", 1);
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(limit("a").active, 1U);
  EXPECT_EQ(limit("b").active, 1U);
  EXPECT_FALSE(s.observer.limit("c").ok());
}

TEST_F(Limits, SUM_08_a_queue_with_a_limit_runs_in_priority_order_up_to_it) {
  ASSERT_TRUE(s.admin.set_limit("queue:default", at_once(2)).ok());
  const std::string c = s.put(3), a = s.put(1), b = s.put(2);
  const std::string elsewhere = s.put(4, "other");
  EXPECT_EQ(hold(), a);
  EXPECT_EQ(hold(), b);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(hold("other"), elsewhere);
  ack(0);
  EXPECT_EQ(hold(), c);
  EXPECT_EQ(limit("queue:default").active, 2U);
}

TEST_F(Limits, a_limit_on_a_type_acts_at_once_on_what_waits_and_counts_what_is_at_work) {
  for (int i = 0; i < 4; ++i) s.put();
  hold();
  ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(2)).ok());
  EXPECT_EQ(limit("type:unit.test").active, 1U);
  hold();
  EXPECT_EQ(hold(), "");
  JobSpec other = spec_of(4);
  other.type = "unit.other";
  const std::string plain = s.put(other);
  EXPECT_EQ(hold(), plain);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
}

/// A lane that sets it counts the job, and its worker sees the limit.
TEST_F(Limits, a_job_that_is_being_claimed_while_its_type_gets_a_limit_has_one_permit) {
  s.put();
  bool set = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (access != shm::Access::kWritten || point != shm::Point::kSlotClaimed || set) return;
    set = true;
    ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(2)).ok());
  });
  hold();
  EXPECT_TRUE(set);
  EXPECT_EQ(limit("type:unit.test").active, 1U);
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Limits, a_job_that_ends_while_its_type_gets_a_limit_leaves_no_permit) {
  s.put();
  hold();
  bool set = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (access == shm::Access::kWritten || point != shm::Point::kSlotSettled || set) return;
    set = true;
    ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(1)).ok());
  });
  ack(0);
  EXPECT_TRUE(set);
  EXPECT_EQ(worthless(), 0U);
}

/// The permit that the setter took for it is worth nothing once the job is in the lot. It goes with
/// the next hold, or with a repair.
TEST_F(Limits, a_job_that_is_being_held_back_while_its_type_gets_a_limit_anew_keeps_nobody_out) {
  ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(1)).ok());
  s.put(), s.put();
  hold();
  bool set = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (access == shm::Access::kWritten || point != shm::Point::kSlotParked || set) return;
    set = true;
    ASSERT_TRUE(s.admin.clear_limit("type:unit.test").ok());
    ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(1)).ok());
  });
  EXPECT_EQ(hold(), "");
  EXPECT_TRUE(set);
  EXPECT_EQ(s.findings(), "");
  EXPECT_EQ(worthless(), 1U);
  const std::uint32_t lane = doomed_handle(s.segment)->lane();
  engine::Repairer::repair(s.store(), std::span(&lane, 1));
  s.segment.attachment()->give_lane(lane);
  EXPECT_EQ(worthless(), 0U);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(limit("type:unit.test").active, 1U);
  EXPECT_EQ(s.findings(), "");
}

TEST_F(Limits, a_limit_on_a_tenant_holds_for_its_jobs_alone) {
  ASSERT_TRUE(s.admin.set_limit("tenant:Acme & Sons", at_once(1)).ok());
  const auto of = [&](std::string_view tenant) {
    JobSpec spec = spec_of();
    spec.tenant = tenant;
    return s.put(spec);
  };
  const std::string a = of("Acme & Sons");
  of("Acme & Sons");
  const std::string b1 = of("b"), b2 = of("b");
  EXPECT_EQ(hold(), a);
  EXPECT_EQ(hold(), b1);
  EXPECT_EQ(hold(), b2);
  EXPECT_EQ(hold(), "");
}

TEST_F(Limits, a_limit_on_a_tenant_acts_at_once_on_what_waits_and_counts_what_is_at_work) {
  JobSpec spec = spec_of();
  spec.tenant = "t";
  for (int i = 0; i < 4; ++i) s.put(spec);
  hold();
  ASSERT_TRUE(s.admin.set_limit("tenant:t", at_once(2)).ok());
  EXPECT_EQ(limit("tenant:t").active, 1U);
  hold();
  EXPECT_EQ(hold(), "");
  const std::string nobodys = s.put();
  EXPECT_EQ(hold(), nobodys);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.clear_limit("tenant:t").ok());
  EXPECT_NE(hold(), "");
}

TEST_F(Limits, BP_T18_BP_T23_a_limit_and_a_bound_hold_at_once) {
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 3}).ok());
  for (int i = 0; i < 3; ++i) put("k", 1);
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  put("k", 1);  // what the limit holds back stands in the depth
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  ack(0);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  s.put();
}

TEST_F(Limits, a_job_that_brings_the_key_of_a_tenant_limits_itself_alone) {
  put("tenant:t", 1);
  JobSpec spec = spec_of();
  spec.tenant = "t";
  for (int i = 0; i < 2; ++i) s.put(spec);
  for (int i = 0; i < 3; ++i) EXPECT_NE(hold(), "");
}

TEST_F(Limits, several_limits_on_one_job_are_taken_all_or_none) {
  ASSERT_TRUE(s.admin.set_limit("type:unit.test", at_once(2)).ok());
  ASSERT_TRUE(s.admin.set_limit("tenant:t", at_once(3)).ok());
  ASSERT_TRUE(s.admin.set_limit("queue:default", at_once(4)).ok());
  const JobLimit own{"own", at_once(1)};
  JobSpec spec = spec_of();
  spec.limit = &own;
  spec.tenant = "t";
  const std::string first = s.put(spec), second = s.put(spec);
  JobSpec other = spec_of();
  other.tenant = "t";
  const std::string third = s.put(other), fourth = s.put(other);
  EXPECT_EQ(hold(), first);
  // second waits for `own`, and holds nothing of the other limits meanwhile
  EXPECT_EQ(hold(), third);
  EXPECT_EQ(limit("type:unit.test").active, 2U);
  EXPECT_EQ(limit("tenant:t").active, 2U);
  EXPECT_EQ(hold(), "");  // the type's two are at work
  ack(1);
  EXPECT_EQ(hold(), fourth);
  ack(0);
  EXPECT_EQ(hold(), second);
}

TEST_F(Limits, a_limit_is_raised_and_lowered_while_jobs_wait) {
  for (int i = 0; i < 8; ++i) put("k", 2);
  hold(), hold();
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.set_limit("k", at_once(4)).ok());
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  put("k", 7);  // what jobs bring does not change what an operator has set
  ASSERT_TRUE(s.admin.set_limit("k", at_once(1)).ok());
  ack(0), ack(1), ack(2);
  EXPECT_EQ(hold(), "");
  ack(3);
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.clear_limit("k").ok());
  for (int i = 0; i < 4; ++i) EXPECT_NE(hold(), "");
  EXPECT_EQ(s.observer.limit("k")->waiting, 0U);
  EXPECT_EQ(s.admin.clear_limit("none").code(), Code::kNotFound);
}

TEST_F(Limits, none_at_once_is_a_pause_of_the_key) {
  ASSERT_TRUE(s.admin.set_limit("k", at_once(0)).ok());
  const JobLimit alone{"k", {}};
  JobSpec spec = spec_of();
  spec.limit = &alone;
  const std::string id = s.put(spec);
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.set_limit("k", at_once(1)).ok());
  EXPECT_EQ(hold(), id);
}

TEST_F(Limits, a_job_that_reports_so_closes_its_limit_until_then) {
  s.stop_clock();
  const std::string first = put("api", 9), second = put("api", 9), other = put("else", 9);
  ASSERT_EQ(hold(), first);
  Failure failed;
  failed.code = "too_many";
  failed.rate_limit_until_ms = s.now_ms() + 5'000;
  ASSERT_TRUE(workers.back().nack(held.back(), failed).ok());
  EXPECT_EQ(limit("api").closed_until_ms, failed.rate_limit_until_ms);
  EXPECT_EQ(limit("api").next_at_ms, failed.rate_limit_until_ms);
  EXPECT_EQ(hold(), other) << "another limit's job";
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.observer.get(second)->state, State::kAvailable);
  s.pass(4'000);
  EXPECT_EQ(hold(), "");
  s.pass(1'000);
  EXPECT_EQ(hold(), second) << "the first one's retry is in the line behind";
  EXPECT_EQ(limit("api").closed_until_ms, 0U);
}

TEST_F(Limits, the_latest_report_holds_and_an_operator_opens_the_limit) {
  s.stop_clock();
  put("api", 9), put("api", 9), put("api", 9);
  hold(), hold();
  Failure failed;
  failed.rate_limit_until_ms = s.now_ms() + 60'000;
  ASSERT_TRUE(workers[0].nack(held[0], failed).ok());
  failed.rate_limit_until_ms = s.now_ms() + 1'000;
  ASSERT_TRUE(workers[1].nack(held[1], failed).ok());
  EXPECT_EQ(limit("api").closed_until_ms, s.now_ms() + 60'000);
  EXPECT_EQ(hold(), "");
  ASSERT_TRUE(s.admin.set_limit("api", at_once(9)).ok());
  EXPECT_EQ(limit("api").closed_until_ms, 0U);
  EXPECT_NE(hold(), "");
}

TEST_F(Limits, a_report_of_a_past_time_or_of_a_job_without_a_limit_closes_nothing) {
  put("api", 9), put("api", 9);
  hold();
  Failure failed;
  failed.rate_limit_until_ms = s.now_ms() - 1;
  ASSERT_TRUE(workers[0].nack(held[0], failed).ok());
  EXPECT_NE(hold(), "");
  s.put(spec_of(2, "free")), s.put(spec_of(2, "free"));
  hold("free");
  failed.rate_limit_until_ms = s.now_ms() + 60'000;
  ASSERT_TRUE(workers.back().nack(held.back(), failed).ok());
  EXPECT_NE(hold("free"), "");
}

TEST_F(Limits, on_limit_drop_discards_and_reschedule_schedules) {
  JobLimit limit{"k", at_once(1)};
  limit.limit.on_limit = OnLimit::kDrop;
  JobSpec spec = spec_of();
  spec.limit = &limit;
  s.put(spec);
  hold();
  const std::string dropped = s.put(spec);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.state_of(dropped), State::kDiscarded);
  EXPECT_EQ(s.observer.limit("k")->dropped_total, 1U);
  limit.limit.on_limit = OnLimit::kReschedule;
  const std::string later = s.put(spec);
  EXPECT_EQ(hold(), "");
  EXPECT_EQ(s.state_of(later), State::kScheduled);
  ack(0);
  s.pass(2 * kSecond);
  EXPECT_EQ(hold(), later);
}

TEST_F(Limits, a_key_holds_jobs_of_several_queues_back_and_lets_the_one_go_that_somebody_wants) {
  put("k", 1, 2, "a");
  hold("a");
  const std::string a = put("k", 1, 0, "a"), b = put("k", 1, 3, "b");
  EXPECT_EQ(hold("a"), "");
  EXPECT_EQ(hold("b"), "");
  ASSERT_TRUE(s.admin.set_queue("a", {{}, {}, true}).ok());  // paused: no lane takes its best
  ack(0);
  EXPECT_EQ(hold("b"), b);
  ASSERT_TRUE(s.admin.set_queue("a", {{}, {}, false}).ok());
  EXPECT_EQ(hold("a"), "");
  ack(1);
  EXPECT_EQ(hold("a"), a);
}

TEST_F(Limits, held_back_jobs_are_cancelled_expire_and_are_reprioritised_like_others) {
  put("k", 1);
  hold();
  const std::string cancelled = put("k", 1), raised = put("k", 1, 3), first = put("k", 1, 2);
  const JobLimit limit{"k", at_once(1)};
  JobSpec expiring = spec_of(0);
  expiring.limit = &limit;
  expiring.expires_at_ms = s.now_ms() + kMinute;
  const std::string expired = s.put(expiring);
  EXPECT_EQ(hold(), "");
  EXPECT_TRUE(s.producer.cancel(cancelled).ok());
  EXPECT_TRUE(s.producer.reprioritize(raised, 1).ok());
  s.pass(2 * kMinute);
  EXPECT_EQ(s.state_of(expired), State::kDiscarded);
  ack(0);
  EXPECT_EQ(hold(), raised);
  ack(1);
  EXPECT_EQ(hold(), first);
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST_F(Limits, whoever_was_let_go_and_is_cancelled_leaves_his_place_to_the_next) {
  put("k", 1);
  hold();
  const std::string second = put("k", 1), third = put("k", 1);
  EXPECT_EQ(hold(), "");
  ack(0);  // lets the second go
  EXPECT_TRUE(s.producer.cancel(second).ok());
  EXPECT_EQ(hold(), third);
}

TEST_F(Limits, a_held_back_job_is_cancelled_without_leaving_the_backlog_of_a_pool) {
  PoolSettings least_loaded;
  least_loaded.queues = {"default"};
  least_loaded.strategy = PoolStrategy::kLeastLoaded;
  ASSERT_TRUE(s.admin.set_pool("p", least_loaded).ok());
  put("a", 1);
  const std::string parked = put("a", 1);
  s.put(2);
  EXPECT_NE(hold(), "");
  EXPECT_NE(hold(), "");
  EXPECT_EQ(hold(), "");
  const std::uint32_t queue = s.store().find_queue("default");
  EXPECT_EQ(s.store().backlogs[queue].load(), 0U);
  ASSERT_TRUE(s.producer.cancel(parked).ok());
  EXPECT_EQ(s.store().backlogs[queue].load(), 0U);
}

TEST_F(Limits, a_retry_asks_its_limit_again) {
  put("k", 1);
  hold();
  EXPECT_TRUE(workers[0].nack(held[0], failure()).ok());
  const std::string other = put("k", 1);
  EXPECT_EQ(hold(), other);
  s.pass(kHour);
  s.pass(0);
  EXPECT_LE(limit("k").active, 1U);
}

TEST_F(Limits, a_lot_gives_the_job_first_that_has_risen_the_most) {
  AgingSettings aging;
  aging.preset = "ojs";
  aging.interval_ms = kMinute;
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = aging}).ok());
  const std::string first = put("k", 1);
  ASSERT_EQ(hold(), first);
  const std::string old = put("k", 1, 4);
  EXPECT_EQ(hold(), "") << "it waits in the lot";
  s.move_clock(5 * kMinute);
  const std::string fresh = put("k", 1, 0);
  ack(0);
  EXPECT_EQ(hold(), old) << "4 - 5 is better than 0";
  ack(1);
  EXPECT_EQ(hold(), fresh);
}

/// Another process puts the head of the lot's ring back to a dead hint, as often as a lane moves it.
TEST_F(Limits, a_lot_of_an_ageing_queue_whose_ring_goes_in_circles_keeps_no_lane) {
  AgingSettings aging;
  aging.preset = "ojs";
  ASSERT_TRUE(s.admin.set_queue("default", {.aging = aging}).ok());
  const std::string first = put("k", 1);
  ASSERT_EQ(hold(), first);
  const std::string gone = put("k", 1, 4);
  EXPECT_EQ(hold(), "") << "it waits in the lot";
  ASSERT_TRUE(s.producer.cancel(gone).ok());
  const std::uint32_t lot =
      engine::find_lot(s.store(), s.store().limit_keys[engine::find_limit(s.store(), "k")],
                       s.store().find_queue("default"));
  shm::Word& head = s.segment.attachment()
                        ->segment()
                        .ring(shm::Rings::find(s.store().lots[lot].rings, engine::normal_ring(4)))
                        .head;
  const std::uint64_t before = head.load(), longest = s.actor().rings().longest_search();
  std::uint64_t moves = 0;
  {
    const AtAccess again([&](shm::Access access, shm::Point, const void* word) {
      if (access != shm::Access::kWritten || word != head.address() || head.load() == before)
        return;
      if (++moves <= longest) head.store(before, shm::Point::kNone);
    });
    ack(0);
  }
  EXPECT_GT(moves, 1U);
  EXPECT_LE(moves, longest);
  const std::string next = put("k", 1);
  EXPECT_EQ(hold(), next);
}

}  // namespace
}  // namespace ojs_shm::test
