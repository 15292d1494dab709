// SPDX-License-Identifier: Apache-2.0
// Two containers over one directory: their processes cannot see each other, and their pids collide.
#include <unistd.h>

#include <csignal>

#include "tests/environment/segment_fixture.hpp"

namespace ojs_shm::test {
namespace {

class Namespaces : public SegmentFixture {
 protected:
  void SetUp() override { create(); }
};

TEST_F(Namespaces, two_processes_with_pid_1_are_two_members) {
  const std::string first = enqueue_one();
  Forked one(holder(), {.pid_namespace = true});
  OJS_SHM_SKIP_IF_FORBIDDEN(one);
  const HeldJob held_by_one(one.listen());
  const std::string second = enqueue_one();
  Forked other(holder(), {.pid_namespace = true});
  OJS_SHM_SKIP_IF_FORBIDDEN(other);
  const HeldJob held_by_other(other.listen());
  ASSERT_EQ(held_by_one.pid, 1U);
  ASSERT_EQ(held_by_other.pid, 1U);
  EXPECT_EQ(held_by_one.id, first);
  EXPECT_EQ(held_by_other.id, second);

  one.signal(SIGKILL);
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, first, 2);
  Job job;
  EXPECT_EQ(worker->try_fetch(job).code(), Code::kEmpty) << "the other pid 1 is alive";
  EXPECT_EQ(ask(other, "heartbeat"), "ok");
  EXPECT_EQ(ask(other, "ack"), "ok");
  expect_clean_audit();
}

TEST_F(Namespaces, one_in_a_namespace_mends_what_a_death_outside_left) {
  const std::string id = enqueue_one();
  Forked victim(holder());
  const HeldJob held(victim.listen());
  Forked heir(holder(), {.pid_namespace = true});
  OJS_SHM_SKIP_IF_FORBIDDEN(heir);
  victim.signal(SIGKILL);
  const HeldJob inherited(heir.listen());
  EXPECT_EQ(inherited.id, id);
  EXPECT_GT(inherited.fence, held.fence);
  EXPECT_EQ(ask(heir, "ack"), "ok");
}

/// Two containers over one directory, as a volume is mounted into each: a pid namespace and a /proc
/// of its own, and the segment's directory by a bind mount at a path of its own. The path at which
/// others know it is an empty tmpfs in there.
class Containers : public Namespaces {
 protected:
  struct Container {
    ScratchDirectory volume;
    Surroundings surroundings(const std::string& segment_dir) const {
      return {.pid_namespace = true,
              .bind_from = segment_dir,
              .bind_at = volume.path(),
              .tmpfs_at = segment_dir};
    }
  };
  /// Tells its pid and what attaching by the others' path says; then "take" waits for a job and is
  /// answered with its id and attempt, "look" takes one that is there already, "heartbeat" and
  /// "ack" mean the job that it took last.
  Forked::Body resident(const Container& container) const {
    return
        [outside = name, inside = SegmentName{name.name, container.volume.path()}](Parent& parent) {
          auto worker = Worker::attach(inside, {});
          if (!worker.ok()) return parent.tell(worker.error().message), 1;
          parent.tell("pid " + std::to_string(::getpid()) + ", outside " +
                      std::string(code_name(Segment::attach(outside).code())));
          Job job, other;
          for (std::string order; !(order = parent.hear()).empty();) {
            std::string answer;
            if (order == "take") {
              const Status fetched = worker->fetch(job, kBound);
              answer = fetched.ok() ? std::string(job.id()) + " " + std::to_string(job.attempt())
                                    : fetched.error().message;
            }
            if (order == "look") answer = code_name(worker->try_fetch(other).code());
            if (order == "repair") answer = std::to_string(Admin::attach(inside)->repair().value());
            if (order == "heartbeat") answer = code_name(worker->heartbeat(job).code());
            if (order == "ack") answer = code_name(worker->ack(job).code());
            parent.tell(answer);
          }
          return 0;
        };
  }
  void expect_at_home(Forked& container) {
    EXPECT_EQ(container.listen().value_or(""), "pid 1, outside cannot_attach");
  }
  void expect_alive(Forked& holder, Forked& other) {
    EXPECT_EQ(ask(other, "repair"), "0");
    EXPECT_EQ(ask(other, "look"), "empty") << "the holder in the other container is alive";
    EXPECT_EQ(ask(holder, "heartbeat"), "ok");
  }
};

TEST_F(Containers, a_death_is_seen_through_another_bind_mount_and_nobody_who_lives_is_robbed) {
  const Container here, there;
  Forked first(resident(here), here.surroundings(scratch.path()));
  OJS_SHM_SKIP_IF_FORBIDDEN(first);
  Forked second(resident(there), there.surroundings(scratch.path()));
  OJS_SHM_SKIP_IF_FORBIDDEN(second);
  expect_at_home(first);
  expect_at_home(second);
  const std::string id = enqueue_one();
  ASSERT_EQ(ask(first, "take"), id + " 1");
  expect_alive(first, second);
  first.signal(SIGKILL);
  ASSERT_EQ(ask(second, "take"), id + " 2") << "the death was to be seen from the other container";

  Forked third(resident(here), here.surroundings(scratch.path()));
  OJS_SHM_SKIP_IF_FORBIDDEN(third);
  expect_at_home(third);
  expect_alive(second, third);
  second.signal(SIGKILL);
  ASSERT_EQ(ask(third, "take"), id + " 3") << "and the other way round";
  EXPECT_EQ(ask(third, "ack"), "ok");
  EXPECT_EQ(Observer::attach(name)->get(id)->state, State::kCompleted)
      << "outside it is the same segment";
  expect_clean_audit();
}

}  // namespace
}  // namespace ojs_shm::test
