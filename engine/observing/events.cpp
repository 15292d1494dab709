// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/events.hpp"

#include <iterator>

#include "engine/moves/bell.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// 1. the next turn names a page; 2. no lane writes it, and it is older: ours by one cas; 3.
///    a lane does: the turn after
/// that. A lane keeps one page open, so among twice as many as there are lanes one is not.
[[gnu::noinline]] bool EventLog::open() {
  close();
  const std::uint32_t pages = store_.event_pages.size();
  for (std::uint32_t look = 0; look < pages; ++look) {
    // 1
    const std::uint64_t turn = store_.header().event_turn.fetch_add(1, Point::kEventTurnTaken) + 1;
    const auto page = static_cast<std::uint32_t>(turn % pages);
    const EventPageControl found(store_.event_controls[page].load());
    if (found.open() || found.turn() >= turn) continue;  // 3
    opened_ = EventPageControl(lane_, turn);
    if (!store_.event_controls[page].cas_once(found.word, opened_.word, Point::kEventPageOpened))
      continue;  // 2. PAIR event-page
    page_ = page;
    next_ = std::begin(store_.event_pages[page].event);
    end_ = next_ + kEventsPerPage;
    stamp_ = opened_.stamp(0);
    return true;
  }
  return false;
}

/// An event that finds no free page is counted, so that readers see that it is missing.
void EventLog::turn_page() {
  if (open()) return;
  next_ = &unread_;
  end_ = next_ + 1;
}

void EventLog::write(const EventFacts& event) {
  if (needs_page()) turn_page();
  put([&](EventRecord& record) {
    set_head(record, event.kind, event.rank, event.time_ms != 0 ? event.time_ms : store_.now_ms());
    set_job(record, event.job);
    set_facts(record, event.queue, event.attempt, event.max_attempts, event.previous_rank);
    record.tag.set(event.tag);
    record.value.set(event.value);
  });
}

[[gnu::noinline]] void EventLog::wake_listeners() const { Bell(store_).ring_listeners(); }

void EventLog::close() {
  if (page_ == kNoIndex) return;
  store_.event_controls[page_].store(opened_.closed().word, Point::kEventPageClosed);
  page_ = kNoIndex;
  next_ = end_ = nullptr;
}

void EventLog::close_left() {
  for (std::uint32_t page = 0; page < store_.event_pages.size(); ++page) {
    const EventPageControl control(store_.event_controls[page].load());
    if (!control.open() || control.lane() != lane_) continue;
    for (unsigned i = 0; i < kEventsPerPage; ++i) {
      const EventRecord& record = store_.event_pages[page].event[i];
      if (record.stamp.load() == control.stamp(i) && record.sequence.get() > told_.get())
        told_.set_ordered(record.sequence.get(), Point::kEventCounted);
    }
    store_.event_controls[page].store(control.closed().word, Point::kEventPageClosed);
  }
  wake_listeners();
}

}  // namespace ojs_shm::engine
