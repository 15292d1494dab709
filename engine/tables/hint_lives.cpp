// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/hint_lives.hpp"

#include <algorithm>

#include "engine/tables/store.hpp"
#include "engine/unique/unique.hpp"

namespace ojs_shm::engine {

bool any_lives(const shm::Segment& segment, shm::Hint hint) {
  if (!hint.leads_to_line()) return hint_lives(segment, hint);
  const auto* header = reinterpret_cast<const EngineHeader*>(segment.area());
  const std::uint64_t room =
      segment.geometry().area_bytes - kEngineHeaderBytes - kTypeDefaults * sizeof(TypeDefault);
  if (hint.index() >= std::min<std::uint64_t>(header->flows, room / sizeof(FlowRecord)))
    return false;
  const auto* flows = reinterpret_cast<const FlowRecord*>(segment.area() + kEngineHeaderBytes +
                                                          kTypeDefaults * sizeof(TypeDefault));
  const FlowControl control(flows[hint.index()].control.load());
  // Stable: a flow's tag never goes back.
  if (control.in_line() && control.tag() == hint.tag()) return true;
  return hint.ahead() && control.next_tag() == hint.tag() &&
         control.state() != FlowControl::kEnding;
}

bool hint_lives(const shm::Segment& segment, shm::Hint hint) {
  if (hint.index() >= segment.geometry().slots || hint.leads_to_line()) return false;
  const Control control(segment.slot(hint.index()).control.load());
  if (control.state() != kSlotAvailable) return false;
  return control.tag() == hint.tag() ||
         (hint.hint_first() && control.moved_to(0).tag() == hint.tag());
}

bool timer_lives(const shm::Segment& segment, shm::Hint hint) {
  if (hint.index() >= segment.geometry().slots) return false;
  const auto& job = reinterpret_cast<const JobRecord&>(segment.slot(hint.index()));
  const unsigned state = Control(job.control.load()).state();
  return job.generation.get() == hint.tag() && state != kSlotFree &&
         (!is_finished(state) || is_minded(job, state));
}

bool batch_lives(const shm::Segment& segment, shm::Hint hint) {
  const shm::ChunkControl control(segment.chunk(hint.index()).control.load());
  return control.state() == shm::ChunkState::kBatched && control.incarnation() == hint.tag();
}

bool ticket_lives(const shm::Segment& segment, shm::Hint hint) {
  const Store store(const_cast<shm::Segment&>(segment));  // reads
  return hint.index() < store.tickets.size() &&
         TicketControl(store.tickets[hint.index()].control.load()).is(hint.tag());
}

}  // namespace ojs_shm::engine
