// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/roster.hpp"

#include <algorithm>

namespace ojs_shm::gateway {

WorkerEntry& Roster::entry_of(std::string_view id, std::uint64_t now_ms) {
  if (const auto found = workers_.find(id); found != workers_.end()) return found->second;
  if (workers_.size() >= kMostWorkers) {
    // The one that has been silent for the longest time gives its place up.
    const auto silent = std::ranges::min_element(
        workers_, {}, [](const auto& each) { return each.second.last_seen_ms; });
    workers_.erase(silent);
  }
  WorkerEntry& entry = workers_[std::string(id)];
  entry.id = id;
  entry.started_at_ms = now_ms;
  return entry;
}

std::optional<WorkerEntry> Roster::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(id);
  return found == workers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<WorkerEntry> Roster::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerEntry> entries;
  for (const auto& [id, entry] : workers_) entries.push_back(entry);
  return entries;
}

bool Roster::remove(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(id);
  if (found == workers_.end()) return false;
  workers_.erase(found);
  return true;
}

bool Roster::direct(std::string_view id, std::string_view directive) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(id);
  if (found == workers_.end()) return false;
  found->second.directive = directive;
  return true;
}

void Roster::note(std::string_view job, JobNote note) {
  const std::lock_guard lock(mutex_);
  const auto [place, fresh] = notes_.insert_or_assign(std::string(job), std::move(note));
  if (!fresh) return;
  noted_.push_back(place->first);
  while (noted_.size() > kMostNotes) {
    notes_.erase(noted_.front());
    noted_.pop_front();
  }
}

std::optional<JobNote> Roster::note_of(std::string_view job, std::uint64_t fence) const {
  const std::lock_guard lock(mutex_);
  const auto found = notes_.find(std::string(job));
  if (found == notes_.end() || found->second.fence != fence) return std::nullopt;
  return found->second;
}

void Roster::forget(std::string_view job) {
  const std::lock_guard lock(mutex_);
  notes_.erase(std::string(job));
}

void Roster::clear() {
  const std::lock_guard lock(mutex_);
  workers_.clear();
  notes_.clear();
  noted_.clear();
}

}  // namespace ojs_shm::gateway
