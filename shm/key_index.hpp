// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shm/segment.hpp"

namespace ojs_shm::shm {

/// Insert-if-absent from a 128-bit key to a slot. A key has a window of eight cache lines. The
/// first word of a line counts the entries beyond that line in all windows that contain it, so that
/// nearly every walk ends in its first line; the other seven words are cells. A cell is
///   63..62 0 empty, 2 an entry   61..38 slot   37..0 fingerprint
/// and is only a claim: the slot says whether it carries the key. An entry whose slot does not
/// carry its key is a stray and may be replaced. An inserter that dies leaves an entry of its slot;
/// the repair that frees the slot removes it.
///
/// Inserting: 1. put an entry, by one cas; 2. look at the whole window. 2a. A slot that has the
/// same key keeps the inserter out: it takes its entry away. 2b. A slot with the same key that is
/// still being filled belongs to a rival inserter. Of two rivals the later one sees the earlier, or
/// each sees the other. To a rival in a lower cell the inserter gives way: it takes its entry away,
/// and tries again when the rival is done. 2c. A rival in a higher cell either has the key already
/// or is about to give way: the inserter waits until the rival has done one or the other, and looks
/// again.
/// 3. Nothing is in the way: the inserter has the key until it publishes the slot.
///
/// A line's count goes up before an entry is put beyond the line, and down after that entry was
/// taken, by the process whose cas took it. So the count is never too small: an inserter that put
/// its entry into the line and then finds the count zero is seen by every inserter that later puts
/// an entry beyond the line. A death leaves the count too large, which costs each walk one line
/// more.
class KeyIndex {
 public:
  /// What a slot means to an inserter of the key.
  enum class Standing : std::uint8_t {
    kPasses,    ///< it does not carry the key, or does not keep the inserter out
    kKeepsOut,  ///< it has the key, or may have it in a moment
    kComes,     ///< it is being filled, and its holder may be about to insert the key as well
  };
  struct Carries {
    virtual Standing operator()(std::uint32_t slot) const = 0;
    /// Whether the slot carries any key with this fingerprint; false makes the entry a stray.
    virtual bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const = 0;
    /// A look at the window begins; the results of an earlier look no longer count.
    virtual void begin() const {}
    /// How often to look again at a rival in a higher cell.
    virtual unsigned patience() const = 0;

   protected:
    ~Carries() = default;
  };
  /// kBusy: there is a rival, and its process seems to be stopped.
  enum class Insert : std::uint8_t { kDone, kDuplicate, kFull, kBusy };

  static constexpr unsigned kLineWords = kKeyLineWords, kWindowLines = 8;
  static constexpr unsigned kWindow = kWindowLines * (kLineWords - 1);  ///< entries
  static constexpr std::uint64_t fingerprint(std::uint64_t hash) {
    return Field<0, 38>::get(hash * 0x9E3779B97F4A7C15ULL);
  }

  explicit KeyIndex(Segment& segment) : segment_(segment) {}
  Insert insert(std::uint64_t hash, std::uint32_t slot, const Carries& carries);
  /// What a look at the first line of a key's window found. It proves nothing.
  struct Glance {
    std::uint32_t slot = kNoIndex;  ///< of an entry that is probably the key's
    Word* room = nullptr;           ///< the first empty cell
  };
  static Glance glance(const Segment& segment, std::uint64_t hash);
  /// insert() of a key that has no other entry, into a line with room and nothing beyond it. Most
  /// inserts are such, and no slot is looked at. False: nothing is inserted, and insert() decides.
  bool insert_alone(std::uint64_t hash, std::uint32_t slot, const Glance& seen);
  /// For a slot that had the key before and gets it back: makes sure that it has an entry.
  /// kDuplicate: another slot keeps it out, or a rival inserts the key; this call gives way to it.
  Insert stand(std::uint64_t hash, std::uint32_t slot, const Carries& carries);
  /// Removes every entry of the key for this slot, which the caller holds: also an entry that a
  /// dead inserter left.
  void remove(std::uint64_t hash, std::uint32_t slot);
  /// An entry whose slot does not carry its key. No death leaves one, for entries are removed
  /// before their slot is given up.
  struct Stray {
    std::uint32_t cell, slot;
    std::uint64_t entry;
  };
  static std::vector<Stray> strays(const Segment& segment, const Carries& carries);
  /// Empties their cells.
  void sweep(const Carries& carries);
  /// Whether the slot has an entry of that key.
  static bool has(const Segment& segment, std::uint64_t hash, std::uint32_t slot);
  static std::uint32_t find(const Segment& segment, std::uint64_t hash, const Carries& carries);
  /// Prefetches the first line of a key's window.
  static void ask_for(const Segment& segment, std::uint64_t hash);

 private:
  Word* place(std::uint64_t entry, const Carries& carries);
  bool take_away(Word& cell, std::uint64_t entry);
  void pass_no_more(std::uint32_t first, std::uint32_t end);

  Segment& segment_;
};

}  // namespace ojs_shm::shm
