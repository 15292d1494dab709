// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "engine/workflows/workflow.hpp"

namespace ojs_shm::engine {
namespace {

template <class... T>
void put(std::string& out, T... values) {
  char bytes[(sizeof(T) + ...)];
  char* at = bytes;
  ((std::memcpy(at, &values, sizeof values), at += sizeof values), ...);
  out.append(bytes, sizeof bytes);
}

struct Reader {
  std::string_view rest;
  bool good = true;
  template <class T>
  T take() {
    T value{};
    if (rest.size() < sizeof value) {
      good = false;
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
};

/// `each(from, give)` gives what a number leads to; `out` becomes, for each of these, the numbers
/// that lead to it.
template <class Each>
void invert(std::size_t targets, std::size_t sources, MemberLists& out, const Each& each) {
  std::vector<std::uint32_t> begin(targets + 1, 0);
  for (std::size_t from = 0; from < sources; ++from)
    each(static_cast<std::uint16_t>(from), [&](std::uint16_t to) { ++begin[to + 1]; });
  for (std::size_t to = 0; to < targets; ++to) begin[to + 1] += begin[to];
  std::vector<std::uint16_t> found(begin[targets]);
  std::vector<std::uint32_t> next = begin;
  for (std::size_t from = 0; from < sources; ++from)
    each(static_cast<std::uint16_t>(from),
         [&](std::uint16_t to) { found[next[to]++] = static_cast<std::uint16_t>(from); });
  for (std::size_t to = 0; to < targets; ++to)
    out.add(MemberLists::List(found).subspan(begin[to], begin[to + 1] - begin[to]));
}

}  // namespace

void WorkflowGraph::encode(std::string& out) const {
  put(out, static_cast<std::uint16_t>(members.size()), static_cast<std::uint16_t>(sets.size()),
      result);
  for (const Member& member : members)
    put(out, member.slot, member.generation, member.waits, member.gate,
        static_cast<std::uint8_t>(member.when));
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const MemberLists::List set = sets[i];
    put(out, static_cast<std::uint16_t>(set.size()));
    out.append(reinterpret_cast<const char*>(set.data()), set.size_bytes());
  }
}

bool WorkflowGraph::decode(std::string_view bytes) {
  Reader in{bytes};
  members.resize(std::min<std::size_t>(in.take<std::uint16_t>(), kMostMembers));
  const std::size_t count = in.take<std::uint16_t>();
  result = in.take<std::uint16_t>();
  for (Member& member : members) {
    member.slot = in.take<std::uint32_t>();
    member.generation = in.take<std::uint32_t>();
    member.waits = in.take<std::uint16_t>();
    member.gate = in.take<std::uint16_t>();
    member.when = static_cast<When>(in.take<std::uint8_t>() & 3);
  }
  sets.clear();
  for (std::size_t i = 0; i < count && in.good; ++i) {
    const std::size_t size = std::min<std::size_t>(in.take<std::uint16_t>(), kMostMembers);
    for (std::size_t at = 0; at < size; ++at) sets.put(in.take<std::uint16_t>());
    sets.end();
  }
  if (!in.good || !holds()) {
    members.clear();
    sets.clear();
    result = kNothing;
    link();
    return false;
  }
  link();
  return true;
}

bool WorkflowGraph::holds() const {
  const auto a_set = [this](std::uint16_t set) { return set == kNothing || set < sets.size(); };
  if (members.empty() || members.size() > kMostMembers || !a_set(result)) return false;
  for (const Member& member : members)
    if (!a_set(member.waits) || !a_set(member.gate)) return false;
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (const std::uint16_t member : sets[i])
      if (member >= members.size()) return false;
  return true;
}

void WorkflowGraph::link() {
  // 1. By sets: the members that wait for each.
  MemberLists waiting;
  invert(sets.size(), members.size(), waiting, [this](std::uint16_t member, const auto& give) {
    const Member& at = members[member];
    if (at.waits != kNothing) give(at.waits);
    if (at.gate != kNothing && at.gate != at.waits) give(at.gate);
  });
  // 2. By members: the sets in which each is.
  MemberLists within;
  invert(members.size(), sets.size(), within, [this](std::uint16_t set, const auto& give) {
    for (const std::uint16_t member : sets[set]) give(member);
  });
  // 3. Both together, once each.
  followers_.clear();
  std::vector<std::uint16_t> all;
  for (std::size_t member = 0; member < members.size(); ++member) {
    all.clear();
    for (const std::uint16_t set : within[member])
      all.insert(all.end(), waiting[set].begin(), waiting[set].end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    followers_.add(all);
  }
}

bool WorkflowGraph::any_failed(std::uint16_t set, const WorkflowBits& bits) const {
  return set != kNothing &&
         std::any_of(sets[set].begin(), sets[set].end(),
                     [&bits](std::uint16_t member) { return bits.has_failed(member); });
}

/// 1. until all of both sets are done, it waits; 2. behind a gate that did not open it fails as
/// those before it did; 3. else its condition decides.
WorkflowGraph::Verdict WorkflowGraph::judge(std::uint16_t at, const WorkflowBits& bits) const {
  const Member& member = members[at];
  for (const std::uint16_t set : {member.waits, member.gate})
    if (set != kNothing)
      for (const std::uint16_t other : sets[set])
        if (!bits.is_done(other)) return Verdict::kWait;     // 1
  if (any_failed(member.gate, bits)) return Verdict::kFail;  // 2
  const bool failed = any_failed(member.waits, bits);        // 3
  switch (member.when) {
    case When::kSuccess: return failed ? Verdict::kFail : Verdict::kRun;
    case When::kFailure: return failed ? Verdict::kRun : Verdict::kLeaveOut;
    case When::kComplete: return Verdict::kRun;
    case When::kAllGood: return failed ? Verdict::kLeaveOut : Verdict::kRun;
  }
  return Verdict::kWait;
}

bool WorkflowGraph::all_done(const WorkflowBits& bits) const {
  for (unsigned i = 0; i * 64 < members.size(); ++i) {
    const std::size_t left = members.size() - i * 64;
    const std::uint64_t all = left >= 64 ? ~0ULL : (1ULL << left) - 1;
    if ((bits.done[i].load() & all) != all) return false;
  }
  return true;
}

}  // namespace ojs_shm::engine
