// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "engine/audit/audit_book.hpp"
#include "engine/bounds/account_look.hpp"
#include "engine/bounds/refill.hpp"

namespace ojs_shm::engine {
namespace {

std::string amount(std::uint64_t charge) {
  return std::to_string(charged_jobs(charge)) + " jobs and " +
         std::to_string(charged_bytes(charge)) + " bytes";
}

/// What the marks of waiting jobs say of each account.
std::vector<std::uint64_t> marked(AuditBook& book) {
  const Store& store = book.store();
  std::vector<std::uint64_t> held(store.accounts.size(), 0);
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    const unsigned state = Control(job.control.load()).state();
    const bool counted =
        state == kSlotMoving || (holds_job(state) && counts_as_depth(job_state(state)));
    const AccountMark mark(job.account.load());
    if (!counted || !mark.counts()) continue;
    if (mark.account() >= store.accounts.size() ||
        store.accounts[mark.account()].key.load() != mix_key(job.queue.get(), job.tenant.get()))
      book.say(23, AuditBook::slot_name(slot) + " stands in account " +
                       std::to_string(mark.account()) + ", which is not its tenant's");
    else
      held[mark.account()] += charge(1, job.body_length());
  }
  return held;
}

}  // namespace

void audit_accounts(AuditBook& book) {
  const Store& store = book.store();
  const std::uint32_t seat = store.header().account_seat.load();
  if (seat != 0 && !book.lane_taken(seat))
    book.say(14, "lane " + std::to_string(seat - 1) + " gives accounts to tenants, and is free");
  const std::vector<std::uint64_t> held = marked(book);
  for (std::uint32_t at = 0; at < store.accounts.size(); ++at) {
    const AccountRecord& account = store.accounts[at];
    const std::string name = "account " + std::to_string(at);
    std::uint64_t in = 0;
    for (std::uint32_t l = 0; l < store.lanes(); ++l)
      in += store.account_tally(at, l).in.get_ordered();
    const std::uint64_t charge = (in - account_out(store, at)) & kAccountMask;
    if (charge != held[at])
      book.say(23, name + " is said to hold " + amount(charge) + ", and holds " + amount(held[at]));
    const std::uint64_t reserved = account.reserved.load();
    if ((reserved & kAccountClosed) != 0 && seat == 0) book.say(23, name + " is closed by no lane");
    if (((reserved - account.written_off.load() - in) & kAccountMask) != 0 &&
        !Refill(account.refill.load()).pending())
      book.say(23, name + " reserves what no lane let in");
  }
}

}  // namespace ojs_shm::engine
