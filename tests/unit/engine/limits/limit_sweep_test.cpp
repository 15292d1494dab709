// SPDX-License-Identifier: Apache-2.0
// Keys of limits that no lane needs any more make room for new ones; those that a lane needs stay.

#include "engine/limits/limit_turn.hpp"
#include "engine/limits/limits.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::Test;

class LimitSweep : public Test {
 protected:
  QuietSegment s;
  Job job;

  static JobLimit limit(const std::string& key, const std::string& members = R"("concurrency":1)") {
    return parse_limit(R"({"key":")" + key + "\"," + members + "}").value();
  }
  Result<JobIdText> offer(const JobLimit& limit, std::string_view tenant = {},
                          std::string_view queue = "default") {
    JobSpec spec = spec_of(2, queue);
    spec.limit = &limit;
    spec.tenant = tenant;
    return s.producer.enqueue(spec);
  }
  void put(const JobLimit& limit, std::string_view tenant = {}) {
    const auto id = offer(limit, tenant);
    ASSERT_TRUE(id.ok()) << limit.key << ": " << id.error().message;
  }
  /// Jobs of so many keys that no lane has seen before come and go.
  void come_and_go(int keys) {
    for (int i = 0; i < keys; ++i) {
      ASSERT_NO_FATAL_FAILURE(put(limit("passing-" + std::to_string(next_++))));
      ASSERT_TRUE(s.worker.try_fetch(job).ok());
      ASSERT_TRUE(s.worker.ack(job).ok());
    }
  }
  bool stands(std::string_view key) { return s.observer.limit(key).ok(); }
  std::uint32_t keys() { return s.store().limit_keys.size(); }
  /// Jobs of new keys wait, until there is no key left. How many there were.
  int fill() {
    int waiting = 0;
    while (offer(limit("waiting-" + std::to_string(waiting))).ok() && waiting < 100) ++waiting;
    return waiting;
  }

 private:
  int next_ = 0;
};

TEST_F(LimitSweep, any_number_of_keys_may_come_one_after_the_other) {
  ASSERT_LE(keys(), 16U);
  come_and_go(400);
  EXPECT_LE(s.observer.limits().size(), keys());
  EXPECT_GT(s.store().header().limit_turn.load(), 0U);
  EXPECT_EQ(s.store().header().limit_turn.load() % 2, 0U);
}

TEST_F(LimitSweep, a_key_that_a_job_names_stays_and_a_table_of_such_keys_is_full) {
  const int waiting = fill();
  ASSERT_GT(waiting, 8);
  EXPECT_EQ(offer(limit("one-more")).code(), Code::kSegmentFull);
  for (int i = 0; i < waiting; ++i) EXPECT_TRUE(stands("waiting-" + std::to_string(i))) << i;
  ASSERT_TRUE(s.worker.try_fetch(job).ok());  // at work: its permit and its key stay
  EXPECT_EQ(offer(limit("one-more")).code(), Code::kSegmentFull);
  EXPECT_EQ(s.observer.limit("waiting-0")->active, 1U);
  ASSERT_TRUE(s.worker.ack(job).ok());
  while (!stands("one-more")) {  // where it may stand hangs on its name
    if (offer(limit("one-more")).ok()) break;
    ASSERT_TRUE(s.worker.try_fetch(job).ok());
    ASSERT_TRUE(s.worker.ack(job).ok());
  }
  EXPECT_FALSE(stands("waiting-0"));
}

TEST_F(LimitSweep, a_held_back_job_keeps_its_key_and_its_lot) {
  put(limit("held")), put(limit("held"));
  Worker first = Worker::attach(s.segment, {}).value();
  Job at_work;
  ASSERT_TRUE(first.try_fetch(at_work).ok());
  EXPECT_FALSE(s.worker.try_fetch(job).ok());  // into the lot
  come_and_go(50);
  EXPECT_EQ(s.observer.limit("held")->waiting, 1U);
  EXPECT_FALSE(s.worker.try_fetch(job).ok());
  ASSERT_TRUE(first.ack(at_work).ok());
  ASSERT_TRUE(s.worker.try_fetch(job).ok());
  ASSERT_TRUE(s.worker.ack(job).ok());
  come_and_go(50);
  EXPECT_FALSE(stands("held"));
  for (std::uint32_t lot = 0; lot < s.store().lots.size(); ++lot)
    EXPECT_GE(s.store().lots[lot].key(), keys()) << "not of a key: " << lot;
}

TEST_F(LimitSweep, an_operator_s_key_stays_and_one_on_jobs_alone_goes_once_it_is_cleared) {
  ASSERT_TRUE(s.admin.set_limit("api", limit("any").limit).ok());
  ASSERT_TRUE(s.admin.set_limit("tenant:acme", limit("any").limit).ok());
  ASSERT_TRUE(s.admin.set_limit("queue:mail", limit("any").limit).ok());
  ASSERT_TRUE(s.admin.set_limit("type:mail.send", limit("any").limit).ok());
  PoolSettings pool;
  pool.queues = {"mail"};
  pool.concurrency = 3;
  ASSERT_TRUE(s.admin.set_pool("web", pool).ok());
  come_and_go(50);
  for (const char* key : {"api", "tenant:acme", "queue:mail", "type:mail.send", "pool:web"})
    EXPECT_TRUE(stands(key)) << key;
  for (const char* key : {"api", "tenant:acme"}) ASSERT_TRUE(s.admin.clear_limit(key).ok());
  come_and_go(50);
  EXPECT_FALSE(stands("api"));
  EXPECT_TRUE(stands("tenant:acme")) << "each fetch may be looking it up";
  EXPECT_EQ(s.observer.limit("pool:web")->limit.concurrency, 3U);
}

TEST_F(LimitSweep, windows_and_throttles_stay_until_they_have_forgotten) {
  const std::string rules[] = {R"("rate":{"limit":1,"period":"PT1H"})",
                               R"("rate":{"limit":1,"period":"PT1H","window":"sliding"})",
                               R"("throttle":{"limit":1,"period":"PT1H"})"};
  s.move_clock(kHour - s.now_ms() % kHour);  // a fixed window begins with its hour
  for (int i = 0; i < 3; ++i) {
    put(limit("paced-" + std::to_string(i), rules[i]));
    ASSERT_TRUE(s.worker.try_fetch(job).ok());
    ASSERT_TRUE(s.worker.ack(job).ok());
  }
  s.move_clock(60 * kSecond);
  come_and_go(50);
  for (int i = 0; i < 3; ++i) {
    put(limit("paced-" + std::to_string(i), rules[i]));
    EXPECT_FALSE(s.worker.try_fetch(job).ok()) << rules[i];
  }
  s.pass(3 * kHour);
  EXPECT_EQ(s.drain().size(), 3U);
  s.move_clock(3 * kHour);
  come_and_go(50);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(stands("paced-" + std::to_string(i))) << rules[i];
}

TEST_F(LimitSweep, a_dead_letter_is_still_under_its_limit_when_it_comes_back) {
  const JobLimit mine = limit("mine");
  JobSpec spec = spec_of(2);
  spec.limit = &mine;
  spec.retry.max_attempts = 1;
  spec.retry.dead_letter = true;
  const std::string id = s.put(spec);
  ASSERT_TRUE(s.worker.try_fetch(job).ok());
  ASSERT_TRUE(s.worker.nack(job, failure()).ok());
  come_and_go(50);
  ASSERT_TRUE(stands("mine"));
  ASSERT_TRUE(s.admin.retry_dead(id).ok());
  Worker first = Worker::attach(s.segment, {}).value();
  Job again;
  ASSERT_TRUE(first.try_fetch(again).ok());
  put(mine);
  EXPECT_FALSE(s.worker.try_fetch(job).ok());
  ASSERT_TRUE(first.ack(again).ok());
}

TEST_F(LimitSweep, permits_of_keys_that_nobody_needs_serve_the_next) {
  for (int i = 0; i < 40; ++i) {  // each needs a third of all permits
    put(limit("wide-" + std::to_string(i), R"("concurrency":100)"));
    ASSERT_TRUE(s.worker.try_fetch(job).ok());
    ASSERT_TRUE(s.worker.ack(job).ok());
  }
}

TEST_F(LimitSweep, an_enqueue_whose_key_was_given_up_since_it_was_looked_up_is_told_so) {
  const JobLimit early = limit("early");
  JobSpec spec = spec_of(2);
  spec.limit = &early;
  ASSERT_NE(s.actor().ensure_queue("default"), engine::kNoIndex);
  engine::NewJob read, plain;
  ASSERT_EQ(internal::read_spec(s.actor(), spec, read), internal::SpecFault::kNone);
  spec.limit = nullptr;
  ASSERT_EQ(internal::read_spec(s.actor(), spec, plain), internal::SpecFault::kNone);
  engine::JobId id;
  std::vector<engine::JobId> ids;
  EXPECT_EQ(s.actor().enqueue(read, id), engine::Outcome::kOk);
  EXPECT_EQ(s.drain().size(), 1U);
  come_and_go(50);
  ASSERT_FALSE(stands("early"));
  EXPECT_EQ(s.actor().enqueue(read, id), engine::Outcome::kLimitsMoved);
  EXPECT_EQ(s.actor().enqueue_batch(std::vector{plain, read}, ids), engine::Outcome::kLimitsMoved);
  EXPECT_EQ(s.actor().enqueue_batch(std::vector{plain, plain}, ids), engine::Outcome::kOk);
  EXPECT_EQ(s.drain().size(), 2U);
}

TEST_F(LimitSweep, nothing_is_given_up_while_somebody_is_in_the_middle_of_an_enqueue) {
  come_and_go(3);
  shm::LaneWord& held = s.store().segment().lane(30).counters[engine::kLimitsHeld];
  held.set_ordered(1, shm::Point::kNone);  // as a stopped process leaves it
  int refused = 0;
  for (int i = 0; i < 20 && refused == 0; ++i) {
    const auto id = offer(limit("later-" + std::to_string(i)));
    refused += id.ok() ? 0 : 1;
    EXPECT_EQ(s.drain().size(), id.ok() ? 1U : 0U);
  }
  EXPECT_EQ(refused, 1);
  EXPECT_TRUE(stands("passing-0"));
  EXPECT_EQ(s.store().header().limit_turn.load() % 2, 0U);
  held.set_ordered(0, shm::Point::kNone);
  come_and_go(50);
  EXPECT_FALSE(stands("passing-0"));
}

TEST_F(LimitSweep, a_batch_may_bring_more_keys_than_others_left_free) {
  come_and_go(14);
  std::vector<JobLimit> limits;
  for (int i = 0; i < 8; ++i) limits.push_back(limit("together-" + std::to_string(i)));
  std::vector<JobSpec> specs(limits.size(), spec_of(2));
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i].limit = &limits[i];
  const auto ids = s.producer.enqueue_batch(specs);
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  for (const JobLimit& each : limits) EXPECT_TRUE(stands(each.key)) << each.key;
  EXPECT_EQ(s.drain().size(), 8U);
}

/// A job that was cancelled can be retried, and then runs under its own limit.
TEST_F(LimitSweep, the_key_of_a_job_that_may_be_retried_stays_while_another_can_go) {
  const auto lost = offer(limit("own"));
  ASSERT_TRUE(s.producer.cancel(lost->view()).ok());
  come_and_go(400);
  EXPECT_TRUE(stands("own"));
  ASSERT_TRUE(s.producer.retry(lost->view()).ok());
  EXPECT_EQ(s.observer.limit("own")->waiting, 0U);
  ASSERT_TRUE(s.worker.try_fetch(job).ok());
  EXPECT_EQ(s.observer.limit("own")->active, 1U);
  ASSERT_TRUE(s.worker.ack(job).ok());
}

}  // namespace
}  // namespace ojs_shm::test
