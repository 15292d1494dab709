// SPDX-License-Identifier: Apache-2.0
// Who counts as alive where the lock file cannot tell, and which records a process takes.

#include "shm/member.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::Point;

constexpr std::uint32_t kNobody = 0x7FFF'FFFF;  ///< more than any pid

/// A record of this namespace.
struct Recorded {
  explicit Recorded(std::uint32_t pid, std::uint64_t start_time = 0) {
    record.pid.store(pid, Point::kNone);
    record.namespace_id.store(shm::pid_namespace(), Point::kNone);
    record.start_time.store(start_time, Point::kNone);
  }
  shm::ProcessRecord record{};
};

TEST(Member, a_process_of_another_namespace_counts_as_running) {
  Recorded nobody(kNobody);
  EXPECT_FALSE(shm::runs(nobody.record));
  nobody.record.namespace_id.store(shm::pid_namespace() + 1, Point::kNone);
  EXPECT_TRUE(shm::runs(nobody.record));
}

TEST(Member, whoever_began_at_another_time_has_the_pid_of_one_who_is_gone) {
  const QuietSegment s;
  const internal::Attachment& attachment = *s.segment.attachment();
  const std::uint64_t began =
      s.segment.attachment()->segment().process(attachment.process()).start_time.load();
  ASSERT_NE(began, 0U);
  const auto pid = static_cast<std::uint32_t>(::getpid());
  EXPECT_TRUE(shm::runs(Recorded(pid, began).record));
  EXPECT_TRUE(shm::runs(Recorded(pid).record)) << "when it began is not known";
  EXPECT_FALSE(shm::runs(Recorded(pid, began + 1).record));
}

TEST(Member, one_that_nobody_has_reaped_does_not_run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(::kill(child, 0), 0) << "it is to be a zombie";
  EXPECT_FALSE(shm::runs(Recorded(static_cast<std::uint32_t>(child)).record));
  ::waitpid(child, nullptr, 0);
}

TEST(Member, a_name_with_a_bracket_does_not_hide_when_a_process_began) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) Z 1 (b");
    const Recorded another(static_cast<std::uint32_t>(::getpid()), 1);  // it began with the machine
    ::_exit(shm::runs(another.record) ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Between the look at a record and the lock on its byte another takes it, and dies.
TEST(Member, a_record_that_was_left_behind_meanwhile_is_left_to_the_repair) {
  QuietSegment s;
  shm::Segment& segment = s.segment.attachment()->segment();
  shm::LockFile locks;
  ASSERT_EQ(locks.open(internal::path_of(s.where()), true, 0, {}), "");
  std::uint32_t free = 0;
  while (segment.process(free).live.load() != 0) ++free;
  shm::Half& live = segment.process(free).live;
  std::uint32_t taken = free;
  {
    unsigned looks = 0;
    const AtAccess dying([&](shm::Access access, Point, const void* word) {
      if (access == shm::Access::kLoad && word == live.address() && ++looks == 2)
        live.store(1, Point::kNone);
    });
    taken = shm::join(segment, locks);
  }
  EXPECT_NE(taken, free);
  EXPECT_EQ(s.segment.attachment()->repair_the_dead(), 1U);
  EXPECT_EQ(live.load(), 0U);
  segment.process(taken).live.store(0, Point::kNone);
}

}  // namespace
}  // namespace ojs_shm::test
