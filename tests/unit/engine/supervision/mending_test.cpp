// SPDX-License-Identifier: Apache-2.0
// Actor::mend beside others: a broker that comes back mends when it sees no lane, and a lane may
// attach meanwhile.
#include <gtest/gtest.h>

#include <functional>

#include "engine/tables/job_look.hpp"
#include "shm/blocks.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

/// Mends, and does `act` before the shared access number `at`. Returns how many there were.
std::uint64_t mend(QuietSegment& s, std::uint64_t at, const std::function<void()>& act) {
  std::uint64_t accesses = 0;
  bool acting = false;
  const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
    if (acting || accesses++ != at) return;
    acting = true;
    act();
    acting = false;
  });
  EXPECT_TRUE(s.admin.mend().ok());
  return accesses;
}

TEST(Mending, takes_no_chunk_from_a_ring_that_is_made_meanwhile) {
  constexpr std::uint64_t kInstants = 300;
  std::uint64_t accesses = 0;
  {
    QuietSegment s;
    s.put();
    accesses = mend(s, ~0ULL, [] {});
  }
  ASSERT_GT(accesses, kInstants);
  for (std::uint64_t i = 0; i < kInstants; ++i) {
    QuietSegment s;  // whose audit ends the test
    s.put();
    JobSpec rated = spec_of(2);
    rated.priority_age_rate = 3;
    std::vector<std::string> ids;
    mend(s, accesses * i / kInstants, [&] { ids = {s.put(1), s.put(rated), s.put(2, "other")}; });
    for (const std::string& id : ids) EXPECT_EQ(s.get(id).state, State::kAvailable);
    EXPECT_EQ(s.drain().size(), 3U) << "at access " << accesses * i / kInstants;
    if (HasFailure()) return;
  }
}

/// A block of no lane, freed by another and taken for a new text between the look at it and the end
/// of the sweep.
TEST(Mending, frees_no_block_that_is_another_ones_meanwhile) {
  QuietSegment s;
  shm::Segment& segment = s.segment.attachment()->segment();
  shm::Blocks others(segment, 0);
  const std::uint64_t anew = shm::Blocks::word_of(1, 7);
  const std::uint32_t block = others.write(0, 7, "of a generation that is over");
  ASSERT_NE(block, shm::kNoIndex);
  shm::Word& owner = segment.block_word(block);
  {
    bool taken = false;
    const AtAccess meanwhile([&](shm::Access, shm::Point point, const void* word) {
      if (point != shm::Point::kBlockFreed || word != owner.address() || taken) return;
      taken = true;
      EXPECT_TRUE(others.free_orphan(block, shm::Blocks::word_of(0, 7)));
      owner.store(anew, shm::Point::kBlockTaken);
    });
    EXPECT_TRUE(s.admin.mend().ok());
    EXPECT_TRUE(taken);
  }
  EXPECT_EQ(owner.load(), anew);
  others.free_orphan(block, anew);
  others.release();
}

/// Such a block may be of the life that ends, or of the one that begins.
TEST(Mending, looks_again_at_the_blocks_of_a_slot_that_is_being_filled) {
  QuietSegment s;
  const std::uint32_t slot = engine::find_job(s.store(), engine::parse_id(s.put()).value());
  ASSERT_EQ(s.drain().size(), 1U);
  shm::Segment& segment = s.segment.attachment()->segment();
  shm::Blocks others(segment, 0);
  engine::JobRecord& job = s.store().job(slot);
  const std::uint32_t before = job.generation.get();
  const engine::Control ended(job.control.load());
  ASSERT_EQ(ended.state(), engine::kSlotCompleted);
  const std::uint32_t block = others.write(slot, before, "of a life that is just over");
  ASSERT_NE(block, shm::kNoIndex);
  shm::Word& owner = segment.block_word(block);
  job.control.store(ended.to(engine::kSlotFilling, 0, 1).word, shm::Point::kNone);
  const auto begin = [&] {
    job.generation.set(before + 1);
    job.control.store(ended.word, shm::Point::kNone);
  };
  {
    int looks = 0;
    const AtAccess meanwhile([&](shm::Access access, shm::Point, const void* word) {
      if (access == shm::Access::kLoad && word == owner.address() && ++looks == 2) begin();
    });
    EXPECT_TRUE(s.admin.mend().ok());
    EXPECT_EQ(looks, 2);
  }
  EXPECT_EQ(owner.load(), 0U);
  job.generation.set(before);  // that of its id
  job.control.store(ended.word, shm::Point::kNone);
}

TEST(Mending, takes_no_template_from_a_cron_that_is_made_meanwhile) {
  constexpr std::uint64_t kInstants = 100;
  const auto set = [](QuietSegment& s) {
    CronSpec spec;
    spec.name = "hourly";
    spec.expression = "0 * * * *";
    spec.job.type = "report.make";
    return s.admin.set_cron(spec).code();
  };
  std::uint64_t accesses = 0;
  {
    QuietSegment s;
    accesses = mend(s, ~0ULL, [] {});
  }
  for (std::uint64_t i = 0; i < kInstants; ++i) {
    QuietSegment s;  // whose audit ends the test
    mend(s, accesses * i / kInstants, [&] {
      if (s.store().cron_table().seat.load() == 0) {  // else one that sets waits for the mender
        EXPECT_EQ(set(s), Code::kOk);
      }
    });
    EXPECT_EQ(set(s), Code::kOk) << "at access " << accesses * i / kInstants;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
