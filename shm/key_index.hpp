// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/segment.hpp"

namespace ojs_shm::shm {

/// Insert-if-absent from a 128-bit key to a slot. A key has a window of 32 cells; a cell is
///   63..62 0 empty, 1 tentative, 2 confirmed   61..38 slot   37..0 fingerprint
/// and is only a claim: the slot says whether it carries the key. An entry whose slot does not is nobody's and may be
/// replaced, so a process that dies here leaves nothing to mend.
///
/// Inserting: 1. put a tentative entry; 2. look at the whole window: a confirmed entry of the same key wins over us, a
/// tentative one is thrown out; 3. confirm our own, which fails if somebody threw us out; then begin again.
class KeyIndex {
 public:
  /// Tells whether the slot carries the key now. Also true while it is being filled.
  struct Carries {
    virtual bool operator()(std::uint32_t slot) const = 0;
    /// Whether the slot carries any key with this fingerprint; false makes the entry nobody's.
    virtual bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const = 0;

   protected:
    ~Carries() = default;
  };
  enum class Insert : std::uint8_t { kDone, kDuplicate, kFull };

  static constexpr unsigned kWindow = 32;
  static constexpr std::uint64_t fingerprint(std::uint64_t hash) {
    return Field<0, 38>::get(hash * 0x9E3779B97F4A7C15ULL);
  }

  explicit KeyIndex(Segment& segment) : segment_(segment) {}
  Insert insert(std::uint64_t hash, std::uint32_t slot, const Carries& carries);
  void remove(std::uint64_t hash, std::uint32_t slot);
  /// Empties the cells that are nobody's. An inserter whose tentative entry goes begins again.
  void sweep(const Carries& carries);
  static std::uint32_t find(const Segment& segment, std::uint64_t hash, const Carries& carries);

 private:
  Segment& segment_;
};

}  // namespace ojs_shm::shm
