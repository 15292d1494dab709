// SPDX-License-Identifier: Apache-2.0
// What becomes of finished jobs, and that memory stays flat whatever the history.

#include <algorithm>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

bool is_kept(const QuietSegment& s, const std::string& id) { return s.observer.get(id).ok(); }

TEST(Retention, finished_jobs_stay_until_their_room_is_needed_and_the_oldest_goes_first) {
  QuietSegment s(few_slots(256));
  Ids done;
  for (int i = 0; i < 200; ++i) done.push_back(s.put(i % 3)), s.drain();
  for (const std::string& id : done) ASSERT_TRUE(is_kept(s, id));
  for (int i = 0; i < 400; ++i) {
    done.push_back(s.put(1));
    s.drain();
  }
  // A suffix of the history is kept: nothing younger went before something older, but for the
  // batches of fourteen.
  std::size_t oldest_kept = 0, kept = 0;
  while (oldest_kept < done.size() && !is_kept(s, done[oldest_kept])) ++oldest_kept;
  for (const std::string& id : done) kept += is_kept(s, id) ? 1 : 0;
  EXPECT_GE(kept, 200U);
  EXPECT_LE(done.size() - oldest_kept, kept + 14);
}

/// Hints behind a live job use up the chunks that also list the finished.
TEST(Retention, a_shortage_of_chunks_shortens_no_history) {
  QuietSegment s(few_slots(2048));
  Producer other = Producer::attach(s.segment).value();
  s.put(4);
  Ids done;
  for (int i = 0; i < 200'000; ++i) {
    done.push_back(s.put(4));
    // it lists, and never has a hint to push for which it would make room
    ASSERT_TRUE(other.cancel(done.back()).ok());
  }
  const auto kept =
      std::count_if(done.end() - 2048, done.end(), [&](const auto& id) { return is_kept(s, id); });
  EXPECT_GE(kept, 2000);
}

TEST(Retention, a_cancelled_job_is_told_although_its_room_is_needed_at_once) {
  QuietSegment s(few_slots(64));
  Producer other = Producer::attach(s.segment).value();
  std::string last;
  for (int i = 0; i < 64; ++i) last = s.put(1);
  bool used_again = false;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (used_again || access != shm::Access::kWritten || point != shm::Point::kIntentCleared)
      return;
    used_again = true;
    EXPECT_TRUE(other.enqueue(spec_of(2)).ok());
  });
  const auto cancelled = s.producer.cancel(last);
  ASSERT_TRUE(used_again);
  ASSERT_TRUE(cancelled.ok()) << cancelled.error().message;
  EXPECT_EQ(cancelled->state, State::kCancelled);
  EXPECT_EQ(cancelled->id, last);
  EXPECT_GT(cancelled->cancelled_at_ms, 0U);
}

TEST(Retention, a_full_segment_refuses_only_when_nothing_can_be_used_again) {
  QuietSegment s(few_slots(128));
  Ids ids;
  for (int i = 0; i < 128; ++i) ids.push_back(s.put(1));
  EXPECT_EQ(s.producer.enqueue(spec_of(0)).code(), Code::kSegmentFull);
  Job held;
  ASSERT_TRUE(s.worker.try_fetch(held).ok());
  // an active job needs its slot
  EXPECT_EQ(s.producer.enqueue(spec_of(0)).code(), Code::kSegmentFull);
  ASSERT_TRUE(s.worker.ack(held).ok());
  const std::string fits = s.put(0);
  ASSERT_NE(fits, "");
  EXPECT_FALSE(is_kept(s, ids[0]));
  EXPECT_EQ(s.producer.enqueue(spec_of(0)).code(), Code::kSegmentFull);
  ASSERT_TRUE(s.producer.cancel(ids[5]).ok());
  EXPECT_NE(s.put(0), "");
}

/// A worker lists what it has finished, fourteen at a time; meanwhile a producer that found nothing
/// listed has taken some of them.
TEST(Retention, a_slot_that_lives_again_is_not_used_again_by_what_was_listed_in_its_former_life) {
  constexpr std::size_t kSlots = 64, kEarly = 5, kListed = 14;
  QuietSegment s(few_slots(kSlots));
  for (std::size_t i = 0; i < kEarly; ++i) s.put(1), s.drain();
  Ids waiting;
  for (std::size_t i = 0; i < kSlots; ++i) waiting.push_back(s.put(1));
  for (std::size_t i = kEarly; i < kListed; ++i) {
    ASSERT_EQ(s.take(), waiting.front());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    waiting.erase(waiting.begin());
  }
  for (std::size_t i = kEarly; i < kListed; ++i) waiting.push_back(s.put(1));
  EXPECT_EQ(s.producer.enqueue(spec_of(1)).code(), Code::kSegmentFull);
  EXPECT_EQ(s.drain(), waiting);
}

TEST(Retention, dead_letters_go_last) {
  QuietSegment s(few_slots(64));
  JobSpec spec = spec_of(2);
  spec.retry.max_attempts = 1;
  spec.retry.dead_letter = true;
  const std::string dead = s.put(spec);
  ASSERT_EQ(s.take(), dead);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  for (int i = 0; i < 1000; ++i) {
    s.put(1);
    s.drain();
  }
  EXPECT_TRUE(is_kept(s, dead));
  for (int i = 0; i < 64; ++i) s.put(1);
  EXPECT_FALSE(is_kept(s, dead));
  EXPECT_EQ(s.producer.enqueue(spec_of(1)).code(), Code::kSegmentFull);
}

TEST(Retention, retention_ms_drops_what_is_older) {
  SegmentOptions options = few_slots();
  options.retention_ms = kHour;
  QuietSegment s(options);
  Ids old, young;
  for (int i = 0; i < 28; ++i) old.push_back(s.put(1));
  s.drain();
  s.pass(kHour / 2);
  for (int i = 0; i < 28; ++i) young.push_back(s.put(1));
  s.drain();
  s.pass(kHour * 3 / 4);
  for (const std::string& id : old) EXPECT_FALSE(is_kept(s, id));
  for (const std::string& id : young) EXPECT_TRUE(is_kept(s, id));
  s.pass(kHour);
  for (const std::string& id : young) EXPECT_FALSE(is_kept(s, id));
}

TEST(Retention, of_a_new_segment_is_at_most_a_hundred_years) {
  const ScratchDirectory folder;
  SegmentOptions options = few_slots();
  options.retention_ms = ~0ULL;
  const auto refused = Segment::create({"s", folder.path()}, options);
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_EQ(refused.error().subject, "retention");
}

TEST(Retention, large_texts_of_the_oldest_finished_jobs_make_room_for_new_ones) {
  QuietSegment s(few_slots(256));
  const std::string args = "[\"" + std::string(40'000, 'x') + "\"]";
  JobSpec spec = spec_of(1);
  spec.args = args;
  std::string last;
  for (int i = 0; i < 200; ++i) {  // some fifty times what the blocks hold
    last = s.put(spec);
    ASSERT_NE(s.take(), "");
    ASSERT_EQ(s.job.args(), args);
    ASSERT_TRUE(s.worker.ack(s.job, args).ok());
  }
  EXPECT_EQ(s.get(last).args, args);
  EXPECT_EQ(s.get(last).result, args);
}

TEST(Retention, waiting_texts_are_never_taken_and_the_refusal_names_the_blocks) {
  QuietSegment s(few_slots(256));
  const std::string args = "[\"" + std::string(40'000, 'x') + "\"]";
  JobSpec spec = spec_of(1);
  spec.args = args;
  Ids ids;
  Code code = Code::kOk;
  for (;;) {
    const auto put = s.producer.enqueue(spec);
    if (!put.ok()) {
      code = put.code();
      EXPECT_EQ(put.error().subject, "blocks");
      break;
    }
    ids.push_back(put->str());
  }
  EXPECT_EQ(code, Code::kSegmentFull);
  s.put(1);  // a short body needs no block
  for (const std::string& id : ids) EXPECT_EQ(s.get(id).args, args);
}

/// Every pool's use after a long history is what it was after a short one.
struct Pools {
  std::uint64_t slots, chunks, blocks, levels;
  explicit Pools(const QuietSegment& s)
      : slots(s.pool_use("slots")),
        chunks(s.pool_use("chunks")),
        blocks(s.pool_use("blocks")),
        levels(s.pool_use("levels")) {}
};

TEST(Retention, cancelling_behind_a_live_low_job_keeps_memory_flat) {
  QuietSegment s(few_slots(1024));
  const std::string low = s.put(9);
  ASSERT_TRUE(s.producer.enqueue(spec_of(0)).ok());
  auto churn = [&s](int times) {
    for (int i = 0; i < times; ++i) {
      const auto id = s.producer.enqueue(spec_of(9));
      ASSERT_TRUE(id.ok()) << i << ": " << id.error().message;
      ASSERT_TRUE(s.producer.cancel(id->view()).ok()) << i;
    }
  };
  churn(20'000);
  const Pools early(s);
  churn(180'000);
  const Pools late(s);
  EXPECT_EQ(late.slots, early.slots);
  EXPECT_EQ(late.blocks, early.blocks);
  EXPECT_EQ(late.levels, early.levels);
  EXPECT_EQ(s.queue().depth, 2U);
  s.take();
  EXPECT_EQ(s.take(), low);
}

/// A worker rests after each job.
TEST(Retention, a_trickle_of_jobs_shortens_no_history) {
  QuietSegment s(few_slots(8192));
  for (int i = 0; i < 20'000; ++i) {
    const auto id = s.producer.enqueue(spec_of(i % 3));
    ASSERT_TRUE(id.ok()) << i << ": " << id.error().message;
    ASSERT_EQ(s.take(), id->str());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    ASSERT_EQ(s.worker.fetch(s.job, std::chrono::milliseconds(0)).code(), Code::kTimeout);
  }
  EXPECT_EQ(s.queue().depth, 0U);
  EXPECT_GE(s.observer.list({}).size(), 8000U);
}

/// With a retention time it publishes its finished slots one by one: the chunks would run out if
/// each had its own.
TEST(Retention, a_trickle_of_jobs_with_a_retention_time_shortens_no_history) {
  SegmentOptions options = few_slots(32'768);
  options.retention_ms = kHour;
  QuietSegment s(options);
  for (int i = 0; i < 20'000; ++i) {
    const auto id = s.producer.enqueue(spec_of(i % 3));
    ASSERT_TRUE(id.ok()) << i << ": " << id.error().message;
    ASSERT_EQ(s.take(), id->str());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
    ASSERT_EQ(s.worker.fetch(s.job, std::chrono::milliseconds(0)).code(), Code::kTimeout);
  }
  EXPECT_EQ(s.queue().depth, 0U);
  EXPECT_EQ(s.observer.list({}).size(), 20'000U);
}

TEST(Retention, of_results_that_come_one_by_one_none_goes_early_and_none_stays_much_longer) {
  SegmentOptions options = few_slots();
  options.retention_ms = kHour;
  QuietSegment s(options);
  const auto finish_and_rest = [&s] {
    const std::string id = s.put();
    s.drain();
    EXPECT_EQ(s.worker.fetch(s.job, std::chrono::milliseconds(0)).code(), Code::kTimeout);
    return id;
  };
  const std::string first = finish_and_rest();
  const std::uint64_t chunks = s.pool_use("chunks");
  s.pass(3 * kMinute);
  const std::string second = finish_and_rest();
  EXPECT_EQ(s.pool_use("chunks"), chunks) << "the second has a chunk of its own";
  s.pass(2 * kMinute);
  const std::string third = finish_and_rest();  // the first is too old for its company
  s.pass(56 * kMinute);
  EXPECT_TRUE(is_kept(s, second));
  EXPECT_TRUE(is_kept(s, third));
  s.pass(3 * kMinute);
  EXPECT_FALSE(is_kept(s, first));
  EXPECT_FALSE(is_kept(s, second));
  EXPECT_TRUE(is_kept(s, third));
  s.pass(2 * kMinute);
  EXPECT_FALSE(is_kept(s, third));
}

TEST(Retention, reprioritising_behind_a_live_low_job_keeps_memory_flat) {
  QuietSegment s(few_slots(1024));
  const std::string anchor4 = s.put(4), anchor5 = s.put(5), moved = s.put(4);
  for (int i = 0; i < 200'000; ++i) {
    const auto previous = s.producer.reprioritize(moved, i % 2 == 0 ? 5 : 4);
    ASSERT_TRUE(previous.ok()) << i << ": " << previous.error().message;
    ASSERT_EQ(previous.value(), i % 2 == 0 ? 4 : 5);
    if (i % 64 == 0) {  // a busy better level
      const std::string busy = s.put(0);
      ASSERT_EQ(s.take(), busy);
      ASSERT_TRUE(s.worker.ack(s.job).ok());
    }
  }
  EXPECT_EQ(s.queue().depth, 3U);
  EXPECT_EQ(s.drain(), (Ids{anchor4, moved, anchor5}));
}

}  // namespace
}  // namespace ojs_shm::test
