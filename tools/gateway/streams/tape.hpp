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
#include <utility>
#include <vector>

#include <ojs_shm/observer.hpp>

#include "tools/gateway/streams/job_book.hpp"
#include "tools/gateway/streams/notes.hpp"

namespace ojs_shm::gateway {

/// An event, as it is sent.
struct Told {
  std::string id, type, source, queue, job_id, job_type, tenant;
  std::string trace;  ///< of the job, as JSON; empty: it has none
  std::string json;
  /// the last that is told of a job in a final state
  bool ends_job = false;
  /// of a `system.gap`, which every listener gets: events of the segment that were overwritten
  /// before the gateway read them
  std::uint64_t lost = 0;
  /// Event::position; of what follows from an event, the same
  std::uint64_t position = 0;
};

/// Which events a client wants; what is empty lets all pass.
struct EventFilter {
  std::vector<std::string> types = {}, sources = {}, queues = {}, jobs = {}, job_types = {};
  std::string tenant = {};     ///< events of its jobs alone
  bool state_changes = false;  ///< `job.state_changed` even when no type names it
  std::uint64_t since_ms = 0;  ///< of a list, and not of a stream
  bool lets_pass(const Told& told) const;
};

/// The latest events of the segment for any number of listeners: read once, while there is at least
/// one. Thread-safe.
class Tape {
 public:
  static constexpr std::size_t kKept = 32'768;
  static constexpr std::size_t kRemembered = 65'536;

  Tape(const Segment& segment, const Notes& notes) : segment_(segment), notes_(notes) {}

  /// A listener's place on the tape.
  struct Place {
    std::uint64_t next = 0;      ///< number of what comes next
    std::uint64_t position = 0;  ///< Told::position of what came last
  };
  /// What lies between the event that a listener names and the first event that it gets.
  struct Gap {
    bool there = false;
    std::optional<std::uint64_t> lost =
        {};  ///< nothing: the tape never had that event, or too long ago
  };
  /// Begins behind the last event, or behind the event with this id; behind a gap if the tape has
  /// it no longer.
  Place join(std::string_view after, Gap& gap);
  void leave();
  /// Up to `most` events that come next, and what the tape dropped before them.
  std::vector<std::shared_ptr<const Told>> read(Place& place, std::size_t most, Gap& gap);
  struct Turn {
    bool news = false;         ///< something is on the tape since the last turn
    bool holds_young = false;  ///< something was told that comes a little later
  };
  /// Takes over what was told.
  Turn turn();
  bool has_listeners() const;

  /// What the segment still keeps, oldest first, behind the event with that id if one is named.
  struct History {
    std::vector<Told> events;
    bool gone = false;      ///< the id is not kept any more
    bool more = false;      ///< beyond `most`
    std::size_t total = 0;  ///< of all that the filter lets pass
  };
  /// Of those behind `after`, which is an event's id or empty, the ones from the `skip`th on.
  History history(const Observer& observer, const EventFilter& filter, std::string_view after,
                  std::size_t skip, std::size_t most);
  JobBook& jobs() { return jobs_; }

 private:
  void take_over();
  void keep(Told told, std::uint64_t position);
  void drop_first();
  void keep_gap();
  void keep_event(const Event& event);
  /// The event with what is known of its job, but for its text.
  Told told_of(const Observer& observer, const Event& event);
  /// With the tenant and the trace of its job in its data, and with the worker for whom the segment
  /// has no place.
  std::string text_of(const Told& told, Event event) const;

  const Segment& segment_;
  const Notes& notes_;
  mutable std::mutex mutex_;
  std::optional<Observer> observer_;
  std::optional<EventReader> reader_;
  std::deque<std::shared_ptr<const Told>> kept_;
  /// Of events that are kept no longer, also of a time when there were listeners before: the hash
  /// of the id, and the position.
  std::deque<std::pair<std::size_t, std::uint64_t>> remembered_;
  std::uint64_t first_ = 0;        ///< number of the oldest that is kept
  std::uint64_t turned_ = 0;       ///< number of what comes next, at the last turn
  std::uint64_t position_ = 0;     ///< of the newest
  std::uint64_t dropped_ = 0;      ///< position of the newest that is kept no longer
  std::uint64_t reader_lost_ = 0;  ///< EventReader::lost() as far as listeners are told of it
  std::size_t listeners_ = 0;
  JobBook jobs_;
};

}  // namespace ojs_shm::gateway
