// SPDX-License-Identifier: Apache-2.0
// What a lane tells, without an operation around it.
#include "engine/observing/tellings.hpp"

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::EventFacts;
using engine::EventKind;

class Tells : public testing::Test {
 protected:
  std::vector<EventFacts> told() {
    std::vector<EventFacts> events;
    EXPECT_EQ(reader.poll(events, 0), 0U);
    return events;
  }
  QuietSegment s;
  engine::Tellings& tellings = s.actor().tellings();
  engine::EventReader reader{s.store(), false};
};

TEST_F(Tells, its_switch_is_the_segment_s) {
  EXPECT_FALSE(tellings.on());
  tellings.turn(true);
  EXPECT_TRUE(engine::Tellings(s.store(), s.actor().lane()).on());
  tellings.turn(false);
  EXPECT_FALSE(tellings.on());
}

TEST_F(Tells, an_event_wakes_those_who_sleep_until_there_is_one_and_the_next_wakes_nobody) {
  shm::Word& word = s.store().header().telling;
  shm::Word& listeners = s.store().header().listeners[0];
  const shm::Half& park = s.store().segment().lane(9).park;
  listeners.fetch_or(1U << 9, shm::Point::kWaiterSet);
  word.fetch_or(engine::kListened, shm::Point::kWaiterSet);
  EXPECT_FALSE(tellings.on()) << "a listener does not switch events on";
  tellings.turn(true);
  const std::uint32_t before = park.load();
  tellings.paused(0, true);
  EXPECT_EQ(park.load(), before + 1);
  EXPECT_EQ(listeners.load(), 0U);
  EXPECT_EQ(word.load(), engine::kTells);
  listeners.fetch_or(1U << 9, shm::Point::kWaiterSet);  // of one that sleeps until a job ends
  tellings.paused(0, false);
  EXPECT_EQ(park.load(), before + 1);
  listeners.store(0, shm::Point::kWaiterCleared);
}

/// It may have died between its event and the ring.
TEST_F(Tells, the_repair_of_a_lane_wakes_those_who_sleep_until_there_is_an_event) {
  s.store().header().listeners[0].fetch_or(1U << 9, shm::Point::kWaiterSet);
  const shm::Half& park = s.store().segment().lane(9).park;
  const std::uint32_t before = park.load();
  tellings.close_left();
  EXPECT_EQ(park.load(), before + 1);
}

TEST_F(Tells, a_job_as_its_record_says) {
  const std::string id = s.put(3);
  const std::uint32_t slot = 0;
  const engine::JobRecord& job = s.store().job(slot);
  const engine::Control control(job.control.load());
  tellings.tell(EventKind::kJobEnqueued, job, control, 17);
  const std::vector<EventFacts> events = told();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].job, job.id());
  EXPECT_EQ(events[0].tag, control.tag());
  EXPECT_EQ(events[0].value, 17U);
  EXPECT_EQ(events[0].rank, engine::rank_of_ring(control.ring()));
  tellings.held(EventKind::kJobHeartbeat, job, control.to(engine::kSlotActive), 1);
  EXPECT_TRUE(told().empty()) << "the job is not held under that word";
}

TEST_F(Tells, a_refusal_with_the_whole_of_a_long_type) {
  const std::string type(100, 't');
  tellings.refused(0, 3, {}, type);
  const std::vector<EventFacts> events = told();
  ASSERT_EQ(events.size(), 1U + (type.size() - 16 + 31) / 32);
  EXPECT_EQ(events[0].kind, EventKind::kBackpressureRejected);
  EXPECT_EQ(events[0].attempt, 3U);
  for (std::size_t i = 1; i < events.size(); ++i) EXPECT_EQ(events[i].kind, EventKind::kText);
}

}  // namespace
}  // namespace ojs_shm::test
