// SPDX-License-Identifier: Apache-2.0
#include "shm/key_index.hpp"

#include "shm/parking.hpp"

namespace ojs_shm::shm {
namespace {

constexpr std::uint64_t entry_of(std::uint32_t slot, std::uint64_t fingerprint) {
  return Field<62, 2>::put(2) | Field<38, 24>::put(slot) | Field<0, 38>::put(fingerprint);
}
constexpr bool is_entry(std::uint64_t word) { return Field<62, 2>::get(word) != 0; }
constexpr std::uint32_t slot_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(Field<38, 24>::get(word));
}
constexpr std::uint64_t fingerprint_of(std::uint64_t word) { return Field<0, 38>::get(word); }
/// Whether the word's fingerprint is `mark`, a fingerprint with zeros above it.
constexpr bool has_mark(std::uint64_t word, std::uint64_t mark) { return (word ^ mark) << 26 == 0; }

/// The first word of the first line of an entry's window. It follows from the entry alone, so that
/// each process that takes an entry knows which lines the entry had passed.
constexpr std::uint32_t window(std::uint64_t entry) {
  return static_cast<std::uint32_t>(fingerprint_of(entry)) & ~(KeyIndex::kLineWords - 1);
}

/// Calls `visit(cell, entry)` for each entry with that fingerprint until it says true.
template <class Visit>
bool any_of(const Segment& segment, std::uint64_t mark, const Visit& visit) {
  std::uint32_t line = window(mark);
  for (unsigned i = 0; i < KeyIndex::kWindowLines; ++i, line += KeyIndex::kLineWords) {
    Word* const words = &segment.key_cell(line);
    for (unsigned at = 1; at < KeyIndex::kLineWords; ++at) {
      const std::uint64_t found = words[at].load();
      if (has_mark(found, mark) && is_entry(found) && visit(words[at], found)) [[unlikely]]
        return true;
    }
    if (words[0].load() == 0) return false;
  }
  return false;
}

}  // namespace

/// The lines from `first` to before `end`, both first words, have one entry less beyond them.
void KeyIndex::pass_no_more(std::uint32_t first, std::uint32_t end) {
  for (; first != end; first += kLineWords)
    segment_.key_cell(first).fetch_add(~0ULL, Point::kKeyPassed);
}

/// Empties the cell if it still holds that entry.
bool KeyIndex::take_away(Word& cell, std::uint64_t entry) {
  if (!cell.cas_once(entry, 0, Point::kKeyRemoved)) return false;
  std::uint32_t line = window(entry);
  for (unsigned i = 0; i < kWindowLines; ++i, line += kLineWords) {
    const Word& head = segment_.key_cell(line);
    if (&cell > &head && &cell < &head + kLineWords) return pass_no_more(window(entry), line), true;
  }
  return true;
}

/// Puts the entry into the first empty cell, else into the first cell with a stray, which costs a
/// look at each slot. Null: there is no such cell.
Word* KeyIndex::place(std::uint64_t entry, const Carries& carries) {
  const std::uint32_t first = window(entry), end = first + kWindowLines * kLineWords;
  for (const bool also_strays : {false, true})
    for (std::uint32_t line = first; line != end; line += kLineWords) {
      Word* const words = &segment_.key_cell(line);
      for (unsigned at = 1; at < kLineWords; ++at) {
        Word& cell = words[at];
        const std::uint64_t found = cell.load();
        const bool stray = also_strays && is_entry(found) &&
                           !carries.plausible(slot_of(found), fingerprint_of(found));
        if ((is_entry(found) && !(stray && take_away(cell, found))) ||
            !cell.cas_once(0, entry, Point::kKeyPlaced))
          continue;
        if (also_strays) pass_no_more(line, end);
        return &cell;
      }
      if (!also_strays) words[0].fetch_add(1, Point::kKeyPassed);
    }
  pass_no_more(first, end);
  return nullptr;
}

KeyIndex::Insert KeyIndex::insert(std::uint64_t hash, std::uint32_t slot, const Carries& carries) {
  const std::uint64_t mark = fingerprint(hash);
  const std::uint64_t mine = entry_of(slot, mark);
  // 1. our entry
  Word* own = place(mine, carries);
  if (own == nullptr) return Insert::kFull;
  for (unsigned looks = 0;; ++looks) {
    // 2. the other entries of the same key
    carries.begin();
    bool ahead = false;
    const bool kept_out = any_of(segment_, mark, [&](const Word& cell, std::uint64_t found) {
      if (slot_of(found) == slot) return false;
      const Standing other = carries(slot_of(found));
      if (other == Standing::kComes && &cell > own) return ahead = true, false;  // 2c
      return other != Standing::kPasses;                                         // 2a, 2b
    });
    // 3. ours
    if (!kept_out && !ahead) {
      if (own->load() == mine) return Insert::kDone;
      // The key's holder took it away as that of the job that had our slot before.
      own = place(mine, carries);
      if (own == nullptr) return Insert::kFull;
      continue;
    }
    if (kept_out || looks >= carries.patience()) {
      take_away(*own, mine);
      return kept_out ? Insert::kDuplicate : Insert::kBusy;
    }
    wait_for_another(looks);
  }
}

KeyIndex::Glance KeyIndex::glance(const Segment& segment, std::uint64_t hash) {
  const std::uint64_t mark = fingerprint(hash);
  Word* const line = &segment.key_cell(window(mark));
  Glance seen;
#pragma GCC unroll 8
  for (unsigned at = kLineWords - 1; at > 0; --at) {
    const std::uint64_t found = line[at].load_relaxed();  // relaxed: insert_alone() looks again
    if (has_mark(found, mark) && found != 0) [[unlikely]]
      seen.slot = slot_of(found);
    seen.room = found == 0 ? &line[at] : seen.room;
  }
  return seen;
}

bool KeyIndex::insert_alone(std::uint64_t hash, std::uint32_t slot, const Glance& seen) {
  const std::uint64_t mark = fingerprint(hash);
  const std::uint64_t mine = entry_of(slot, mark);
  Word* const line = &segment_.key_cell(window(mark));
  // 1. our entry
  if (seen.room == nullptr || line[0].load() != 0 ||
      !seen.room->cas_once(0, mine, Point::kKeyPlaced))
    return false;
  // 2. the other entries of the same key
  bool alone = line[0].load() == 0;
#pragma GCC unroll 8
  for (unsigned at = 1; at < kLineWords; ++at)
    if (has_mark(line[at].load(), mark) && &line[at] != seen.room) [[unlikely]]
      alone = false;
  if (!alone) [[unlikely]]
    take_away(*seen.room, mine);
  return alone;
}

KeyIndex::Insert KeyIndex::stand(std::uint64_t hash, std::uint32_t slot, const Carries& carries) {
  const std::uint64_t mark = fingerprint(hash);
  for (;;) {
    if (!has(segment_, hash, slot) && place(entry_of(slot, mark), carries) == nullptr)
      return Insert::kFull;
    carries.begin();
    const bool kept_out = any_of(segment_, mark, [&](const Word&, std::uint64_t found) {
      return slot_of(found) != slot && carries(slot_of(found)) != Standing::kPasses;
    });
    if (kept_out) return Insert::kDuplicate;
    // An inserter that looked at the slot before it was held may have taken its entry away, and be
    // gone since.
    if (has(segment_, hash, slot)) return Insert::kDone;
  }
}

void KeyIndex::remove(std::uint64_t hash, std::uint32_t slot) {
  any_of(segment_, fingerprint(hash), [&](Word& cell, std::uint64_t found) {
    if (slot_of(found) == slot) take_away(cell, found);
    return false;
  });
}

std::vector<KeyIndex::Stray> KeyIndex::strays(const Segment& segment, const Carries& carries) {
  std::vector<Stray> found;
  for (std::uint32_t i = 0; i < segment.geometry().key_cells; ++i)
    if (const std::uint64_t entry = segment.key_cell(i).load();
        i % kLineWords != 0 && is_entry(entry) &&
        !carries.plausible(slot_of(entry), fingerprint_of(entry)))
      found.push_back({i, slot_of(entry), entry});
  return found;
}

void KeyIndex::sweep(const Carries& carries) {
  for (const Stray& stray : strays(segment_, carries))
    take_away(segment_.key_cell(stray.cell), stray.entry);
}

bool KeyIndex::has(const Segment& segment, std::uint64_t hash, std::uint32_t slot) {
  return any_of(segment, fingerprint(hash),
                [slot](const Word&, std::uint64_t found) { return slot_of(found) == slot; });
}

std::uint32_t KeyIndex::find(const Segment& segment, std::uint64_t hash, const Carries& carries) {
  std::uint32_t slot = kNoIndex;
  any_of(segment, fingerprint(hash), [&](const Word&, std::uint64_t found) {
    if (carries(slot_of(found)) == Standing::kPasses) return false;
    slot = slot_of(found);
    return true;
  });
  return slot;
}

void KeyIndex::ask_for(const Segment& segment, std::uint64_t hash) {
  prefetch_for_write(&segment.key_cell(window(fingerprint(hash))));
}

}  // namespace ojs_shm::shm
