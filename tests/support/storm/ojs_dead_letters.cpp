// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/observer.hpp>

#include "tests/support/storm/ojs_lanes.hpp"

namespace ojs_shm::test {

void tend_the_dead(Lane& lane, Dice& dice, Admin& admin, std::size_t most) {
  const auto observer = Observer::attach(admin.segment());
  if (!observer.ok()) return;
  JobFilter filter;
  filter.dead_letter = true;
  filter.limit = most;
  for (const JobInfo& job : observer->list(filter)) {
    lane.step();
    const auto key = key_of(job);
    if (!key || lane.ledger.find(*key) == nullptr) {
      lane.accuse(Offence::kCorruptPayload, key.value_or(PayloadKey{}), "a dead letter: " + job.id);
      continue;
    }
    const bool again = dice.chance(0.7);
    if (again)
      lane.ledger.revival_begins(*key);
    else
      lane.ledger.mark(*key, kBuryAttempted);
    const Status done = again              ? admin.retry_dead(job.id)
                        : dice.chance(0.5) ? admin.drop_dead(job.id)
                                           : admin.drop(job.id);
    // Another process may tend it as well, and another job may have its key by now.
    if (!done.ok() && done.code() != Code::kNotFound && done.code() != Code::kWrongState &&
        !(again && done.code() == Code::kDuplicate))
      lane.accuse(Offence::kUnexpectedAnswer, *key, "a dead letter: " + done.error().message);
    if (!done.ok()) continue;
    if (!again) lane.ledger.mark(*key, kBuryReturned);
    (again ? lane.book().revived : lane.book().buried).fetch_add(1);
    admin.tell_bulk(again ? BulkKind::kRetry : BulkKind::kDelete, 1, 1);
  }
}

}  // namespace ojs_shm::test
