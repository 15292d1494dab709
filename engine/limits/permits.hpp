// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/atomics.hpp"
#include "shm/bits.hpp"

// How many jobs may be at work at once. A permit is a word that names its holder, a slot and the
// generation of the job in it, and is valid only while that job is held. No counter decides, so
// nothing drifts: a permit whose job is no longer held is free, and the next lane to meet it takes
// it.

namespace ojs_shm::engine {

using shm::Half;
using shm::Word;

class Store;

/// 63..40 slot + 1, 0: free  39..16 low bits of the generation  15 adopted
/// 14..0 uses, so that two holds of one job differ
struct Permit {
  std::uint64_t word = 0;
  using SlotBits = shm::Field<40, 24>;
  using GenerationBits = shm::Field<16, 24>;
  using AdoptedBit = shm::Field<15, 1>;
  using UseBits = shm::Field<0, 15>;
  constexpr explicit Permit(std::uint64_t w) : word(w) {}
  constexpr Permit(std::uint32_t slot, std::uint32_t generation)
      : word(SlotBits::put(slot + 1ULL) | GenerationBits::put(generation & GenerationBits::kMax)) {}
  constexpr bool free() const { return SlotBits::get(word) == 0; }
  constexpr std::uint32_t slot() const {
    return static_cast<std::uint32_t>(SlotBits::get(word)) - 1;
  }
  constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(GenerationBits::get(word));
  }
  /// Taken for a job by the lane that set the limit. It goes when the job's worker has taken a
  /// permit of its own, and may outlast the hold.
  constexpr bool is_adopted() const { return AdoptedBit::get(word) != 0; }
  constexpr Permit adopted() const { return Permit(word | AdoptedBit::put(1)); }
  constexpr bool names(Permit other) const { return ((word ^ other.word) >> 16) == 0; }
  /// The word by which `holder` takes this one.
  constexpr Permit taken_by(Permit holder) const {
    return Permit((holder.word & ~UseBits::kMax) | ((word + 1) & UseBits::kMax));
  }
  constexpr Permit given_back() const { return Permit(word & UseBits::kMax); }
};

constexpr unsigned kPermitsPerPage = 16;
struct alignas(128) PermitPage {
  Word permit[kPermitsPerPage];
};
static_assert(sizeof(PermitPage) == 128);
/// The pages that go with so many slots: permits for a quarter of them, and some limits more.
constexpr std::uint32_t permit_pages_for(std::uint32_t slots) { return slots / 64 + 16; }

/// Run r of a set holds as many permits as all runs before it, the first one page: so no permit
/// ever moves.
constexpr unsigned kPermitRuns = 10;
constexpr std::uint32_t kMostPermits = kPermitsPerPage << (kPermitRuns - 1);
constexpr std::uint32_t pages_of_run(unsigned run) { return run == 0 ? 1 : 1U << (run - 1); }

/// The word of a run's first page; runs lie one after the other.
///   63..32 owner + 1, 0: given back  31..8 pages  7..0 which run of its owner
struct PermitRun {
  std::uint64_t word = 0;
  constexpr explicit PermitRun(std::uint64_t w) : word(w) {}
  constexpr PermitRun(std::uint32_t owner, unsigned run)
      : word((owner + 1ULL) << 32 | std::uint64_t{pages_of_run(run)} << 8 | run) {}
  constexpr std::uint32_t pages() const {
    return static_cast<std::uint32_t>(word >> 8 & 0xFF'FFFF);
  }
  constexpr std::uint32_t owner() const { return static_cast<std::uint32_t>(word >> 32) - 1; }
  constexpr bool given_back() const { return word != 0 && word >> 32 == 0; }
};

// 0 limit  8 high  16 runs(10)
/// A limit and its permits. All zero: no limit.
struct alignas(64) PermitSet {
  /// 63..32 version  31..0 the limit plus one, 0: none. Moves with every change
  Word limit;
  Word high;              ///< the highest limit ever; only grows. No permit lies at or above it
  Half run[kPermitRuns];  ///< first page + 1. PAIR permit-run
  Word adopted;           ///< whether a job may have got one from adopt() while its worker took one

  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  /// kNone: there is no limit.
  static constexpr std::uint32_t limit_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word) - 1;
  }
};
static_assert(sizeof(PermitSet) == 64);

/// What may be done with permits. Thread-safe; a view.
class Permits {
 public:
  explicit Permits(const Store& store) : store_(store) {}

  /// Takes a permit for a job that is in the caller's hands. False: as many as the limit allows are
  /// at work. Where there is no limit it takes none. A change of the limit that returned before the
  /// call holds for it.
  bool take(PermitSet& set, Permit holder) const;
  /// Whether take() would find one; after the caller's last read-modify-write, in total order.
  bool has_room(const PermitSet& set) const;
  /// Gives back whatever names the holder, or only what was adopted for it.
  void give(PermitSet& set, Permit holder, bool adopted_only = false) const;
  /// Frees the permits of jobs that are not held. Returns how many.
  std::uint32_t sweep(PermitSet& set) const;
  /// How many are at work.
  std::uint32_t count(const PermitSet& set) const;

  /// kNone: no limit. Below what is at work nothing new begins until that has fallen. False when
  /// pages are short: then nothing has changed. `owner` is a number that no other set has.
  bool set_limit(PermitSet& set, std::uint32_t owner, std::uint32_t limit) const;
  /// Takes a permit whatever the limit, for a job that was at work before there was one. False: no
  /// room for it.
  bool adopt(PermitSet& set, std::uint32_t owner, Permit holder) const;
  /// Gives the pages of a set back that no lane uses any more.
  void drop(PermitSet& set, std::uint32_t owner) const;

  /// Whether the job that the permit names is held now.
  bool holds(Permit permit) const;
  Word& at(const PermitSet& set, std::uint32_t place) const;

 private:
  std::uint32_t room(const PermitSet& set, std::uint32_t limit, Permit taker) const;
  Word* place(PermitSet& set, std::uint32_t room, Permit holder, Permit& mine) const;
  bool has(const PermitSet& set, Permit holder, bool adopted) const;
  bool grow(PermitSet& set, std::uint32_t owner, std::uint32_t limit) const;
  std::uint32_t high(const PermitSet& set) const;

  const Store& store_;
};

}  // namespace ojs_shm::engine
