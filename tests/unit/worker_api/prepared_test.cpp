// SPDX-License-Identifier: Apache-2.0
// Jobs that are alike but for args and priority: what a kind gives to each, and that nothing is
// stored of what is wrong.

#include <array>
#include <string>
#include <vector>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

JobSpec kind_of_mail() {
  JobSpec spec;
  spec.type = "mail.send";
  spec.queue = "mail";
  spec.priority = 3;
  spec.timeout_ms = 5000;
  spec.lease_ms = 6000;
  spec.retry.max_attempts = 7;
  spec.retry.initial_ms = 20;
  spec.retry.backoff = RetryBackoff::kLinear;
  return spec;
}

TEST(Prepared, a_job_has_what_its_kind_has_and_its_own_args_and_priority) {
  QuietSegment s;
  PreparedJob kind = [&] {
    std::string type = "mail.send";  // gone when the kind is used
    JobSpec spec = kind_of_mail();
    spec.type = type;
    return s.producer.prepare(spec).value();
  }();
  for (int i = 0; i < 3; ++i) {  // the first makes the level, the others go straight
    const auto one = s.producer.enqueue(kind, "[1]");
    const auto other = s.producer.enqueue(kind, R"(["two"])", 9);
    ASSERT_TRUE(one.ok() && other.ok());
    const JobInfo first = s.producer.get(one->str()).value();
    const JobInfo second = s.producer.get(other->str()).value();
    EXPECT_EQ(first.args, "[1]");
    EXPECT_EQ(second.args, R"(["two"])");
    EXPECT_EQ(first.priority, 3);
    EXPECT_EQ(second.priority, 9);
    const auto spelled = s.producer.enqueue(kind.with("[1]"));
    ASSERT_TRUE(spelled.ok());
    const JobInfo third = s.producer.get(spelled->str()).value();
    for (const JobInfo& job : {first, second, third}) {
      EXPECT_EQ(job.type, "mail.send");
      EXPECT_EQ(job.queue, "mail");
      EXPECT_EQ(job.timeout_ms, 5000);
      EXPECT_EQ(job.retry.max_attempts, 7);
      EXPECT_EQ(job.retry.initial_ms, 20);
      EXPECT_EQ(job.retry.backoff, RetryBackoff::kLinear);
      EXPECT_EQ(job.extra, "");
    }
  }
}

TEST(Prepared, a_batch_keeps_its_order_and_is_stored_whole_or_not) {
  QuietSegment s;
  JobSpec spec = kind_of_mail();
  spec.queue = "default";
  const PreparedJob kind = s.producer.prepare(spec).value();
  for (const std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{100}}) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) texts.push_back("[" + std::to_string(i) + "]");
    std::vector<PreparedArgs> jobs;
    for (const std::string& text : texts) jobs.push_back({.args = text});
    std::vector<JobIdText> ids(count);
    ASSERT_TRUE(s.producer.enqueue_batch(kind, jobs, ids).ok()) << count;
    for (std::size_t i = 0; i < count; ++i) {
      Job job;
      ASSERT_TRUE(s.worker.try_fetch(job).ok());
      EXPECT_EQ(job.args(), texts[i]);
      EXPECT_EQ(job.id(), ids[i].view());
      ASSERT_TRUE(s.worker.ack(job).ok());
    }
    jobs.back().priority = 1000;
    EXPECT_EQ(s.producer.enqueue_batch(kind, jobs, ids).code(), Code::kInvalid) << count;
    jobs.back() = {.args = "no array"};
    EXPECT_EQ(s.producer.enqueue_batch(kind, jobs, ids).code(), Code::kInvalid) << count;
    jobs.back() = {};
    EXPECT_EQ(s.producer.enqueue_batch(kind, jobs, std::span(ids).first(count - 1)).code(),
              Code::kInvalid);
    Job job;
    EXPECT_EQ(s.worker.try_fetch(job).code(), Code::kEmpty);
  }
}

TEST(Prepared, what_is_wrong_is_told_and_stores_nothing) {
  QuietSegment s;
  JobSpec spec = kind_of_mail();
  spec.id = "01890a5d-ac96-774b-bcce-b302099a8057";
  EXPECT_EQ(s.producer.prepare(spec).error().subject, "id");
  spec = kind_of_mail();
  spec.retry.coefficient = 0.5F;
  EXPECT_EQ(s.producer.prepare(spec).code(), Code::kInvalid);
  spec = kind_of_mail();
  spec.priority = 1000;
  EXPECT_EQ(s.producer.prepare(spec).code(), Code::kInvalid);
  spec = kind_of_mail();
  spec.type = "Not A Type";
  EXPECT_EQ(s.producer.prepare(spec).error().subject, "type");
  const PreparedJob kind = s.producer.prepare(kind_of_mail()).value();
  for (const std::string_view args : {"", "[", "{}", "[1", "1]"})
    EXPECT_EQ(s.producer.enqueue(kind, args).error().subject, "args") << args;
  EXPECT_EQ(s.producer.enqueue(kind, "[]", 1000).error().subject, "priority");
  EXPECT_EQ(s.observer.queue("mail")->enqueued_total, 0U);
}

TEST(Prepared, a_kind_with_more_than_the_basics_and_a_long_job_go_the_general_way) {
  QuietSegment s;
  JobSpec spec = kind_of_mail();
  spec.extra = R"({"meta":{"a":1}})";
  spec.scheduled_at_ms = s.now_ms() + 60'000;
  const PreparedJob later = s.producer.prepare(spec).value();
  const auto waits = s.producer.enqueue(later, "[1]");
  ASSERT_TRUE(waits.ok());
  EXPECT_EQ(s.producer.get(waits->str())->state, State::kScheduled);
  EXPECT_EQ(s.producer.get(waits->str())->extra, spec.extra);
  const std::string args = "[\"" + std::string(5000, 'x') + "\"]";
  const PreparedJob kind = s.producer.prepare(kind_of_mail()).value();
  const auto long_one = s.producer.enqueue(kind, args);
  ASSERT_TRUE(long_one.ok());
  EXPECT_EQ(s.producer.get(long_one->str())->args, args);
  QueueSettings bounded;
  bounded.max_depth = 2;
  ASSERT_TRUE(s.admin.set_queue("mail", bounded).ok());
  EXPECT_EQ(s.producer.enqueue(kind, "[1]").code(), Code::kQueueFull);
}

TEST(Prepared, a_kind_of_another_segment_is_spelled_out) {
  QuietSegment here, there;
  const PreparedJob kind = there.producer.prepare(kind_of_mail()).value();
  const auto made = here.producer.enqueue(kind, "[1]");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(here.producer.get(made->str())->type, "mail.send");
  EXPECT_EQ(there.observer.queue("mail")->enqueued_total, 0U);
}

TEST(Prepared, a_default_priority_that_its_type_gets_later_counts) {
  QuietSegment s;
  JobSpec spec = kind_of_mail();
  spec.priority.reset();
  const PreparedJob kind = s.producer.prepare(spec).value();
  ASSERT_TRUE(s.admin.set_default_priority("mail.send", 8).ok());
  EXPECT_EQ(s.producer.get(s.producer.enqueue(kind, "[]")->str())->priority, 8);
}

}  // namespace
}  // namespace ojs_shm::test
