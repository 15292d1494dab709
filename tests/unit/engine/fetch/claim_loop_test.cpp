// SPDX-License-Identifier: Apache-2.0
// What qo says of its claim loop and of its tiers.

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

TEST(ClaimLoop, QO_11_a_lost_race_for_a_job_leads_to_the_next_one_and_is_not_run_again) {
  QuietSegment s;
  Ids ids;
  for (int i = 0; i < 4; ++i) ids.push_back(s.put(i));
  const shm::Lane& lane = s.segment.attachment()->segment().lane(s.actor().lane());
  Ids stolen;
  bool stealing = false;
  std::string body;
  engine::Fetched got;
  got.body = &body;
  {
    // A rival takes the chosen job right before the claim, three times.
    const AtAccess before_the_claim([&](shm::Access access, shm::Point point, const void* word) {
      if (stealing || access != shm::Access::kWritten || point != shm::Point::kIntentSet ||
          word != &lane.intent)
        return;
      if (stolen.size() == 3) return;
      stealing = true;
      stolen.push_back(s.take());
      stealing = false;
    });
    ASSERT_EQ(s.actor().fetch(0, 0, false, got), engine::Outcome::kOk);
  }
  EXPECT_EQ(stolen, Ids(ids.begin(), ids.begin() + 3)) << "each was tried once";
  EXPECT_EQ(engine::to_string(got.id), ids[3]);
  std::uint64_t word = got.word;
  EXPECT_EQ(s.actor().ack(got.slot, word, ""), engine::Outcome::kOk);
}

TEST(ClaimLoop, QO_15_three_tiers_are_three_priorities_and_nothing_else) {
  QuietSegment s(few_slots(512, "qo"));
  const std::uint64_t levels = s.pool_use("levels");
  Ids high, normal, low;
  for (int i = 0; i < 5; ++i)
    for (auto& [name, ids] :
         {std::pair<const char*, Ids&>{"low", low}, {"high", high}, {"normal", normal}})
      ids.push_back(s.put(s.observer.priority_by_name(name).value()));
  EXPECT_EQ(s.pool_use("levels"), levels + 3);
  Ids expected = high;
  expected.insert(expected.end(), normal.begin(), normal.end());
  expected.insert(expected.end(), low.begin(), low.end());
  EXPECT_EQ(s.drain(), expected);
}

}  // namespace
}  // namespace ojs_shm::test
