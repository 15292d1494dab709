// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "engine/audit/audit_book.hpp"
#include "engine/moves/report.hpp"
#include "shm/blocks.hpp"

namespace ojs_shm::engine {
namespace {

struct Text {
  std::uint32_t first;
  std::uint64_t length, word;  ///< of its blocks
};

/// Walks the text, whose blocks are marked in `seen`.
void walk(AuditBook& book, std::uint32_t slot, const Text& text, std::vector<std::uint8_t>& seen) {
  if (text.first == kNoIndex) return;
  const shm::Segment& segment = book.store().segment();
  std::uint64_t room = 0;
  std::uint32_t block = text.first;
  for (; block != kNoIndex; block = segment.block_link(block).load()) {
    if (block >= seen.size() || segment.block_word(block).load() != text.word ||
        seen[block]++ != 0) {
      book.say(8, AuditBook::slot_name(slot) + " has a text whose block " + std::to_string(block) +
                      " is not its own");
      break;
    }
    room += shm::kBlockBytes;
  }
  if (block == kNoIndex && room < text.length)
    book.say(9, AuditBook::slot_name(slot) + " has a text shorter than its length");
}

/// Whether a block that stands in no text may be in the making.
bool may_be_loose(const AuditBook& book, std::uint64_t word) {
  const Store& store = book.store();
  const std::uint32_t slot = shm::Blocks::slot_of(word);
  if (slot < store.slots() && is_exclusive(Control(store.job(slot).control.load()).state()))
    return true;
  const std::uint32_t maker = shm::Blocks::maker_of(word);
  return shm::Blocks::is_made(word) && book.lane_taken(maker + 1) &&
         store.segment().lane(maker).intent.get_ordered() != 0;
}

}  // namespace

void audit_blocks(AuditBook& book) {
  const Store& store = book.store();
  const shm::Segment& segment = store.segment();
  std::vector<std::uint8_t> seen(segment.geometry().blocks, 0);
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    const Control control(job.control.load());
    if (!holds_job(control.state()) && control.state() < kSlotTemplate) continue;
    if (holds_job(control.state()) && !is_finished(control.state()) &&
        job.result_block.get() != kNoIndex && job.control.load() == control.word)
      book.say(8, AuditBook::slot_name(slot) + " has a result, and has not ended");
    const std::uint32_t generation = job.generation.get();
    const std::uint64_t word = shm::Blocks::word_of(slot, generation);
    walk(book, slot,
         {job.body_block.get(), std::min<std::uint64_t>(job.body_length(), 1U << 30), word}, seen);
    walk(book, slot, {job.result_block.get(), job.result_length.get(), word}, seen);
    walk(book, slot, {job.errors_block.get(), job.errors_length.get(), word}, seen);
    const std::uint32_t report = ReportWord(job.signals.load()).first_block();
    walk(book, slot, {report, 1, report_blocks(segment, report, slot, generation)}, seen);
  }
  for (std::uint32_t i = 0; i < seen.size(); ++i) {
    const std::uint64_t word = segment.block_word(i).load();
    if (word == 0 || seen[i] != 0 || may_be_loose(book, word)) continue;
    book.say(8, "block " + std::to_string(i) + ", taken by " +
                    AuditBook::slot_name(shm::Blocks::slot_of(word)) + ", is in no text");
  }
}

}  // namespace ojs_shm::engine
