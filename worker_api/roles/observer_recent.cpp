// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include <ojs_shm/observer.hpp>

#include "engine/observing/recorder.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {
namespace {

/// A state as a person knows it; between two states a handle held the slot.
std::string_view name_of(unsigned slot_state) {
  if (engine::holds_job(slot_state))
    return state_name(static_cast<State>(engine::job_state(slot_state)));
  switch (slot_state) {
    case engine::kSlotFree:
    case engine::kSlotFilling: return "new";
    case engine::kSlotClaimed: return "available";
    case engine::kSlotSettling: return "active";
    case engine::kSlotMoving: return "waiting";
    default: return "unknown";
  }
}

}  // namespace

std::vector<Transition> Observer::recent(std::size_t most) const {
  const engine::Store& store = segment_.attachment()->store();
  std::vector<Transition> transitions;
  for (const engine::RecordedTransition& each : engine::recent_transitions(store, most)) {
    Transition& transition = transitions.emplace_back();
    transition.time_ms = each.time_ms;
    transition.handle = each.lane;
    transition.pid = each.holder;
    transition.slot = each.slot;
    transition.from = name_of(each.from);
    transition.to = name_of(each.to);
    if (!each.known) continue;
    JobIdText id;
    id.assign(each.job.hi, each.job.lo);
    transition.job = id.str();
    if (each.queue < store.queue_count()) transition.queue = store.queue_name(each.queue);
  }
  return transitions;
}

std::string print_transition(const Transition& transition) {
  std::string out;
  json::ObjectWriter writer(out);
  writer.text("time", print_timestamp(transition.time_ms));
  writer.number("handle", static_cast<std::int64_t>(transition.handle));
  if (transition.pid != 0) writer.number("pid", static_cast<std::int64_t>(transition.pid));
  writer.number("slot", static_cast<std::int64_t>(transition.slot));
  if (!transition.job.empty()) writer.text("job", transition.job);
  if (!transition.queue.empty()) writer.text("queue", transition.queue);
  writer.text("from", transition.from);
  writer.text("to", transition.to);
  writer.close();
  return out;
}

}  // namespace ojs_shm
