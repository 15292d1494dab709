// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "engine/tables/patience.hpp"
#include "engine/tables/store.hpp"
#include "shm/ring.hpp"

namespace ojs_shm::engine {

/// Gives an idle flow another key: 1. its control says so, and no lane puts it in line under the
/// key before; 2. the key; 3. it is idle again, with another word, for lanes that saw it idle
/// before. What a death leaves between them another lane ends (end_move); a lane that was slow, and
/// finds that, leaves the flow to no tenant, for it may stand in line by then.
inline bool move_flow(FlowRecord& flow, FlowControl idle, std::uint64_t before, std::uint64_t key) {
  const FlowControl moving = idle.moving();
  if (!flow.control.cas_once(idle.word, moving.word, shm::Point::kFlowTaken)) return false;
  const bool ours = flow.key.cas_once(before, key, shm::Point::kFlowTaken);
  if (flow.control.cas_once(moving.word, moving.moved().word, shm::Point::kFlowTaken)) return ours;
  if (ours) flow.key.cas_once(key, kFlowGone, shm::Point::kFlowTaken);
  return false;
}

/// Of another lane, which may be dead or slow: it shall not set its key any more.
inline void end_move(FlowRecord& flow, FlowControl moving, std::uint64_t key) {
  flow.key.cas_once(key, kFlowGone, shm::Point::kFlowTaken);
  flow.control.cas_once(moving.word, moving.moved().word, shm::Point::kFlowTaken);
}

/// The flow of that key; a new one if need be, or one that is idle. kNoIndex when all that may be
/// are in line. With `make` false only one that is there.
inline std::uint32_t take_flow(const Store& store, std::uint64_t key, bool make = true) {
  const std::uint32_t flows = store.flows.size();
  for (unsigned look = 0; flows != 0 && look < kPatience; ++look) {
    std::uint32_t free = kNoIndex;
    std::uint64_t before = 0;
    FlowControl idle(0);
    bool moves = false;
    for (std::uint32_t i = 0; i < std::min(kFlowReach, flows); ++i) {
      const auto at = static_cast<std::uint32_t>((key + i) % flows);
      FlowRecord& flow = store.flows[at];
      const FlowControl control(flow.control.load());
      const std::uint64_t found = flow.key.load();
      if (found == key) return at;
      if (control.state() == FlowControl::kMoving && make) {
        moves = true;
        if (look != 0) end_move(flow, control, found);
      }
      if (free == kNoIndex && control.state() == FlowControl::kIdle)
        free = at, before = found, idle = control;
      if (found == 0) break;
    }
    if (!make || (free == kNoIndex && !moves)) return kNoIndex;
    if (free == kNoIndex) continue;
    if (move_flow(store.flows[free], idle, before, key)) return free;
  }
  return kNoIndex;
}

/// A line in which flows take turns: the ring of a level, or that of all tenants of a queue which
/// share it across its levels. How a flow comes in and goes out: flows.cpp.
struct FlowLine {
  const Store& store;
  shm::Rings& rings;
  std::uint32_t ring;           ///< kNoIndex: there is none yet
  shm::RingSet* set = nullptr;  ///< of a level: where its ring stands, and as which number
  unsigned number = 0;

  /// False when there is no room for its hint, and when the flow has another key: a job in it is
  /// then served in the line of that key.
  bool list(std::uint32_t at, std::uint64_t key) const {
    Word& control = store.flows[at].control;
    for (unsigned look = 0; look < kPatience; ++look) {
      const FlowControl found(control.load_seq_cst());  // PAIR flow-line
      // Only one that is idle gets another key, and its word is another one then.
      if (found.state() == FlowControl::kMoving || store.flows[at].key.load() != key) return false;
      if (found.state() == FlowControl::kListed) return true;
      if (found.state() == FlowControl::kEnding) {
        if (control.cas_once(found.word, found.taken_back().word, shm::Point::kFlowListed))
          return true;
        continue;
      }
      if (ring == kNoIndex || !push(at, found)) return false;
      control.cas_once(found.word, listed_next(found), shm::Point::kFlowListed);
    }
    return false;
  }

  /// The flow to which the hint at the head leads. kNoIndex when it leads to none, and the head has
  /// moved or is about to.
  std::uint32_t led_to(const shm::Peeked& head, FlowControl& found) const {
    const shm::Hint hint = head.hint();
    if (hint.leads_to_line() && hint.index() < store.flows.size()) [[likely]] {
      FlowRecord& flow = store.flows[hint.index()];
      found = FlowControl(flow.control.load());
      const bool whole = set == nullptr || flow.ring.load() != 0;
      if (whole && found.in_line() && found.tag() == hint.tag()) return hint.index();
      if (whole && hint.ahead() && found.next_tag() == hint.tag() &&
          (found.state() == FlowControl::kIdle ||
           found.state() == FlowControl::kListed)) {  // finish what another lane began
        flow.control.cas_once(found.word, listed_next(found), shm::Point::kFlowListed);
        return kNoIndex;
      }
    }
    shm::Rings::retire(head);
    return kNoIndex;
  }

  /// Takes a flow out in which no job was found. `empty` looks once more, after the announcement.
  template <class Empty>
  void end(FlowRecord& flow, FlowControl found, const shm::Peeked* head, const Empty& empty) const {
    if (found.state() == FlowControl::kListed) {
      if (!flow.control.cas_once(found.word, found.ending().word, shm::Point::kFlowEnding))
        return;  // PAIR flow-line
      found = found.ending();
    }
    if (!empty()) {
      flow.control.cas_once(found.word, found.taken_back().word, shm::Point::kFlowListed);
      return;
    }
    const FlowControl idle(FlowControl::kIdle, 0, found.next_tag());
    if (flow.control.cas_once(found.word, idle.word, shm::Point::kFlowEnded) && head != nullptr)
      shm::Rings::retire(*head);
  }

  /// After a job of that flow has been taken: 1. it may give more in this turn; 2. it has none
  /// left; 3. it goes to the end of the line. A death in between leaves it at the head, or in two
  /// places, of which one is dead.
  template <class Empty>
  void end_turn(std::uint32_t at, std::uint64_t weight, const Empty& empty) const {
    FlowRecord& flow = store.flows[at];
    const FlowControl found(flow.control.load());
    const shm::Peeked head = rings.peek(ring);
    const bool leads = !head.empty() && head.hint().leads_to_line() && head.hint().index() == at;
    // another lane has ended this turn
    if (!leads || !found.in_line() || found.tag() != head.hint().tag()) return;
    if (found.served() + 1 < weight) {  // 1
      flow.control.cas_once(found.word, found.with_served(found.served() + 1).word,
                            shm::Point::kFlowServed);
      return;
    }
    if (empty()) return end(flow, found, &head, empty);                     // 2
    if (found.state() != FlowControl::kListed || !push(at, found)) return;  // 3
    if (flow.control.cas_once(found.word, listed_next(found), shm::Point::kFlowListed))
      shm::Rings::retire(head);
  }

 private:
  static std::uint64_t listed_next(FlowControl found) {
    return FlowControl(FlowControl::kListed, 0, found.next_tag()).word;
  }
  bool push(std::uint32_t at, FlowControl found) const {
    return rings.push(ring, shm::Hint(at, found.next_tag(), shm::Hint::kLineFirst), set, number);
  }
};

}  // namespace ojs_shm::engine
