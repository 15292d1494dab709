// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "engine/audit/audit_book.hpp"
#include "engine/supervision/maintenance.hpp"

namespace ojs_shm::engine {

void audit_maintenance(AuditBook& book) {
  const Store& store = book.store();
  if (const std::uint64_t owner = store.header().maintainer.load(); owner != 0) {
    if (!book.lane_taken(owner))
      book.say(30, "maintenance is being changed by lane " + std::to_string(owner - 1) +
                       ", which is free");
    return;
  }
  const bool on = MaintenanceWord(store.header().maintenance.load()).on();
  for (std::uint32_t q = 0; q < store.max_queues(); ++q)
    if (((store.queue(q).flags.load() & kMaintained) != 0) != on)
      book.say(30, "queue '" + store.queue_name(q) + "' is " + (on ? "not " : "") +
                       "in maintenance, as the segment is" + (on ? "" : " not"));
}

}  // namespace ojs_shm::engine
