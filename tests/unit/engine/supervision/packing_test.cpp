// SPDX-License-Identifier: Apache-2.0
// Dead hints behind live ones are given back while a lane supervises, long before chunks are
// short.
#include "engine/supervision/packing.hpp"
#include "engine/tables/ring_look.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "shm/ring_splice.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

void put_and_cancel(QuietSegment& s, int times) {
  for (int i = 0; i < times; ++i) {
    const auto id = s.producer.enqueue(spec_of(4));
    ASSERT_TRUE(id.ok()) << i << ": " << id.error().message;
    ASSERT_TRUE(s.producer.cancel(id->view()).ok()) << i;
  }
}

/// One pass. How many looks it took.
int pack(QuietSegment& s) {
  engine::Packer packer(s.actor());
  const std::uint64_t now = s.now_ms();
  int looks = 1;
  while (packer.look(now) == now && looks < 100) ++looks;
  return looks;
}

/// The pool has some 4600. What is needed: 74 for the finished, which fill the slots, and a few.
TEST(Packing, memory_stays_flat_while_jobs_come_and_go_behind_a_live_one) {
  QuietSegment s(few_slots(1024));
  const std::string low = s.put(4), moved = s.put(4);
  std::uint64_t highest = 0;
  for (int round = 0; round < 300; ++round) {
    put_and_cancel(s, 500);
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(s.producer.reprioritize(moved, 3 + i % 2).ok());
    s.pass(kSecond);
    highest = std::max(highest, s.pool_use("chunks"));
  }
  EXPECT_LE(highest, 1000U);
  EXPECT_EQ(s.drain(), (std::vector<std::string>{low, moved}));
}

TEST(Packing, a_load_without_dead_hints_is_not_packed) {
  QuietSegment s;
  s.tick();
  for (int i = 0; i < 300; ++i) s.put(4);
  int splices = 0;
  const AtAccess counting([&splices](shm::Access access, shm::Point point, const void*) {
    splices += access == shm::Access::kWritten && point == shm::Point::kSpliceClaimed ? 1 : 0;
  });
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 100; ++i) {
      s.put(4);
      ASSERT_NE(s.take(), "");
      ASSERT_TRUE(s.worker.ack(s.job).ok());
    }
    s.pass(kSecond);
  }
  EXPECT_EQ(splices, 0);
}

/// More chunks than one look goes through stand before the dead ones.
TEST(Packing, a_pass_goes_on_where_the_last_look_ended) {
  QuietSegment s(few_slots(65'536));
  const std::vector<JobSpec> thousand(1000, spec_of(4));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(s.producer.enqueue_batch(thousand).ok());
  put_and_cancel(s, 30'000);
  const std::uint64_t before = s.pool_use("chunks");
  EXPECT_EQ(pack(s), 3);  // a chunk full of live hints is looked at twice
  EXPECT_LE(s.pool_use("chunks") + 30'000 / 14 - 20, before);
}

/// Head stands at the end of a chunk, which is left behind as well.
TEST(Packing, a_look_that_leaves_more_behind_than_it_may_ends) {
  QuietSegment s;
  shm::Rings& rings = s.actor().rings();
  const std::string behind = s.put(4);
  const std::uint32_t ring = shm::Rings::find(s.store().rings_of(0, 0), engine::normal_ring(4));
  ASSERT_TRUE(s.producer.cancel(behind).ok());
  put_and_cancel(s, static_cast<int>(shm::kCellsPerChunk) - 1);
  EXPECT_EQ(shm::splice(rings, ring, engine::any_lives), 0U);
  put_and_cancel(s, static_cast<int>(3 * shm::kCellsPerChunk));
  shm::Stretch stretch;
  stretch.most = 1;
  shm::splice(rings, ring, engine::any_lives, stretch);
  EXPECT_EQ(stretch.freed, 2U);
  EXPECT_EQ(stretch.most, 0U);
}

/// The last chunk of a ring stays in it, also when nothing in it is alive. Who needs one has that
/// of the longest finished.
TEST(Packing, dead_hints_in_a_last_chunk_yield_none_and_a_batch_does) {
  QuietSegment s;
  put_and_cancel(s, static_cast<int>(shm::kCellsPerChunk));
  shm::Rings& rings = s.actor().rings();
  std::vector<std::uint32_t> rings_of_hints;
  engine::each_ring_of_hints(
      s.store(), [&](std::uint32_t ring, shm::StillLive) { rings_of_hints.push_back(ring); });
  for (const std::uint32_t ring : rings_of_hints)
    EXPECT_EQ(shm::splice(rings, ring, engine::any_lives), 0U);
  while (rings.chunks().take() != shm::kNoIndex) {}
  s.put(5);  // of another level: it needs a ring and a chunk
  EXPECT_LT(s.observer.list({}).size(), shm::kCellsPerChunk) << "whose chunk was it?";
}

/// Does `act`, in which consumers take all that there is, right after a link was changed: the
/// splice cannot know which way they went. Then `later` before the access number `at` after it.
/// Returns how many there were.
std::uint64_t overtake(
    QuietSegment& s, const std::function<void()>& act, std::uint64_t at = 0,
    const std::function<void()>& later = [] {}) {
  bool drained = false, acting = false;
  std::uint64_t accesses = 0;
  const AtAccess between([&](shm::Access access, shm::Point point, const void*) {
    if (acting || (drained && ++accesses != at)) return;
    if (!drained && (access != shm::Access::kWritten || point != shm::Point::kSpliceDone)) return;
    acting = true;
    std::exchange(drained, true) ? later() : (void)s.drain();
    acting = false;
  });
  act();
  EXPECT_TRUE(drained);
  return accesses;
}

TEST(Packing, what_a_moving_head_leaves_in_no_ring_is_collected) {
  QuietSegment s;
  s.put(4);
  put_and_cancel(s, 3000);
  for (int i = 0; i < 20; ++i) s.put(4);
  const std::uint64_t before = s.pool_use("chunks");
  overtake(s, [&s] { pack(s); });
  EXPECT_LE(s.pool_use("chunks") + 3000 / 14 - 20, before);
}

/// Who finds no chunk packs by itself.
TEST(Packing, what_a_moving_head_leaves_to_a_push_that_packs_is_collected) {
  QuietSegment s;
  s.put(4);
  put_and_cancel(s, 300);
  for (int i = 0; i < 20; ++i) s.put(4);
  while (s.actor().rings().chunks().take() != shm::kNoIndex) {}
  overtake(s, [&s] { s.put(5); });
  EXPECT_EQ(s.findings(), "");
}

TEST(Packing, takes_no_chunk_from_a_ring_that_is_made_meanwhile) {
  constexpr std::uint64_t kInstants = 60;
  std::uint64_t accesses = 1;
  for (std::uint64_t i = 0; i <= kInstants; ++i) {
    QuietSegment s;
    QueueSettings fair;
    fair.tenant_fairness = TenantFairness{};
    ASSERT_TRUE(s.admin.set_queue("default", fair).ok());
    s.put(4);
    put_and_cancel(s, 3000);
    for (int k = 0; k < 20; ++k) s.put(4);
    JobSpec of_tenant = spec_of(4);
    of_tenant.tenant = "new";
    std::vector<std::string> ids;
    const auto more = [&] { s.put(2, "other"), ids = {s.put(of_tenant)}; };
    const std::uint64_t at = accesses * i / kInstants;
    const std::uint64_t all = overtake(
        s, [&s] { pack(s); }, at, more);
    if (i == 0) accesses = all;
    EXPECT_EQ(s.drain(), ids) << "at access " << at;
    EXPECT_EQ(s.findings(), "");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
