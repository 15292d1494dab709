// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "engine/audit/audit_book.hpp"
#include "engine/workers/registry.hpp"

namespace ojs_shm::engine {

void audit_workers(AuditBook& book) {
  const Store& store = book.store();
  std::vector<std::string> names;
  for (std::uint32_t place = 0; place < store.workers.size(); ++place) {
    const WorkerControl control(store.worker_marks[place].control.load());
    const std::string which = "the record " + std::to_string(place) + " of a worker";
    if (control.owner() != 0 && !book.lane_taken(control.owner()))
      book.say(29, which + " is written by lane " + std::to_string(control.owner() - 1) +
                       ", which is free");
    const bool written =
        control.phase() == WorkerPhase::kTaken || control.phase() == WorkerPhase::kChanging;
    if (control.phase() > WorkerPhase::kGone || written != (control.owner() != 0))
      book.say(29, which + " is in no phase that there is");
    if (!control.lives()) continue;
    const auto facts = look_at_worker(store, place);
    if (!facts) continue;
    if (WorkerSign(store.worker_marks[place].sign.load()).life() != control.life())
      book.say(29, which + " has the sign of life of another");
    for (const std::string& name : names)
      if (name == facts->id) book.say(29, "two workers have the id " + name);
    names.push_back(facts->id);
  }
}

}  // namespace ojs_shm::engine
