// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/tellings.hpp"

#include <algorithm>
#include <cstring>

#include "engine/workflows/workflow_look.hpp"

namespace ojs_shm::engine {
namespace {

/// The first eight bytes of the text, which is left without them.
std::uint64_t first_word(std::string_view& text) {
  std::uint64_t bytes = 0;
  const std::size_t size = std::min<std::size_t>(text.size(), sizeof bytes);
  if (size != 0) std::memcpy(&bytes, text.data(), size);
  text.remove_prefix(size);
  return bytes;
}

}  // namespace

EventFacts Tellings::of_workflow(EventKind kind, const JobRecord& head, Control control) {
  EventFacts event;
  event.kind = kind;
  event.queue = head.queue.get();
  event.job = head.id();
  event.tag = control.tag();
  event.attempt = static_cast<std::uint16_t>(members_of(head));
  return event;
}

[[gnu::noinline]] void Tellings::paused(std::uint32_t queue, bool paused) {
  EventFacts event;
  event.kind = paused ? EventKind::kQueuePaused : EventKind::kQueueResumed;
  event.queue = queue;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::about_queue(EventKind kind, std::uint32_t queue,
                                             std::uint64_t jobs) {
  EventFacts event;
  event.kind = kind;
  event.queue = queue;
  event.value = jobs;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::rebalanced(std::uint32_t pool, PoolStrategy before,
                                            PoolStrategy after) {
  EventFacts event;
  event.kind = EventKind::kPoolRebalanced;
  event.queue = pool;
  event.previous_rank = static_cast<std::uint8_t>(before);
  event.rank = static_cast<std::uint8_t>(after);
  log_.write(event);
}

[[gnu::noinline]] void Tellings::pressure(EventKind kind, std::uint32_t q,
                                          const Fullness& fullness) {
  EventFacts event;
  event.kind = kind;
  event.queue = q;
  event.tag = fullness.depth;
  event.value = fullness.bound | (fullness.bytes ? kOfBytes : 0);
  log_.write(event);
}

[[gnu::noinline]] void Tellings::refused(std::uint32_t q, std::uint64_t times,
                                         const Fullness& fullness, std::string_view type) {
  EventFacts event;
  event.kind = EventKind::kBackpressureRejected;
  event.queue = q;
  event.attempt = static_cast<std::uint16_t>(times);
  event.max_attempts = static_cast<std::uint16_t>(times >> 16);
  event.tag = fullness.depth;
  event.value = fullness.bound | (fullness.bytes ? kOfBytes : 0);
  event.time_ms = store_.now_ms();
  event.job.hi = first_word(type);
  event.job.lo = first_word(type);
  with_text(event, type);
}

[[gnu::noinline]] void Tellings::with_text(EventFacts event, std::string_view text) {
  log_.write(event);
  while (!text.empty()) {
    event.kind = EventKind::kText;
    event.job.hi = first_word(text);
    event.job.lo = first_word(text);
    event.tag = first_word(text);
    event.value = first_word(text);
    log_.write(event);
  }
}

[[gnu::noinline]] void Tellings::overloaded(std::uint32_t pool, const PoolLoad& load) {
  EventFacts event;
  event.kind = EventKind::kPoolOverloaded;
  event.queue = pool;
  event.tag = load.active;
  event.value = load.waiting;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::repaired(std::uint32_t dead, std::uint32_t by,
                                          std::uint64_t at_once, std::uint64_t mended) {
  EventFacts event;
  event.kind = EventKind::kProcessRepaired;
  event.job = {dead, by};
  event.tag = at_once;
  event.value = mended;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::bulk(EventKind kind, std::uint64_t jobs, std::uint64_t done,
                                      bool atomic) {
  EventFacts event;
  event.kind = kind;
  event.rank = atomic ? 1 : 0;
  event.tag = jobs;
  event.value = done;
  log_.write(event);
}

[[gnu::noinline]] void Tellings::about_worker(EventKind kind, std::string_view id,
                                              std::uint64_t tag, std::uint64_t value,
                                              std::uint8_t rank) {
  EventFacts event;
  event.kind = kind;
  event.rank = rank;
  event.tag = tag;
  event.value = value;
  event.time_ms = store_.now_ms();
  event.job.hi = first_word(id);
  event.job.lo = first_word(id);
  with_text(event, id);
}

[[gnu::noinline]] void Tellings::starved(std::uint32_t q, std::uint64_t ms,
                                         std::uint64_t available) {
  EventFacts event;
  event.kind = EventKind::kQueueStarved;
  event.queue = q;
  event.tag = available;
  event.value = ms;
  log_.write(event);
}

}  // namespace ojs_shm::engine
