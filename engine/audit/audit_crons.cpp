// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "engine/audit/audit_book.hpp"
#include "engine/crons/cron_look.hpp"

namespace ojs_shm::engine {

void audit_crons(AuditBook& book) {
  const Store& store = book.store();
  const CronTable& table = store.cron_table();
  if (const std::uint64_t owner = table.seat.load(); owner != 0 && !book.lane_taken(owner))
    book.say(28, "crons are changed by lane " + std::to_string(owner - 1) + ", which is free");
  else if (owner == 0 && table.change.load() != 0)
    book.say(28, "a change of a cron was left in the middle");
  std::vector<bool> named(store.slots(), false);
  std::vector<std::string> names;
  for (std::uint32_t at = 0; at < kCrons; ++at) {
    const CronFacts facts = look_at_cron(store, at);
    if (!facts.control.there()) continue;
    const std::string cron = "cron " + std::to_string(at);
    const std::uint32_t slot = facts.control.slot();
    const auto from = read_template(store, slot);
    if (!from) {
      book.say(28, cron + " has no template in slot " + std::to_string(slot));
      continue;
    }
    if (named[slot]) book.say(28, cron + " has the template of another");
    named[slot] = true;
    for (const std::string& name : names)
      if (name == from->texts.name) book.say(28, "two crons have the name " + name);
    names.push_back(from->texts.name);
    if (facts.next != 0 && !facts.control.enabled())
      book.say(28, cron + " is disabled and has a next time");
  }
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot)
    if (Control(store.job(slot).control.load()).state() == kSlotTemplate && !named[slot])
      book.say(28, AuditBook::slot_name(slot) + " is the template of no cron");
}

}  // namespace ojs_shm::engine
