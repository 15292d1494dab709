// SPDX-License-Identifier: Apache-2.0
#include "worker_api/pools.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/make.hpp"

namespace ojs_shm::internal {
namespace {

/// What the engine plans for each queue.
constexpr std::uint32_t kRingsPerQueue = 256;
/// A slot with all that follows from it, or a level with its chunks; rounded up.
constexpr std::uint64_t kBytesPerSlot = 640;

template <class Used>
PoolInfo counted(std::string name, std::uint64_t capacity, std::uint64_t unit, std::string option, Used used) {
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
      return counted("chunks", g.chunks, sizeof(shm::Chunk), "--slots or --size", [&](std::uint32_t i) {
        return shm::ChunkControl(segment.chunk(i).control.load()).state() != shm::ChunkState::kFree;
      });
    case Pool::kLevels:
      return counted("levels", g.rings, sizeof(shm::RingEnds), "--max-queues",
                     [&](std::uint32_t i) { return segment.ring(i).claimed.load() != 0; });
    case Pool::kQueues:
      return counted("queues", store.max_queues(), sizeof(engine::QueueRecord) + g.lanes * sizeof(engine::QueueTally),
                     "--max-queues", [&](std::uint32_t i) { return store.queue(i).name_hash.load() != 0; });
    case Pool::kParts:
      return {"parts", store.parts_in_use(), store.spare_parts(), sizeof(engine::PartRings), "--max-queues", ""};
    case Pool::kIds:
      return counted("ids", g.key_cells, 8, "--slots or --size",
                     [&](std::uint32_t i) { return segment.key_cell(i).load() != 0; });
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

/// The options that make the pool twice as large, or as near to that as a segment can have; empty when it can have no
/// more. What is proposed is tried on the engine's own plan, so that whoever follows it gets what was said.
std::string larger(engine::Store& store, Pool pool, std::uint64_t capacity) {
  const shm::Geometry& g = store.segment().geometry();
  const std::uint64_t size = store.segment().size();
  engine::Plan plan;
  plan.slots = g.slots;
  plan.max_queues = store.max_queues();
  plan.max_tenants = store.flows();
  plan.max_handles = lanes_for_handles(store);
  plan.max_body_bytes = store.max_body();
  const auto sized = [&plan](std::uint64_t bytes) {
    const std::uint64_t mebibytes = (bytes + (1U << 20U) - 1) >> 20U;
    plan.size_bytes = mebibytes << 20U;
    return "--slots " + std::to_string(plan.slots) + " --size " + std::to_string(mebibytes) + "M";
  };
  // The number that gives the present capacity; where a pool has a least size it is more than what was asked for.
  std::uint32_t now = g.slots;
  if (pool == Pool::kLevels) now = g.rings;
  if (pool == Pool::kQueues) now = plan.max_queues;
  if (pool == Pool::kHandles) now = plan.max_handles;
  if (pool == Pool::kProcesses) now = std::max(plan.max_handles, g.processes - engine::kServiceLanes);
  for (std::uint32_t more = now; more != 0; more /= 2) {
    std::string options;
    switch (pool) {
      case Pool::kBlocks:  // the slots are named too, or they would take most of what is added
        options = sized(size + g.blocks * (shm::kBlockBytes + 16ULL) * more / now);
        break;
      case Pool::kChunks:  // two come with the slots that fill one
        plan.slots = now + static_cast<std::uint32_t>(capacity * (shm::kCellsPerChunk / 2) * more / now);
        options = sized(size + (plan.slots - g.slots) * kBytesPerSlot);
        break;
      case Pool::kSlots:
      case Pool::kIds:  // with as much room for the body of each
        plan.slots = now + more;
        options = sized(size + size * more / now);
        break;
      case Pool::kLevels:  // as many as the queues may have, but no more than slots
        plan.max_queues = std::max(store.max_queues(), (now + more + kRingsPerQueue - 1) / kRingsPerQueue);
        options = "--max-queues " + std::to_string(plan.max_queues);
        if (now + more <= g.slots) break;
        plan.slots = now + more;
        options += " " + sized(size + (plan.slots - g.slots + more) * kBytesPerSlot);
        break;
      case Pool::kQueues:
        plan.max_queues = now + more;
        options = "--max-queues " + std::to_string(plan.max_queues);
        break;
      case Pool::kParts:  // there are two sizes
        while (plan.max_queues < engine::kMostQueues && engine::spare_parts(plan.max_queues) <= capacity)
          ++plan.max_queues;
        options = "--max-queues " + std::to_string(plan.max_queues);
        break;
      case Pool::kHandles:
      case Pool::kProcesses:
        plan.max_handles = now + more;
        options = "--handles " + std::to_string(plan.max_handles);
        break;
    }
    const engine::Measured measured = engine::measure(plan);
    if (measured.problem.empty() && capacity_in(plan, measured.geometry, pool) > capacity) return options;
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
    case Pool::kIds: return "places for brought ids";
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
  Error error{Code::kSegmentFull, "", info.name, info.used, info.capacity, unit_of(pool)};
  error.message = "the segment is full: " + std::to_string(info.used) + " of " + std::to_string(info.capacity) + " " +
                  std::string(noun_of(pool)) + " are in use";
  if (pool == Pool::kHandles)
    error.message += ", the supervisor's among them, and " + std::to_string(store.lanes() - info.capacity) +
                     " more are kept for supervision";
  if (pool == Pool::kParts)
    error.message +=
        ": each shard of a queue beyond the first keeps one, and so does each ageing rate that its jobs bring";
  if (pool == Pool::kIds)
    error.message += ", among them all that are near this id";
  else if (info.used < info.capacity)
    error.message += ", and what is left does not suffice";
  error.message += " (pool '" + info.name + "'); " +
                   (info.larger.empty() ? "no segment can have more" : "make the segment with " + info.larger);
  return error;
}

}  // namespace ojs_shm::internal
