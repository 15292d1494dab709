// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/bits.hpp"

namespace ojs_shm::shm {

#if defined(OJS_SHM_TAG_BITS)
constexpr unsigned kTagBits = OJS_SHM_TAG_BITS;  // narrow in tests, so that tags wrap
#else
constexpr unsigned kTagBits = 36;
#endif

/// rings of one set: 256 ranks with a front and a normal ring each
constexpr unsigned kRingsPerSet = 512;
constexpr std::uint64_t kTagMask = (1ULL << kTagBits) - 1;
/// No job begins its life with a tag beyond this, so that none lives to see it wrap.
constexpr std::uint64_t kLastFirstTag = kTagBits < 36 ? kTagMask : kTagMask - (1ULL << 25);
constexpr std::uint32_t kLeaseOwner = 0x3FFF;  ///< held by a lease alone, not by a living lane

/// The control word of a slot, its truth. Every transition moves the whole word by one cas, or by
/// one store of the lane that holds it exclusively, and moves the tag on: its low bits count the
/// moves to another ring, the rest all transitions.
///
///   63..60 state   59..50 ring number   49..36 owner lane + 1 (0 none)   35..0 tag
struct Control {
  std::uint64_t word = 0;

  using StateBits = Field<60, 4>;
  using RingBits = Field<50, 10>;
  using OwnerBits = Field<36, 14>;
  using TagBits = Field<0, kTagBits>;
  static constexpr std::uint64_t kMoves = 7, kTransition = 8;

  constexpr Control() = default;
  constexpr explicit Control(std::uint64_t w) : word(w) {}
  constexpr Control(unsigned state, unsigned ring, std::uint32_t owner, std::uint64_t tag)
      : word(StateBits::put(state) | RingBits::put(ring) | OwnerBits::put(owner) |
             TagBits::put(tag)) {}

  constexpr unsigned state() const { return static_cast<unsigned>(StateBits::get(word)); }
  constexpr unsigned ring() const {
    return static_cast<unsigned>(RingBits::get(word)) % kRingsPerSet;
  }
  constexpr std::uint32_t owner() const { return static_cast<std::uint32_t>(OwnerBits::get(word)); }
  constexpr std::uint64_t tag() const { return TagBits::get(word); }
  /// The word after a transition.
  constexpr Control to(unsigned state, unsigned ring, std::uint32_t owner) const {
    return {state, ring, owner, tag() + kTransition};
  }
  /// The word after a move to another ring.
  constexpr Control moved_to(unsigned ring) const {
    const std::uint64_t after = tag() + kTransition;
    return {state(), ring, 0, (after & ~kMoves) | ((after + 1) & kMoves)};
  }
  /// How often it was moved between `before` and now, modulo eight.
  constexpr unsigned moves_since(Control before) const {
    return static_cast<unsigned>((tag() - before.tag()) & kMoves);
  }
  constexpr Control to(unsigned state, std::uint32_t owner = 0) const {
    // a tag that wraps leaves no carry
    constexpr std::uint64_t kKept = RingBits::put(kRingsPerSet - 1) | kTagMask;
    return Control((((word & kKept) + kTransition) & kKept) | StateBits::put(state) |
                   OwnerBits::put(owner));
  }
  constexpr bool operator==(const Control&) const = default;
};

}  // namespace ojs_shm::shm
