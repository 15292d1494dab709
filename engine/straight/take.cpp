// SPDX-License-Identifier: Apache-2.0
#include "engine/straight/take.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// The body of a job that does not lie in its record.
[[gnu::noinline]] void StraightFetch::read_blocks(std::uint32_t slot, const JobRecord& job,
                                                  std::uint64_t size, std::string& body) const {
  body.clear();
  shm::Blocks::read(segment_, job.body_block.get(), slot, job.generation.get(), size, body);
  body.resize(std::min<std::uint64_t>(size, std::uint64_t{store_.max_body()} + kInlineBytes));
}

/// Of a workflow's first job also that the workflow begins. The lease may have been ended
/// meanwhile, and the slot used again.
[[gnu::noinline]] void StraightFetch::tell_start(const Start& start, const JobRecord& job,
                                                 Control active) {
  if ((job.signals.load() & kMember) != 0) {
    const Membership member = membership(job);
    if (job.control.load() == active.word) workflow_begins(member);
  }
  tellings_.started(start);
}

/// Stores the result of a job that this lane is settling. Without room for it the job is active
/// again, under another word.
[[gnu::noinline]] bool StraightAck::keep_result(std::uint32_t slot, std::uint64_t& word,
                                                std::string_view result) {
  JobRecord& job = store_.job(slot);
  const Control active(word), held = active.to(kSlotSettling, owner_);
  const std::uint32_t block = slots_.write(slot, job.generation.get(), result);
  if (block != kNoIndex) {
    job.result_block.set(block);
    job.result_length.set(static_cast<std::uint32_t>(result.size()));
    return true;
  }
  const Control again = held.to(kSlotActive, active.ring(), active.owner());
  const Deadline old(job.deadline.load());
  job.deadline.store(Deadline(old.ms(), again.tag()).word, Point::kLeaseMoved);
  job.control.store(again.word, Point::kSlotActive);
  word = again.word;
  intend_nothing();
  return false;
}

}  // namespace ojs_shm::engine
