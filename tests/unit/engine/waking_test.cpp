// SPDX-License-Identifier: Apache-2.0
// Who is woken for a job, and that a wake which a lane did not need goes on to the next.

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

/// A lane that is marked as asleep.
struct Sleeping {
  Sleeping(QuietSegment& s, std::string_view queue)
      : handle(internal::Handle::make(s.segment).value()),
        waiters(s.store().queue(s.store().find_queue(queue)).waiters[handle->lane() / 64]),
        park(s.store().segment().lane(handle->lane()).park),
        before(park.load()) {
    waiters.fetch_or(bit(), shm::Point::kNone);
  }
  ~Sleeping() { waiters.fetch_and(~bit(), shm::Point::kNone); }
  std::uint64_t bit() const { return 1ULL << (handle->lane() % 64); }
  bool woken() const { return (waiters.load() & bit()) == 0 && park.load() != before; }
  std::unique_ptr<internal::Handle> handle;
  shm::Word& waiters;
  shm::Half& park;
  std::uint32_t before;
};

TEST(Waking, an_enqueue_wakes_one_sleeper_of_its_queue) {
  QuietSegment s;
  s.put(2, "a");
  s.put(2, "b");
  const Sleeping first(s, "a"), second(s, "a"), elsewhere(s, "b");
  s.put(2, "a");
  EXPECT_TRUE(first.woken() != second.woken());
  EXPECT_FALSE(elsewhere.woken());
  s.put(2, "a");
  EXPECT_TRUE(first.woken() && second.woken());
}

/// Two queues get a job each while the worker lies down, both wake it, and it can take one.
TEST(Waking, a_worker_of_two_queues_hands_the_other_wake_on) {
  QuietSegment s;
  s.put(2, "a");
  s.put(2, "b");
  WorkerOptions options;
  options.queues = {"a", "b"};
  Worker worker = Worker::attach(s.segment, options).value();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(worker.try_fetch(s.job).ok());
    ASSERT_TRUE(worker.ack(s.job).ok());
  }
  const Sleeping other(s, "b");  // of a later lane: the first to be woken is the worker
  int lain_down = 0;
  {
    const AtAccess while_it_lies_down([&](shm::Access access, shm::Point point, const void*) {
      if (access != shm::Access::kWritten || point != shm::Point::kWaiterSet || ++lain_down != 2)
        return;
      s.put(2, "a");
      s.put(2, "b");
      EXPECT_FALSE(other.woken());
    });
    ASSERT_TRUE(worker.fetch(s.job, std::chrono::milliseconds(60'000)).ok());
  }
  EXPECT_EQ(lain_down, 2);
  EXPECT_TRUE(other.woken());
}

}  // namespace
}  // namespace ojs_shm::test
