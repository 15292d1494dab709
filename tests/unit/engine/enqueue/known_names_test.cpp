// SPDX-License-Identifier: Apache-2.0
// What a handle keeps of the names that it has looked up.
#include "engine/enqueue/known_names.hpp"

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(KnownNames, a_queue_is_made_when_that_is_wanted_and_known_by_its_last_name_alone) {
  QuietSegment s;
  engine::Actor& actor = s.actor();
  EXPECT_EQ(actor.ensure_queue("first", false), engine::kNoIndex);
  const std::uint32_t first = actor.ensure_queue("first");
  ASSERT_NE(first, engine::kNoIndex);
  EXPECT_EQ(actor.ensure_queue("first", false), first);
  EXPECT_EQ(actor.known_queue("first"), first);
  const std::uint32_t second = actor.ensure_queue("second");
  EXPECT_NE(second, first);
  EXPECT_EQ(actor.known_queue("second"), second);
  EXPECT_EQ(actor.known_queue("first"), engine::kNoIndex);
  EXPECT_EQ(s.store().queue_name(first), "first");
}

TEST(KnownNames, a_full_table_has_no_queue_for_another_name) {
  QuietSegment s;
  for (unsigned i = 0; i < few_slots().max_queues; ++i)
    ASSERT_NE(s.actor().ensure_queue("q" + std::to_string(i)), engine::kNoIndex) << i;
  EXPECT_EQ(s.actor().ensure_queue("another"), engine::kNoIndex);
}

TEST(KnownNames, a_type_is_known_while_no_other_is) {
  QuietSegment s;
  engine::Actor& actor = s.actor();
  EXPECT_FALSE(actor.known_type(""));
  actor.know_type("a");
  EXPECT_TRUE(actor.known_type("a"));
  actor.know_type("b");
  EXPECT_FALSE(actor.known_type("a"));
}

TEST(KnownNames, the_rank_of_a_job_that_names_none_is_its_types_or_the_conventions) {
  QuietSegment s;
  const std::uint8_t usual = s.actor().default_rank("a");
  ASSERT_TRUE(s.admin.set_default_priority("a", 9).ok());
  EXPECT_EQ(s.actor().default_rank("a"), s.actor().ranks().of(9));
  EXPECT_EQ(s.actor().default_rank("b"), usual);
}

}  // namespace
}  // namespace ojs_shm::test
