// SPDX-License-Identifier: Apache-2.0
#include "shm/key_index.hpp"

#include "shm/parking.hpp"

namespace ojs_shm::shm {
namespace {

enum CellState : std::uint64_t { kEmpty = 0, kTentative = 1, kConfirmed = 2 };

constexpr std::uint64_t cell_word(CellState state, std::uint32_t slot, std::uint64_t fingerprint) {
  return Field<62, 2>::put(state) | Field<38, 24>::put(slot) | Field<0, 38>::put(fingerprint);
}
constexpr std::uint64_t state_of(std::uint64_t word) { return Field<62, 2>::get(word); }
constexpr std::uint32_t slot_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(Field<38, 24>::get(word));
}
constexpr std::uint64_t fingerprint_of(std::uint64_t word) { return Field<0, 38>::get(word); }

std::uint32_t window(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash) & ~7U;
}  // begins on a cache line

}  // namespace

/// An entry in the first cell that is empty, else in the first whose slot does not carry its key,
/// which costs a look at each slot; null: no such cell.
Word* KeyIndex::place(std::uint32_t first, std::uint64_t entry, const Carries& carries) {
  for (unsigned i = 0; i < kWindow; ++i) {
    Word& cell = segment_.key_cell(first + i);
    std::uint64_t found = cell.load();
    if (state_of(found) == kEmpty && cell.cas(found, entry, Point::kKeyTentative)) return &cell;
  }
  for (unsigned i = 0; i < kWindow; ++i) {
    Word& cell = segment_.key_cell(first + i);
    std::uint64_t found = cell.load();
    if ((state_of(found) == kEmpty || !carries.plausible(slot_of(found), fingerprint_of(found))) &&
        cell.cas(found, entry, Point::kKeyTentative))
      return &cell;
  }
  return nullptr;
}

KeyIndex::Insert KeyIndex::insert(std::uint64_t hash, std::uint32_t slot, const Carries& carries) {
  const std::uint64_t mark = fingerprint(hash);
  const std::uint64_t mine = cell_word(kTentative, slot, mark);
  const std::uint32_t first = window(hash);
  for (unsigned round = 0;; ++round) {
    // 1. our entry
    Word* own = place(first, mine, carries);
    if (own == nullptr) return Insert::kFull;
    // 2. the others with the same key
    carries.begin();
    bool lost = false, behind = false;
    for (unsigned i = 0; i < kWindow && !lost && !behind; ++i) {
      Word& cell = segment_.key_cell(first + i);
      std::uint64_t found = cell.load();
      if (fingerprint_of(found) != mark || state_of(found) == kEmpty || &cell == own ||
          slot_of(found) == slot || !carries(slot_of(found))) [[likely]]
        continue;
      if (state_of(found) == kTentative && &cell < own && round < carries.courtesies())
        behind = true;
      else if (state_of(found) == kConfirmed || !cell.cas(found, 0, Point::kKeyRemoved))
        lost = state_of(found) == kConfirmed;
    }
    if (lost || behind) {
      own->cas_once(mine, 0, Point::kKeyRemoved);
      if (lost) return Insert::kDuplicate;
      wait_for_another(round);
      continue;
    }
    // 3. ours, unless another lane threw it out
    if (own->cas_once(mine, cell_word(kConfirmed, slot, mark), Point::kKeyConfirmed))
      return Insert::kDone;
  }
}

KeyIndex::Insert KeyIndex::stand(std::uint64_t hash, std::uint32_t slot, const Carries& carries) {
  const std::uint64_t mark = fingerprint(hash);
  const std::uint64_t mine = cell_word(kConfirmed, slot, mark);
  const std::uint32_t first = window(hash);
  bool there = false;
  for (unsigned i = 0; i < kWindow && !there; ++i)
    there = segment_.key_cell(first + i).load() == mine;
  if (!there && place(first, mine, carries) == nullptr) return Insert::kFull;
  carries.begin();
  for (unsigned i = 0; i < kWindow; ++i) {
    Word& cell = segment_.key_cell(first + i);
    std::uint64_t found = cell.load_seq_cst();
    if (state_of(found) == kEmpty || fingerprint_of(found) != mark || slot_of(found) == slot ||
        !carries(slot_of(found)))
      continue;
    if (state_of(found) == kConfirmed || !cell.cas_once(found, 0, Point::kKeyRemoved))
      return Insert::kDuplicate;
  }
  return Insert::kDone;
}

void KeyIndex::remove(std::uint64_t hash, std::uint32_t slot) {
  const std::uint64_t mark = fingerprint(hash);
  for (unsigned i = 0; i < kWindow; ++i) {
    Word& cell = segment_.key_cell(window(hash) + i);
    const std::uint64_t found = cell.load();
    if (fingerprint_of(found) == mark && state_of(found) != kEmpty && slot_of(found) == slot)
        [[unlikely]]
      cell.cas_once(found, 0, Point::kKeyRemoved);
  }
}

std::vector<KeyIndex::Stray> KeyIndex::strays(const Segment& segment, const Carries& carries) {
  std::vector<Stray> found;
  for (std::uint32_t i = 0; i < segment.geometry().key_cells; ++i)
    if (const std::uint64_t entry = segment.key_cell(i).load();
        state_of(entry) != kEmpty && !carries.plausible(slot_of(entry), fingerprint_of(entry)))
      found.push_back({i, slot_of(entry), entry});
  return found;
}

void KeyIndex::sweep(const Carries& carries) {
  for (const Stray& stray : strays(segment_, carries))
    segment_.key_cell(stray.cell).cas_once(stray.entry, 0, Point::kKeyRemoved);
}

bool KeyIndex::has(const Segment& segment, std::uint64_t hash, std::uint32_t slot) {
  const std::uint64_t wanted = cell_word(kConfirmed, slot, fingerprint(hash));
  for (unsigned i = 0; i < kWindow; ++i)
    if (segment.key_cell(window(hash) + i).load() == wanted) return true;
  return false;
}

std::uint32_t KeyIndex::find(const Segment& segment, std::uint64_t hash, const Carries& carries) {
  const std::uint64_t mark = fingerprint(hash);
  for (unsigned i = 0; i < kWindow; ++i) {
    const std::uint64_t found = segment.key_cell(window(hash) + i).load();
    if (fingerprint_of(found) == mark && state_of(found) == kConfirmed && carries(slot_of(found)))
        [[unlikely]]
      return slot_of(found);
  }
  return kNoIndex;
}

}  // namespace ojs_shm::shm
