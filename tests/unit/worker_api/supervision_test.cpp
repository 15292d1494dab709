// SPDX-License-Identifier: Apache-2.0
// Who supervises sleeps for up to a minute, and ends at once when asked to.

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

}  // namespace
}  // namespace ojs_shm::test
