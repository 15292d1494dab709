// SPDX-License-Identifier: Apache-2.0
// Who is in a segment: removal lets nobody in, and a process that has closed its lock takes nobody
// for dead.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(Membership, nobody_joins_a_segment_that_is_looked_through_to_be_removed) {
  const ScratchDirectory folder;
  const SegmentName name{"s", folder.path()};
  Segment segment = Segment::create(name, few_slots(64)).value();
  std::thread other;
  Code joined = Code::kOk;
  std::atomic<bool> done = false;
  Status removed;
  {
    const AtAccess while_it_looks([&](shm::Access access, shm::Point, const void* word) {
      if (word != segment.attachment()->store().job(0).control.address() || other.joinable() ||
          access != shm::Access::kLoad)
        return;
      other = std::thread([&] {
        joined = Segment::attach(name).code();
        done = true;
      });
      for (int look = 0; look < 300'000 && !done; ++look) std::this_thread::yield();
    });
    removed = remove_segment(segment, Removal::kUnused);
  }
  ASSERT_TRUE(other.joinable());
  other.join();
  // It was in first, or it is not in.
  EXPECT_TRUE(removed.ok() ? joined == Code::kCannotAttach : joined == Code::kOk);
  EXPECT_EQ(removed.ok(), !segment.attachment()->segment().named());
}

TEST(Membership, one_that_came_in_first_keeps_its_segment) {
  const ScratchDirectory folder;
  const SegmentName name{"s", folder.path()};
  Segment segment = Segment::create(name, few_slots(64)).value();
  {
    const Segment other = Segment::attach(name).value();
    EXPECT_EQ(remove_segment(segment, Removal::kUnused).code(), Code::kInUse);
    EXPECT_EQ(remove_segment(name, Removal::kWithJobs).code(), Code::kInUse);
  }
  EXPECT_EQ(remove_segment(name, Removal::kWithJobs).code(), Code::kInUse) << "its maker lives";
  EXPECT_TRUE(remove_segment(segment, Removal::kUnused).ok());
  EXPECT_EQ(remove_segment(segment, Removal::kUnused).code(), Code::kNotFound);
}

TEST(Membership, who_has_closed_its_lock_repairs_nobody_and_is_closed) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "NOT RUN: it closes a descriptor under the keeper's look, on purpose";
#endif
  QuietSegment s;
  Segment other = Segment::attach(s.where()).value();
  internal::Attachment& lost = *other.attachment();
  const int lock = lost.locks().descriptor();
  ASSERT_EQ(::close(lock), 0);
  const int another = ::open((s.where().dir + "/log").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(another, 0);
  ASSERT_EQ(::dup3(another, lock, O_CLOEXEC) == lock || another == lock, true);
  EXPECT_EQ(lost.repair_the_dead(), 0U);
  const std::uint32_t mine = s.segment.attachment()->process();
  EXPECT_EQ(s.segment.attachment()->segment().process(mine).live.load(), 1U);
  EXPECT_EQ(Producer::attach(other).code(), Code::kClosed);
  other = Segment::observe(s.where()).value();
  EXPECT_NE(::fcntl(lock, F_GETFD), -1) << "it is no longer ours to close";
  ::close(lock);
  ::close(another);
  EXPECT_EQ(s.segment.attachment()->repair_the_dead(), 1U);
}

TEST(Membership, a_lock_file_that_is_made_anew_is_for_all_who_may_write_the_segment) {
  const ScratchDirectory folder;
  const SegmentName name{"s", folder.path()};
  SegmentOptions options = few_slots(64);
  options.mode = 0660;
  const std::string path = internal::path_of(name), lock = shm::LockFile::path_of(path);
  Segment::create(name, options).value();
  ASSERT_EQ(::unlink(lock.c_str()), 0);
  Segment::attach(name).value();
  struct stat made {};
  ASSERT_EQ(::stat(lock.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0660U);
}

}  // namespace
}  // namespace ojs_shm::test
