// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/atomics.hpp"
#include "shm/bits.hpp"

// Flows: what one tenant has waiting at one level of one queue that shares fairly. The ring of the
// level holds hints to flows then, and a flow has a ring of its own for its jobs. Offsets only, no
// behaviour.

namespace ojs_shm::engine {

using shm::Half;
using shm::Plain;
using shm::Word;

/// 63..62 state  61..48 jobs served in this turn
/// 47..36 how often its end was announced and taken back
/// 35..0 tag: moves whenever the flow gets another place in the line
struct FlowControl {
  std::uint64_t word = 0;
  enum State : std::uint64_t {
    /// in no line. It has no job: an enqueue puts the flow in line before it returns
    kIdle = 0,
    kListed = 1,  ///< the hint with its tag stands in the line of its level
    kEnding = 2,  ///< as listed; a lane found it empty, and is about to take it out
    kMoving = 3   ///< idle; it is being given to another tenant
  };
  using StateBits = shm::Field<62, 2>;
  using Served = shm::Field<48, 14>;
  using TakenBack = shm::Field<36, 12>;
  using Tag = shm::Field<0, 36>;
  constexpr explicit FlowControl(std::uint64_t w) : word(w) {}
  constexpr FlowControl(State state, std::uint64_t served, std::uint64_t tag)
      : word(StateBits::put(state) | Served::put(served) | Tag::put(tag)) {}
  constexpr State state() const { return static_cast<State>(StateBits::get(word)); }
  constexpr std::uint64_t served() const { return Served::get(word); }
  constexpr std::uint64_t tag() const { return Tag::get(word); }
  constexpr std::uint64_t next_tag() const { return (tag() + 1) & Tag::kMax; }
  constexpr FlowControl with_served(std::uint64_t served) const {
    return FlowControl(Served::with(word, served));
  }
  /// Its end is announced.
  constexpr FlowControl ending() const { return FlowControl(StateBits::with(word, kEnding)); }
  /// It is not ended after all. Another word than before the announcement, for a lane that saw it
  /// empty then may be slow.
  constexpr FlowControl taken_back() const {
    return FlowControl(TakenBack::with(StateBits::with(word, kListed), TakenBack::get(word) + 1));
  }
  /// The next step of one that is idle, on its way to another tenant and back.
  constexpr FlowControl moving() const { return {kMoving, 0, next_tag()}; }
  constexpr FlowControl moved() const { return {kIdle, 0, next_tag()}; }
  constexpr bool in_line() const { return state() == kListed || state() == kEnding; }
};

/// A flow. All zero is a free one. Given to another tenant when it is idle and its room is
/// wanted: a job that is put into it at that very moment gets a place of its own as well.
struct alignas(64) FlowRecord {
  Word key;      ///< queue, part, level and tenant, mixed; 0: free
  Word control;  ///< FlowControl
  Half ring;     ///< of its jobs, plus one; 0: none yet. Kept for ever
  std::uint32_t pad;
  Word tenant;  ///< of one that stands in the line of its queue's tenants (tenant_turns.hpp)
  std::uint64_t spare[4];
};
static_assert(sizeof(FlowRecord) == 64);
/// The key of a flow whose way to another tenant was cut off: no tenant has it.
constexpr std::uint64_t kFlowGone = ~0ULL;
/// A flow stands at the place that its key says or within so many behind it.
constexpr std::uint32_t kFlowReach = 32;

/// What a tenant of a queue has of its own: a weight, bounds. Set by name, found by key.
struct alignas(64) TenantRule {
  Word key;               ///< queue and tenant, mixed; 0: this and all later ones are unused
  Word weight;            ///< 0: the queue's default
  Word queue_and_length;  ///< 63..32 queue  31..0 length of the name; 0: the name is still to come
  std::uint64_t name[16];
  Word max_depth, max_bytes;  ///< plus one; 0: the queue's default
};
static_assert(sizeof(TenantRule) == 192);
constexpr std::uint32_t kTenantRules = 256;

/// QueueRecord::fairness: 63 tenants share  62 some have weights  61 across levels
/// 31..0 weight of the others.
struct Fairness {
  std::uint64_t word = 0;
  using On = shm::Field<63, 1>;
  using Weighted = shm::Field<62, 1>;
  using Across = shm::Field<61, 1>;
  using Default = shm::Field<0, 14>;
  constexpr explicit Fairness(std::uint64_t w) : word(w) {}
  constexpr Fairness(bool on, bool weighted, bool across, std::uint32_t default_weight)
      : word(On::put(on) | Weighted::put(weighted) | Across::put(across) |
             Default::put(default_weight)) {}
  constexpr bool on() const { return On::get(word) != 0; }
  constexpr bool weighted() const { return Weighted::get(word) != 0; }
  constexpr bool across() const { return on() && Across::get(word) != 0; }
  constexpr std::uint64_t default_weight() const {
    return Default::get(word) == 0 ? 1 : Default::get(word);
  }
  static constexpr std::uint32_t kMostWeight = 1000;
};

struct FlowLine;  // flow_line.hpp

/// Where the flows of one level of a part stand, for their keys; or, with kNoLevel, those of all
/// tenants of the queue.
constexpr std::uint64_t place_of_flows(std::uint32_t queue, unsigned part, unsigned number) {
  return std::uint64_t{queue} << 16 | part << 12 | number;
}
constexpr unsigned kNoLevel = 0xFFF;

/// Mixes numbers into a key that is never 0.
constexpr std::uint64_t mix_key(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = (a + 0x9E3779B97F4A7C15ULL) * 0xBF58476D1CE4E5B9ULL ^ b;
  h = (h ^ (h >> 30)) * 0x94D049BB133111EBULL;
  h ^= h >> 31;
  h = h * 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  return h == 0 ? 1 : h;
}

}  // namespace ojs_shm::engine
