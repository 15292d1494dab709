// SPDX-License-Identifier: Apache-2.0
// What `ojs-shm doctor` reads from a segment's jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "engine/pools/samples.hpp"
#include "tests/support/live_segment.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kHour = 3'600'000;

/// What happens while it lives, happens at another time, at which the segment's clock stands.
class OtherTime {
 public:
  OtherTime(const Segment& segment, std::int64_t ms)
      : clock_(segment.attachment()->segment().header().clock_offset_ms) {
    const std::uint64_t time =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                       std::chrono::system_clock::now().time_since_epoch())
                                       .count()) +
        static_cast<std::uint64_t>(ms);
    clock_.store(shm::kStandingClock | time, shm::Point::kNone);
  }
  ~OtherTime() { clock_.store(0, shm::Point::kNone); }
  OtherTime(const OtherTime&) = delete;

 private:
  shm::Word& clock_;
};

TEST(CliDoctorJobs, a_queue_that_fills_is_a_warning_before_it_is_full) {
  const LiveSegment segment;
  segment.cli({"queue", "set", "small", "--max-depth", "5"});
  for (int i = 0; i < 3; ++i) segment.enqueue({"-t", "a", "--queue", "small"});
  EXPECT_THAT(segment.cli({"doctor"}).out, Not(HasSubstr("queue small\twarning\tfilled")));
  segment.enqueue({"-t", "a", "--queue", "small"});
  EXPECT_THAT(segment.cli({"doctor"}).out,
              HasSubstr("queue small\twarning\tfilled to 80 % of its bound: 4 jobs, "));
}

TEST(CliDoctorJobs, a_starving_queue_is_a_warning_and_a_paused_one_does_not_starve) {
  const LiveSegment segment;
  const Segment attached = Segment::attach(segment.where()).value();
  {
    const OtherTime before(attached, -kHour);
    segment.enqueue({"-t", "a", "--queue", "hungry"});
    segment.enqueue({"-t", "a", "--queue", "halted"});
  }
  segment.enqueue({"-t", "a", "--queue", "young"});
  ASSERT_EQ(segment.cli({"queue", "pause", "halted"}).exit_code, 0);
  const Finished seen = segment.cli({"doctor"});
  EXPECT_EQ(seen.exit_code, 0) << "a warning is no problem";
  EXPECT_THAT(seen.out,
              testing::ContainsRegex(
                  "queue hungry\twarning\tstarving: 1 jobs are available, the oldest for 36.. s"));
  EXPECT_THAT(seen.out, HasSubstr("`ojs-shm work --queue hungry`"));
  EXPECT_THAT(seen.out, Not(HasSubstr("queue halted\twarning\tstarving")));
  EXPECT_THAT(seen.out, Not(HasSubstr("queue young\twarning\tstarving")));
}

TEST(CliDoctorJobs, a_job_held_for_far_longer_than_others_of_its_type_is_named) {
  const LiveSegment segment;
  const Segment attached = Segment::attach(segment.where()).value();
  auto producer = Producer::attach(attached).value();
  auto worker = Worker::attach(attached, {}).value();
  const auto take = [&] {
    Job job;
    EXPECT_TRUE(worker.try_fetch(job));
    return job;
  };
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(producer.enqueue({.type = "mail"}));
    Job done = take();
    ASSERT_TRUE(worker.ack(done));
  }
  const std::string slow = producer.enqueue({.type = "mail", .lease_ms = 7'200'000}).value().str();
  const std::string fresh = producer.enqueue({.type = "mail"}).value().str();
  const std::string rare =
      producer.enqueue({.type = "report", .lease_ms = 7'200'000}).value().str();
  std::optional<OtherTime> before(std::in_place, attached, -kHour);
  const Job hangs = take();
  before.reset();
  const Job begun = take();
  before.emplace(attached, -kHour);
  const Job unknown = take();
  before.reset();
  const std::string seen = segment.cli({"doctor"}).out;
  EXPECT_THAT(seen, testing::ContainsRegex("job " + slow +
                                           "\twarning\tits worker has held it for 36.. s; of the "
                                           "last 5 of type mail none took longer than"));
  EXPECT_THAT(seen, Not(HasSubstr("job " + fresh)));
  EXPECT_THAT(seen, Not(HasSubstr("job " + rare))) << "too few of its type to judge by";
}

TEST(CliDoctorJobs, a_clock_that_was_set_back_is_a_warning) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  EXPECT_THAT(segment.cli({"doctor"}).out,
              HasSubstr("clock\tok\tnothing in the segment happened later than now"));
  const Segment attached = Segment::attach(segment.where()).value();
  {
    const OtherTime ahead(attached, kHour);
    segment.enqueue({"-t", "a"});
  }
  const Finished seen = segment.cli({"doctor"});
  EXPECT_EQ(seen.exit_code, 0);
  EXPECT_THAT(seen.out, HasSubstr("clock\twarning\tthe machine's clock was set back: something "
                                  "here happened 3"));
}

TEST(CliDoctorJobs, a_clock_that_was_set_forwards_is_a_warning) {
  const LiveSegment segment;
  const Segment attached = Segment::attach(segment.where()).value();
  const auto sampled_at = [&attached] {
    const engine::SampleTimes& times = attached.attachment()->store().sample_times();
    return times.at_ms[times.last.load() % engine::kSamples].load();
  };
  std::uint64_t before = 0;
  {
    const OtherTime behind(attached, -kHour);
    const std::uint64_t now = attached.attachment()->store().now_ms();
    ASSERT_TRUE(eventually([&] { return (before = sampled_at()) == now; }));
  }
  ASSERT_TRUE(eventually([&] { return sampled_at() > before + kHour / 2; }));
  const Finished seen = segment.cli({"doctor"});
  EXPECT_EQ(seen.exit_code, 0);
  EXPECT_THAT(seen.out, HasSubstr("clock\twarning\tthe clock made a step of 3"));
}

}  // namespace
}  // namespace ojs_shm::test
