// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <string>

#include "shm/layout.hpp"

namespace ojs_shm::shm {

/// How an attach or a creation can end; `detail` of Opened says it in words.
enum class OpenCode : std::uint8_t {
  kOk,
  kNoFile,        ///< rung 1: there is no such file
  kNoPermission,  ///< rung 2: the system refuses it
  kNotASegment,   ///< rung 3: too short, or another magic
  kNotReady,      ///< rung 4: its maker has not finished
  kOtherFormat,   ///< rung 5: another format version
  kOtherLayout,   ///< rung 6: another fingerprint (a library built otherwise)
  kTorn,          ///< rung 7: sizes contradict each other or the file
  kExists,        ///< creation: the name is taken
  kNoSpace,       ///< creation: the file system cannot hold it
  kSystem,        ///< another operating-system error
};

/// How a file is mapped.
enum class Mapping : std::uint8_t {
  kWritable,
  kReadOnly,
  kPrivate,  ///< what is written stays in this process: for the copy of a segment's file
};

struct MakeSpec {
  Geometry geometry;
  std::uint64_t upper_fingerprint = 0;
  unsigned mode = 0660;
  std::string group;  ///< empty: leave it
};

/// A mapped segment: typed, bounds-checked access to its tables. Indexes come out of shared memory,
/// so each accessor brings a stranger's number back into range: garbage then leads to a wrong
/// answer that the control words reject, never outside the mapping. Thread-safe; holds no state but
/// the mapping.
class Segment {
 public:
  Segment() = default;
  Segment(Segment&&) = default;
  Segment& operator=(Segment&&) = default;

  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  const Geometry& geometry() const { return geometry_; }
  const std::string& path() const { return path_; }
  std::uint64_t size() const { return region_.get_size(); }
  bool writable() const { return writable_; }
  /// Whether the path still leads to the file that is mapped here: not once it was removed or
  /// replaced.
  bool named() const;

  ProcessRecord& process(std::uint32_t i) const {
    return at<ProcessRecord>(offsets_.processes, i, geometry_.processes);
  }
  Lane& lane(std::uint32_t i) const { return at<Lane>(offsets_.lanes, i, geometry_.lanes); }
  Slot& slot(std::uint32_t i) const { return slots_[i < geometry_.slots ? i : 0]; }
  RingEnds& ring(std::uint32_t i) const { return rings_[i < geometry_.rings ? i : 0]; }
  Chunk& chunk(std::uint32_t i) const { return chunks_[i < geometry_.chunks ? i : 0]; }
  Word& key_cell(std::uint32_t i) const {
    return at<Word>(offsets_.keys, i & (geometry_.key_cells - 1), geometry_.key_cells);
  }
  Word& block_word(std::uint32_t i) const {
    return at<Word>(offsets_.block_words, i, geometry_.blocks);
  }
  Half& block_link(std::uint32_t i) const {
    return at<Half>(offsets_.block_links, i, geometry_.blocks);
  }
  Block& block(std::uint32_t i) const { return at<Block>(offsets_.blocks, i, geometry_.blocks); }
  Word* slot_map() const { return reinterpret_cast<Word*>(base_ + offsets_.slot_map); }
  Word* chunk_map() const { return reinterpret_cast<Word*>(base_ + offsets_.chunk_map); }
  Word* block_map() const { return reinterpret_cast<Word*>(base_ + offsets_.block_map); }
  std::byte* area() const { return base_ + offsets_.area; }
  /// Puts the next pages of the slots into this process's page table, so that no job pays for a
  /// page fault; `from` counts on. False when all is done, or the system cannot.
  bool map_ahead(std::uint64_t& from) const;

 private:
  friend struct Opened;
  friend struct Opened open_segment(const std::string&, std::uint64_t, Mapping);
  friend struct Opened make_segment(const std::string&, const MakeSpec&, void (*)(Segment&, void*),
                                    void*);

  template <class T>
  T& at(std::uint64_t offset, std::uint32_t i, std::uint32_t count) const {
    return reinterpret_cast<T*>(base_ + offset)[i < count ? i : 0];
  }
  void adopt(boost::interprocess::mapped_region region, int fd, const Geometry& geometry,
             bool writable, const std::string& path);

  boost::interprocess::mapped_region region_;
  std::byte* base_ = nullptr;
  Slot* slots_ = nullptr;  ///< the three tables on a job's path
  RingEnds* rings_ = nullptr;
  Chunk* chunks_ = nullptr;
  Geometry geometry_;
  Offsets offsets_{};
  bool writable_ = false;
  std::string path_;
  std::uint64_t device_ = 0, inode_ = 0;  ///< of the mapped file
};

struct Opened {
  OpenCode code = OpenCode::kSystem;
  std::string detail;
  Segment segment;
};

/// Climbs the attach ladder. `upper_fingerprint` is the upper room's share of the layout.
Opened open_segment(const std::string& path, std::uint64_t upper_fingerprint, Mapping mapping);

/// Makes a segment whole or not at all: an unnamed file, all of it reserved, filled by `fill`, and
/// only then linked to its name. A maker that dies leaves nothing.
Opened make_segment(const std::string& path, const MakeSpec& spec, void (*fill)(Segment&, void*),
                    void* context);

/// The host's boot id as two words; 0 where the system does not tell.
void read_boot_id(std::uint64_t (&boot)[2]);

/// In Header::clock_offset_ms: the rest of the word is the time itself, and it stands until
/// a test moves it.
inline constexpr std::uint64_t kStandingClock = 1ULL << 63;
/// Now in Unix milliseconds by the segment's clock (the host's coarse clock, a few milliseconds
/// fine).
std::uint64_t now_ms(const Segment& segment);

std::uint64_t random_u64();

}  // namespace ojs_shm::shm
