// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/room_line.hpp"

#include "shm/parking.hpp"

namespace ojs_shm::internal {

RoomLine::RoomLine(Handle& handle, std::shared_ptr<EventBell> bell)
    : handle_(handle), bell_(std::move(bell)) {
  handle_.actor().take_places_for(bell_->lane());
}

void RoomLine::list(InLine& waiter) {
  waiter.ticket = waiter.wait->ticket();
  queues_[waiter.wait->queue()].emplace(waiter.came, &waiter);
  ends_.emplace(waiter.wait->until_ms(), &waiter);
  waiter.ticket == engine::kNoIndex ? (void)unplaced_.insert(&waiter)
                                    : (void)by_ticket_.insert_or_assign(waiter.ticket, &waiter);
}

void RoomLine::unlist(InLine& waiter) {
  const auto queue = queues_.find(waiter.wait->queue());
  if (queue == queues_.end() || queue->second.erase(waiter.came) == 0) return;
  if (queue->second.empty()) queues_.erase(queue);
  ends_.erase({waiter.wait->until_ms(), &waiter});
  unplaced_.erase(&waiter);
  const auto placed = by_ticket_.find(waiter.ticket);
  if (placed != by_ticket_.end() && placed->second == &waiter) by_ticket_.erase(placed);
}

/// One that found a line in which none waited may have missed the room that was made just then: it
/// looks again in a millisecond.
void RoomLine::join(InLine& waiter, bool decided) {
  waiter.came = ++count_;
  if (decided) {
    note_decided(waiter);
    bell_->tell();
    return;
  }
  list(waiter);
  set_bell();
  bell_->tell_soon();
}

void RoomLine::leave(InLine& waiter) {
  unlist(waiter);
  told(waiter);
  set_bell();
}

void RoomLine::told(InLine& waiter) {
  decided_.erase(waiter.decided);
  waiter.decided = 0;
}

bool RoomLine::look_at(InLine& waiter) {
  unlist(waiter);
  const bool decided = waiter.look();
  decided ? note_decided(waiter) : list(waiter);
  return decided;
}

/// Those whose turn it is, one after the other. Where no enqueue waits any more, because the rules
/// of the queue have changed, all have their turn.
void RoomLine::serve(std::uint32_t queue) {
  const engine::QueueRecord& record = handle_.store().queue(queue);
  for (;;) {
    const auto line = queues_.find(queue);
    if (line == queues_.end()) return;
    const bool blocks =
        (record.flags.load() & engine::kBounded) != 0 &&
        engine::Backpressure(record.backpressure.load()).strategy() == engine::Strategy::kBlock;
    InLine* next = blocks ? nullptr : line->second.begin()->second;
    if (blocks) {
      const auto found = by_ticket_.find(handle_.actor().first_in_line(queue));
      if (found != by_ticket_.end()) next = found->second;
    }
    if (next == nullptr || !look_at(*next)) return;
  }
}

void RoomLine::serve_late() {
  const std::uint64_t now = shm::steady_ms();
  while (!ends_.empty() && ends_.begin()->first <= now)
    if (!look_at(*ends_.begin()->second)) return;
}

void RoomLine::serve_unplaced() {
  const std::vector<InLine*> all(unplaced_.begin(), unplaced_.end());
  for (InLine* each : all) look_at(*each);
  if (!unplaced_.empty()) bell_->tell_soon();
}

std::vector<std::uint64_t> RoomLine::take_decided(std::size_t most) {
  std::vector<std::uint32_t> queues;
  for (const auto& [queue, waiting] : queues_) queues.push_back(queue);
  for (const std::uint32_t queue : queues) serve(queue);
  serve_late();
  serve_unplaced();
  set_bell();
  std::vector<std::uint64_t> tags;
  while (!decided_.empty() && tags.size() < most) {
    tags.push_back(decided_.begin()->second->tag);
    told(*decided_.begin()->second);
  }
  tell_decided();
  return tags;
}

void RoomLine::tell_decided() {
  if (!decided_.empty()) bell_->tell();
}

void RoomLine::set_bell() { bell_->await_room(ends_.empty() ? 0 : ends_.begin()->first); }

}  // namespace ojs_shm::internal
