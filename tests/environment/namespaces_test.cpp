// SPDX-License-Identifier: Apache-2.0
// Two containers over one directory: their processes cannot see each other, and their pids collide.
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

}  // namespace
}  // namespace ojs_shm::test
