// SPDX-License-Identifier: Apache-2.0
// Who supervises sleeps for up to a minute, and ends at once when asked to.

#include <pthread.h>

#include <filesystem>
#include <thread>

#include "shm/parking.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(Supervision, whoever_asks_it_to_stop_just_before_it_looks_at_the_doorbell_is_heard) {
  QuietSegment s;
  internal::Attachment& attachment = *s.segment.attachment();
  const void* doorbell = attachment.segment().header().doorbell.address();
  shm::LocalFlag stop, ended;
  std::thread supervising([&] {
    const AtAccess asking([&](shm::Access access, shm::Point, const void* word) {
      if (access != shm::Access::kLoad || word != doorbell || stop.get()) return;
      stop.set();
      attachment.ring_doorbell();
    });
    attachment.supervise([&] { return stop.get(); }, [](std::string_view) {});
    ended.set();
  });
  EXPECT_TRUE(eventually([&] { return ended.get(); }));
  attachment.ring_doorbell();
  supervising.join();
}

/// Attaching starts a thread, the keeper. Here none is to be had: no address space holds its stack.
TEST(Supervision, without_a_thread_to_be_had_attaching_says_so_and_leaves_nothing) {
  QuietSegment s;
  const ScratchDirectory folder;
  pthread_attr_t usual, endless;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_attr_init(&endless), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&endless, std::size_t{1} << 47), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&endless), 0);
  const auto refused = Segment::attach(s.where());
  const auto unmade = Segment::create({"unmade", folder.path()}, few_slots(64));
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().subject, "thread");
  EXPECT_NE(refused.error().message.find("no thread"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(Segment::attach(s.where()));
  ASSERT_FALSE(unmade);
  EXPECT_EQ(unmade.error().subject, "thread");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace ojs_shm::test
