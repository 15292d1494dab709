// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/streams/notes.hpp"

namespace ojs_shm::gateway {

void Notes::note(std::string_view job, JobNote note) {
  const std::lock_guard lock(mutex_);
  const auto [place, fresh] = notes_.insert_or_assign(std::string(job), std::move(note));
  if (!fresh) return;
  noted_.push_back(place->first);
  while (noted_.size() > kMostNotes) {
    notes_.erase(noted_.front());
    noted_.pop_front();
  }
}

std::optional<JobNote> Notes::note_of(std::string_view job, std::uint64_t fence) const {
  const std::lock_guard lock(mutex_);
  const auto found = notes_.find(std::string(job));
  if (found == notes_.end() || found->second.fence != fence) return std::nullopt;
  return found->second;
}

void Notes::forget(std::string_view job) {
  const std::lock_guard lock(mutex_);
  notes_.erase(std::string(job));
}

void Notes::clear() {
  const std::lock_guard lock(mutex_);
  notes_.clear();
  noted_.clear();
}

}  // namespace ojs_shm::gateway
