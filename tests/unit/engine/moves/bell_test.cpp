// SPDX-License-Identifier: Apache-2.0
// What rings, and for whom. No threads: a ring leaves its mark in the word on which a lane sleeps.
#include "engine/moves/bell.hpp"

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::Point;

class Bells : public testing::Test {
 protected:
  std::uint32_t parked(std::uint32_t lane) { return s.store().segment().lane(lane).park.load(); }
  shm::Header& header() { return s.store().segment().header(); }
  engine::QueueRecord& queue() { return s.store().queue(0); }
  QuietSegment s;
  const engine::Bell& bell = s.actor().bell();
};

TEST_F(Bells, one_sleeper_is_woken_and_no_longer_listed) {
  queue().waiters[0].store(0b11, Point::kWaiterSet);
  const std::uint32_t first = parked(0), second = parked(1);
  bell.wake_one(queue());
  EXPECT_EQ(queue().waiters[0].load(), 0b10U);
  EXPECT_EQ(parked(0), first + 1);
  EXPECT_EQ(parked(1), second);
  bell.wake_all(queue());
  EXPECT_EQ(queue().waiters[0].load(), 0U);
  EXPECT_EQ(parked(1), second + 1);
}

TEST(BellOfManyLanes, wakes_a_sleeper_beyond_the_first_64) {
  SegmentOptions options = few_slots();
  options.max_handles = 100;
  QuietSegment s(options);
  engine::QueueRecord& queue = s.store().queue(0);
  shm::Segment& segment = s.store().segment();
  segment.header().lanes_high.store(71, Point::kNone);
  queue.waiters[1].store(1ULL << 6, Point::kWaiterSet);
  const std::uint32_t before = segment.lane(70).park.load();
  EXPECT_TRUE(s.actor().bell().wake_one(queue));
  EXPECT_EQ(queue.waiters[1].load(), 0U);
  EXPECT_EQ(segment.lane(70).park.load(), before + 1);
}

TEST_F(Bells, a_wake_makes_the_queue_busy) {
  engine::Word& word = s.store().busy_word(0);
  word.store(engine::BusyWord::with(word.load(), 0, engine::BusyWord::kQuiet), Point::kBusyCleared);
  bell.wake_one(queue());
  EXPECT_EQ(engine::BusyWord::of(word.load(), 0), engine::BusyWord::kBusy);
}

TEST_F(Bells, a_call_reaches_the_owner_s_lane_and_no_number_beyond_the_last) {
  const std::uint32_t before = parked(2);
  bell.call(3);
  EXPECT_EQ(parked(2), before + 1);
  bell.call(0);
  bell.call(s.store().lanes() + 1);
  EXPECT_EQ(parked(2), before + 1);
}

TEST_F(Bells, the_supervisor_is_rung_only_if_it_would_sleep_longer) {
  header().sleeping_until_ms.store(1000, Point::kNone);
  const std::uint32_t before = header().doorbell.load();
  bell.ring_supervisor_for(1000);
  EXPECT_EQ(header().doorbell.load(), before);
  bell.ring_supervisor_for(999);
  EXPECT_EQ(header().doorbell.load(), before + 1);
}

TEST_F(Bells, the_end_of_a_job_rings_for_its_slot) {
  const std::uint32_t before = header().completions[5].load();
  bell.ring_completion(64 + 5);
  EXPECT_EQ(header().completions[5].load(), before + 1);
}

TEST_F(Bells, the_end_of_a_job_and_an_event_wake_every_listener_once) {
  engine::EngineHeader& engine_header = s.store().header();
  for (const bool event : {false, true}) {
    engine_header.listeners[0].store(0b110, Point::kWaiterSet);
    engine_header.telling.fetch_or(engine::kListened, Point::kWaiterSet);
    const std::uint32_t first = parked(1), second = parked(2);
    for (int i = 0; i < 2; ++i) event ? bell.ring_listeners() : bell.ring_completion(3);
    EXPECT_EQ(engine_header.listeners[0].load(), 0U);
    EXPECT_EQ(parked(1), first + 1);
    EXPECT_EQ(parked(2), second + 1);
    EXPECT_EQ(engine_header.telling.load() & engine::kListened, event ? 0 : engine::kListened);
  }
}

}  // namespace
}  // namespace ojs_shm::test
