// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/rules/backpressure.hpp"
#include "shm/atomics.hpp"
#include "shm/bits.hpp"

// What each tenant has waiting in a queue whose tenants are bounded. Offsets only, no behaviour.

namespace ojs_shm::engine {

using shm::Half;
using shm::LaneWord;
using shm::Word;

/// Charges of accounts are numbers modulo 2^63; the bit above says that the account is being given
/// to another tenant.
constexpr std::uint64_t kAccountClosed = 1ULL << 63, kAccountMask = kAccountClosed - 1;

/// A tenant of a queue. All zero is a free one. Given to another tenant when nothing of
/// its first one waits, by the lane in EngineHeader::account_seat.
struct alignas(128) AccountRecord {
  /// queue and tenant, mixed; changes only while `reserved` is closed, which then ends with another
  /// value
  Word key;
  Word written_off;  ///< charges in `reserved` that the dead took with them
  /// Refill: deaths after which `reserved` may be too high
  Word refill;
  Word epoch;  ///< moves whenever a cached sum of what left may have become too large
  std::uint64_t spare;
  Drain drain;
  alignas(64) Word reserved;  ///< charges let in; only grows, but for its highest bit
};
static_assert(sizeof(AccountRecord) == 128);

/// What one lane has let into an account and taken out, and what both were before the operation
/// with that stamp: after a death in it they are put back. Charge of the account = sum(in) -
/// sum(out), over all lanes.
struct AccountTally {
  LaneWord in, out;
  LaneWord in_before, out_before;
  LaneWord stamp;  ///< of the lane's operation that touched it last
};
static_assert(sizeof(AccountTally) == 40);

/// JobRecord::account: what stands for a waiting job's charge.
///   31..15 low bits of the job's generation  14 brought in while it waited  13 given back
///   12..0 account + 1; 0: the job does not count for its tenant
struct AccountMark {
  std::uint32_t word = 0;
  static constexpr std::uint32_t kBroughtIn = 1U << 14, kGivenBack = 1U << 13,
                                 kMostAccounts = kGivenBack - 2;

  constexpr explicit AccountMark(std::uint32_t w) : word(w) {}
  /// kNoIndex: none.
  constexpr AccountMark(std::uint32_t generation, std::uint32_t account)
      : word(generation << 15 | (account + 1)) {}
  constexpr std::uint32_t account() const { return (word & (kGivenBack - 1)) - 1; }
  constexpr bool marked() const { return (word & (kGivenBack - 1)) != 0; }
  /// Whether its job, if it waits, stands in the account's charge.
  constexpr bool counts() const { return marked() && (word & kGivenBack) == 0; }
  /// Made by mark_waiting(): the charge is that of another lane than the job's, which may take it
  /// back.
  constexpr bool was_brought_in() const { return counts() && (word & kBroughtIn) != 0; }
  constexpr AccountMark brought_in() const { return AccountMark(word | kBroughtIn); }
  constexpr AccountMark none() const {
    return AccountMark(word & ~(kBroughtIn | (kBroughtIn - 1)));
  }
  constexpr AccountMark given_back() const { return AccountMark(word | kGivenBack); }
  constexpr AccountMark kept() const { return AccountMark(word & ~kGivenBack); }
  constexpr bool of(std::uint32_t generation) const {
    return word >> 15 == (generation & 0x1'FFFF);
  }
};

/// EngineHeader::marking: 63..40 slot
/// 39..8 generation of a waiting job that is being brought into an account
/// 1 the mark stands: the lane that gives the charge back says so first  0 on.
struct Marking {
  std::uint64_t word = 0;
  static constexpr std::uint64_t kOn = 1, kStands = 2;
  constexpr explicit Marking(std::uint64_t w) : word(w) {}
  constexpr Marking(std::uint32_t slot, std::uint32_t generation)
      : word(std::uint64_t{slot} << 40 | std::uint64_t{generation} << 8 | kOn) {}
  constexpr Marking standing() const { return Marking(word | kStands); }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(word >> 8); }
};

/// Of a small segment at most a sixteenth of its jobs, of a larger segment an eighth of the flows.
constexpr std::uint32_t accounts_for(std::uint32_t flows, std::uint32_t slots) {
  return std::clamp<std::uint32_t>(std::min(flows / 8, slots / 16), 16, AccountMark::kMostAccounts);
}

/// What an enqueue charges to one tenant.
struct TenantCharge {
  std::uint64_t tenant = 0, cost = 0;
  std::uint32_t first = 0;      ///< of its jobs in the batch
  std::uint32_t account = ~0U;  ///< where it stands; ~0: nowhere
};

}  // namespace ojs_shm::engine
