// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/observer.hpp>

namespace ojs_shm::gateway {

/// An event, as it is sent.
struct Told {
  std::string id, type, queue, job_id, job_type, json;
  /// of a `system.gap`, which every listener gets: events of the segment that were overwritten before
  /// the gateway read them
  std::uint64_t lost = 0;
  /// events told up to this one, with those that were lost
  std::uint64_t position = 0;
};

/// Which events a client wants; what is empty lets all pass.
struct EventFilter {
  std::vector<std::string> types = {}, queues = {}, jobs = {}, job_types = {};
  bool lets_pass(const Told& told) const;
};

/// The latest events of the segment for any number of listeners: read once, while there is at least
/// one. Thread-safe.
class Tape {
 public:
  static constexpr std::size_t kKept = 16'384;

  explicit Tape(const Segment& segment) : segment_(segment) {}

  /// A listener's place on the tape.
  struct Place {
    std::uint64_t next = 0;      ///< number of what comes next
    std::uint64_t position = 0;  ///< Told::position of what came last
  };
  /// Begins behind the last event, or behind the one with this id if the tape still has it; `gap`
  /// says that it has not.
  Place join(std::string_view after, bool& gap);
  void leave();
  /// Up to `most` events that come next; `lost` counts those that were overwritten before.
  std::vector<std::shared_ptr<const Told>> read(Place& place, std::size_t most,
                                                std::uint64_t& lost);
  /// Takes over what was told since the last call; true when there was something.
  bool turn();
  bool has_listeners() const;

  /// What the segment still keeps, oldest first, behind the event with that id if one is named.
  struct History {
    std::vector<Told> events;
    bool gone = false;  ///< the id is not kept any more
    bool more = false;  ///< beyond `most`
  };
  static History history(const Observer& observer, const EventFilter& filter,
                         std::string_view after, std::size_t most);

 private:
  void take_over();
  void keep(Told told, std::uint64_t weight);
  void keep_gap();

  const Segment& segment_;
  mutable std::mutex mutex_;
  std::optional<Observer> observer_;
  std::optional<EventReader> reader_;
  std::deque<std::shared_ptr<const Told>> kept_;
  std::uint64_t first_ = 0;        ///< number of the oldest that is kept
  std::uint64_t position_ = 0;     ///< of the newest
  std::uint64_t dropped_ = 0;      ///< position of the newest that is kept no longer
  std::uint64_t reader_lost_ = 0;  ///< EventReader::lost() as far as listeners are told of it
  std::size_t listeners_ = 0;
};

}  // namespace ojs_shm::gateway
