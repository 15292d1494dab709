// SPDX-License-Identifier: Apache-2.0
// A segment as lines of text, and back.

#include <map>

#include "tests/unit/engine/quiet_segment.hpp"
#include "tests/unit/worker_api/transfers.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

constexpr const char* kHead = R"({"ojs_shm_export":2,"convention":"ojs"})";
constexpr const char* kIds[] = {
    "01961234-5678-7abc-8def-000000000001", "01961234-5678-7abc-8def-000000000002",
    "01961234-5678-7abc-8def-000000000003", "01961234-5678-7abc-8def-000000000004"};

std::string job_line(const std::string& members) {
  return R"({"job":{"type":"unit.test",)" + members + "}}";
}

/// All that a client can see of the jobs, but for the priority and the fence.
std::map<std::string, std::string> described(const Observer& observer) {
  std::map<std::string, std::string> jobs;
  for (JobInfo job : observer.list({})) {
    job.priority = 0;
    jobs[job.id] = print_job(job) + (job.dead_letter ? " dead" : "");
  }
  return jobs;
}

/// A job in each state, with errors, results, times and settings of its own.
void live_in(QuietSegment& s) {
  EXPECT_TRUE(s.admin.set_queue("mail", {100, 1 << 20, true}).ok());
  EXPECT_TRUE(s.admin.set_queue("bulk", {7, {}, {}}).ok());
  EXPECT_TRUE(s.admin.set_default_priority("unit.test", 3).ok());
  EXPECT_TRUE(s.admin.set_default_priority("never.enqueued", 1).ok());
  JobSpec spec = spec_of(1);
  spec.args = R"([{"to":"ünïcode"},2])";
  spec.extra = R"({"meta":{"trace":"abc"},"tags":["x"],"retry":{"max_attempts":5}})";
  spec.retry = {5, 250, 9000, 1.5F, RetryBackoff::kPolynomial, false, false};
  spec.timeout_ms = 5000;
  spec.lease_ms = 60'000;
  s.put(spec);
  EXPECT_NE(s.take(), "");
  EXPECT_TRUE(s.worker.progress(s.job, 0.29, "soon", R"({"rows":29})").ok());
  EXPECT_TRUE(s.worker.ack(s.job, R"({"sent":true})").ok());

  JobSpec failing = spec_of(0);
  failing.retry.max_attempts = 1;
  failing.retry.dead_letter = true;
  s.put(failing);
  EXPECT_NE(s.take(), "");
  Failure failed = failure();
  failed.details = R"({"line":7})";
  EXPECT_TRUE(s.worker.nack(s.job, failed).ok());

  s.put(0);
  EXPECT_NE(s.take(), "");
  EXPECT_TRUE(s.worker.nack(s.job, failure()).ok());  // retryable
  s.put(0);
  EXPECT_NE(s.take(), "");
  EXPECT_TRUE(s.producer.cancel(s.job.id()).ok());
  JobSpec expiring = spec_of(0);
  expiring.expires_at_ms = s.now_ms() + kHour;
  s.put(expiring);
  s.move_clock(2 * kHour);
  EXPECT_EQ(s.take(), "");
  JobSpec later = spec_of(2, "bulk");
  later.scheduled_at_ms = s.now_ms() + 100 * kHour;
  s.put(later);
  JobSpec pending = spec_of({}, "bulk");
  pending.pending = true;
  s.put(pending);
  s.put(9);
  s.put(2);
  s.put(2);
  s.put(9);
  s.put(2, "mail");
}

TEST(Transfer, every_state_comes_back_with_its_attempts_times_results_and_errors) {
  QuietSegment from, to;
  live_in(from);
  const auto before = described(from.observer);
  ASSERT_EQ(before.size(), 12U);
  ImportReport report;
  const Status done = import(to.segment, exported(from.segment), &report);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(described(to.observer), before);
  EXPECT_EQ(report.jobs, 12U);
  EXPECT_EQ(report.existing + report.clamped + report.defaulted, 0U);
  for (const JobInfo& job : from.observer.list({})) {
    EXPECT_EQ(to.get(job.id).priority, job.priority);
    EXPECT_GE(to.get(job.id).fence, job.fence) << "a fence never goes back";
  }
  EXPECT_EQ(to.observer.list({.dead_letter = true}).size(), 1U);
}

TEST(Transfer, settings_come_too) {
  QuietSegment from, to;
  live_in(from);
  ImportReport report;
  ASSERT_TRUE(import(to.segment, exported(from.segment), &report).ok());
  EXPECT_EQ(report.queues, 3U);
  EXPECT_EQ(report.default_priorities, 2U);
  EXPECT_EQ(to.queue("mail").max_depth, 100U);
  EXPECT_EQ(to.queue("mail").max_size_bytes, 1U << 20);
  EXPECT_TRUE(to.queue("mail").paused);
  EXPECT_EQ(to.queue("bulk").max_depth, 7U);
  EXPECT_FALSE(to.queue("bulk").paused);
  EXPECT_EQ(to.observer.default_priority("unit.test"), 3);
  EXPECT_EQ(to.observer.default_priority("never.enqueued"), 1) << "of a type that no job tells";
  for (const char* queue : {"default", "mail", "bulk"})
    EXPECT_EQ(to.queue(queue).depth, from.queue(queue).depth);
}

TEST(Transfer, the_order_within_queues_comes_too_and_means_the_same_in_another_convention) {
  QuietSegment from, to, qo(few_slots(512, "qo"));
  ASSERT_TRUE(from.admin.set_default_aging({.interval_ms = 30'000, .rate = 2, .limit = 5}).ok());
  QueueSettings weighted, sharded, strict;
  weighted.level_weights = {{"critical", 5}, {"7", 3}, {"*", 2}};
  weighted.aging = AgingSettings{.enabled = false};
  sharded.shards = 2;
  strict.aging = AgingSettings{.preset = "qo", .rate = 9};
  ASSERT_TRUE(from.admin.set_queue("weighted", weighted).ok());
  ASSERT_TRUE(from.admin.set_queue("sharded", sharded).ok());
  ASSERT_TRUE(from.admin.set_queue("strict", strict).ok());
  JobSpec spec = spec_of(9);
  spec.priority_age_rate = 7;
  const std::string id = from.put(spec), other = from.put(2, "sharded");
  const auto policies = [](const QuietSegment& s) {
    std::map<std::string, std::string> all;
    for (const QueueInfo& queue : s.observer.queues()) all[queue.name] = print_queue_policy(queue);
    return all;
  };
  const Lines lines = exported(from.segment);
  Status done = import(to.segment, lines);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(policies(to), policies(from));
  EXPECT_TRUE(to.queue().aging_is_default);
  EXPECT_FALSE(to.queue("strict").aging_is_default);
  EXPECT_EQ(to.get(id).priority_age_rate, 7U);
  EXPECT_EQ(to.drain(), (Ids{id}));

  done = import(qo.segment, lines);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(qo.queue().aging.limit, 250) << "rank 5";
  std::map<std::string, std::uint32_t> weights;
  for (const LevelWeight& each : qo.queue("weighted").level_weights)
    weights[each.level] = each.weight;
  EXPECT_EQ(weights, (std::map<std::string, std::uint32_t>{{"255", 5}, {"248", 3}, {"*", 2}}));
}

/// A process that died in the middle of `set_queue` leaves both behind.
TEST(Transfer, of_two_orders_that_exclude_each_other_the_one_in_force_comes) {
  QuietSegment from, to;
  QueueSettings weighted;
  weighted.level_weights = {{"critical", 5}, {"*", 2}};
  weighted.aging = AgingSettings{.enabled = false};
  ASSERT_TRUE(from.admin.set_queue("torn", weighted).ok());
  from.actor().order().set_aging(from.actor().ensure_queue("torn"),
                                 engine::Aging(true, false, 1000, 1, engine::Aging::kNoBest));
  ASSERT_TRUE(from.queue("torn").aging.enabled);
  const Status done = import(to.segment, exported(from.segment));
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_FALSE(to.queue("torn").aging.enabled);
  EXPECT_EQ(to.queue("torn").level_weights.size(), 2U);
}

TEST(Transfer, the_order_of_fetching_stays) {
  QuietSegment from, to;
  Ids expected;
  const std::string held = from.put(2);
  for (int i = 0; i < 20; ++i) from.put(i % 3);
  from.take();  // the first of priority 0
  const std::string active(from.job.id());
  const std::string second = from.take();
  EXPECT_TRUE(from.worker.requeue(from.job).ok());
  for (const JobInfo& job : from.observer.list({.state = State::kAvailable}))
    expected.push_back(job.id);
  expected.insert(expected.begin(), active);
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(expected[1], second);
  EXPECT_EQ(to.drain(), expected);
}

TEST(Transfer, an_active_job_becomes_available_with_its_attempt) {
  QuietSegment from, to;
  const std::string id = from.put();
  from.take();
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(to.state_of(id), State::kAvailable);
  EXPECT_EQ(to.get(id).attempt, 1);
  EXPECT_EQ(to.take(), id);
  EXPECT_EQ(to.job.attempt(), 2);
  EXPECT_GT(to.job.fence(), from.job.fence());
}

TEST(Transfer, an_old_segment_is_moved_whatever_its_fences_are) {
  QuietSegment from, to;
  for (std::uint32_t slot = 0; slot < from.store().slots(); ++slot)
    from.store().job(slot).control.store(
        engine::Control(engine::kSlotFree, 0, 0, shm::kLastFirstTag - 8).word, shm::Point::kNone);
  const std::string id = from.put();
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(to.take(), id);
  EXPECT_GT(to.job.fence(), shm::kLastFirstTag);
}

TEST(Transfer, a_job_that_waits_brings_no_result) {
  QuietSegment s;
  const std::string members =
      R"("id":")" + std::string(kIds[0]) + R"(","state":"available","result":{"old":true})";
  ASSERT_TRUE(import(s.segment, {kHead, job_line(members)}).ok());
  EXPECT_EQ(s.producer.get(kIds[0])->result, "");
  ASSERT_EQ(s.take(), kIds[0]);
  ASSERT_TRUE(s.worker.ack(s.job, "[1]").ok());
  EXPECT_EQ(s.producer.get(kIds[0])->result, "[1]");
  EXPECT_EQ(s.findings(), "") << "its first result would be nobody's";
}

TEST(Transfer, what_waits_goes_on_when_its_time_comes) {
  QuietSegment from, to;
  JobSpec spec = spec_of();
  spec.scheduled_at_ms = from.now_ms() + kHour;
  const std::string scheduled = from.put(spec);
  JobSpec born_pending = spec_of();
  born_pending.pending = true;
  const std::string pending = from.put(born_pending);
  const std::string retryable = from.put(0);
  from.take();
  ASSERT_TRUE(from.worker.nack(from.job, failure()).ok());
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  EXPECT_EQ(to.take(), "");
  to.pass(2 * kHour);
  EXPECT_EQ(to.state_of(scheduled), State::kAvailable);
  EXPECT_EQ(to.state_of(retryable), State::kAvailable);
  EXPECT_EQ(to.state_of(pending), State::kPending);
  EXPECT_TRUE(to.producer.activate(pending).ok());
  EXPECT_EQ(to.drain().size(), 3U);
}

TEST(Transfer, a_dead_letter_can_be_retried_where_it_came_to) {
  QuietSegment from, to;
  live_in(from);
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  const std::string id = to.observer.list({.dead_letter = true}).front().id;
  EXPECT_TRUE(to.admin.retry_dead(id).ok());
  EXPECT_EQ(to.take(), id);
}

TEST(Transfer, a_priority_keeps_its_rank_in_another_convention) {
  QuietSegment ojs, qo(few_slots(512, "qo")), core(few_slots(512, "ojs-core"));
  const Ids ids = {ojs.put(0), ojs.put(2), ojs.put(200), ojs.put(210), ojs.put(255)};
  ASSERT_TRUE(ojs.admin.set_default_priority("unit.test", 7).ok());
  ImportReport report;
  ASSERT_TRUE(import(qo.segment, exported(ojs.segment), &report).ok());
  EXPECT_EQ(report.clamped, 0U);
  EXPECT_EQ(qo.get(ids[0]).priority, 255);
  EXPECT_EQ(qo.get(ids[1]).priority, 253);
  EXPECT_EQ(qo.get(ids[4]).priority, 0);
  EXPECT_EQ(qo.observer.default_priority("unit.test"), 248);
  // 201 ranks: what lies beyond gets the last, in the order that it had.
  ASSERT_TRUE(import(core.segment, exported(ojs.segment), &report).ok());
  EXPECT_EQ(report.clamped, 2U);
  EXPECT_EQ(core.get(ids[0]).priority, 100);
  EXPECT_EQ(core.get(ids[2]).priority, -100);
  EXPECT_EQ(core.get(ids[4]).priority, -100);
  EXPECT_EQ(core.drain(), ids);
}

TEST(Transfer, QO_17_a_job_without_priority_is_normal_and_stands_behind_the_others) {
  QuietSegment s(few_slots(512, "qo"));
  ImportReport report;
  const Lines lines = {R"({"ojs_shm_export":1,"convention":"qo"})",
                       job_line(R"("id":")" + std::string(kIds[0]) + R"(")"),
                       job_line(R"("id":")" + std::string(kIds[1]) + R"(","priority":"normal")"),
                       job_line(R"("id":")" + std::string(kIds[2]) + R"(","priority":128)"),
                       job_line(R"("id":")" + std::string(kIds[3]) + R"(","priority":50)")};
  ASSERT_TRUE(import(s.segment, lines, &report).ok());
  EXPECT_EQ(report.defaulted, 1U);
  EXPECT_EQ(s.get(kIds[0]).priority, 128);
  EXPECT_EQ(s.drain(), (Ids{kIds[1], kIds[2], kIds[0], kIds[3]}));
}

TEST(Transfer, pools_and_limits_come_back_as_they_were_set) {
  QuietSegment from, to;
  PoolSettings web;
  web.queues = {"mail", "bulk"};
  web.strategy = PoolStrategy::kWeighted;
  web.weights = {{"mail", 3}, {"bulk", 1}};
  web.concurrency = 5;
  web.isolated = true;
  web.starvation_prevention = {true, 2000, 0.125};
  ASSERT_TRUE(from.admin.set_pool("web", web).ok());
  ASSERT_TRUE(from.admin.set_pool("plain", PoolSettings{{"default"}}).ok());
  ASSERT_TRUE(from.admin.set_pool("gone", PoolSettings{{"default"}}).ok());
  ASSERT_TRUE(from.admin.remove_pool("gone").ok());
  const auto limit = [](const char* json) { return parse_limit(json).value(); };
  const JobLimit tenant = limit(R"({"key":"tenant:acme","concurrency":1,"on_limit":"reschedule"})");
  const JobLimit queue =
      limit(R"({"key":"queue:mail","rate":{"limit":50,"period":"PT1S","window":"sliding"}})");
  const JobLimit brought =
      limit(R"({"key":"api","throttle":{"limit":9,"period":"PT1M","burst":3}})");
  ASSERT_TRUE(from.admin.set_limit(tenant.key, tenant.limit).ok());
  ASSERT_TRUE(from.admin.set_limit(queue.key, queue.limit).ok());
  ASSERT_TRUE(from.admin.set_limit("cleared", brought.limit).ok());
  ASSERT_TRUE(from.admin.clear_limit("cleared").ok());
  JobSpec spec = spec_of(2);
  spec.extra = R"({"rate_limit":{"key":"api","throttle":{"limit":1,"period":"PT1S"}}})";
  const JobLimit first = limit(R"({"key":"api","throttle":{"limit":1,"period":"PT1S"}})");
  spec.limit = &first;
  from.put(spec);
  spec = spec_of(2);
  spec.limit = &brought;  // brought last, so it holds
  from.put(spec);
  const Lines lines = exported(from.segment);
  ImportReport report;
  const Status done = import(to.segment, lines, &report);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(report.pools, 2U);
  EXPECT_EQ(report.limits, 3U);
  EXPECT_EQ(print_pool(*to.observer.pool("web")), print_pool(*from.observer.pool("web")));
  EXPECT_EQ(print_pool(*to.observer.pool("plain")), print_pool(*from.observer.pool("plain")));
  EXPECT_EQ(to.observer.pool("gone").code(), Code::kNotFound);
  for (const JobLimit* each : {&tenant, &queue, &brought}) {
    EXPECT_EQ(to.observer.limit(each->key)->limit, each->limit) << each->key;
    EXPECT_EQ(to.observer.limit(each->key)->by_operator, each != &brought);
  }
  EXPECT_EQ(to.observer.limit("pool:web")->limit.concurrency, 5U) << "with its pool";
  EXPECT_EQ(to.observer.limit("cleared").code(), Code::kNotFound);
  Lines again = exported(to.segment);
  EXPECT_EQ(Lines(again.begin() + 1, again.end()).size(), lines.size() - 1);
  for (const Lines& wrong :
       {Lines{kHead, R"({"pool":{"name":"x"}})"}, Lines{kHead, R"({"pool":{"settings":7}})"},
        Lines{kHead, R"({"pool":{"name":"x","settings":{"queues":["a"]},"more":1}})"},
        Lines{kHead, R"({"limit":{"key":"x","settings":{"speed":1}}})"},
        Lines{kHead, R"({"limit":{"key":"no key","settings":{"concurrency":1}}})"}})
    EXPECT_EQ(import(to.segment, wrong).code(), Code::kInvalid) << wrong[1];
}

TEST(Transfer, the_same_export_again_puts_in_what_is_missing) {
  QuietSegment from, to;
  live_in(from);
  const Lines lines = exported(from.segment);
  ASSERT_TRUE(import(to.segment, Lines(lines.begin(), lines.end() - 4)).ok());
  ImportReport report;
  ASSERT_TRUE(import(to.segment, lines, &report).ok());
  EXPECT_EQ(report.jobs, 4U);
  EXPECT_EQ(report.existing, 8U);
  EXPECT_EQ(described(to.observer), described(from.observer));
}

TEST(Transfer, a_bound_does_not_refuse_what_was_accepted_once) {
  QuietSegment s;
  Lines lines = {kHead,
                 R"({"queue":{"name":"default","settings":{"backpressure":{"max_depth":1}}}})"};
  for (const char* id : kIds)
    lines.push_back(job_line(R"("priority":2,"id":")" + std::string(id) + R"(")"));
  ASSERT_TRUE(import(s.segment, lines).ok());
  EXPECT_EQ(s.queue().depth, 4U);
  EXPECT_EQ(s.producer.enqueue(spec_of()).code(), Code::kQueueFull);
  EXPECT_EQ(s.drain().size(), 4U);
  EXPECT_TRUE(s.producer.enqueue(spec_of()).ok());
}

TEST(Transfer, texts_that_are_no_json_come_back_as_they_were) {
  QuietSegment from, to;
  JobSpec spec = spec_of();
  spec.args = "[not json]";
  spec.extra = "neither";
  const std::string id = from.put(spec);
  from.take();
  ASSERT_TRUE(from.worker.ack(from.job, "nor this").ok());
  ASSERT_TRUE(import(to.segment, exported(from.segment)).ok());
  const JobInfo job = to.get(id);
  EXPECT_EQ(job.args, "[not json]");
  EXPECT_EQ(job.extra, "neither");
  EXPECT_EQ(job.result, "nor this");
}

TEST(Transfer, an_export_looks_and_never_touches) {
  QuietSegment s;
  live_in(s);
  const Segment read_only = Segment::observe(s.where()).value();
  const Lines lines = exported(read_only);
  EXPECT_EQ(Lines(lines.begin() + 1, lines.end()), [&] {
    const Lines again = exported(s.segment);
    return Lines(again.begin() + 1, again.end());
  }());
}

TEST(Transfer, an_export_ends_with_the_first_error_of_whoever_takes_its_lines) {
  QuietSegment s;
  s.put();
  int lines = 0;
  const Status done = export_segment(s.segment, [&](std::string_view) -> Status {
    ++lines;
    return Error{Code::kNoSpace, "full"};
  });
  EXPECT_EQ(done.code(), Code::kNoSpace);
  EXPECT_EQ(lines, 1);
}

TEST(Transfer, what_is_wrong_is_named_with_its_line_and_the_next_line_goes_on) {
  QuietSegment s;
  Import import = Import::attach(s.segment).value();
  ASSERT_TRUE(import.take(kHead).ok());
  ASSERT_TRUE(import.take("").ok());
  const std::pair<std::string, std::string> wrong[] = {
      {"{", "line 3: "},
      {"[1]",
       "line 4: a line of an export is an object with one member: job, workflow, queue, pool, "
       "limit, cron, aging "
       "or"},
      {R"({"jobs":{}})", "line 5: a line of an export"},
      {job_line(R"("color":"red")"), "line 6: color is not a member of job"},
      {job_line(R"("priority":256)"), "line 7: priority 256 is out of range"},
      {job_line(R"("state":"done","priority":1)"), "line 8: state must be one of the eight states"},
      {R"({"job":{"type":"X","priority":1}})", "line 9: type must be"},
      {job_line(R"("priority":1,"id":"abc123")"), "line 10: 'abc123' is not a job id"},
      {job_line(R"("priority":1,"created_at":"yesterday")"), "line 11: created_at "},
      {job_line(R"("priority":"urgent")"),
       "line 12: 'urgent' is not a priority of convention 'ojs'"},
      {R"({"queue":{"name":"Upper"}})", "line 13: queue must be"},
      {job_line(R"("priority":1,"fence":68719476736)"), "line 14: fence is at most"},
      {kHead, "line 15: a second first line"},
      {R"({"queue":{"name":"a","settings":{"speed":1}}})",
       "line 16: settings is wrong: speed is not a setting of a queue"},
      {R"({"aging":{"rate":256}})", "line 17: aging.rate must be"},
      {R"({"default_priority":{"priority":1}})",
       "line 18: a default priority needs type or type_hash"},
  };
  for (const auto& [line, message] : wrong) {
    const Status taken = import.take(line);
    EXPECT_EQ(taken.code(), Code::kInvalid) << line;
    EXPECT_EQ(taken.error().message.substr(0, message.size()), message);
  }
  ASSERT_TRUE(import.take(R"({"job":{"type":"Not valid"}})").ok())
      << "looked at when the others are in";
  ASSERT_TRUE(import.take(job_line(R"("id":")" + std::string(kIds[0]) + R"(")")).ok());
  EXPECT_NE(import.finish().error().message.find("line 19: type must be"), std::string::npos);
  EXPECT_TRUE(import.finish().ok());
  EXPECT_EQ(import.report().jobs, 1U);
}

TEST(Transfer, only_an_export_of_a_version_it_knows_is_read) {
  QuietSegment s;
  EXPECT_EQ(import(s.segment, {job_line(R"("priority":1)")}).code(), Code::kOtherFormat);
  EXPECT_EQ(import(s.segment, {"not json"}).code(), Code::kOtherFormat);
  const Status newer =
      import(s.segment, {R"({"ojs_shm_export":3,"convention":"ojs","new_member":true})"});
  EXPECT_EQ(newer.code(), Code::kOtherFormat);
  EXPECT_NE(newer.error().message.find("version 3"), std::string::npos);
  EXPECT_EQ(import(s.segment, {R"({"ojs_shm_export":1,"convention":"mine"})"}).code(),
            Code::kInvalid);
}

TEST(Transfer, a_full_segment_ends_it_and_names_the_pool) {
  QuietSegment s(few_slots(64));
  Import import = Import::attach(s.segment).value();
  ASSERT_TRUE(import.take(kHead).ok());
  Status taken;
  for (int i = 0; i < 65 && taken; ++i) taken = import.take(job_line(R"("priority":2)"));
  EXPECT_EQ(taken.code(), Code::kSegmentFull);
  EXPECT_NE(taken.error().message.find("--slots"), std::string::npos) << taken.error().message;
  EXPECT_EQ(import.report().jobs, 64U);
}

}  // namespace
}  // namespace ojs_shm::test
