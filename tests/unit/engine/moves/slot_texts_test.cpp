// SPDX-License-Identifier: Apache-2.0
// The blocks that hold the longer texts of slots: taken, freed, and found again after a death.
#include "engine/moves/slot_texts.hpp"

#include "engine/tables/job_look.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using shm::Blocks;

class Texts : public testing::Test {
 protected:
  Texts() {
    spec_.type = "unit.test";
    spec_.args = long_args_;
    slot_ = engine::find_job(s.store(), *engine::parse_id(s.put(spec_)));
    texts.close();  // what is free is free for all lanes
  }
  engine::JobRecord& job() { return s.store().job(slot_); }
  std::uint64_t word() { return Blocks::word_of(slot_, job().generation.get()); }
  std::string read(std::uint32_t first, std::size_t size) {
    std::string text;
    Blocks::read(s.store().segment(), first, slot_, job().generation.get(), size, text);
    return text;
  }
  std::uint64_t used() const { return s.pool_use("blocks"); }

  const std::string long_args_ = "[\"" + std::string(600, 'a') + "\"]";
  JobSpec spec_;
  QuietSegment s;
  std::uint32_t slot_ = 0;
  engine::SlotTexts texts{s.store(), s.actor().lane()};
};

TEST_F(Texts, a_text_takes_as_many_blocks_as_it_needs_and_gives_them_back) {
  const std::uint64_t before = used();
  const std::string text(3 * shm::kBlockBytes, 'x');
  const std::uint32_t first = texts.write(word(), text);
  ASSERT_NE(first, engine::kNoIndex);
  EXPECT_EQ(used(), before + 3);
  EXPECT_EQ(read(first, text.size()), text);
  texts.free(first, slot_, job().generation.get());
  EXPECT_EQ(used(), before);
}

TEST_F(Texts, a_text_that_no_lane_holds_has_blocks_of_its_own_word) {
  const std::uint64_t before = used();
  const std::uint64_t one = texts.next_made_word(slot_, job().generation.get()),
                      other = texts.next_made_word(slot_, job().generation.get());
  EXPECT_NE(one, other);
  const std::uint32_t first = texts.write(one, std::string(300, 'x'));
  texts.write(other, "kept");
  texts.free_made(first, one);
  EXPECT_EQ(used(), before + 1);
  texts.free_all_made(other);
  EXPECT_EQ(used(), before);
}

TEST_F(Texts, after_a_death_blocks_of_no_text_are_freed_and_those_of_the_body_stay) {
  const std::uint64_t before = used();
  texts.write(word(), std::string(300, 'x'));  // as its writer leaves it that dies right after
  EXPECT_EQ(used(), before + 2);
  texts.drop_loose(slot_, job());
  EXPECT_EQ(used(), before);
  EXPECT_EQ(s.get(engine::to_string(job().id())).args, long_args_);
}

TEST_F(Texts, a_sweep_frees_the_blocks_of_an_earlier_generation_alone) {
  const std::uint64_t before = used();
  texts.write(Blocks::word_of(slot_, job().generation.get() - 1), "late");
  EXPECT_EQ(used(), before + 1);
  texts.sweep();
  EXPECT_EQ(used(), before);
  EXPECT_EQ(s.get(engine::to_string(job().id())).args, long_args_);
}

}  // namespace
}  // namespace ojs_shm::test
