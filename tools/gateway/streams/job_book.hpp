// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::gateway {

/// What events say of a job beside what the segment wrote into them.
struct KnownJob {
  std::string type, tenant;
  std::string trace = {};           ///< JSON; empty: it has none
  std::optional<State> state = {};  ///< after the last event that the tape read
  bool dead_letter = false;         ///< the same
};

/// The jobs of the latest events by id, so that what is told of a job stays complete when its slot
/// has been used again. Bounded: the first that came goes first. Thread-safe.
class JobBook {
 public:
  static constexpr std::size_t kMost = 32'768;

  /// A job that was just accepted. Only one with a tenant or a trace is worth a place.
  void note(std::string_view id, std::string_view type, std::string_view extra);
  /// What is known; what is not is looked up in the segment, and kept when it is there.
  KnownJob find(const Observer& observer, const std::string& id);
  /// Without a look at the segment.
  std::optional<KnownJob> known(const std::string& id) const;
  /// The state before, if it is known.
  std::optional<State> change_state(const std::string& id, State state);
  /// Whether it was a dead letter before, as far as is known.
  bool change_dead_letter(const std::string& id, bool is_one);
  /// Before the tape reads the events of the past again.
  void forget_states();

 private:
  KnownJob& place_of(const std::string& id);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, KnownJob> jobs_;
  std::deque<std::string> order_;  ///< the first that came first
};

}  // namespace ojs_shm::gateway
