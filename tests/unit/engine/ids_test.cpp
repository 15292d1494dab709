// SPDX-License-Identifier: Apache-2.0
// Ids: strictly increasing for each producer, or the client's own; each leads to its job as long as
// that is kept.

#include <functional>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "engine/rules/uuid.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

std::string brought(unsigned n) {
  char text[37];
  std::snprintf(text, sizeof text, "01961234-5678-7abc-8def-%012x", n);
  return text;
}

JobSpec with_id(std::string_view id) {
  JobSpec spec = spec_of(2);
  spec.id = id;
  return spec;
}

TEST(Ids, grow_strictly_for_one_producer) {
  QuietSegment s(few_slots(4096));
  std::string last;
  for (int i = 0; i < 4000; ++i) {
    const std::string id = s.put(i % 256);
    ASSERT_GT(id, last);
    ASSERT_TRUE(engine::parse_id(id).has_value());
    last = id;
  }
}

TEST(Ids, are_unique_over_producers_and_lead_to_their_jobs) {
  QuietSegment s(few_slots(4096));
  std::vector<std::vector<std::string>> made(4);
  std::vector<std::thread> threads;
  for (auto& ids : made)
    threads.emplace_back([&s, &ids] {
      Producer producer = Producer::attach(s.segment).value();
      for (int i = 0; i < 1000; ++i) ids.push_back(producer.enqueue(spec_of(1)).value().str());
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& ids : made)
    for (const std::string& id : ids) {
      EXPECT_TRUE(all.insert(id).second);
      EXPECT_EQ(s.get(id).id, id);
    }
  EXPECT_EQ(all.size(), 4000U);
}

TEST(Ids, a_clients_id_is_kept_and_a_second_one_is_a_duplicate) {
  QuietSegment s;
  const std::string id = brought(1);
  EXPECT_EQ(s.put(with_id(id)), id);
  EXPECT_EQ(s.get(id).id, id);
  const auto again = s.producer.enqueue(with_id(id));
  ASSERT_EQ(again.code(), Code::kDuplicate);
  EXPECT_NE(again.error().message.find(id), std::string::npos);
  EXPECT_EQ(s.queue().depth, 1U);
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.producer.enqueue(with_id(id)).code(), Code::kDuplicate);  // active
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.producer.enqueue(with_id(id)).code(), Code::kDuplicate);  // completed, and still kept
}

/// Puts a job with this id in, and does `act` when the id is taken, and no job stands yet.
void in_the_middle_of_bringing(QuietSegment& s, const std::string& id,
                               const std::function<void()>& act) {
  bool done = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (access == shm::Access::kWritten && point == shm::Point::kKeyPlaced &&
        !std::exchange(done, true))
      act();
  });
  s.put(with_id(id));
  EXPECT_TRUE(done);
}

/// A lane that brings it may still be refused, or die of it: until then it is neither free nor a
/// duplicate.
TEST(Ids, an_id_that_somebody_is_just_bringing_is_no_duplicate_yet) {
  QuietSegment s;
  Producer other = Producer::attach(s.segment).value();
  const std::string id = brought(8), further = brought(9);
  const JobSpec two[] = {with_id(further), with_id(id)};
  EnqueueOptions patient;
  patient.block_timeout = std::chrono::milliseconds(1);
  in_the_middle_of_bringing(s, id, [&] {
    EXPECT_EQ(other.enqueue(with_id(id)).code(), Code::kTimeout);
    EXPECT_EQ(other.enqueue(with_id(id), patient).code(), Code::kTimeout);
    EXPECT_EQ(other.enqueue_batch(two).code(), Code::kTimeout);
    EXPECT_EQ(other.enqueue_batch(two, patient).code(), Code::kTimeout);
  });
  EXPECT_EQ(other.enqueue(with_id(id)).code(), Code::kDuplicate);
  const auto refused = other.enqueue_batch(two);
  ASSERT_EQ(refused.code(), Code::kDuplicate);
  EXPECT_NE(refused.error().message.find(id), std::string::npos) << refused.error().message;
  EXPECT_EQ(s.drain(), std::vector<std::string>{id});
}

/// Who waits for room in an event loop waits for that as well.
TEST(Ids, who_may_wait_is_not_told_before_the_job_that_is_just_being_brought_stands) {
  QuietSegment s;
  Producer other = Producer::attach(s.segment).value();
  const std::string id = brought(8);
  const JobSpec one[] = {with_id(id)};
  EnqueueOptions patient;
  patient.block_timeout = std::chrono::minutes(10);
  std::optional<WaitingEnqueue> waiting;
  in_the_middle_of_bringing(s, id, [&] {
    waiting = other.begin(one, patient).value();
    EXPECT_FALSE(waiting->poll().has_value());
  });
  const auto decided = waiting->poll();
  ASSERT_TRUE(decided.has_value());
  EXPECT_EQ(decided->code(), Code::kDuplicate);
  EXPECT_EQ(s.drain(), std::vector<std::string>{id});
}

TEST(Ids, an_id_made_here_cannot_be_brought_again) {
  QuietSegment s;
  const std::string id = s.put(2);
  EXPECT_EQ(s.producer.enqueue(with_id(id)).code(), Code::kDuplicate);
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST(Ids, a_batch_with_a_duplicate_stores_nothing) {
  QuietSegment s;
  const std::string one = brought(1), two = brought(2);
  const JobSpec twice[] = {with_id(one), with_id(two), with_id(one)};
  EXPECT_EQ(s.producer.enqueue_batch(twice).code(), Code::kDuplicate);
  EXPECT_EQ(s.queue().depth, 0U);
  EXPECT_EQ(s.observer.get(two).code(), Code::kNotFound);
  const JobSpec good[] = {with_id(one), with_id(two)};
  ASSERT_TRUE(s.producer.enqueue_batch(good).ok());
  EXPECT_EQ(s.drain(), (std::vector<std::string>{one, two}));
}

/// Among these are some whose places in the index are crowded: with windows of 32 cells one was
/// refused.
TEST(Ids, a_segment_has_room_for_as_many_brought_ids_as_it_has_slots) {
  constexpr unsigned kFirst = 172'032, kSlots = 4096;
  QuietSegment s(few_slots(kSlots));
  for (unsigned i = 0; i < kSlots; ++i) {
    const auto put = s.producer.enqueue(with_id(brought(kFirst + i)));
    ASSERT_TRUE(put.ok()) << i << ": " << put.error().message;
  }
}

TEST(Ids, one_of_many_threads_wins_the_same_id) {
  QuietSegment s;
  for (unsigned round = 0; round < 50; ++round) {
    const std::string id = brought(round);
    std::vector<Code> codes(4, Code::kInternal);
    std::vector<std::thread> threads;
    for (Code& code : codes)
      threads.emplace_back([&s, &id, &code] {
        Producer producer = Producer::attach(s.segment).value();
        code = producer.enqueue(with_id(id)).code();
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::count(codes.begin(), codes.end(), Code::kOk), 1) << id;
    EXPECT_EQ(std::count(codes.begin(), codes.end(), Code::kDuplicate), 3) << id;
    EXPECT_EQ(s.queue().depth, round + 1);
  }
}

TEST(Ids, an_id_is_free_again_once_its_job_is_gone) {
  QuietSegment s(few_slots(64));
  const std::string id = brought(7);
  s.put(with_id(id));
  ASSERT_TRUE(s.producer.cancel(id).ok());
  // slots are used again
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(s.producer.cancel(s.put(1)).ok());
  EXPECT_EQ(s.observer.get(id).code(), Code::kNotFound);
  EXPECT_EQ(s.put(with_id(id)), id);
}

/// An inserter that died left an entry; its slot went on to the same job, tried again.
TEST(Ids, an_entry_of_a_dead_inserter_goes_with_the_job_of_its_slot) {
  QuietSegment s(few_slots(64));
  shm::Segment& segment = s.segment.attachment()->segment();
  const auto entries = [&segment] {
    std::vector<std::uint32_t> at;
    for (std::uint32_t i = 0; i < segment.geometry().key_cells; ++i)
      if (segment.key_cell(i).load() != 0) at.push_back(i);
    return at;
  };
  const std::string id = s.put(with_id(brought(7)));
  ASSERT_EQ(entries().size(), 1U);
  const std::uint32_t first = entries().front();
  segment.key_cell(first + 1).store(segment.key_cell(first).load(), shm::Point::kNone);
  ASSERT_TRUE(s.producer.cancel(id).ok());
  // slots are used again
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(s.producer.cancel(s.put(1)).ok());
  EXPECT_TRUE(entries().empty());
}

TEST(Ids, of_one_maker_have_their_low_bits_in_common_and_still_find_room) {
  QuietSegment maker, s;
  for (int i = 0; i < 300; ++i) {
    const std::string id = maker.put();
    const auto stored = s.producer.enqueue(with_id(id));
    ASSERT_TRUE(stored.ok()) << i << ": " << stored.error().message;
  }
  for (std::uint32_t seq = 0; seq < 100; ++seq) {  // all but the number in the millisecond alike
    const std::string id =
        engine::to_string(engine::make_id(1'700'000'000'000, seq, 0, 0, 0x12'3456'789A'BCDE));
    const auto stored = s.producer.enqueue(with_id(id));
    ASSERT_TRUE(stored.ok()) << seq << ": " << stored.error().message;
  }
}

TEST(Ids, what_is_no_lower_case_uuid_7_is_refused) {
  QuietSegment s;
  for (const char* id :
       {"x", "01961234-5678-4abc-8def-0123456789ab", "01961234-5678-7ABC-8DEF-0123456789AB",
        "019612345678-7abc-8def-0123456789ab-", "01961234-5678-7abc-8def-0123456789abc"})
    EXPECT_EQ(s.producer.enqueue(with_id(id)).code(), Code::kInvalid) << id;
  EXPECT_TRUE(s.observer.list({}).empty());
}

}  // namespace
}  // namespace ojs_shm::test
