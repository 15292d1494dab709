// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/events.hpp>

#include "engine/observing/events.hpp"

namespace ojs_shm::internal {

/// Event::id: unique in the segment by lane and sequence, and between segments by the salt; sorts
/// by time.
std::string event_id(const engine::EventFacts& facts, std::uint64_t salt);

/// Whether an event of any segment may have it.
bool is_event_id(std::string_view text);

/// What tells one event from all others, and when it was told.
struct EventMark {
  std::uint64_t time_ms = 0;
  std::uint32_t lane = 0;
  std::uint64_t sequence = 0;
};
/// Nothing when no event of a segment with that salt has this id.
std::optional<EventMark> parse_event_id(std::string_view id, std::uint64_t salt);

/// What the lanes of a segment tell, in its order and counted, from now on, from the start or from
/// behind an event.
class ToldEvents {
 public:
  ToldEvents(const engine::Store& store, const EventOptions& options);

  /// The next one. Null: there is none now. Valid until the next call that is not text_behind().
  const engine::EventFacts* next();
  /// What had no room in the one before it: the text with that sequence, if it is next.
  const engine::EventFacts* text_behind(const engine::EventFacts& facts, std::uint64_t sequence);
  /// Whether next() has to ask the segment.
  bool is_read_up() const { return at_ == batch_.size(); }
  /// How many were told up to the last one, with those that were lost.
  std::uint64_t position() const { return position_; }
  std::uint64_t lost() const { return lost_; }
  bool left_some() const { return reader_.left_some(); }
  /// Whether it began behind an event that was still kept.
  bool resumed() const { return resumed_; }

 private:
  struct After {
    std::optional<EventMark> mark;
    std::uint64_t position = 0;  ///< 0: not known
  };
  void read_more();
  void begin_behind(const After& after);

  engine::EventReader reader_;
  std::uint32_t settle_ms_;
  std::optional<After> after_;  ///< until it is known where to begin
  std::vector<engine::EventFacts> batch_;
  std::size_t at_ = 0;
  std::uint64_t position_, lost_ = 0;
  bool resumed_ = false;
};

}  // namespace ojs_shm::internal
