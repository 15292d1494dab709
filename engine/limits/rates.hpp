// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/limits/limit_key.hpp"

namespace ojs_shm::engine {

class Store;

/// How fast jobs of a key may begin: windows, fixed or sliding, and an even pace; and whether any
/// may begin, for a job can report that the key is to be closed for a while. Each beginning is one
/// cas, so that no schedule lets more through. A lane that dies right after its cas has spent a
/// beginning, and time brings it back. Thread-safe; a view.
class Rates {
 public:
  explicit Rates(const Store& store) : store_(store) {}

  /// When one may begin at the earliest, Unix ms; 0: now.
  std::uint64_t next(const LimitKey& key, std::uint64_t now) const;
  bool take(LimitKey& key, std::uint64_t now) const;
  /// Sets the throttle. Jobs that began under an earlier one, or before the clock was set back,
  /// delay no job for longer than this throttle can.
  static void set_pace(LimitKey& key, ThrottleRule rule, std::uint64_t now);
  /// Closes the key until then, unless it is closed for longer already.
  static void close(LimitKey& key, std::uint64_t until);
  /// Until when the key is closed; 0: it is open.
  static std::uint64_t closed_until(const LimitKey& key, std::uint64_t now) {
    const std::uint64_t until = key.closed_until.load();
    return until > now ? until : 0;
  }
  /// What was taken a moment ago was not used: where that can still be told, it is given back.
  void give_back(LimitKey& key, std::uint64_t now) const;
  /// How many have begun in the window.
  std::uint32_t begun(const LimitKey& key, std::uint64_t now) const;

 private:
  std::uint64_t next_in_window(const LimitKey& key, WindowRule rule, std::uint64_t now) const;
  bool take_fixed(LimitKey& key, WindowRule rule, std::uint64_t now) const;
  bool take_sliding(LimitKey& key, WindowRule rule, std::uint64_t now) const;
  bool take_throttle(LimitKey& key, ThrottleRule rule, std::uint64_t now) const;
  std::uint64_t time_of(const LimitKey& key, std::uint64_t number) const;

  const Store& store_;
};

}  // namespace ojs_shm::engine
