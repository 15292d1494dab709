// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace ojs_shm::gateway {

/// How many event streams and WebSockets each client has, and may have at once. Thread-safe.
/// Source: ojs-realtime 5.2.
class StreamCount {
 public:
  /// One of a client, until it ends.
  class Place {
   public:
    Place(Place&& other) noexcept
        : count_(std::exchange(other.count_, nullptr)), client_(std::move(other.client_)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (count_ != nullptr) count_->leave(client_);
    }

   private:
    friend class StreamCount;
    Place(StreamCount& count, std::string client) : count_(&count), client_(std::move(client)) {}

    StreamCount* count_;
    std::string client_;
  };

  explicit StreamCount(std::uint32_t most) : most_(most) {}

  /// Nothing when the client has as many as it may.
  std::optional<Place> take(std::string client) {
    const std::lock_guard lock(mutex_);
    std::uint32_t& taken = taken_[client];
    if (taken == most_) return std::nullopt;
    ++taken;
    return Place(*this, std::move(client));
  }

 private:
  void leave(const std::string& client) {
    const std::lock_guard lock(mutex_);
    const auto found = taken_.find(client);
    if (--found->second == 0) taken_.erase(found);
  }

  const std::uint32_t most_;  ///< at least 1
  std::mutex mutex_;
  std::map<std::string, std::uint32_t> taken_;  ///< none of them is zero
};

}  // namespace ojs_shm::gateway
