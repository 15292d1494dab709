// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shm/segment.hpp"

namespace ojs_shm::shm {

/// Insert-if-absent from a 128-bit key to a slot. A key has a window of eight cache lines. The first
/// word of a line counts the entries that lie beyond it in the windows that pass it, so that nearly
/// every walk ends in the line where it begins; the other seven are cells. A cell is
///   63..62 0 empty, 2 an entry   61..38 slot   37..0 fingerprint
/// and is only a claim: the slot says whether it carries the key. An entry whose slot does not is a
/// stray and may be replaced. What a process leaves that dies here goes with its slot.
///
/// Inserting: 1. put an entry, by one cas; 2. look at the whole window. 2a. A slot of the same key
/// that keeps us out wins: we take our entry away. 2b. A slot of it that is being filled comes at the
/// same time. Of two that come, the later one sees the earlier, or both see each other. Before one
/// in a lower cell we take our entry away, and come back when it is done. 2c. One in a higher cell
/// may have the key already, or is about to give way: we wait until it has done one or the other,
/// and look again. 3. Nothing in the way: the key is ours until the slot is published.
///
/// A line's count goes up before an entry is put beyond it, and down after that entry was taken, by
/// the process whose cas took it. So it is never too small: who finds it zero after putting an entry
/// of its own is seen by each that comes later. A death leaves it too large, which costs walks of
/// this line one line more.
class KeyIndex {
 public:
  /// What a slot is to one that brings its key.
  enum class Standing : std::uint8_t {
    kPasses,    ///< it does not carry the key, or keeps nothing out
    kKeepsOut,  ///< it has the key, or may have it in a moment
    kComes,     ///< it is being filled, and its holder may be about to insert the key as well
  };
  struct Carries {
    virtual Standing operator()(std::uint32_t slot) const = 0;
    /// Whether the slot carries any key with this fingerprint; false makes the entry a stray.
    virtual bool plausible(std::uint32_t slot, std::uint64_t fingerprint) const = 0;
    /// A look at the window begins; what an earlier one has seen may be over.
    virtual void begin() const {}
    /// How often to look again at one that comes in a higher cell.
    virtual unsigned patience() const = 0;

   protected:
    ~Carries() = default;
  };
  /// kBusy: another comes, and its process seems to be stopped
  enum class Insert : std::uint8_t { kDone, kDuplicate, kFull, kBusy };

  static constexpr unsigned kLineWords = kKeyLineWords, kWindowLines = 8;
  static constexpr unsigned kWindow = kWindowLines * (kLineWords - 1);  ///< entries
  static constexpr std::uint64_t fingerprint(std::uint64_t hash) {
    return Field<0, 38>::get(hash * 0x9E3779B97F4A7C15ULL);
  }

  explicit KeyIndex(Segment& segment) : segment_(segment) {}
  Insert insert(std::uint64_t hash, std::uint32_t slot, const Carries& carries);
  /// What a look at the line where a key's walk begins met. It proves nothing.
  struct Glance {
    std::uint32_t slot = kNoIndex;  ///< of an entry that is probably the key's
    Word* room = nullptr;           ///< the first empty cell
  };
  static Glance glance(const Segment& segment, std::uint64_t hash);
  /// insert() of a key that has no other entry, in a line with room and nothing beyond it, as most
  /// are: no slot is looked at. False: nothing is inserted, and insert() knows what to do.
  bool insert_alone(std::uint64_t hash, std::uint32_t slot, const Glance& seen);
  /// Of a slot that had the key before and gets it back: makes sure that it has an entry.
  /// kDuplicate: another keeps it out, or comes; before that one it gives way.
  Insert stand(std::uint64_t hash, std::uint32_t slot, const Carries& carries);
  /// Takes every entry of the key for this slot, which the caller holds: also the one that an
  /// inserter left when it died.
  void remove(std::uint64_t hash, std::uint32_t slot);
  /// An entry whose slot does not carry its key. Removing comes before a slot is given up, so none is left by a
  /// death.
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
  /// Prefetches the line where a walk begins.
  static void ask_for(const Segment& segment, std::uint64_t hash);

 private:
  Word* place(std::uint64_t entry, const Carries& carries);
  bool take_away(Word& cell, std::uint64_t entry);
  void pass_no_more(std::uint32_t first, std::uint32_t end);

  Segment& segment_;
};

}  // namespace ojs_shm::shm
