// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/slot_texts.hpp"

#include <algorithm>
#include <vector>

#include "engine/moves/report.hpp"
#include "engine/tables/patience.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

[[gnu::noinline]] void SlotTexts::free_all(std::uint32_t slot, JobRecord& job) {
  const std::uint32_t generation = job.generation.get();
  for (auto* block : {&job.body_block, &job.result_block, &job.errors_block}) {
    if (block->get() == kNoIndex) continue;
    blocks_.free_chain(block->get(), slot, generation);
    block->set(kNoIndex);  // NO CRASH POINT: the slot is held exclusively
  }
  job.result_length.set(0);
  job.errors_length.set(0);
}

void SlotTexts::free_report(std::uint32_t slot, const JobRecord& job, std::uint64_t signals) {
  const std::uint32_t first = ReportWord(signals).first_block();
  if (const std::uint64_t word = report_blocks(segment_, first, slot, job.generation.get());
      word != 0)
    blocks_.free_from_end(first, word);
}

void SlotTexts::free_all_made(std::uint64_t word) {
  for (std::uint32_t i = 0; i < segment_.geometry().blocks; ++i)
    if (segment_.block_word(i).load_relaxed() == word)  // relaxed: a cas decides
      blocks_.free_orphan(i, word);
}

// ---- after a death ------------------------------------------------------------------------------

void SlotTexts::drop_loose(std::uint32_t slot, JobRecord& job) {
  if (Control(job.control.load()).state() == kSlotSettling) {
    job.result_block.set(kNoIndex);  // NO CRASH POINT: the slot is held exclusively
    job.result_length.set(0);        // NO CRASH POINT: as above
  }
  const std::uint64_t word = shm::Blocks::word_of(slot, job.generation.get());
  std::vector<bool> kept(segment_.geometry().blocks, false);
  for (const auto* first : {&job.body_block, &job.result_block, &job.errors_block})
    for (std::uint32_t b = first->get();
         b < kept.size() && !kept[b] && segment_.block_word(b).load() == word;
         b = segment_.block_link(b).load())
      kept[b] = true;
  for (std::uint32_t b = 0; b < kept.size(); ++b)
    if (!kept[b] && segment_.block_word(b).load_relaxed() == word)
      blocks_.free_orphan(b, word);  // relaxed: a cas decides
}

bool SlotTexts::is_being_made(std::uint64_t word) const {
  const std::uint32_t maker = shm::Blocks::maker_of(word);
  if (!shm::Blocks::is_made(word) || maker >= segment_.geometry().lanes) return false;
  const shm::Lane& lane = segment_.lane(maker);
  return lane.intent.get_ordered() != 0 &&
         lane.intent_data[ReportIntent::kOwnWord].get_ordered() == word;
}

void SlotTexts::sweep() {
  constexpr unsigned kLooks = std::min(kPatience, 100U);  // a slot is filled in far less
  // Whether it is known whose the block is; one without an owner is free then.
  const auto settled = [this](std::uint32_t block) {
    const std::uint64_t word = segment_.block_word(block).load();  // PAIR block-taken
    if (word == 0) return true;
    const std::uint32_t slot = shm::Blocks::slot_of(word);
    if (slot < store_.slots()) {
      const JobRecord& job = store_.job(slot);
      const std::uint32_t generation = job.generation.get();
      const Control control(job.control.load());
      if (control.state() == kSlotFilling) return false;  // its generation may be about to change
      if (control.state() != kSlotFree) {
        if (shm::Blocks::is_of(word, slot, generation)) return true;
        if (is_exclusive(control.state()) || job.generation.get() != generation) return false;
      }
    }
    if (!is_being_made(word)) blocks_.free_orphan(block, word);
    return true;
  };
  std::vector<std::uint32_t> doubtful;
  for (std::uint32_t i = 0; i < segment_.geometry().blocks; ++i)
    if (!settled(i)) doubtful.push_back(i);
  for (unsigned look = 0; look < kLooks && !doubtful.empty(); ++look) {
    shm::wait_for_another(look);
    std::erase_if(doubtful, settled);
  }
}

}  // namespace ojs_shm::engine
