// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/make.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/observing/catalogue.hpp"
#include "engine/tables/layout.hpp"
#include "shm/ring.hpp"

namespace ojs_shm::engine {
namespace {

constexpr std::uint64_t kDefaultBytes = 60ULL << 20;

std::uint32_t tickets_of(const Plan& plan, std::uint32_t lanes) {
  return plan.max_waiting == 0 ? room_tickets(lanes) : plan.max_waiting;
}

/// Everything but payload blocks follows from the number of slots: two chunks for each fourteen (a
/// hint and a timer or a place among the finished), two for each ring that is ever used, and a key
/// cell for every other slot at least.
shm::Geometry around_slots(const Plan& plan, std::uint32_t slots) {
  shm::Geometry g;
  g.slots = slots;
  g.lanes = (plan.max_handles == 0 ? kDefaultHandles : plan.max_handles) + kServiceLanes;
  g.processes = std::clamp<std::uint32_t>(g.lanes, 16, 512);
  const std::uint32_t queues = plan.max_queues == 0 ? kDefaultQueues : plan.max_queues;
  const std::uint32_t flows = flows_for(plan.max_tenants == 0 ? kDefaultTenants : plan.max_tenants);
  // Every level of up to 127 queues without further parts, but in a small segment no more than
  // jobs.
  g.rings =
      std::clamp<std::uint32_t>(std::max(queues * 256, (queues + spare_parts(queues)) * 128) + 64,
                                1'024, std::clamp<std::uint32_t>(slots, 1'024, 32'768));
  g.rings += flows;
  const std::uint32_t tickets = tickets_of(plan, g.lanes);
  g.chunks = slots / shm::kCellsPerChunk * 2 + g.rings * 2 + g.lanes * 8 + 64 +
             plan.max_waiting / shm::kCellsPerChunk;
  g.key_cells = std::bit_ceil(std::max<std::uint32_t>(slots * 2, 256));
  g.blocks = 1;
  g.area_bytes =
      (area_bytes(queues, g.lanes, wait_pages_for(g.lanes), event_pages_for(g.lanes, slots), flows,
                  permit_pages_for(slots), limit_keys_for(slots), lots_for(slots),
                  accounts_for(flows, slots), tickets, slots) +
       255) &
      ~255ULL;
  return g;
}

}  // namespace

Measured measure(const Plan& plan) {
  Measured measured;
  const auto bound = [&measured](const char* name, std::uint64_t given, std::uint64_t most) {
    if (given > most)
      measured.problem = std::string(name) + ": " + std::to_string(given) +
                         " is too large: the maximum is " + std::to_string(most);
  };
  bound("max_handles", plan.max_handles, kMostHandles);
  bound("max_queues", plan.max_queues, kMostQueues);
  bound("slots", plan.slots, kMostSlots);
  bound("max_body_bytes", plan.max_body_bytes, kMostBody);
  bound("max_tenants", plan.max_tenants, kMostTenants);
  bound("max_waiting", plan.max_waiting, kMostWaiting);
  bound("size_bytes", plan.size_bytes, kMostBytes);
  if (!measured.problem.empty()) return measured;
  const std::uint64_t body = plan.max_body_bytes == 0 ? kDefaultBody : plan.max_body_bytes;
  std::uint32_t slots = plan.slots;
  if (slots == 0) {
    slots = kDefaultSlots;
    // three quarters for slots and what follows from them, a quarter for payload
    if (plan.size_bytes != 0)
      slots = static_cast<std::uint32_t>(
          std::clamp<std::uint64_t>(plan.size_bytes * 3 / 4 / 384, 64, (1U << 24) - 1));
  }
  shm::Geometry g = around_slots(plan, slots);
  while (plan.slots == 0 && plan.size_bytes != 0 && g.slots > 64 &&
         shm::offsets_of(g).end + body + (body >> 5) + 4096 > plan.size_bytes)
    g = around_slots(plan, g.slots - g.slots / 8 - 1);
  const std::uint64_t fixed = shm::offsets_of(g).end;
  const std::uint64_t least = fixed + body + (body >> 5) + 4096;
  std::uint64_t total = plan.size_bytes;
  if (total == 0)
    total = std::max<std::uint64_t>(
        {plan.slots == 0 ? kDefaultBytes : 0, fixed + 4 * body, fixed + slots * 64ULL, least});
  constexpr std::uint64_t kPerBlock = shm::kBlockBytes + 8 + 4 + 1;
  if (least > total) {
    measured.problem = "size " + std::to_string(total) +
                       " is too small: these slots, queues and handles need at least " +
                       std::to_string(least) + " bytes";
    return measured;
  }
  g.blocks = static_cast<std::uint32_t>(
      std::min<std::uint64_t>((total - fixed - 2048) / kPerBlock, kMostBlocks));
  measured.geometry = g;
  return measured;
}

shm::Opened make(const std::string& path, const Plan& plan) {
  Measured measured = measure(plan);
  if (!measured.problem.empty()) {
    shm::Opened opened;
    opened.detail = measured.problem;
    return opened;
  }
  shm::MakeSpec spec;
  spec.geometry = measured.geometry;
  spec.upper_fingerprint = engine_fingerprint();
  spec.mode = plan.mode;
  spec.group = plan.group;
  return shm::make_segment(
      path, spec,
      [](shm::Segment& segment, void* context) {
        const Plan& p = *static_cast<const Plan*>(context);
        const shm::Geometry& g = segment.geometry();
        auto fill_map = [](Word* map, std::uint32_t count) {
          for (std::uint32_t i = 0; i < (count + 63) / 64; ++i)
            // NO CRASH POINT: the file has no name yet
            map[i].store(count - i * 64 >= 64 ? ~0ULL : (1ULL << (count - i * 64)) - 1,
                         shm::Point::kNone);
        };
        fill_map(segment.slot_map(), g.slots);
        fill_map(segment.chunk_map(), g.chunks);
        fill_map(segment.block_map(), g.blocks);
        auto& header = *reinterpret_cast<EngineHeader*>(segment.area());
        header.convention = static_cast<std::uint8_t>(p.convention);
        header.max_queues = p.max_queues == 0 ? kDefaultQueues : p.max_queues;
        header.max_body_bytes = p.max_body_bytes == 0 ? kDefaultBody : p.max_body_bytes;
        header.default_lease_ms = p.default_lease_ms == 0 ? 1'800'000 : p.default_lease_ms;
        header.retention_ms = p.retention_ms;
        header.wait_pages = wait_pages_for(g.lanes);
        header.flows = flows_for(p.max_tenants == 0 ? kDefaultTenants : p.max_tenants);
        header.event_pages = event_pages_for(g.lanes, g.slots);
        header.permit_pages = permit_pages_for(g.slots);
        header.limit_keys = limit_keys_for(g.slots);
        header.lots = lots_for(g.slots);
        header.accounts = accounts_for(header.flows, g.slots);
        header.tickets = tickets_of(p, g.lanes);
        std::strncpy(header.version, p.version.c_str(), sizeof header.version - 1);
        // NO CRASH POINT: the file has no name yet
        header.dead_max_age_ms.store(kDefaultDeadAgeMs, shm::Point::kNone);
        header.dead_max_count.store(kDefaultDeadCount,
                                    shm::Point::kNone);  // NO CRASH POINT: as above
        // NO CRASH POINT: the file has no name yet
        segment.header().shortest_lease_ms.store(header.default_lease_ms, shm::Point::kNone);
        write_catalogue(Store(segment));
        shm::Rings rings(segment, 0);
        for (std::uint32_t* root : {&header.timers_ring, &header.finished_ring}) {
          *root = rings.make_unindexed();
          shm::RingEnds& ring = segment.ring(*root);
          const shm::Place place(ring.head.load());
          // NO CRASH POINT: the file has no name yet
          ring.claimed.store(shm::kNoIndex, shm::Point::kNone);
          const shm::ChunkControl linked(shm::ChunkState::kLinked, 0, place.incarnation());
          segment.chunk(place.chunk())
              .control.store(linked.word, shm::Point::kNone);  // NO CRASH POINT: as above
        }
        rings.chunks().release();
      },
      const_cast<Plan*>(&plan));
}

shm::Opened open(const std::string& path, shm::Mapping mapping) {
  shm::Opened opened = shm::open_segment(path, engine_fingerprint(), mapping);
  if (opened.code != shm::OpenCode::kOk) return opened;
  const shm::Geometry& g = opened.segment.geometry();
  const auto& header = *reinterpret_cast<const EngineHeader*>(opened.segment.area());
  if (header.max_queues != 0 && header.max_queues <= 4095 && header.wait_pages != 0 &&
      header.event_pages != 0 && header.flows % 2 == 0 && header.permit_pages != 0 &&
      header.limit_keys != 0 && header.lots != 0 && header.accounts != 0 && header.tickets != 0 &&
      header.accounts <= AccountMark::kMostAccounts &&
      area_bytes(header.max_queues, g.lanes, header.wait_pages, header.event_pages, header.flows,
                 header.permit_pages, header.limit_keys, header.lots, header.accounts,
                 header.tickets, g.slots) <= g.area_bytes)
    return opened;
  shm::Opened refused;
  refused.code = shm::OpenCode::kTorn;
  refused.detail = path + " is damaged: it has no room for its queues and pages";
  return refused;
}

}  // namespace ojs_shm::engine
