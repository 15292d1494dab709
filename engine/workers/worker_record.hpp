// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "shm/atomics.hpp"
#include "shm/bits.hpp"

// Registered workers. Offsets only, no behaviour.

namespace ojs_shm::engine {

using shm::Word;

constexpr std::size_t kLongestWorkerId = 128, kLongestWorkerDetails = 768;
/// A registered worker that gives no sign for so long is ended, and its jobs go to others.
constexpr std::uint64_t kWorkerSilenceMs = 30'000;
/// How long the record of an ended worker can still be read, unless its place is needed.
constexpr std::uint64_t kWorkerRememberedMs = 600'000;

constexpr std::uint32_t workers_for(std::uint32_t slots) {
  return std::clamp<std::uint32_t>(slots / 64, 16, 1024);
}

/// What an operator asks of a worker.
enum class WorkerOrder : std::uint8_t { kRunning, kQuiet, kTerminate };

/// The worker that holds a job, in JobRecord::pool_word; the number by which a worker is known:
/// 31..19 life of the record  18..8 its place + 1, 0: no registered worker  7 kForClient
/// 6..0 pool + 1
struct WorkerKey {
  std::uint32_t word = 0;
  using Life = shm::Field<19, 13>;
  using Place = shm::Field<8, 11>;
  constexpr WorkerKey() = default;
  /// Of a job's word: without the pool.
  constexpr explicit WorkerKey(std::uint32_t job_word) : word(job_word & ~0xFFU) {}
  constexpr WorkerKey(std::uint32_t place, std::uint64_t life)
      : word(static_cast<std::uint32_t>(Life::put(life) | Place::put(place + 1))) {}
  constexpr bool none() const { return Place::get(word) == 0; }
  constexpr std::uint32_t place() const { return static_cast<std::uint32_t>(Place::get(word)) - 1; }
  constexpr std::uint64_t life() const { return Life::get(word); }
  bool operator==(const WorkerKey&) const = default;
};
constexpr std::uint32_t pool_of_word(std::uint32_t pool_word) { return pool_word & 0x7F; }
/// Its holder fetched it for a client, which has not got it while the holder is a lane.
constexpr std::uint32_t kForClient = 0x80;

enum class WorkerPhase : std::uint8_t {
  kFree,
  kTaken,     ///< a lane writes its id; a death frees it
  kAlive,     ///< a worker
  kChanging,  ///< the same, while a lane writes what it says of itself; a death empties that
  kGone,      ///< a worker that has ended: free, and still readable
};

/// 63..32 of the hash of its id  31..19 life: moves on with each worker  18..16 phase
/// 13..0 lane + 1 that writes
struct WorkerControl {
  std::uint64_t word = 0;
  using Hash = shm::Field<32, 32>;
  using Life = shm::Field<19, 13>;
  using Phase = shm::Field<16, 3>;
  using Owner = shm::Field<0, 14>;
  constexpr explicit WorkerControl(std::uint64_t w) : word(w) {}
  constexpr WorkerPhase phase() const { return static_cast<WorkerPhase>(Phase::get(word)); }
  constexpr std::uint32_t hash() const { return static_cast<std::uint32_t>(Hash::get(word)); }
  constexpr std::uint64_t life() const { return Life::get(word); }
  constexpr std::uint32_t owner() const { return static_cast<std::uint32_t>(Owner::get(word)); }
  constexpr bool lives() const {
    return phase() == WorkerPhase::kAlive || phase() == WorkerPhase::kChanging;
  }
  constexpr bool unused() const {
    return phase() == WorkerPhase::kFree || phase() == WorkerPhase::kGone;
  }
  constexpr WorkerControl to(WorkerPhase phase, std::uint32_t owner) const {
    return WorkerControl(Owner::with(Phase::with(word, static_cast<std::uint64_t>(phase)), owner));
  }
  /// For the next worker.
  constexpr WorkerControl taken(std::uint32_t hash, std::uint32_t owner) const {
    const std::uint64_t next = Life::with(word, (life() + 1) & Life::kMax);
    return WorkerControl(Hash::with(next, hash)).to(WorkerPhase::kTaken, owner);
  }
};

/// How a worker ended.
enum class WorkerEnd : std::uint8_t {
  kSilent,  ///< it gave no sign
  kLeft,    ///< by itself
  kDied,    ///< its handle was repaired: what it held went to others then
};

/// The last sign of life: 63 it was the last  62..61 WorkerEnd  60..13 Unix ms
/// 12..0 life of the record
struct WorkerSign {
  std::uint64_t word = 0;
  using Over = shm::Field<63, 1>;
  using End = shm::Field<61, 2>;
  using Time = shm::Field<13, 48>;
  using Life = shm::Field<0, 13>;
  constexpr explicit WorkerSign(std::uint64_t w) : word(w) {}
  constexpr WorkerSign(std::uint64_t ms, std::uint64_t life)
      : word(Time::put(ms) | Life::put(life)) {}
  constexpr bool over() const { return Over::get(word) != 0; }
  constexpr WorkerEnd end() const { return static_cast<WorkerEnd>(End::get(word)); }
  constexpr std::uint64_t ms() const { return Time::get(word); }
  constexpr std::uint64_t life() const { return Life::get(word); }
  constexpr WorkerSign ended(WorkerEnd how) const {
    return WorkerSign(End::with(Over::with(word, 1), static_cast<std::uint64_t>(how)));
  }
};

/// What is looked at for each beat: close together.
struct WorkerMark {
  Word control;  ///< WorkerControl. PAIR worker-name
  Word sign;     ///< WorkerSign: each beat moves it, and so does the end
};

/// What it has in hand: 63..51 life of the record  50..26 jobs that it has at most, 0: not said
/// 25..0 jobs that it has
struct WorkerLoad {
  std::uint64_t word = 0;
  using Life = shm::Field<51, 13>;
  using Most = shm::Field<26, 25>;
  using Active = shm::Field<0, 26>;
  constexpr explicit WorkerLoad(std::uint64_t w) : word(w) {}
  constexpr WorkerLoad(std::uint64_t life, std::uint64_t most, std::uint64_t active)
      : word(Life::put(life) | Most::put(std::min(most, Most::kMax)) |
             Active::put(std::min(active, Active::kMax))) {}
  constexpr std::uint64_t life() const { return Life::get(word); }
  constexpr std::uint32_t most() const { return static_cast<std::uint32_t>(Most::get(word)); }
  constexpr std::uint32_t active() const { return static_cast<std::uint32_t>(Active::get(word)); }
};

/// WorkerRecord::traits
constexpr std::uint64_t kWorkerPledged = 1,  ///< it said that it would give signs of life
    kWorkerDrains = 2;                       ///< it said that it takes no more jobs

// 0 registered  8 order  16 load  24 pool  32 lane  40 traits  48 id length  56 details length
// 64 version  72 returned  80 silence | 128 id  256 details
/// One worker. Written by the lane that its control word names, but for `load`.
struct alignas(64) WorkerRecord {
  Word registered_at;   ///< ms
  Word order;           ///< WorkerOrder
  Word load;            ///< WorkerLoad
  Word pool;            ///< hash of its pool's name; 0: none. Set once in a life
  Word lane;            ///< lane + 1 of the handle that is this worker; 0: a process serves it
  Word traits;          ///< bits above
  Word id_length;       ///< of `id`, in bytes
  Word details_length;  ///< 0: none, or they were lost with the lane that wrote them
  Word version;         ///< counts changes of `details`
  Word returned;        ///< jobs that went to others when it ended
  Word silence_ms;      ///< for how long it may give no sign; less than kWorkerSilenceMs: for that
  std::uint64_t spare[5];
  std::uint64_t id[kLongestWorkerId / 8];
  std::uint64_t details[kLongestWorkerDetails / 8];  ///< what it says of itself; opaque here
};
/// Neither told to take no more jobs, nor by its own word.
inline bool takes_jobs(const WorkerRecord& worker) {
  return worker.order.load() == 0 && (worker.traits.load() & kWorkerDrains) == 0;
}
inline std::uint64_t silence_of(const WorkerRecord& worker) {
  return std::max(worker.silence_ms.load(), kWorkerSilenceMs);
}
static_assert(sizeof(WorkerRecord) == 1024 && offsetof(WorkerRecord, id) == 128 &&
              offsetof(WorkerRecord, details) == 256);

}  // namespace ojs_shm::engine
