// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "engine/tables/lane_counters.hpp"
#include "tests/relacy/stage.hpp"

namespace ojs_shm::test {

namespace {

std::string_view in_record(std::size_t at) {
  return at == 0                                       ? "control"
         : at == offsetof(engine::JobRecord, deadline) ? "deadline"
         : at == offsetof(engine::JobRecord, signals)  ? "signals"
                                                       : "record";
}

std::string_view in_queue(std::size_t at) {
  using engine::QueueRecord;
  constexpr std::size_t kRings = offsetof(QueueRecord, rings),
                        kAging = offsetof(QueueRecord, aging);
  if (at >= offsetof(QueueRecord, age_class) && at < offsetof(QueueRecord, part))
    return "age class";
  if (at >= offsetof(QueueRecord, part) && at < offsetof(QueueRecord, tenant_max_depth))
    return "part name";
  if (at >= kAging) return "queue";
  if (at >= kRings + offsetof(shm::RingSet, ring)) return "ring name";
  if (at >= kRings) return "index";
  return at >= offsetof(QueueRecord, waiters)       ? "waiters"
         : at == offsetof(QueueRecord, reserved)    ? "reserved"
         : at == offsetof(QueueRecord, flags)       ? "flags"
         : at == offsetof(QueueRecord, attention)   ? "attention"
         : at == offsetof(QueueRecord, name_hash)   ? "queue hash"
         : at == offsetof(QueueRecord, name_length) ? "queue name"
                                                    : "queue";
}

std::string_view in_lane(std::size_t at) {
  constexpr std::size_t kCounters = offsetof(shm::Lane, counters);
  return at == offsetof(shm::Lane, intent)           ? "intent"
         : at == kCounters + engine::kEventsTold * 8 ? "told"
         : at == kCounters + engine::kLimitsHeld * 8 ? "limits held"
                                                     : "lane";
}

std::string_view in_limit(std::size_t at) {
  using engine::LimitKey;
  if (at == offsetof(LimitKey, name_hash)) return "limit name";
  constexpr std::size_t kRuns = offsetof(LimitKey, permits) + offsetof(engine::PermitSet, run);
  if (at >= kRuns && at < kRuns + sizeof engine::PermitSet::run) return "permit run";
  if (at == offsetof(LimitKey, permits) + offsetof(engine::PermitSet, adopted))
    return "permits adopted";
  if (at >= offsetof(LimitKey, permits) && at < offsetof(LimitKey, name)) return "permit set";
  if (at == offsetof(LimitKey, closed_until)) return "limit closed";
  return at >= offsetof(LimitKey, lot) && at < offsetof(LimitKey, closed_until) ? "lot name"
                                                                                : "limit";
}

}  // namespace

std::string_view Stage::name_of(const void* word) const {
  engine::Store& store = const_cast<World&>(world_).store();
  const shm::Segment& segment = store.segment();
  const shm::Geometry& sizes = segment.geometry();
  const auto* byte = static_cast<const char*>(word);
  // The number of the element and the offset in it, when the word lies in a table.
  const auto in = [byte](const auto& first, std::size_t count, std::size_t& offset) {
    const auto* begin = reinterpret_cast<const char*>(&first);
    if (byte < begin || byte >= begin + count * sizeof first) return false;
    offset = static_cast<std::size_t>(byte - begin) % sizeof first;
    return true;
  };
  std::size_t at = 0;
  if (in(segment.ring(0), sizes.rings, at))
    return at == offsetof(shm::RingEnds, head)   ? "head"
           : at == offsetof(shm::RingEnds, tail) ? "tail"
                                                 : "ring claim";
  if (in(segment.chunk(0), sizes.chunks, at))
    return at == offsetof(shm::Chunk, next)      ? "next"
           : at == offsetof(shm::Chunk, control) ? "chunk control"
                                                 : "cell";
  if (in(store.job(0), sizes.slots, at)) return in_record(at);
  if (in(store.queue(0), store.max_queues(), at)) return in_queue(at);
  if (in(store.tally(0, 0), std::size_t{store.max_queues()} * store.lanes(), at)) return "tally";
  if (in(segment.lane(0), sizes.lanes, at)) return in_lane(at);
  if (in(segment.key_cell(0), sizes.key_cells, at)) return "key";
  if (in(segment.block_word(0), sizes.blocks, at)) return "block word";
  if (in(segment.block_link(0), sizes.blocks, at)) return "block link";
  if (in(segment.block(0), sizes.blocks, at)) return "block";
  if (in(store.limit_keys[0], store.limit_keys.size(), at)) return in_limit(at);
  if (in(store.lots[0], store.lots.size(), at)) return at == 0 ? "lot owner" : "lot";
  if (in(store.permit_pages[0], store.permit_pages.size(), at)) return "permit";
  if (in(store.flows[0], store.flows.size(), at))
    return at == offsetof(engine::FlowRecord, control) ? "flow" : "tenant";
  if (in(store.busy_word(0), 1, at)) return "busy";
  if (in(store.pools[0], engine::kPools, at))
    return at == offsetof(engine::PoolRecord, setup)         ? "pool setup"
           : at == offsetof(engine::PoolRecord, name_length) ? "pool name"
                                                             : "pool";
  if (in(store.event_controls[0], store.event_pages.size(), at)) return "page control";
  if (in(store.event_pages[0].event[0],
         std::size_t{store.event_pages.size()} * engine::kEventsPerPage, at))
    return at == offsetof(engine::EventRecord, stamp) ? "stamp" : "event";
  if (in(store.sample_times().at_ms, 1, at)) return "sample time";
  if (in(store.samples[0], store.max_queues(), at)) return "sample";
  if (in(store.tickets[0], store.tickets.size(), at)) return "ticket";
  if (in(store.accounts[0], store.accounts.size(), at)) return "account";
  if (in(store.account_tally(0, 0), std::size_t{store.accounts.size()} * store.lanes(), at))
    return "tally";
  if (in(store.header(), 1, at)) {
    using engine::EngineHeader;
    return at == offsetof(EngineHeader, limit_turn) ? "limit turn"
           : at == offsetof(EngineHeader, aging)    ? "aging"
                                                    : "header";
  }
  if (in(segment.header(), 1, at))
    return at == offsetof(shm::Header, sleeping_until_ms)   ? "sleeping"
           : at == offsetof(shm::Header, shortest_lease_ms) ? "shortest lease"
                                                            : "header";
  return "map";
}

}  // namespace ojs_shm::test
