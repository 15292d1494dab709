// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/atomics.hpp"
#include "shm/bits.hpp"
#include "shm/control.hpp"

// What the bytes of a segment mean. Offsets only, no behaviour.
//
//   Header | ProcessRecord[] | Lane[] | area of the upper room | bitmaps | RingEnds[] | Chunk[]
//          | key cells | Slot[] | block words | block links | Block[]
//
// To change the format: 1. change the struct and the map above it; 2. raise kFormat; 3. keep the
// last format's exporter; 4. name the change in CHANGELOG.md. The fingerprint refuses a library
// whose structs differ by accident.

namespace ojs_shm::shm {

constexpr std::uint64_t kMagic = 0x006D68732D736A6FULL;  // "ojs-shm\0"
constexpr std::uint32_t kFormat = 1;
constexpr std::uint64_t kReady = 0x5EA1ED5E6D3E7A11ULL;

#if defined(OJS_SHM_CELLS_PER_CHUNK)
// few in tests, so that chunks come and go, and entries of keys lie beyond their first line
constexpr unsigned kCellsPerChunk = OJS_SHM_CELLS_PER_CHUNK, kKeyLineWords = 2;
#else
constexpr unsigned kCellsPerChunk = 14, kKeyLineWords = 8;
#endif
constexpr unsigned kIndexWords = kRingsPerSet / 32;
constexpr unsigned kBlockBytes = 256;
constexpr unsigned kSlotBytes = 320;
constexpr unsigned kMaxLanes = 1024;
constexpr unsigned kMaxProcesses = 1024;

/// How many of everything. Chosen once, when the segment is made.
struct Geometry {
  std::uint32_t slots = 0;
  std::uint32_t lanes = 0;
  std::uint32_t processes = 0;
  std::uint32_t rings = 0;
  std::uint32_t chunks = 0;
  std::uint32_t blocks = 0;
  std::uint32_t key_cells = 0;  ///< a power of two
  std::uint32_t reserved = 0;
  std::uint64_t area_bytes = 0;  ///< the upper room's own tables

  bool operator==(const Geometry&) const = default;
};

// 0 magic  8 format  12 -  16 fingerprint  24 size  32 geometry(40)  72 salt  80 boot(2)
// 96 made at  104 ready  112 supervisor  116 broker | 128 doorbell, sleeping
// 160 counters | 256 completions
struct Header {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t pad;
  std::uint64_t fingerprint;
  std::uint64_t size_bytes;
  Geometry geometry;
  std::uint64_t salt;     ///< random; part of the ids made in this segment
  std::uint64_t boot[2];  ///< the host's boot id when the segment was last started
  std::uint64_t made_at_ms;
  Word ready;  ///< kReady, written last. PAIR segment-ready
  /// process index + 1 of the holder of the supervisor's seat; a hint, the seat is the truth
  Half supervisor;
  Half broker;  ///< the same for the broker's seat
  std::uint64_t pad2;
  // Woken when something becomes due before `sleeping_until_ms`, or a process attached.
  alignas(128) Half doorbell;
  /// lanes ever taken: only ever grows, so walks over lanes stay short
  Half lanes_high;
  Word sleeping_until_ms;  ///< when the supervisor wakes by itself; a hint
  Word shortest_lease_ms;  ///< the shortest ever asked for; only ever falls
  /// added to the host's clock, by tests; or see kStandingClock
  Word clock_offset_ms;
  Word deaths;   ///< processes found dead
  Word repairs;  ///< slots mended after a death
  Word clean;    ///< 1 after a clean stop of the last process
  /// 63..32 pid of the process that made the last repair  31..0 pid of one of the dead; for people
  Word last_repair;
  Word last_repair_at_ms;  ///< Unix time; 0: there was none
  Word last_mended;        ///< slots mended by it
  /// futexes on which finished slots are waited for, by slot number
  alignas(128) Half completions[64];
};

/// One attached process. The record at index i belongs to the holder of byte kProcessByte + i of
/// the lock file; a process that locks the byte holds the proof that the owner is dead. Written
/// only under that lock.
struct alignas(64) ProcessRecord {
  Half live;  ///< 0 free, 1 attached
  Half pid;   ///< in its own pid namespace, for people
  Word namespace_id;
  Word start_time;  ///< of /proc/PID/stat; 0: not known
  Word epoch;       ///< counts attachments to this record
};

/// One handle (a producer, a worker): one thread at a time writes it. A line that other lanes never
/// write, a line for the futex that other lanes write, a pair of lines for counters.
struct alignas(128) Lane {
  Half process;     ///< process index + 1, 0 free
  Half kind;        ///< what the handle is for; for people
  LaneWord intent;  ///< what it is about to do; see the upper room. 0: nothing
  LaneWord intent_data[4];
  LaneWord chunk_intent;  ///< the chunk it is linking, leaving or splicing in
  LaneWord batch_intent;  ///< the batch it is publishing
  alignas(64) Half park;  ///< the futex on which it sleeps
  Half watch;             ///< bumped with park, for the thread that serves its event descriptor
  /// 1: a splice of it may have left chunks in no ring, and it has not collected them yet
  LaneWord leaks;
  alignas(128) LaneWord counters[16];
};

/// A slot: the control word is its truth; the rest belongs to the upper room.
struct alignas(64) Slot {
  Word control;
  std::uint64_t body[kSlotBytes / 8 - 1];
};

/// head and tail: 63..40 chunk  39..36 cell 0..14  35..0 incarnation of the chunk. Consumers write
/// head, producers tail.
struct alignas(128) RingEnds {
  Word head;
  Half claimed;  ///< lane + 1 while it is being made; kNoIndex once it is named in a set
  Half splicer;  ///< lane + 1 of the lane that compacts the ring
  alignas(128) Word tail;
};

/// next: a link (as a hint: chunk, incarnation) or empty. control: 63..60 state  49..36 owner
/// 35..0 incarnation.
struct alignas(128) Chunk {
  Word next;
  Word control;
  Word cell[kCellsPerChunk];
};

/// The rings of one upper-room queue: which are not empty, and where they are. PAIR ring-index
struct alignas(128) RingSet {
  Word
      /// 63..32 version  31..0 bit r: ring 32i+r may hold something; bit 0 means it holds nothing
      index[kIndexWords];
  Half ring[kRingsPerSet];  ///< ring + 1, 0: never used
};

struct alignas(kBlockBytes) Block {
  std::byte bytes[kBlockBytes];
};

static_assert(sizeof(Lane) == 256 && sizeof(Slot) == kSlotBytes && sizeof(RingEnds) == 256 &&
              sizeof(Chunk) == 128);
static_assert(sizeof(RingSet) == 128 + 2048 && sizeof(ProcessRecord) == 64 &&
              sizeof(Geometry) == 40);
static_assert(offsetof(Header, ready) == 104 && offsetof(Header, doorbell) == 128);
static_assert(sizeof(Header) <= 4096);

/// Where everything lies, in bytes from the start.
struct Offsets {
  std::uint64_t processes, lanes, area, slot_map, chunk_map, block_map, rings, chunks, keys, slots,
      block_words, block_links, blocks, end;
};

/// Offsets of a geometry. Every region begins at a multiple of 256.
constexpr Offsets offsets_of(const Geometry& g) {
  Offsets o{};
  std::uint64_t at = 4096;
  auto take = [&at](std::uint64_t bytes) {
    const std::uint64_t begin = at;
    at = (at + bytes + 255) & ~255ULL;
    return begin;
  };
  auto map_bytes = [](std::uint64_t n) { return (n + 63) / 64 * 8; };
  o.processes = take(std::uint64_t{g.processes} * sizeof(ProcessRecord));
  o.lanes = take(std::uint64_t{g.lanes} * sizeof(Lane));
  o.area = take(g.area_bytes);
  o.slot_map = take(map_bytes(g.slots));
  o.chunk_map = take(map_bytes(g.chunks));
  o.block_map = take(map_bytes(g.blocks));
  o.rings = take(std::uint64_t{g.rings} * sizeof(RingEnds));
  o.chunks = take(std::uint64_t{g.chunks} * sizeof(Chunk));
  o.keys = take(std::uint64_t{g.key_cells} * 8);
  o.slots = take(std::uint64_t{g.slots} * sizeof(Slot));
  o.block_words = take(std::uint64_t{g.blocks} * 8);
  o.block_links = take(std::uint64_t{g.blocks} * 4);
  o.blocks = take(std::uint64_t{g.blocks} * kBlockBytes);
  o.end = at;
  return o;
}

/// A number that changes with any struct above; the upper room adds its own.
constexpr std::uint64_t layout_fingerprint(std::uint64_t upper) {
  std::uint64_t h = 0xCBF29CE484222325ULL;
  for (std::uint64_t part :
       {std::uint64_t{sizeof(Header)}, std::uint64_t{sizeof(Lane)}, std::uint64_t{sizeof(Slot)},
        std::uint64_t{sizeof(RingEnds)}, std::uint64_t{sizeof(Chunk)},
        std::uint64_t{sizeof(RingSet)}, std::uint64_t{kCellsPerChunk}, std::uint64_t{kKeyLineWords},
        std::uint64_t{offsetof(Header, doorbell)}, std::uint64_t{offsetof(Lane, park)},
        Control::kTransition, std::uint64_t{std::endian::native == std::endian::little}, upper})
    h = (h ^ part) * 0x100000001B3ULL;
  return h;
}

}  // namespace ojs_shm::shm
