// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace ojs_shm::gateway {

struct SchemaEntry {
  std::string uri, type, schema;                   ///< schema: JSON
  std::string version = "1";                       ///< JSON, as it was sent
  std::array<std::uint64_t, 3> order = {1, 0, 0};  ///< of versions: 1, "1" and "1.0.0" are one
  bool released = true;                            ///< later than "1.0.0-rc.1"
  std::uint64_t created_at_ms = 0;

  bool is_later_than(const SchemaEntry& other) const {
    return std::tie(order, released) > std::tie(other.order, other.released);
  }
};

/// Schemas that clients leave for each other. They live in this process; a job is held against one
/// when it asks for that. Thread-safe.
class SchemaBook {
 public:
  static constexpr std::size_t kMost = 1000;

  /// False when the book is full.
  bool put(SchemaEntry entry) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= kMost && !entries_.contains(entry.uri)) return false;
    const std::string uri = entry.uri;
    entries_[uri] = std::move(entry);
    return true;
  }
  std::optional<SchemaEntry> find(std::string_view uri) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(uri);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
  }
  /// The latest version for a type of jobs.
  std::optional<SchemaEntry> find_for(std::string_view type) const {
    const std::lock_guard lock(mutex_);
    std::optional<SchemaEntry> latest;
    for (const auto& [uri, entry] : entries_)
      if (entry.type == type && (!latest || entry.is_later_than(*latest))) latest = entry;
    return latest;
  }
  bool remove(std::string_view uri) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(uri);
    if (found == entries_.end()) return false;
    entries_.erase(found);
    return true;
  }
  std::vector<SchemaEntry> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<SchemaEntry> entries;
    for (const auto& [uri, entry] : entries_) entries.push_back(entry);
    return entries;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, SchemaEntry, std::less<>> entries_;
};

}  // namespace ojs_shm::gateway
