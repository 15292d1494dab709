// SPDX-License-Identifier: Apache-2.0
#include "engine/events.hpp"

namespace ojs_shm::engine {

using shm::Point;

/// 1. the next turn names a page; 2. nobody writes it, and it is older: ours by one cas; 3. somebody does: the turn after
/// that. A lane keeps one page open, so among twice as many as there are lanes one is not.
[[gnu::noinline]] bool EventLog::open() {
  close();
  const std::uint32_t pages = store_.event_pages();
  for (std::uint32_t look = 0; look < pages; ++look) {
    const std::uint64_t turn = store_.header().event_turn.fetch_add(1, Point::kEventTurnTaken) + 1;  // 1
    const auto page = static_cast<std::uint32_t>(turn % pages);
    const EventPageControl found(store_.event_control(page).load());
    if (found.open() || found.turn() >= turn) continue;  // 3
    opened_ = EventPageControl(lane_, turn);
    if (!store_.event_control(page).cas_once(found.word, opened_.word, Point::kEventPageOpened))
      continue;  // 2. PAIR event-page
    page_ = page;
    at_ = 0;
    return true;
  }
  return false;
}

void EventLog::close() {
  if (page_ == kNoIndex) return;
  store_.event_control(page_).store(opened_.closed().word, Point::kEventPageClosed);
  page_ = kNoIndex;
}

[[gnu::noinline]] void EventLog::write(const EventFacts& event) {
  const std::uint64_t sequence = told_.get() + 1;
  if ((page_ == kNoIndex || at_ == kEventsPerPage) && !open()) {
    told_.set_ordered(sequence, Point::kEventCounted);  // readers see that one is missing
    return;
  }
  EventRecord& record = store_.event_page(page_).event[at_];
  record.sequence.set(sequence);
  const std::uint64_t time = event.time_ms != 0 ? event.time_ms : store_.now_ms();
  record.kind_rank_time.set(std::uint64_t{static_cast<std::uint8_t>(event.kind)} << 56 |
                            std::uint64_t{event.rank} << 48 | (time & ((1ULL << 48) - 1)));
  record.id_hi.set(event.job.hi);
  record.id_lo.set(event.job.lo);
  record.facts.set((event.queue & 0xFFFF) | std::uint64_t{event.attempt} << 16 |
                   std::uint64_t{event.max_attempts} << 32 | std::uint64_t{event.previous_rank} << 48);
  record.tag.set(event.tag);
  record.value.set(event.value);
  record.stamp.store(opened_.stamp(at_++), Point::kEventWritten);
  shm::prefetch_for_write(&record + 1);
  told_.set_ordered(sequence, Point::kEventCounted);  // PAIR event-told
}

void EventLog::close_left() {
  for (std::uint32_t page = 0; page < store_.event_pages(); ++page) {
    const EventPageControl control(store_.event_control(page).load());
    if (!control.open() || control.lane() != lane_) continue;
    for (unsigned i = 0; i < kEventsPerPage; ++i) {
      const EventRecord& record = store_.event_page(page).event[i];
      if (record.stamp.load() == control.stamp(i) && record.sequence.get() > told_.get())
        told_.set_ordered(record.sequence.get(), Point::kEventCounted);
    }
    store_.event_control(page).store(control.closed().word, Point::kEventPageClosed);
  }
}

}  // namespace ojs_shm::engine
