// SPDX-License-Identifier: Apache-2.0
#include "engine/straight/take.hpp"

namespace ojs_shm::engine {

/// The body of a job that does not lie in its record.
[[gnu::noinline]] void StraightWay::read_blocks(std::uint32_t slot, const JobRecord& job,
                                                std::uint64_t size, std::string& body) const {
  body.clear();
  shm::Blocks::read(segment_, job.body_block.get(), slot, job.generation.get(), size, body);
  body.resize(std::min<std::uint64_t>(size, std::uint64_t{store_.max_body()} + kInlineBytes));
}

/// Of a workflow's first job also that the workflow begins. The lease may have been ended meanwhile, and
/// the slot used again.
[[gnu::noinline]] void StraightWay::tell_start(const Start& start, const JobRecord& job,
                                               Control active) {
  if ((job.signals.load() & kMember) != 0) {
    const Membership member = membership(job);
    if (job.control.load() == active.word) workflow_begins(member);
  }
  tellings_.started(start);
}

}  // namespace ojs_shm::engine
