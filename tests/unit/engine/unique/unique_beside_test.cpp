// SPDX-License-Identifier: Apache-2.0
// Unique jobs beside what else a queue can do: bounds, drops, ends by time, ageing, tenants,
// limits, another segment.

#include <map>

#include <ojs_shm/transfer.hpp>

#include "engine/tables/job_look.hpp"
#include "tests/unit/engine/unique/unique_spec.hpp"

namespace ojs_shm::test {
namespace {

RateLimit one_at_a_time() {
  RateLimit limit;
  limit.concurrency = 1;
  return limit;
}

TEST(UniqueBeside, PRI_T10_a_fetch_returns_the_best_job_that_limits_and_keys_let_run) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_limit("type:held", one_at_a_time()).ok());
  const auto held = [](std::int64_t priority) {
    JobSpec spec = spec_of(priority);
    spec.type = "held";
    return spec;
  };
  const std::string first = s.put(held(0));
  Job other;
  ASSERT_TRUE(s.worker.try_fetch(other).ok());
  ASSERT_EQ(other.id(), first);
  const std::string best = s.put(held(0));  // as long as the first one is at work
  const auto key = unique_job(OnConflict::kReject, "[1]", 2);
  const std::string second = s.put(key.spec);
  const std::string third = s.put(3);
  // its key is held: neither stored nor an advantage for the one in its way
  EXPECT_EQ(s.producer.enqueue(unique_job(OnConflict::kReject, "[1]", 1).spec).code(),
            Code::kDuplicate);
  // cancelled by one of lower priority, which stands where its own priority says
  s.put(unique_job(OnConflict::kReplace, "[2]", 1).spec);
  const std::string last = s.put(unique_job(OnConflict::kReplace, "[2]", 4).spec);
  EXPECT_EQ(s.take(), second);
  EXPECT_EQ(s.take(), third);
  EXPECT_EQ(s.take(), last);
  EXPECT_EQ(s.take(), "");
  ASSERT_TRUE(s.worker.ack(other).ok());
  EXPECT_EQ(s.take(), best);
}

TEST(UniqueBeside, a_dropped_job_frees_its_key) {
  QuietSegment s;
  ASSERT_TRUE(
      s.admin.set_queue("default", {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest})
          .ok());
  const std::string first = s.put(unique_job().spec);
  EXPECT_EQ(s.producer.enqueue(unique_job().spec).code(), Code::kDuplicate);
  EXPECT_EQ(s.state_of(first), State::kAvailable);  // a duplicate drops no job
  s.put(), s.put();
  ASSERT_EQ(s.state_of(first), State::kDiscarded);
  const std::string fresh = s.put(unique_job().spec);
  EXPECT_EQ(s.state_of(fresh), State::kAvailable);
  EXPECT_EQ(s.queue().depth, 2U);
}

TEST(UniqueBeside, a_replacement_in_a_full_queue_that_drops_costs_one_job_at_most) {
  QuietSegment s;
  ASSERT_TRUE(
      s.admin.set_queue("default", {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest})
          .ok());
  const std::string other = s.put();
  const std::string old = s.put(unique_job(OnConflict::kReplace).spec);
  const std::string fresh = s.put(unique_job(OnConflict::kReplace).spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.state_of(fresh), State::kAvailable);
  EXPECT_EQ(s.findings(), "");
  EXPECT_LE(s.queue().depth, 2U);
  (void)other;
}

/// All that it could wait for is in its own hands.
TEST(UniqueBeside, a_job_that_is_dropped_for_one_of_its_key_is_not_in_its_way) {
  for (const OnConflict conflict : {OnConflict::kReject, OnConflict::kIgnore, OnConflict::kReplace,
                                    OnConflict::kReplaceExceptSchedule}) {
    QuietSegment s;
    ASSERT_TRUE(
        s.admin
            .set_queue("default", {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest})
            .ok());
    UniquePolicy at_work = policy_with(conflict);
    at_work.states = 1U << static_cast<unsigned>(State::kActive);
    const UniqueSpec job{spec_of(), at_work};
    const std::string first = s.put(job.spec), second = s.put(job.spec);
    const std::string third = s.put(job.spec);
    EXPECT_EQ(s.state_of(first), State::kDiscarded);
    const JobSpec both[] = {spec_of(), job.spec};
    ASSERT_TRUE(s.producer.enqueue_batch(both).ok());
    EXPECT_EQ(s.state_of(second), State::kDiscarded);
    EXPECT_EQ(s.state_of(third), State::kDiscarded);
    EXPECT_EQ(s.queue().depth, 2U);
    EXPECT_EQ(s.findings(), "");
  }
}

/// Once, and not once more for each try to make room.
TEST(UniqueBeside, a_stopped_lane_with_a_job_of_the_key_is_waited_for_once) {
  QuietSegment s;
  ASSERT_TRUE(
      s.admin.set_queue("default", {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest})
          .ok());
  const std::string other = s.put();
  const std::string held = s.put(unique_job(OnConflict::kReplace).spec);
  shm::Word& control = s.store().job(engine::find_job(s.store(), *engine::parse_id(held))).control;
  const engine::Control before(control.load());
  constexpr std::uint32_t kAnother = 31;
  control.store(before.to(engine::kSlotMoving, before.ring(), kAnother).word, shm::Point::kNone);
  EXPECT_EQ(s.producer.enqueue(unique_job(OnConflict::kReplace).spec).code(), Code::kTimeout);
  control.store(before.word, shm::Point::kNone);
  EXPECT_EQ(s.state_of(other), State::kAvailable) << "nothing was dropped for what did not come";
  const std::string fresh = s.put(unique_job(OnConflict::kReplace).spec);
  EXPECT_EQ(s.state_of(held), State::kCancelled);
  EXPECT_EQ(s.state_of(fresh), State::kAvailable);
}

TEST(UniqueBeside, an_expired_job_frees_its_key) {
  QuietSegment s;
  UniqueSpec job = unique_job();
  job.spec.expires_at_ms = s.now_ms() + kHour;
  const std::string first = s.put(job.spec);
  s.pass(2 * kHour);
  EXPECT_EQ(s.take(), "");
  ASSERT_EQ(s.state_of(first), State::kDiscarded);
  const std::string fresh = s.put(unique_job().spec);
  EXPECT_EQ(s.take(), fresh);
}

TEST(UniqueBeside, a_raise_in_an_ageing_queue_counts_from_the_job_s_own_age) {
  QuietSegment s;
  AgingSettings aging;
  aging.preset = "ojs";
  aging.interval_ms = kMinute;
  QueueSettings aged;
  aged.aging = aging;
  ASSERT_TRUE(s.admin.set_queue("default", aged).ok());
  UniquePolicy raising = policy_with(OnConflict::kIgnore);
  raising.raise_priority = true;
  const UniqueSpec low{spec_of(4), raising}, high{spec_of(2), raising};
  const std::string old = s.put(low.spec);
  s.move_clock(2 * kMinute);
  EXPECT_EQ(s.put(high.spec), old);
  EXPECT_EQ(s.get(old).priority, 2);
  const std::string fresh = s.put(1);  // 2 - 2 = 0 comes before it
  EXPECT_EQ(s.take(), old);
  EXPECT_EQ(s.take(), fresh);
}

TEST(UniqueBeside, a_replacement_moves_the_place_from_tenant_to_tenant) {
  QuietSegment s;
  QueueSettings bounds;
  bounds.tenant_fairness = TenantFairness{};
  bounds.tenant_max_depth = 1;
  ASSERT_TRUE(s.admin.set_queue("default", bounds).ok());
  UniqueSpec of_a = unique_job(OnConflict::kReplace), of_b = of_a;
  of_a.spec.tenant = "a";
  of_b.spec.tenant = "b";
  JobSpec plain_a = spec_of();
  plain_a.tenant = "a";
  const std::string old = s.put(of_a.spec);
  EXPECT_EQ(s.producer.enqueue(plain_a).code(), Code::kQueueFull);
  const std::string fresh = s.put(of_b.spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  const std::string next = s.put(plain_a);  // the place of a is free again, that of b is taken
  JobSpec plain_b = plain_a;
  plain_b.tenant = "b";
  EXPECT_EQ(s.producer.enqueue(plain_b).code(), Code::kQueueFull);
  const auto ids = s.drain();
  EXPECT_EQ(std::multiset<std::string>(ids.begin(), ids.end()),
            (std::multiset<std::string>{fresh, next}));
}

TEST(UniqueBeside, a_job_that_a_limit_holds_back_is_in_the_way_and_can_be_replaced) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_limit("type:unit.test", one_at_a_time()).ok());
  const std::string busy = s.put();
  Job other;
  ASSERT_TRUE(s.worker.try_fetch(other).ok());
  const std::string old = s.put(unique_job(OnConflict::kReplace).spec);
  EXPECT_EQ(s.take(), "");  // held back
  EXPECT_EQ(s.producer.enqueue(unique_job().spec).code(), Code::kDuplicate);
  const std::string fresh = s.put(unique_job(OnConflict::kReplace).spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.take(), "");
  ASSERT_TRUE(s.worker.ack(other).ok());
  EXPECT_EQ(s.take(), fresh);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.queue().depth, 0U);
}

TEST(UniqueBeside, a_refused_newcomer_takes_no_place_below_a_bound) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 2}).ok());
  s.put(unique_job().spec);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(s.producer.enqueue(unique_job().spec).code(), Code::kDuplicate);
  s.put();
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
}

TEST(UniqueBeside, a_closed_worker_gives_its_job_back_and_its_key_stays_taken) {
  QuietSegment s;
  const std::string first = s.put(unique_job().spec);
  {
    Worker gone = Worker::attach(s.segment, {}).value();
    Job job;
    ASSERT_TRUE(gone.try_fetch(job).ok());
  }
  EXPECT_EQ(s.producer.enqueue(unique_job().spec).error().subject, first);
  EXPECT_EQ(s.drain(), std::vector{first});
}

/// Every line of an export, put into another segment.
ImportReport moved(const Segment& from, const Segment& to) {
  Import import = Import::attach(to).value();
  EXPECT_TRUE(export_segment(from, [&](std::string_view line) { return import.take(line); }).ok());
  EXPECT_TRUE(import.finish().ok());
  return import.report();
}

TEST(UniqueBeside, keys_move_with_their_jobs_from_the_second_version_of_the_text_on) {
  QuietSegment from, to;
  const std::string policy = R"({"unique":{"keys":["args"],"period":"PT1H"}})";
  UniquePolicy counted = policy_with(OnConflict::kReject);
  counted.period_ms = kHour;
  JobSpec spec = spec_of();
  spec.args = "[1]";
  spec.extra = policy;
  const UniqueSpec job{spec, counted};
  const std::string id = from.put(job.spec);
  EXPECT_EQ(moved(from.segment, to.segment).jobs, 1U);
  EXPECT_EQ(to.producer.enqueue(job.spec).error().subject, id);

  // The first version knew no unique jobs: there it is an attribute like any other.
  QuietSegment old;
  Import import = Import::attach(old.segment).value();
  ASSERT_TRUE(import.take(R"({"ojs_shm_export":1,"convention":"ojs"})").ok());
  ASSERT_TRUE(
      import.take(R"({"job":{"type":"unit.test","args":[1],"extra":)" + policy + "}}").ok());
  ASSERT_TRUE(import.finish().ok());
  EXPECT_TRUE(old.producer.enqueue(job.spec).ok());
}

/// A full queue that drops: the job that is replaced makes the room.
class Dropping : public testing::TestWithParam<OnConflict> {
 protected:
  void bound(std::uint64_t jobs) {
    ASSERT_TRUE(s.admin
                    .set_queue("default",
                               {.max_depth = jobs, .strategy = BackpressureStrategy::kDropOldest})
                    .ok());
  }
  /// By a job without a tenant; another one without a tenant counts. The replaced one comes back
  /// from its worker while there is no account for its tenant.
  void replace_one_in_no_account(std::string_view tenant) {
    ASSERT_TRUE(s.admin
                    .set_queue("default", {.strategy = BackpressureStrategy::kDropOldest,
                                           .tenant_max_depth = 1})
                    .ok());
    const UniqueSpec job = unique_job(GetParam());
    UniqueSpec first = job;
    first.spec.tenant = tenant;
    const std::string old = s.put(first.spec);
    ASSERT_EQ(s.take(), old);
    std::vector<std::string> others;  // of a tenant each
    for (bool room = true; room;) {
      const std::string name = "t" + std::to_string(others.size());
      JobSpec spec = spec_of();
      spec.tenant = name;
      const auto put = s.producer.enqueue(spec);
      room = put.ok();
      if (room) others.push_back(put->str());
    }
    ASSERT_EQ(others.size(), s.store().accounts.size());
    ASSERT_TRUE(s.worker.requeue(s.job).ok());
    ASSERT_TRUE(s.producer.cancel(others.front()).ok());
    const std::string counted = s.put(), fresh = s.put(job.spec);
    EXPECT_EQ(s.state_of(old), State::kCancelled);
    EXPECT_EQ(s.state_of(counted), State::kDiscarded);
    EXPECT_EQ(s.state_of(fresh), State::kAvailable);
    EXPECT_EQ(s.queue().dropped_total, 1U);
  }
  QuietSegment s;
};
const auto conflict_name = [](const auto& each) {
  return each.param == OnConflict::kReplace ? "replace" : "replace_except_schedule";
};
INSTANTIATE_TEST_SUITE_P(Unique, Dropping,
                         testing::Values(OnConflict::kReplace, OnConflict::kReplaceExceptSchedule),
                         conflict_name);

TEST_P(Dropping, SUM_10_the_oldest_job_is_replaced_in_its_full_queue) {
  const UniqueSpec job = unique_job(GetParam());
  bound(1);
  const std::string old = s.put(job.spec), fresh = s.put(job.spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.queue().dropped_total, 0U);
  EXPECT_EQ(s.drain(), std::vector{fresh});
}

TEST_P(Dropping, no_other_job_is_dropped_for_one_that_replaces) {
  const UniqueSpec job = unique_job(GetParam());
  bound(2);
  const std::string other = s.put(), old = s.put(job.spec), fresh = s.put(job.spec);
  EXPECT_EQ(s.state_of(other), State::kAvailable);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.queue().depth, 2U);
  EXPECT_EQ(s.queue().dropped_total, 0U);
  EXPECT_EQ(s.drain(), (std::vector{other, fresh}));
}

TEST_P(Dropping, of_a_batch_as_many_are_dropped_as_it_needs_beside_those_it_replaces) {
  const UniqueSpec job = unique_job(GetParam());
  bound(3);
  const std::string old = s.put(job.spec), first = s.put(), second = s.put();
  const std::vector<JobSpec> specs = {job.spec, spec_of()};
  ASSERT_TRUE(s.producer.enqueue_batch(specs).ok());
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.state_of(first), State::kDiscarded);
  EXPECT_EQ(s.state_of(second), State::kAvailable);
  EXPECT_EQ(s.queue().depth, 3U);
}

TEST_P(Dropping, in_a_tenants_full_share_the_replaced_job_makes_the_room) {
  UniqueSpec job = unique_job(GetParam());
  job.spec.tenant = "a";
  ASSERT_TRUE(s.admin
                  .set_queue("default",
                             {.strategy = BackpressureStrategy::kDropOldest, .tenant_max_depth = 2})
                  .ok());
  JobSpec plain = spec_of();
  plain.tenant = "a";
  const std::string old = s.put(job.spec), other = s.put(plain), fresh = s.put(job.spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.state_of(other), State::kAvailable);
  EXPECT_EQ(s.queue().dropped_total, 0U);
}

TEST_P(Dropping, a_replaced_job_in_no_account_makes_no_room_in_its_tenants_full_share) {
  replace_one_in_no_account("");
}
TEST_P(Dropping, a_replaced_job_in_no_account_makes_no_room_in_another_tenants_full_share) {
  replace_one_in_no_account("b");
}

TEST_P(Dropping, an_active_job_that_is_replaced_makes_no_room) {
  const UniqueSpec job = unique_job(GetParam());
  bound(1);
  const std::string old = s.put(job.spec);
  ASSERT_EQ(s.take(), old);
  const std::string other = s.put(), fresh = s.put(job.spec);
  EXPECT_EQ(s.state_of(old), State::kCancelled);
  EXPECT_EQ(s.state_of(other), State::kDiscarded);
  EXPECT_EQ(s.queue().depth, 1U);
}

}  // namespace
}  // namespace ojs_shm::test
