// SPDX-License-Identifier: Apache-2.0
// What counts as death, and what only looks like it.
#include <signal.h>
#include <unistd.h>

#include <ojs_shm/resilience.hpp>

#include "tests/environment/segment_fixture.hpp"
#include "tests/support/ledger.hpp"

namespace ojs_shm::test {
namespace {

class Processes : public SegmentFixture {
 protected:
  void SetUp() override { create(); }

  Forked::Body broker() const {
    return [segment_name = name](Parent& parent) {
      auto seat = Broker::start(segment_name, small_options());
      parent.tell(seat.ok() ? seat->resumed() ? "resumed" : "new"
                            : std::string(code_name(seat.code())));
      return seat.ok() && seat->run([](std::string_view) {}).ok() ? 0 : 1;
    };
  }
};
using Brokers = Processes;

TEST_F(Processes, the_job_of_a_killed_worker_is_given_to_another) {
  const std::string id = enqueue_one();
  Forked victim(holder());
  const HeldJob held(victim.listen());
  auto worker = Worker::attach(name, {});
  ASSERT_TRUE(worker.ok());
  victim.signal(SIGKILL);
  expect_to_fetch(*worker, id, 2);
  expect_clean_audit();
}

TEST_F(Processes, a_dead_worker_that_nobody_reaped_is_dead) {
  const std::string id = enqueue_one();
  Forked victim(holder());
  const HeldJob held(victim.listen());
  victim.signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return victim.ended(); }));
  ASSERT_EQ(::kill(victim.pid(), 0), 0) << "it is to be a zombie";
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, id, 2);
}

TEST_F(Processes, a_stopped_worker_keeps_its_job_until_its_lease_ends) {
  Forked supervisor(broker());
  EXPECT_EQ(supervisor.listen().value_or(""), "resumed");
  const std::string id = enqueue_one(700);
  Forked stopped(holder());
  const HeldJob held(stopped.listen());
  stopped.signal(SIGSTOP);
  auto worker = Worker::attach(name, {});
  Job job;
  const Status fetched = worker->fetch(job, kBound);
  ASSERT_TRUE(fetched.ok()) << fetched.error().message;
  EXPECT_GE(wall_ms(), held.deadline_ms)
      << "it was given away before the lease of a living worker ended";
  EXPECT_EQ(job.id(), id);
  EXPECT_GT(job.fence(), held.fence);
  stopped.signal(SIGCONT);
  EXPECT_EQ(ask(stopped, "ack"), "lost") << "the old holder is fenced out";
  EXPECT_TRUE(worker->ack(job).ok());
}

TEST_F(Processes, a_long_stop_within_the_lease_loses_nothing) {
  enqueue_one();
  Forked stopped(holder());
  const HeldJob held(stopped.listen());
  stopped.signal(SIGSTOP);
  auto admin = Admin::attach(name);
  ASSERT_TRUE(admin.ok());
  EXPECT_EQ(admin->repair().value(), 0U);
  auto worker = Worker::attach(name, {});
  Job job;
  EXPECT_EQ(worker->fetch(job, std::chrono::milliseconds(500)).code(), Code::kTimeout);
  stopped.signal(SIGCONT);
  EXPECT_EQ(ask(stopped, "heartbeat"), "ok");
  EXPECT_EQ(ask(stopped, "ack"), "ok");
}

TEST_F(Processes, a_child_of_fork_may_drop_what_it_inherited_beside_its_own) {
  for (const bool own_first : {true, false}) {
    std::optional<Segment> segment(Segment::attach(name).value());
    std::optional<Worker> worker(Worker::attach(*segment, {}).value());
    ASSERT_TRUE(worker->event_fd().ok());
    std::shared_ptr<LocalBuffer> buffer = LocalBuffer::start(*segment, {}).value();
    Forked child([&](Parent& parent) {
      std::optional<Segment> own(Segment::attach(name).value());
      std::optional<Worker> waits(Worker::attach(*own, {}).value());
      parent.tell(code_name(waits->event_fd().code()));
      std::shared_ptr<LocalBuffer> sends = LocalBuffer::start(*own, {}).value();
      if (own_first) sends.reset(), waits.reset(), own.reset();
      buffer.reset(), worker.reset(), segment.reset();
      sends.reset(), waits.reset(), own.reset();
      parent.tell("dropped");
      return 0;
    });
    EXPECT_EQ(child.listen().value_or(""), "ok");
    EXPECT_EQ(child.listen().value_or(""), "dropped") << own_first;
    EXPECT_EQ(child.wait(), 0);
  }
}

TEST_F(Processes, a_child_of_fork_without_exec_answers_closed) {
  auto segment = Segment::attach(name);
  auto producer = Producer::attach(*segment);
  auto worker = Worker::attach(*segment, {});
  enqueue_one();
  Job job;
  ASSERT_TRUE(worker->try_fetch(job).ok());
  Forked child([&](Parent& parent) {
    Job other;
    parent.tell(code_name(producer->enqueue(job_spec()).code()));
    parent.tell(code_name(worker->try_fetch(other).code()));
    parent.tell(code_name(worker->ack(job).code()));
    parent.tell(code_name(worker->heartbeat(job).code()));
    parent.tell(code_name(Producer::attach(*segment).code()));
    // With an attachment of its own it is a member like any other.
    parent.tell(code_name(Producer::attach(name)->enqueue(job_spec()).code()));
    return 0;
  });
  for (int call = 0; call < 5; ++call)
    EXPECT_EQ(child.listen().value_or(""), "closed") << "call " << call;
  EXPECT_EQ(child.listen().value_or(""), "ok");
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(worker->ack(job).ok()) << "the parent is none the worse for it";
  EXPECT_TRUE(worker->try_fetch(job).ok());
}

TEST_F(Processes, a_parents_death_is_seen_though_its_forked_child_lives) {
  const std::string id = enqueue_one();
  Forked parent_of_one([this](Parent& parent) {
    auto worker = Worker::attach(name, {});
    Job job;
    if (!worker->fetch(job, kBound).ok()) return 1;
    const pid_t child = ::fork();
    if (child == 0) {
      // Outlives its parent until this test closes the pipe.
      while (!parent.hear().empty()) {}
      ::_exit(0);
    }
    parent.tell("forked " + std::to_string(child));
    for (;;) ::pause();
  });
  const std::string forked = parent_of_one.listen().value_or("");
  ASSERT_TRUE(forked.starts_with("forked ")) << forked;
  parent_of_one.signal(SIGKILL);
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, id, 2);
  EXPECT_EQ(::kill(static_cast<pid_t>(std::stoi(forked.substr(7))), 0), 0)
      << "the forked child was to be alive";
}

TEST_F(Processes, an_exec_ends_the_membership) {
  const std::string id = enqueue_one();
  Forked execs([this](Parent& parent) {
    auto worker = Worker::attach(name, {});
    Job job;
    if (!worker->fetch(job, kBound).ok()) return 1;
    parent.tell("holds");
    ::execl("/usr/bin/tail", "tail", "-f", "/dev/null", nullptr);
    return 1;
  });
  ASSERT_EQ(execs.listen().value_or(""), "holds");
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, id, 2);
  EXPECT_FALSE(execs.ended()) << "the process that called exec was to be alive";
}

TEST_F(Processes, a_creator_killed_anywhere_leaves_a_whole_segment_or_none) {
  for (unsigned delay_us = 0; delay_us < 4000; delay_us += 100) {
    const SegmentName other{"half-made", scratch.path()};
    Forked creator([&](Parent& parent) {
      parent.tell("now");
      (void)Segment::create(other, small_options());
      for (;;) ::pause();
      return 0;
    });
    creator.listen();
    const std::uint64_t until = monotonic_ns() + delay_us * 1000;
    while (monotonic_ns() < until) {}
    creator.signal(SIGKILL);
    creator.wait();
    if (auto whole = Segment::attach(other); whole.ok()) {
      EXPECT_TRUE(Producer::attach(*whole)->enqueue(job_spec()).ok());
    } else {
      EXPECT_EQ(whole.code(), Code::kCannotAttach) << whole.error().message;
      const auto made = Segment::create(other, small_options());
      ASSERT_TRUE(made.ok()) << made.error().message << " after " << delay_us << " us";
    }
    ASSERT_TRUE(remove_segment(other, Removal::kWithJobs).ok());
  }
}

TEST_F(Brokers, a_second_one_is_refused_and_a_killed_ones_seat_is_free) {
  Forked first(broker());
  EXPECT_EQ(first.listen().value_or(""), "resumed");
  Forked second(broker());
  EXPECT_EQ(second.listen().value_or(""), "in_use");
  const std::string id = enqueue_one();
  first.signal(SIGKILL);
  first.wait();
  Forked third(broker());
  EXPECT_EQ(third.listen().value_or(""), "resumed");
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, id, 1);
}

TEST_F(Brokers, a_stopped_one_does_not_hold_up_a_repair) {
  Forked stopped(broker());
  EXPECT_EQ(stopped.listen().value_or(""), "resumed");
  const std::string id = enqueue_one();
  Forked victim(holder());
  const HeldJob held(victim.listen());
  stopped.signal(SIGSTOP);
  victim.signal(SIGKILL);
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, id, 2);
  stopped.signal(SIGCONT);
  Forked second(broker());
  EXPECT_EQ(second.listen().value_or(""), "in_use") << "a stopped broker is a living broker";
}

TEST_F(Brokers, without_one_the_timers_of_the_jobs_go_on) {
  Forked killed(broker());
  EXPECT_EQ(killed.listen().value_or(""), "resumed");
  killed.signal(SIGKILL);
  auto producer = Producer::attach(name);
  JobSpec later = job_spec();
  later.scheduled_at_ms = wall_ms() + 300;
  const auto id = producer->enqueue(later);
  ASSERT_TRUE(id.ok());
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, id->view(), 1);
  EXPECT_GE(wall_ms(), later.scheduled_at_ms);
}

}  // namespace
}  // namespace ojs_shm::test
