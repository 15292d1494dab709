// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/pools.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "engine/tables/make.hpp"
#include "engine/tables/ring_look.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::internal {
namespace {

/// What the engine plans for each queue.
constexpr std::uint32_t kRingsPerQueue = 256;

template <class Used>
PoolInfo counted(std::string name, std::uint64_t capacity, std::uint64_t unit, std::string option,
                 Used used) {
  PoolInfo info{std::move(name), 0, capacity, unit, std::move(option), ""};
  for (std::uint32_t i = 0; i < capacity; ++i) info.used += used(i) ? 1 : 0;
  return info;
}

PoolInfo counted(engine::Store& store, Pool pool) {
  shm::Segment& segment = store.segment();
  const shm::Geometry& g = segment.geometry();
  switch (pool) {
    case Pool::kSlots:
      return counted("slots", g.slots, shm::kSlotBytes, "--slots or --size", [&](std::uint32_t i) {
        const engine::Control control(store.job(i).control.load());
        return control.state() != engine::kSlotFree && !engine::is_finished(control.state());
      });
    case Pool::kBlocks:
      return counted("blocks", g.blocks, shm::kBlockBytes, "--size",
                     [&](std::uint32_t i) { return segment.block_word(i).load() != 0; });
    case Pool::kChunks:
      return counted("chunks", g.chunks, sizeof(shm::Chunk), "--slots or --size",
                     [&](std::uint32_t i) {
                       return shm::ChunkControl(segment.chunk(i).control.load()).state() !=
                              shm::ChunkState::kFree;
                     });
    case Pool::kLevels:
      return counted("levels", g.rings, sizeof(shm::RingEnds), "--max-queues",
                     [&](std::uint32_t i) { return segment.ring(i).claimed.load() != 0; });
    case Pool::kQueues:
      return counted("queues", store.max_queues(),
                     sizeof(engine::QueueRecord) + g.lanes * sizeof(engine::QueueTally),
                     "--max-queues",
                     [&](std::uint32_t i) { return store.queue(i).name_hash.load() != 0; });
    case Pool::kParts:
      return {"parts",
              engine::parts_in_use(store),
              store.part_rings.size(),
              sizeof(engine::PartRings),
              "--max-queues",
              ""};
    case Pool::kIds:  // not the word of each line that counts the entries beyond it
      return counted("ids", g.key_cells, 8, "--slots or --size", [&](std::uint32_t i) {
        return i % shm::kKeyLineWords != 0 && segment.key_cell(i).load() != 0;
      });
    case Pool::kHandles:
      return counted("handles", lanes_for_handles(store), sizeof(shm::Lane), "--handles",
                     [&](std::uint32_t i) { return segment.lane(i).process.load() != 0; });
    case Pool::kProcesses: break;
  }
  return counted("processes", g.processes, sizeof(shm::ProcessRecord), "--handles",
                 [&](std::uint32_t i) { return segment.process(i).live.load() != 0; });
}

/// How large the pool would be.
std::uint64_t capacity_in(const engine::Plan& plan, const shm::Geometry& g, Pool pool) {
  switch (pool) {
    case Pool::kSlots: return g.slots;
    case Pool::kBlocks: return g.blocks;
    case Pool::kChunks: return g.chunks;
    case Pool::kLevels: return g.rings;
    case Pool::kQueues: return plan.max_queues;
    case Pool::kParts: return engine::spare_parts(plan.max_queues);
    case Pool::kIds: return g.key_cells;
    case Pool::kHandles: return plan.max_handles;
    case Pool::kProcesses: break;
  }
  return g.processes;
}

/// What a segment was made with, its size left open.
engine::Plan plan_of(engine::Store& store) {
  engine::Plan plan;
  plan.slots = store.segment().geometry().slots;
  plan.max_queues = store.max_queues();
  plan.max_tenants = store.flows.size();
  plan.max_handles = lanes_for_handles(store);
  plan.max_waiting =
      store.tickets.size() == engine::room_tickets(store.lanes()) ? 0 : store.tickets.size();
  plan.max_body_bytes = store.max_body();
  plan.retention_ms = store.header().retention_ms;
  plan.convention = store.convention();
  struct stat file {};
  if (::stat(store.segment().path().c_str(), &file) == 0) plan.mode = file.st_mode & 0777U;
  return plan;
}

/// Whether a plan comes to these slots and blocks.
bool comes_to(const engine::Plan& plan, const shm::Geometry& g) {
  const engine::Measured measured = engine::measure(plan);
  return measured.problem.empty() && measured.geometry.slots == g.slots &&
         measured.geometry.blocks == g.blocks;
}

/// The least size in whole mebibytes that gives so many blocks; 0 when no segment is so large.
std::uint64_t size_for(engine::Plan plan, std::uint64_t blocks) {
  plan.size_bytes = 0;
  engine::Measured measured = engine::measure(plan);
  if (!measured.problem.empty()) return 0;
  measured.geometry.blocks = static_cast<std::uint32_t>(std::min(blocks, engine::kMostBlocks));
  std::uint64_t mebibytes = shm::offsets_of(measured.geometry).end >> 20U;
  do {
    mebibytes += 1 + mebibytes / 512;
    plan.size_bytes = mebibytes << 20U;
    measured = engine::measure(plan);
    if (measured.problem.empty() && measured.geometry.blocks >= blocks) return plan.size_bytes;
  } while (plan.size_bytes < engine::kMostBytes);
  return 0;
}

/// What a broker is told for a plan: what differs from `now` first, then all else that is not the
/// default.
std::string options_of(const engine::Plan& plan, const engine::Plan& now) {
  std::string changed, kept;
  const auto tell = [&](bool named, bool first, std::string_view option, const std::string& value) {
    std::string& text = first ? changed : kept;
    if (named) text.append(" ").append(option).append(" ").append(value);
  };
  const auto count = [&](std::string_view option, std::uint32_t value, std::uint32_t before,
                         std::uint32_t usual) {
    tell(value != 0 && (value != usual || value != before), value != before, option,
         std::to_string(value));
  };
  char mode[16] = "";
  std::snprintf(mode, sizeof mode, "%04o", plan.mode);
  count("--max-queues", plan.max_queues, now.max_queues, engine::kDefaultQueues);
  count("--handles", plan.max_handles, now.max_handles, engine::kDefaultHandles);
  count("--slots", plan.slots, now.slots, 0);
  tell(plan.size_bytes != 0, plan.size_bytes != now.size_bytes, "--size",
       std::to_string(plan.size_bytes >> 20U) + "M");
  count("--max-waiting", plan.max_waiting, now.max_waiting, 0);
  count("--max-tenants", plan.max_tenants, now.max_tenants, engine::kDefaultTenants);
  count("--max-body", plan.max_body_bytes, now.max_body_bytes, engine::kDefaultBody);
  tell(plan.convention != engine::Convention::kOjs, false, "--convention",
       std::string(engine::info(plan.convention).name));
  tell(plan.retention_ms != 0, false, "--retention", print_duration(plan.retention_ms));
  tell(plan.mode != engine::Plan().mode, false, "--mode", mode);
  const std::string all = changed + kept;
  return all.empty() ? all : all.substr(1);
}

/// The options of a segment like this one whose pool is twice as large, or as near to that as a
/// segment can have; empty when it can have no more. What is proposed is tried on the engine's own
/// plan, so that a caller that follows it gets what was said, and no less of anything else.
std::string larger(engine::Store& store, Pool pool, std::uint64_t capacity) {
  const shm::Geometry& g = store.segment().geometry();
  const engine::Plan before = plan_of(store);
  engine::Plan open = before;
  open.slots = 0;
  const bool slots_chosen = !comes_to(open, g), size_chosen = slots_chosen && !comes_to(before, g);
  // The number that gives the present capacity; where a pool has a least size it is more than what
  // was asked for.
  std::uint32_t now = g.slots;
  if (pool == Pool::kLevels) now = g.rings;
  if (pool == Pool::kQueues) now = before.max_queues;
  if (pool == Pool::kHandles) now = before.max_handles;
  if (pool == Pool::kProcesses)
    now = std::max(before.max_handles, g.processes - engine::kServiceLanes);
  for (std::uint32_t more = now; more != 0; more /= 2) {
    engine::Plan plan = before;
    std::uint64_t blocks = g.blocks;
    bool sized = false;
    switch (pool) {
      case Pool::kBlocks:  // the slots are named too, or they would take most of what is added
        blocks += blocks * more / now;
        sized = true;
        break;
      case Pool::kChunks:  // two come with the slots that fill one
        plan.slots =
            now + static_cast<std::uint32_t>(capacity * (shm::kCellsPerChunk / 2) * more / now);
        break;
      case Pool::kIds:  // their number is a power of two, and has a least
      case Pool::kSlots:
        plan.slots = now + more;
        if (pool == Pool::kIds) plan.slots = std::max(plan.slots, g.key_cells / 2 + 1);
        blocks = blocks * plan.slots / now;  // as much room for the body of each
        break;
      case Pool::kLevels:  // as many as the queues may have, but no more than slots
        plan.max_queues =
            std::max(before.max_queues, (now + more + kRingsPerQueue - 1) / kRingsPerQueue);
        plan.slots = std::max(g.slots, now + more);
        break;
      case Pool::kQueues: plan.max_queues = now + more; break;
      case Pool::kParts:  // there are two sizes
        while (plan.max_queues < engine::kMostQueues &&
               engine::spare_parts(plan.max_queues) <= capacity)
          ++plan.max_queues;
        break;
      case Pool::kHandles:
      case Pool::kProcesses: plan.max_handles = now + more; break;
    }
    sized = sized || plan.slots != g.slots;
    if (sized || size_chosen) plan.size_bytes = size_for(plan, blocks);
    if ((sized || size_chosen) && plan.size_bytes == 0) continue;
    if (!sized && !slots_chosen) plan.slots = 0;
    const engine::Measured measured = engine::measure(plan);
    if (measured.problem.empty() && capacity_in(plan, measured.geometry, pool) > capacity)
      return options_of(plan, before);
  }
  return {};
}

std::string_view noun_of(Pool pool) {
  switch (pool) {
    case Pool::kSlots: return "slots";
    case Pool::kBlocks: return "payload blocks";
    case Pool::kChunks: return "ring chunks";
    case Pool::kLevels: return "levels";
    case Pool::kQueues: return "queues";
    case Pool::kParts: return "sets of rings for shards and rates of ageing";
    case Pool::kIds: return "places for client-supplied ids";
    case Pool::kHandles: return "handles";
    case Pool::kProcesses: break;
  }
  return "process records";
}

/// The pool's name, which outlives every Error.
std::string_view unit_of(Pool pool) {
  switch (pool) {
    case Pool::kBlocks: return "blocks";
    case Pool::kChunks: return "chunks";
    case Pool::kParts: return "parts";
    case Pool::kIds: return "ids";
    case Pool::kProcesses: return "processes";
    default: return noun_of(pool);
  }
}

}  // namespace

std::uint32_t lanes_for_handles(const engine::Store& store) {
  return store.lanes() - std::min(engine::kServiceLanes, store.lanes() - 1);
}

PoolInfo pool_info(engine::Store& store, Pool pool) {
  PoolInfo info = counted(store, pool);
  info.larger = larger(store, pool, info.capacity);
  return info;
}

Error exhausted(engine::Store& store, Pool pool) {
  const PoolInfo info = pool_info(store, pool);
  Error error =
      Error{Code::kSegmentFull}.about(info.name).uses(info.used, info.capacity, unit_of(pool));
  error.message = "the segment is full: " + std::to_string(info.used) + " of " +
                  std::to_string(info.capacity) + " " + std::string(noun_of(pool)) + " are in use";
  if (pool == Pool::kHandles)
    error.message += ", the supervisor's among them, and " +
                     std::to_string(store.lanes() - info.capacity) +
                     " more are kept for supervision";
  if (pool == Pool::kParts)
    error.message +=
        ": each shard of a queue beyond the first keeps one, and so does each ageing rate that its "
        "jobs bring";
  if (pool == Pool::kIds)
    error.message += ", among them all that are near this id";
  else if (info.used < info.capacity)
    error.message += ", and what is left does not suffice";
  error.message +=
      " (pool '" + info.name + "'); " +
      (info.larger.empty() ? "no segment can have more" : "make the segment with " + info.larger);
  return error;
}

}  // namespace ojs_shm::internal
