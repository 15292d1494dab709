// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/scene.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/supervision/retention.hpp"
#include "tests/support/seat.hpp"
#include "worker_api/roles/cron_keeper.hpp"

namespace ojs_shm::test {

Quiet::Quiet(const SegmentName& where)
    : seat(take_seat(where)), segment(Segment::create(where, small_segment()).value()) {}

namespace {

/// Whether the segment is in maintenance, or a change of that was cut off.
bool shut(const Segment& segment) {
  const engine::Store& store = segment.attachment()->store();
  for (std::uint32_t q = 0; q < store.max_queues(); ++q)
    if ((store.queue(q).flags.load() & engine::kMaintained) != 0) return true;
  return false;
}

}  // namespace

namespace {
constexpr std::string_view kOthersType = "others.job";
}

int others_work(const Segment& segment, int count) {
  Producer producer = Producer::attach(segment).value();
  Worker worker = Worker::attach(segment, {.queues = {"others"}}).value();
  JobSpec spec;
  spec.type = kOthersType;
  spec.queue = "others";
  Job job;
  for (int i = 0; i < count; ++i) {
    const auto put = producer.enqueue(spec);
    if (put.code() == Code::kSegmentFull) return i;
    EXPECT_TRUE(put.ok()) << put.error().message;
    const Status got = worker.try_fetch(job);
    if (got.code() == Code::kEmpty && shut(segment)) {
      EXPECT_TRUE(producer.cancel(put->str()).ok());
      return count;
    }
    EXPECT_TRUE(got.ok());
    EXPECT_TRUE(worker.ack(job).ok());
    if (testing::Test::HasFailure()) return i;
  }
  return count;
}

void others_come_by(const Segment& segment) {
  Producer producer = Producer::attach(segment).value();
  Worker worker = Worker::attach(segment, {}).value();
  const auto put = producer.enqueue(spec_of());
  if (!put.ok()) {
    EXPECT_TRUE(put.code() == Code::kQueueFull || put.code() == Code::kSegmentFull)
        << put.error().message;
  }
  if (Job job; worker.try_fetch(job)) {
    EXPECT_TRUE(worker.requeue(job).ok());
  }
  if (put.ok()) {
    EXPECT_TRUE(producer.cancel(put->str()).ok());
  }
}

std::string findings(const Observer& observer) {
  std::string text;
  for (const Violation& v : observer.audit())
    text += "I" + std::to_string(v.invariant) + " " + v.text + "\n";
  return text;
}

Jobs jobs_in(const Segment& segment) {
  Jobs jobs;
  for (JobInfo& info : Observer::attach(segment).value().list({})) jobs.emplace(info.id, info);
  return jobs;
}

std::size_t ended(const Jobs& before, const Segment& segment) {
  const Jobs now = jobs_in(segment);
  return static_cast<std::size_t>(
      std::count_if(before.begin(), before.end(), [&now](const auto& job) {
        const auto found = now.find(job.first);
        return !is_terminal(job.second.state) &&
               (found == now.end() || is_terminal(found->second.state));
      }));
}

std::size_t lost(const Jobs& before, const Segment& segment) {
  const Jobs now = jobs_in(segment);
  return static_cast<std::size_t>(
      std::count_if(before.begin(), before.end(), [&now](const auto& job) {
        return !is_terminal(job.second.state) && !now.contains(job.first);
      }));
}

std::size_t put_in(const Jobs& before, const Segment& segment) {
  const Jobs now = jobs_in(segment);
  return static_cast<std::size_t>(std::count_if(now.begin(), now.end(), [&before](const auto& job) {
    return !before.contains(job.first) && job.second.type != kOthersType &&
           !is_terminal(job.second.state);
  }));
}

std::string half_done(const Jobs& before, const Segment& segment) {
  std::string text;
  const Jobs now = jobs_in(segment);
  for (const auto& [id, was] : before) {
    const auto found = now.find(id);
    if (found == now.end() || found->second.state != was.state) continue;
    const JobInfo& is = found->second;
    if (is.errors.size() == was.errors.size() + 1) continue;
    // its failure was written, and then its holder died
    if (is.errors.size() == was.errors.size() + 2 && is.errors.back().code == "holder_died")
      continue;
    for (const auto& [what, same] : {std::pair{"errors", is.errors.size() == was.errors.size()},
                                     {"attempt", is.attempt == was.attempt},
                                     {"enqueued_at", was.state != State::kAvailable ||
                                                         is.enqueued_at_ms == was.enqueued_at_ms},
                                     {"discarded_at", is.discarded_at_ms == was.discarded_at_ms},
                                     {"dead_letter", is.dead_letter == was.dead_letter},
                                     {"result", is.result == was.result},
                                     {"args", is.args == was.args}})
      if (!same)
        text += id + " is still " + std::string(state_name(was.state)) + ", with another " + what +
                "\n";
  }
  return text;
}

namespace {

/// Each time of a cron has come once, after any death, and made the job it tells of.
void examine_crons(const Segment& segment, const Observer& observer, Others others) {
  {
    const auto handle = internal::Handle::make(segment).value();
    internal::CronKeeper keeper(handle->actor());
    for (int i = 0; i < 2; ++i) keeper.look(handle->store().now_ms());
  }
  for (const CronInfo& cron : observer.crons()) {
    // two that were prepared each for itself may have set the same one
    if (others == Others::kRested && !cron.description.empty()) {
      EXPECT_EQ(std::to_string(cron.run_count + cron.skipped_count), cron.description)
          << cron.run_count << " jobs and " << cron.skipped_count << " times without one";
    }
    std::uint64_t jobs = 0, unfinished = 0;
    for (const JobInfo& job : observer.list({})) {
      if (job.cron_name != cron.name) continue;
      ++jobs;
      unfinished += is_terminal(job.state) ? 0 : 1;
    }
    EXPECT_LE(jobs, cron.run_count);
    if (others == Others::kWork) continue;
    EXPECT_EQ(unfinished != 0, cron.run_count != 0);
    if (cron.overlap == CronOverlap::kAllow && cron.job.unique_key.empty()) {
      EXPECT_EQ(jobs, cron.run_count);
    }
  }
}

/// A time for which a queue keeps its ended jobs is one of which every supervisor hears.
void examine_retentions(engine::Store& store) {
  for (std::uint32_t q = 0; q < store.queue_count(); ++q)
    EXPECT_TRUE(engine::Retention::of(store.queue(q)).shortest() == 0 ||
                store.header().retentions.load() != 0)
        << "the time of queue " << q << " is never looked at";
}

}  // namespace

void examine(const std::string& name, const Segment& segment, Others others) {
  segment.attachment()->repair_the_dead();
  const Observer observer = Observer::attach(segment).value();
  ASSERT_EQ(findings(observer), "") << name;
  examine_retentions(segment.attachment()->store());
  examine_crons(segment, observer, others);
  ASSERT_EQ(findings(observer), "") << name << ", after its crons";
  // Everything that waits can still be worked off, each job once, and nothing is left over.
  Worker worker = Worker::attach(segment, {.queues = {"default", "other"}}).value();
  Admin admin = Admin::attach(segment).value();
  ASSERT_TRUE(admin.set_maintenance(false).ok());
  // it may keep its queues to itself
  for (const char* pool : {"p", "q"}) (void)admin.remove_pool(pool);
  for (const char* queue : {"default", "other"})
    ASSERT_TRUE(admin.set_queue(queue, {0, 0, false}).ok());
  // what only time lets go; permits must be free by themselves
  for (const LimitInfo& limit : observer.limits()) {
    if (limit.closed_until_ms != 0) {
      RateLimit open = limit.limit;
      if (!limit.limit.concurrency && limit.limit.rate == 0 && limit.limit.throttle == 0)
        open.concurrency = 1;  // what it was has been taken back
      ASSERT_TRUE(admin.set_limit(limit.key, open).ok());
    }
    if (limit.limit.rate != 0 || limit.limit.throttle != 0) {
      ASSERT_TRUE(admin.clear_limit(limit.key).ok());
    }
  }
  for (const JobInfo& info : observer.list({})) {
    if (info.state == State::kPending) {
      ASSERT_TRUE(admin.producer().activate(info.id).ok());
    }
    // What a lease alone holds, and no process any more, keeps its permits until then.
    if (info.state == State::kActive) {
      ASSERT_TRUE(admin.producer().cancel(info.id).ok());
    }
  }
  const Jobs waiting = jobs_in(segment);
  std::set<std::string> seen;
  Job job;
  while (worker.try_fetch(job)) {
    const std::string id(job.id());
    ASSERT_TRUE(seen.insert(id).second) << name << ": " << id << " came twice";
    if (!waiting.contains(id) && !job.workflow_id().empty()) {  // it came after one of these
      ASSERT_EQ(job.attempt(), 1) << name << ": " << id;
    } else {
      ASSERT_TRUE(waiting.contains(id)) << name << ": no lane knew of " << id;
      ASSERT_EQ(job.attempt(), waiting.at(id).attempt + 1) << name << ": " << id;
    }
    ASSERT_TRUE(worker.ack(job).ok());
  }
  for (const JobInfo& info : observer.list({}))
    ASSERT_TRUE(is_terminal(info.state) || info.state == State::kScheduled ||
                info.state == State::kRetryable || info.state == State::kActive)
        << name << ": " << info.id << " is left " << state_name(info.state);
  // One of which a job waits for its time may still run.
  const std::vector<JobInfo> left = observer.list({});
  for (const WorkflowInfo& workflow : observer.workflows({.state = WorkflowState::kRunning}))
    EXPECT_TRUE(std::any_of(left.begin(), left.end(),
                            [&workflow](const JobInfo& info) {
                              return info.workflow_id == workflow.id &&
                                     (info.state == State::kScheduled ||
                                      info.state == State::kRetryable);
                            }))
        << name << ": workflow " << workflow.id << " still runs";
  ASSERT_EQ(findings(observer), "") << name << ", after working off";
}

}  // namespace ojs_shm::test
