// SPDX-License-Identifier: Apache-2.0
// Crons: setting, firing, refusals, events.

#include "tests/unit/engine/crons/cron_segment.hpp"

namespace ojs_shm::test {
namespace {

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
