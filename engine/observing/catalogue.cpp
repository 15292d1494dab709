// SPDX-License-Identifier: Apache-2.0
#include "engine/observing/catalogue.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ojs_shm::engine {
namespace {

using shm::CatalogueKind;
using shm::CatalogueRow;
using shm::Flow;

class Writer {
 public:
  explicit Writer(const Store& store) : store_(store), segment_(store.segment()) {}

  /// A word of each queue's record.
  void of_queue(std::uint32_t id, std::string_view label, Flow flow, const Word& first) {
    CatalogueRow row = counter(id, label, "jobs", flow, &first);
    row.subject = static_cast<std::uint32_t>(Subject::kQueue);
    row.rows = store_.max_queues();
    row.row_bytes = sizeof(QueueRecord);
    shm::Catalogue::append(segment_, row);
  }
  /// A word of the tallies that each lane has of each queue.
  void of_tallies(std::uint32_t id, std::string_view label, Flow flow, const LaneWord& first) {
    CatalogueRow row = counter(id, label, "jobs", flow, &first);
    row.subject = static_cast<std::uint32_t>(Subject::kQueue);
    row.rows = store_.max_queues();
    row.row_bytes = static_cast<std::uint32_t>(store_.lanes() * sizeof(QueueTally));
    row.cells = store_.lanes();
    row.cell_bytes = sizeof(QueueTally);
    shm::Catalogue::append(segment_, row);
  }
  void of_segment(std::uint32_t id, std::string_view label, std::string_view unit,
                  const Word& word) {
    shm::Catalogue::append(segment_, counter(id, label, unit, Flow::kNone, &word));
  }
  /// Objects with a word each. `free_states`: values of the highest four bits that mean unused.
  template <class Shared>
  void pool(std::uint32_t id, std::string_view label, const Shared& first, std::uint64_t count,
            std::uint64_t stride, std::uint64_t unit_bytes, std::uint32_t free_states = 0) {
    objects(id, label, &first, sizeof(Shared), count, stride, unit_bytes, free_states);
  }
  /// Objects that are in use when one half of a word of theirs is not 0.
  enum class Part : std::uint8_t { kLow = 0, kHigh = 4 };
  void pool(std::uint32_t id, std::string_view label, const Word& first, Part part,
            std::uint64_t count, std::uint64_t stride, std::uint64_t unit_bytes) {
    const auto* at = reinterpret_cast<const std::byte*>(&first) + static_cast<unsigned>(part);
    objects(id, label, at, sizeof(Half), count, stride, unit_bytes, 0);
  }

 private:
  void objects(std::uint32_t id, std::string_view label, const void* first,
               std::uint32_t word_bytes, std::uint64_t count, std::uint64_t stride,
               std::uint64_t unit_bytes, std::uint32_t free_states) {
    if (count == 0) return;
    CatalogueRow row = counter(id, label, label, Flow::kNone, first);
    row.kind = static_cast<std::uint32_t>(CatalogueKind::kPool);
    row.rows = static_cast<std::uint32_t>(count);
    row.row_bytes = static_cast<std::uint32_t>(stride);
    row.word_bytes = word_bytes;
    row.free_states = free_states;
    row.unit_bytes = static_cast<std::uint32_t>(unit_bytes);
    shm::Catalogue::append(segment_, row);
  }

  CatalogueRow counter(std::uint32_t id, std::string_view label, std::string_view unit, Flow flow,
                       const void* at) const {
    CatalogueRow row;
    row.id = id;
    row.kind = static_cast<std::uint32_t>(CatalogueKind::kCounter);
    row.flow = static_cast<std::uint32_t>(flow);
    row.offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) -
                                            reinterpret_cast<const std::byte*>(&segment_.header()));
    row.rows = row.cells = 1;
    row.word_bytes = sizeof(Word);
    std::memcpy(row.label, label.data(), std::min(label.size(), sizeof row.label - 1));
    std::memcpy(row.unit, unit.data(), std::min(unit.size(), sizeof row.unit - 1));
    return row;
  }

  const Store& store_;
  shm::Segment& segment_;
};

constexpr std::uint32_t states(std::initializer_list<unsigned> list) {
  std::uint32_t bits = 0;
  for (const unsigned state : list) bits |= 1U << state;
  return bits;
}

/// An id is never given to another number.
void describe_queues(Writer& writer, const Store& store) {
  const QueueTally& tally = store.tally(0, 0);
  const QueueRecord& queue = store.queue(0);
  writer.of_tallies(1, "enqueued", Flow::kIn, tally.enqueued);
  writer.of_tallies(2, "dispatched", Flow::kOut, tally.dispatched);
  writer.of_tallies(3, "completed", Flow::kNone, tally.completed);
  writer.of_queue(4, "cancelled", Flow::kNone, queue.cancelled);
  writer.of_queue(5, "failed", Flow::kNone, queue.discarded);
  writer.of_queue(6, "retried", Flow::kNone, queue.retried);
  writer.of_queue(7, "returned", Flow::kNone, queue.returned);
  writer.of_queue(8, "rejected", Flow::kRefused, queue.rejected);
  writer.of_tallies(9, "dropped", Flow::kLost, tally.dropped);
  writer.of_queue(10, "expired", Flow::kNone, queue.expired);
  writer.of_tallies(11, "reprioritized", Flow::kNone, tally.reprioritized);
  writer.of_queue(12, "conflicts", Flow::kNone, queue.conflicts);
  writer.of_queue(13, "pruned", Flow::kNone, queue.pruned);
  writer.of_queue(14, "emptied", Flow::kNone, queue.emptied);
}

void describe_segment(Writer& writer, const Store& store) {
  const shm::Header& header = store.segment().header();
  const EngineHeader& own = store.header();
  writer.of_segment(64, "deaths", "processes", header.deaths);
  writer.of_segment(65, "repairs", "slots", header.repairs);
  writer.of_segment(66, "unmeasured_waits", "jobs", own.waits_unmeasured);
  writer.of_segment(67, "event_pages", "pages", own.event_turn);
  writer.of_segment(68, "timer_walks", "walks", own.timers_lost);
  writer.of_segment(69, "lost_workers", "workers", own.workers_lost);
}

void describe_pools(Writer& writer, const Store& store) {
  shm::Segment& segment = store.segment();
  const shm::Geometry& g = segment.geometry();
  writer.pool(128, "slots", store.job(0).control, g.slots, shm::kSlotBytes, shm::kSlotBytes,
              states({kSlotFree, kSlotCompleted, kSlotCancelled, kSlotDiscarded}));
  writer.pool(129, "blocks", segment.block_word(0), g.blocks, sizeof(Word), shm::kBlockBytes);
  writer.pool(130, "chunks", segment.chunk(0).control, g.chunks, sizeof(shm::Chunk),
              sizeof(shm::Chunk), states({static_cast<unsigned>(shm::ChunkState::kFree)}));
  writer.pool(131, "levels", segment.ring(0).claimed, g.rings, sizeof(shm::RingEnds),
              sizeof(shm::RingEnds));
  writer.pool(132, "queues", store.queue(0).name_hash, store.max_queues(), sizeof(QueueRecord),
              sizeof(QueueRecord) + g.lanes * sizeof(QueueTally));
  writer.pool(133, "ids", segment.key_cell(0), g.key_cells, sizeof(Word), sizeof(Word));
  writer.pool(134, "handles", segment.lane(0).process,
              g.lanes - std::min(kServiceLanes, g.lanes - 1), sizeof(shm::Lane), sizeof(shm::Lane));
  writer.pool(135, "processes", segment.process(0).live, g.processes, sizeof(shm::ProcessRecord),
              sizeof(shm::ProcessRecord));
  writer.pool(136, "parts", store.part_rings[0].owner, store.part_rings.size(), sizeof(PartRings),
              sizeof(PartRings));
}

/// The other tables that can be full. Accounts of tenants are not among these: an account that was
/// given to a tenant stays with it until another needs it, so all in use means nothing.
void describe_tables(Writer& writer, const Store& store) {
  constexpr std::uint32_t kUnlessHighest = states({0, 1, 2, 3, 4, 5, 6, 7}),
                          kIfHighest = states({8, 9, 10, 11, 12, 13, 14, 15});
  // A key that was given up has a hash below 2^32.
  writer.pool(137, "limits", store.limit_keys[0].name_hash, Writer::Part::kHigh,
              store.limit_keys.size(), sizeof(LimitKey), sizeof(LimitKey));
  writer.pool(138, "tickets", store.tickets[0].control, store.tickets.size(), sizeof(RoomTicket),
              sizeof(RoomTicket), kUnlessHighest);
  // A cron that was removed leaves its version and its life, which stand in the other half.
  writer.pool(139, "crons", store.crons[0].control, Writer::Part::kLow, kCrons, sizeof(CronRecord),
              sizeof(CronRecord));
  writer.pool(140, "workers", store.worker_marks[0].sign, store.workers.size(), sizeof(WorkerMark),
              sizeof(WorkerRecord) + sizeof(WorkerMark), kIfHighest);
  writer.pool(141, "worker-pools", store.pools[0].setup, kPools, sizeof(PoolRecord),
              sizeof(PoolRecord), kUnlessHighest);
}

}  // namespace

void write_catalogue(const Store& store) {
  Writer writer(store);
  describe_queues(writer, store);
  describe_segment(writer, store);
  describe_pools(writer, store);
  describe_tables(writer, store);
}

}  // namespace ojs_shm::engine
