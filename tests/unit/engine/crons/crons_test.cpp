// SPDX-License-Identifier: Apache-2.0
// Crons: setting, firing, overlaps, refusals, events. The clock stands, and each test ends with an
// audit.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/roles/cron_keeper.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kMonday = 1'767'571'200'000;  // 2026-01-05T00:00:00Z

class Crons : public testing::Test {
 protected:
  Crons() : keeper(s.actor()) {
    s.segment.attachment()->segment().header().clock_offset_ms.store(shm::kStandingClock | kMonday,
                                                                     shm::Point::kNone);
  }
  CronSpec spec(std::string_view name = "hourly", std::string_view expression = "0 * * * *") {
    CronSpec spec;
    spec.name = name;
    spec.expression = expression;
    spec.job.type = "report.make";
    spec.job.args = R"([{"n":1}])";
    return spec;
  }
  bool set(const CronSpec& spec) {
    const auto made = s.admin.set_cron(spec);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() && *made;
  }
  CronInfo look(std::string_view name = "hourly") {
    const auto info = s.observer.cron(name);
    EXPECT_TRUE(info.ok()) << name;
    return info.ok() ? *info : CronInfo{};
  }
  /// So much later, as the supervisor finds it.
  std::uint64_t pass(std::uint64_t ms) {
    s.move_clock(ms);
    return keeper.look(s.now_ms());
  }
  std::vector<JobInfo> jobs(std::string_view name = "hourly") {
    std::vector<JobInfo> found;
    for (JobInfo& job : s.observer.list({}))
      if (job.cron_name == name) found.push_back(std::move(job));
    return found;
  }
  std::vector<Event> events() {
    std::vector<Event> all;
    for (Event event; reader->next(event);)
      if (event.type.starts_with("cron.")) all.push_back(event);
    return all;
  }
  void listen() {
    ASSERT_TRUE(s.admin.set_events(true).ok());
    reader.emplace(s.observer.events({.from_start = false, .settle_ms = 0}));
  }
  QuietSegment s;
  internal::CronKeeper keeper;
  std::optional<EventReader> reader;
};

TEST_F(Crons, in_maintenance_none_fires_and_missed_times_are_one_afterwards) {
  EXPECT_TRUE(set(spec()));
  ASSERT_TRUE(s.admin.set_maintenance(true).ok());
  pass(3 * kHour);
  EXPECT_TRUE(jobs().empty());
  ASSERT_TRUE(s.admin.set_maintenance(false).ok());
  pass(1'000);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(look().run_count, 1U);
}

TEST_F(Crons, fires_at_its_time_and_not_before) {
  EXPECT_TRUE(set(spec()));
  EXPECT_EQ(look().next_run_at_ms, kMonday + kHour);
  EXPECT_EQ(pass(kHour - 1), kMonday + kHour) << "when the supervisor is to look again";
  EXPECT_TRUE(jobs().empty());
  EXPECT_EQ(s.queue().depth, 0U) << "a template is no job";
  pass(1);
  ASSERT_EQ(jobs().size(), 1U);
  const JobInfo job = jobs().front();
  EXPECT_EQ(job.type, "report.make");
  EXPECT_EQ(job.args, R"([{"n":1}])");
  EXPECT_EQ(job.created_at_ms, kMonday + kHour);
  const CronInfo cron = look();
  EXPECT_EQ(cron.run_count, 1U);
  EXPECT_EQ(cron.last_run_at_ms, kMonday + kHour);
  EXPECT_EQ(cron.next_run_at_ms, kMonday + 2 * kHour);
  EXPECT_EQ(cron.last_job, job.id);
  pass(0);
  EXPECT_EQ(jobs().size(), 1U) << "once for each time";
}

TEST_F(Crons, all_missed_times_are_one) {
  set(spec());
  pass(10 * kHour + 1);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(look().next_run_at_ms, kMonday + 11 * kHour);
}

TEST_F(Crons, PRI_002_a_job_without_priority_has_the_default_one) {
  set(spec());
  pass(kHour);
  EXPECT_EQ(jobs().at(0).priority, 2);
}

TEST_F(Crons, the_job_has_all_that_its_template_has) {
  CronSpec full = spec();
  const std::string large(3000, 'x');
  const std::string args = "[\"" + large + "\"]";
  full.job.args = args;
  full.job.queue = "reports";
  full.job.extra = R"({"meta":{"tenant_id":"a"}})";
  full.job.priority = 1;
  full.job.timeout_ms = 4000;
  full.job.lease_ms = 5000;
  full.job.expires_at_ms = 90'000;
  full.job.retry.max_attempts = 7;
  full.job.retry.dead_letter = true;
  full.job.priority_age_rate = 3;
  full.description = "all of it";
  full.timezone = "Europe/Berlin";
  set(full);
  const CronInfo cron = look();
  EXPECT_EQ(cron.description, "all of it");
  EXPECT_EQ(cron.timezone, "Europe/Berlin");
  EXPECT_EQ(cron.job.args, args);
  EXPECT_EQ(cron.job.priority_age_rate, 3U);
  EXPECT_EQ(cron.job.expires_at_ms, 90'000U);
  EXPECT_EQ(cron.job.id, "");
  pass(kHour);
  const JobInfo job = jobs().at(0);
  EXPECT_EQ(job.args, args);
  EXPECT_EQ(job.queue, "reports");
  EXPECT_EQ(job.extra, full.job.extra);
  EXPECT_EQ(job.priority, 1);
  EXPECT_EQ(job.timeout_ms, 4000U);
  EXPECT_EQ(job.lease_ms, 5000U);
  EXPECT_EQ(job.expires_at_ms, kMonday + kHour + 90'000);
  EXPECT_EQ(job.retry.max_attempts, 7);
  EXPECT_TRUE(job.retry.dead_letter);
  EXPECT_EQ(job.priority_age_rate, 3U);
}

TEST_F(Crons, one_of_that_name_is_replaced_and_keeps_its_counts) {
  EXPECT_TRUE(set(spec()));
  pass(kHour);
  CronSpec other = spec("hourly", "30 * * * *");
  other.job.type = "report.other";
  other.overlap = CronOverlap::kAllow;
  EXPECT_FALSE(set(other));
  EXPECT_EQ(s.observer.crons().size(), 1U);
  const CronInfo cron = look();
  EXPECT_EQ(cron.run_count, 1U);
  EXPECT_EQ(cron.created_at_ms, kMonday);
  EXPECT_EQ(cron.next_run_at_ms, kMonday + kHour + 30 * kMinute);
  EXPECT_EQ(cron.job.type, "report.other");
  pass(30 * kMinute);
  EXPECT_EQ(jobs().size(), 2U);
  EXPECT_EQ(s.pool_use("slots"), 3U) << "two jobs and one template";
}

TEST_F(Crons, one_that_is_set_as_it_is_keeps_its_next_time) {
  set(spec("hourly", "@every 1h"));
  s.move_clock(kHour / 2);
  set(spec("hourly", "@every 1h"));
  EXPECT_EQ(look().next_run_at_ms, kMonday + kHour);
  s.move_clock(kHour);  // it is due when its program starts again
  set(spec("hourly", "@every 1h"));
  pass(0);
  EXPECT_EQ(look().run_count, 1U);
  set(spec("hourly", "@every 2h"));
  EXPECT_EQ(look().next_run_at_ms, s.now_ms() + 2 * kHour);
}

TEST_F(Crons, a_removed_one_fires_no_more_and_its_jobs_stay) {
  set(spec());
  pass(kHour);
  const std::string id = jobs().at(0).id;
  EXPECT_TRUE(s.admin.remove_cron("hourly").ok());
  EXPECT_EQ(s.admin.remove_cron("hourly").code(), Code::kNotFound);
  pass(5 * kHour);
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(s.get(id).cron_name, "") << "there is no such cron";
  EXPECT_TRUE(set(spec("another")));
  EXPECT_EQ(s.get(id).cron_name, "") << "the other one has its record, and did not make it";
  EXPECT_EQ(look("another").run_count, 0U);
}

TEST_F(Crons, a_disabled_one_waits_until_it_is_enabled) {
  CronSpec off = spec();
  off.enabled = false;
  set(off);
  EXPECT_EQ(look().next_run_at_ms, 0U);
  pass(3 * kHour);
  EXPECT_TRUE(jobs().empty());
  EXPECT_TRUE(s.admin.enable_cron("hourly", true).ok());
  EXPECT_EQ(look().next_run_at_ms, kMonday + 4 * kHour) << "what was missed is no matter";
  pass(kHour);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_TRUE(s.admin.enable_cron("hourly", false).ok());
  EXPECT_FALSE(look().enabled);
  pass(kHour);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(s.admin.enable_cron("none", true).code(), Code::kNotFound);
}

TEST_F(Crons, a_trigger_leaves_the_next_time) {
  set(spec());
  const auto id = s.admin.trigger_cron("hourly");
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(jobs().at(0).id, id->str());
  EXPECT_EQ(look().next_run_at_ms, kMonday + kHour);
  EXPECT_EQ(look().run_count, 1U);
  const auto again = s.admin.trigger_cron("hourly");
  EXPECT_EQ(again.code(), Code::kWrongState) << "its last job waits";
  EXPECT_EQ(s.admin.trigger_cron("none").code(), Code::kNotFound);
}

TEST_F(Crons, L2_CRON_overlap_skip_passes_over_while_the_last_job_is_not_finished) {
  listen();
  set(spec());
  pass(kHour);
  ASSERT_NE(s.take(), "");
  pass(kHour);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(look().skipped_count, 1U);
  EXPECT_EQ(look().next_run_at_ms, kMonday + 3 * kHour);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  pass(kHour);
  EXPECT_EQ(look().skipped_count, 2U) << "it is to be tried again";
  s.pass(kHour / 2);
  s.drain();
  pass(kHour / 2);
  EXPECT_EQ(look().run_count, 2U);
  const auto told = events();
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0].type, "cron.triggered");
  EXPECT_EQ(told[0].cron_name, "hourly");
  EXPECT_EQ(told[0].at_ms, kMonday + 2 * kHour);
  EXPECT_EQ(told[0].scheduled_at_ms, kMonday + kHour);
  EXPECT_EQ(told[0].run_count, 1U);
  EXPECT_EQ(told[0].cron_expression, "0 * * * *");
  EXPECT_EQ(told[0].timezone, "UTC");
  EXPECT_EQ(told[0].job_type, "report.make");
  EXPECT_EQ(told[1].type, "cron.skipped");
  EXPECT_EQ(told[1].reason, "overlap_skip");
  EXPECT_EQ(told[1].scheduled_at_ms, kMonday + 2 * kHour) << "the time that passed";
  EXPECT_EQ(told[1].run_count, 1U);
  EXPECT_EQ(told[1].job_id, told[0].job_id);
  EXPECT_EQ(told[3].job_id, look().last_job);
  EXPECT_EQ(told[3].run_count, 2U);
}

TEST_F(Crons, an_event_says_which_time_came_late_and_that_none_came_at_a_trigger) {
  listen();
  set(spec());
  pass(3 * kHour + kMinute);
  ASSERT_TRUE(s.admin
                  .set_cron([this] {
                    CronSpec other = spec("other");
                    other.overlap = CronOverlap::kAllow;
                    return other;
                  }())
                  .ok());
  ASSERT_TRUE(s.admin.trigger_cron("other").ok());
  ASSERT_TRUE(s.admin.remove_cron("hourly").ok());
  const auto told = events();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].scheduled_at_ms, kMonday + kHour) << "the first that was missed";
  EXPECT_EQ(told[0].time_ms, kMonday + 3 * kHour + kMinute);
  EXPECT_EQ(told[0].cron_expression, "") << "that cron is gone";
  EXPECT_EQ(told[1].scheduled_at_ms, 0U);
  EXPECT_EQ(told[1].cron_expression, "0 * * * *");
}

TEST_F(Crons, a_job_at_work_knows_its_cron) {
  set(spec());
  s.put(3);
  ASSERT_TRUE(s.admin.trigger_cron("hourly").ok());
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(s.job.cron_name(), "hourly");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.job.cron_name(), "") << "it is no longer held";
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(s.job.cron_name(), "");
  EXPECT_EQ(Job().cron_name(), "");
}

TEST_F(Crons, overlap_allow_runs_them_side_by_side) {
  CronSpec side = spec();
  side.overlap = CronOverlap::kAllow;
  set(side);
  pass(kHour);
  pass(kHour);
  EXPECT_NE(s.take(), "");
  EXPECT_NE(s.take(), "");
}

TEST_F(Crons, overlap_enqueue_runs_them_one_after_the_other) {
  CronSpec line = spec();
  line.overlap = CronOverlap::kEnqueue;
  set(line);
  pass(kHour);
  pass(kHour);
  EXPECT_EQ(jobs().size(), 2U);
  const std::string first = s.take();
  EXPECT_NE(first, "");
  Job other;
  EXPECT_FALSE(s.worker.try_fetch(other)) << "the first runs";
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_NE(s.take(), "");
}

TEST_F(Crons, overlap_cancel_previous_cancels_what_waits_or_runs) {
  CronSpec newest = spec();
  newest.overlap = CronOverlap::kCancelPrevious;
  set(newest);
  pass(kHour);
  const std::string first = look().last_job;
  pass(kHour);
  const std::string second = s.take();
  EXPECT_EQ(s.state_of(first), State::kCancelled);
  pass(kHour);
  EXPECT_EQ(s.state_of(second), State::kCancelled);
  EXPECT_EQ(s.queue().depth, 1U);
  EXPECT_EQ(look().run_count, 3U);
}

TEST_F(Crons, a_full_queue_is_passed_over) {
  listen();
  ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = 1}).ok());
  s.put();
  set(spec());
  pass(kHour);
  EXPECT_EQ(look().skipped_count, 1U);
  EXPECT_EQ(look().run_count, 0U);
  EXPECT_EQ(s.admin.trigger_cron("hourly").code(), Code::kQueueFull);
  s.drain();
  pass(kHour);
  EXPECT_EQ(look().run_count, 1U);
  const auto told = events();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].reason, "queue_full");
  EXPECT_EQ(told[0].job_id, "");
}

TEST_F(Crons, a_full_queue_that_drops_takes_it) {
  ASSERT_TRUE(
      s.admin.set_queue("default", {.max_depth = 1, .strategy = BackpressureStrategy::kDropOldest})
          .ok());
  const std::string old = s.put();
  set(spec());
  pass(kHour);
  EXPECT_EQ(s.state_of(old), State::kDiscarded);
  EXPECT_EQ(look().run_count, 1U);
}

TEST_F(Crons, a_unique_job_that_is_there_passes_over) {
  JobSpec job;
  job.type = "report.make";
  const JobUnique unique = JobUnique::of(job, UniquePolicy{}).value();
  CronSpec once = spec();
  once.overlap = CronOverlap::kAllow;
  once.job.unique = &unique;
  set(once);
  pass(kHour);
  pass(kHour);
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(look().skipped_count, 1U);
  EXPECT_EQ(s.admin.trigger_cron("hourly").code(), Code::kDuplicate);
  EXPECT_EQ(jobs().at(0).unique_key, unique.key().substr(0, 32));
}

TEST_F(Crons, a_unique_job_that_replaces_goes_in_with_its_time) {
  JobSpec job;
  job.type = "report.make";
  const JobUnique unique =
      JobUnique::of(job, UniquePolicy{.on_conflict = OnConflict::kReplace}).value();
  CronSpec once = spec();
  once.overlap = CronOverlap::kAllow;
  once.job.unique = &unique;
  set(once);
  pass(kHour);
  const std::string first = look().last_job;
  pass(kHour);
  EXPECT_EQ(s.state_of(first), State::kCancelled);
  EXPECT_EQ(look().run_count, 2U);
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST_F(Crons, its_limit_stays_while_it_has_no_job) {
  const JobLimit limit{"api", {.concurrency = 1}};
  CronSpec limited = spec();
  limited.overlap = CronOverlap::kAllow;
  limited.job.limit = &limit;
  set(limited);
  // as many other keys as there is no room for
  for (int i = 0; i < 2000; ++i) {
    const JobLimit other{"other" + std::to_string(i), {.concurrency = 1}};
    JobSpec job = spec_of();
    job.limit = &other;
    const auto id = s.producer.enqueue(job);
    ASSERT_TRUE(id.ok()) << id.error().message;
    s.drain();
  }
  pass(kHour);
  pass(kHour);
  EXPECT_NE(s.take(), "");
  Job second;
  EXPECT_FALSE(s.worker.try_fetch(second));
}

TEST_F(Crons, what_is_wrong_is_named) {
  const auto subject = [&](const CronSpec& wrong) {
    const auto made = s.admin.set_cron(wrong);
    EXPECT_EQ(made.code(), Code::kInvalid);
    return made.ok() ? std::string() : made.error().subject;
  };
  EXPECT_EQ(subject(spec("Hourly")), "name");
  EXPECT_EQ(subject(spec("")), "name");
  EXPECT_EQ(subject(spec(std::string(256, 'a'))), "name");
  EXPECT_EQ(subject(spec("a", "60 * * * *")), "expression");
  CronSpec wrong = spec();
  wrong.timezone = "EST";
  EXPECT_EQ(subject(wrong), "timezone");
  wrong = spec();
  wrong.job.type = "No";
  EXPECT_EQ(subject(wrong), "type");
  wrong = spec();
  wrong.job.id = "01961234-5678-7abc-8def-0123456789ab";
  EXPECT_EQ(subject(wrong), "id");
  EXPECT_TRUE(s.observer.crons().empty());
  EXPECT_EQ(s.pool_use("slots"), 0U);
}

TEST_F(Crons, there_are_256) {
  QuietSegment wide(few_slots(1024));
  for (std::size_t i = 0; i < kMostCrons; ++i) {
    const std::string name = "c" + std::to_string(i);
    ASSERT_TRUE(wide.admin.set_cron(spec(name)).ok()) << i;
  }
  const auto made = wide.admin.set_cron(spec("more"));
  ASSERT_EQ(made.code(), Code::kSegmentFull);
  EXPECT_EQ(made.error().bound, kMostCrons);
  EXPECT_TRUE(wide.admin.remove_cron("c17").ok());
  EXPECT_TRUE(wide.admin.set_cron(spec("more")).ok());
  EXPECT_EQ(wide.observer.crons().size(), kMostCrons);
}

TEST_F(Crons, two_that_hold_themselves_for_the_supervisor_fire_once) {
  set(spec());
  s.move_clock(kHour);
  const auto seen = engine::look_at_cron(s.store(), 0);
  const auto other = internal::Handle::make(s.segment).value();
  EXPECT_EQ(s.actor().crons().fire(0, seen, kMonday + 2 * kHour), engine::Outcome::kOk);
  EXPECT_EQ(other->actor().crons().fire(0, seen, kMonday + 2 * kHour), engine::Outcome::kEmpty);
  const auto later = engine::look_at_cron(s.store(), 0);
  EXPECT_EQ(s.actor().crons().fire(0, later, kMonday + 3 * kHour), engine::Outcome::kEmpty)
      << "its next time lies ahead";
  EXPECT_EQ(jobs().size(), 1U);
}

TEST_F(Crons, a_segment_with_one_is_kept) {
  const ScratchDirectory folder;
  const SegmentName where{"kept", folder.path()};
  {
    const Segment segment = Segment::create(where, few_slots()).value();
    ASSERT_TRUE(Admin::attach(segment)->set_cron(spec()).ok());
  }
  const Status refused = remove_segment(where);
  ASSERT_EQ(refused.code(), Code::kWrongState);
  EXPECT_NE(refused.error().message.find("1 cron"), std::string::npos);
  EXPECT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
}

TEST_F(Crons, damage_is_seen_and_fires_nothing) {
  set(spec());
  engine::JobRecord& record = s.store().job(engine::look_at_cron(s.store(), 0).control.slot());
  const std::uint64_t word = record.control.load();
  record.control.store(engine::Control(word).to(engine::kSlotCompleted, 0, 0).word,
                       shm::Point::kNone);
  pass(kHour);
  EXPECT_NE(s.findings().find("I28 cron 0 has no template"), std::string::npos) << s.findings();
  EXPECT_TRUE(s.observer.crons().empty());
  record.control.store(word, shm::Point::kNone);
}

TEST_F(Crons, names_of_overlaps_lead_back) {
  for (const CronOverlap overlap : {CronOverlap::kSkip, CronOverlap::kEnqueue, CronOverlap::kAllow,
                                    CronOverlap::kCancelPrevious})
    EXPECT_EQ(cron_overlap_by_name(cron_overlap_name(overlap)), overlap);
  EXPECT_EQ(cron_overlap_by_name("other"), std::nullopt);
}

TEST_F(Crons, the_next_times_of_an_expression) {
  const auto times = cron_times("0 9 * * MON-FRI", "UTC", kMonday, 3);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(*times, (std::vector<std::uint64_t>{kMonday + 9 * kHour, kMonday + 33 * kHour,
                                                kMonday + 57 * kHour}));
}

}  // namespace
}  // namespace ojs_shm::test
