// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/bounds/account_look.hpp"
#include "engine/bounds/refill.hpp"
#include "engine/bounds/tenant_accounts.hpp"
#include "engine/tables/patience.hpp"
#include "shm/parking.hpp"

// Accounts of tenants in queues that bound them. An account is charged as a queue is: one cas on
// `reserved` lets a job in, and every lane keeps what it let in and took out in a tally of its own.
// Before an operation changes its tallies it keeps what they were, under a stamp: a repair that
// finds the intent puts back those with the lane's present stamp.
//
// A job that counts carries a mark with its account. A lane that takes it out of what the bounds
// count gives the charge back: 1. the mark says so; 2. the tally. An account goes to another tenant
// when nothing counts in it: 1. its `reserved` is closed, so that no lane can charge it; 2. its
// key; 3. `reserved` is opened with the first charge, so that no cas which began before 1 can
// succeed. One lane at a time does that, else a tenant could get two.

namespace ojs_shm::engine {

using shm::Point;

// ---- within an operation ------------------------------------------------------------------------

/// From here on a death puts back what this operation does to accounts.
void TenantAccounts::begin_accounts() {
  if ((self_.intent.get() & kOfAccounts) != 0) return;
  LaneWord& stamp = self_.counters[kAccountStamp];
  stamp.set_ordered(stamp.get() + 1, Point::kIntentSet);
  self_.intent.announce(self_.intent.get() | kOfAccounts, Point::kIntentSet);  // PAIR intent
}

/// This lane's tally of the account, once what it was is kept.
AccountTally& TenantAccounts::touch(std::uint32_t account) {
  AccountTally& mine = store_.account_tally(account, lane_);
  const std::uint64_t stamp = self_.counters[kAccountStamp].get();
  if (mine.stamp.get() == stamp) return mine;
  mine.in_before.set(mine.in.get(), Point::kIntentSet);
  mine.out_before.set(mine.out.get(), Point::kIntentSet);
  mine.stamp.set_ordered(stamp, Point::kIntentSet);
  return mine;
}

/// After the death of its lane in an operation that touched accounts and did not happen.
void TenantAccounts::undo_accounts() {
  const std::uint64_t stamp = self_.counters[kAccountStamp].get();
  for (std::uint32_t at = 0; at < store_.accounts.size(); ++at) {
    AccountTally& mine = store_.account_tally(at, lane_);
    if (mine.stamp.get() != stamp) continue;
    mine.in.set_ordered(mine.in_before.get(), Point::kTallyIn);
    mine.out.set_ordered(mine.out_before.get(), Point::kTallyOut);
    store_.accounts[at].refill.fetch_add(1, Point::kCreditSettled);
    store_.accounts[at].epoch.fetch_add(1, Point::kSetChanged);
  }
}

/// Whether a living or dead lane is in the middle of something with the account.
bool TenantAccounts::account_in_use(std::uint32_t at) const {
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), store_.lanes());
  for (std::uint32_t l = 0; l < high; ++l) {
    const shm::Lane& lane = segment_.lane(l);
    if (l == lane_ || (lane.intent.get_ordered() & kOfAccounts) == 0) continue;  // PAIR intent
    if (store_.account_tally(at, l).stamp.get_ordered() ==
        lane.counters[kAccountStamp].get_ordered())
      return true;
  }
  return false;
}

/// As settle_reserved().
[[gnu::noinline]] void TenantAccounts::settle_account(std::uint32_t at) {
  AccountRecord& account = store_.accounts[at];
  const Refill refill(account.refill.load());
  const std::uint64_t written_off = account.written_off.load();
  const std::uint64_t reserved = account.reserved.load();
  if ((reserved & kAccountClosed) != 0 || account_in_use(at)) return;
  std::uint64_t sum = 0;
  const std::uint32_t high = std::min(segment_.header().lanes_high.load(), store_.lanes());
  for (std::uint32_t l = 0; l < high; ++l) sum += store_.account_tally(at, l).in.get_ordered();
  if (account.reserved.load() != reserved) return;
  if (!account.written_off.cas_once(written_off, (reserved - sum) & kAccountMask,
                                    Point::kCreditSettled))
    return;
  account.refill.cas_once(refill.word, refill.settled().word, Point::kCreditSettled);
}

// ---- charging -----------------------------------------------------------------------------------

/// Charges the tenant. kQueueFull: that would pass its bounds by more than `held`. `used`: with the
/// charge.
Outcome TenantAccounts::charge_account(std::uint32_t q, TenantCharge& charge, const Bounds& bounds,
                                       std::uint64_t held, std::uint64_t& used) {
  const std::uint64_t key = mix_key(q, charge.tenant);
  begin_accounts();
  if (account_cache_.empty()) account_cache_.resize(store_.accounts.size());
  bool fresh = false;
  for (unsigned look = 0; look < kPatience; ++look) {
    const std::uint32_t at = find_account(store_, key);
    if (at == kNoIndex) {
      used = charge.cost;
      if (!bounds.fit(used)) return Outcome::kQueueFull;
      const Outcome opened = open_account(q, charge);
      if (opened == Outcome::kLost) continue;  // another lane made it
      return opened;
    }
    AccountRecord& account = store_.accounts[at];
    if (Refill(account.refill.load()).pending()) settle_account(at);
    DepthCache& cache = account_cache_[at];
    const std::uint64_t epoch = account.epoch.load();
    const std::uint64_t reserved = account.reserved.load();
    if ((reserved & kAccountClosed) != 0 || account.key.load() != key) continue;
    if (cache.flags != epoch || fresh) {
      cache.flags = epoch;
      cache.in_minus_out = account_beside(store_, at);
    }
    used = (reserved + cache.in_minus_out + charge.cost) & kAccountMask;
    if (!bounds.fit(used, held)) {
      // else the sums may seem endless
      if (fresh && account.reserved.load() == reserved) return Outcome::kQueueFull;
      fresh = true;
      continue;
    }
    AccountTally& mine = touch(at);
    fresh = false;
    if (!account.reserved.cas_once(reserved, (reserved + charge.cost) & kAccountMask,
                                   Point::kCreditReserved))
      continue;
    mine.in.set_ordered(mine.in.get() + charge.cost, Point::kTallyReserved);
    charge.account = at;
    return Outcome::kOk;
  }
  return Outcome::kBusy;
}

/// Gives an account that is free, or in which nothing counts, to the tenant, with its first
/// charge. kLost: it has one.
[[gnu::noinline]] Outcome TenantAccounts::open_account(std::uint32_t q, TenantCharge& charge) {
  const bool seated = seat().ours();
  if (!seated && !seat().take()) return Outcome::kBusy;
  const std::uint64_t key = mix_key(q, charge.tenant);
  Outcome outcome = find_account(store_, key) == kNoIndex ? Outcome::kNoAccounts : Outcome::kLost;
  for (std::uint32_t i = 0; i < account_places(store_) && outcome == Outcome::kNoAccounts; ++i) {
    const std::uint32_t at = account_place(store_, key, i);
    AccountRecord& account = store_.accounts[at];
    const std::uint64_t epoch = account.epoch.load(), reserved = account.reserved.load();
    if ((reserved & kAccountClosed) != 0) continue;
    if (((reserved + account_beside(store_, at)) & kAccountMask) != 0 || account_in_use(at))
      continue;
    // a lane that was dead has given back in vain what this lane saw leave
    if (account.epoch.load() != epoch) continue;
    AccountTally& mine = touch(at);
    // 1
    if (!account.reserved.cas_once(reserved, reserved | kAccountClosed, Point::kAccountGiven))
      continue;
    // 2
    account.key.store(key, Point::kAccountGiven);
    account.epoch.fetch_add(1, Point::kSetChanged);
    account.drain.sampled_at.store(0, Point::kPressureMeasured);
    account.drain.rate.store(0, Point::kPressureMeasured);
    account.reserved.store((reserved + charge.cost) & kAccountMask, Point::kCreditReserved);  // 3
    mine.in.set_ordered(mine.in.get() + charge.cost, Point::kTallyReserved);
    charge.account = at;
    outcome = Outcome::kOk;
  }
  if (!seated) seat().leave();
  return outcome;
}

/// After the death of its lane on the seat. What it closed opens as if with a charge of the dead,
/// which is written off.
void TenantAccounts::leave_account_seat() {
  if (!seat().ours()) return;
  for (std::uint32_t at = 0; at < store_.accounts.size(); ++at) {
    AccountRecord& account = store_.accounts[at];
    const std::uint64_t reserved = account.reserved.load();
    if ((reserved & kAccountClosed) == 0) continue;
    account.refill.fetch_add(1, Point::kCreditSettled);
    account.reserved.store((reserved + charge(1, 0)) & kAccountMask, Point::kCreditReserved);
  }
  store_.header().marking.store(0, Point::kSlotMarked);
  seat().leave();
}

/// Charges a job that comes back and is never refused. Where no account is left it does not count.
/// One that has been brought in since it was claimed is charged: its bringer takes it back, or
/// it stands.
[[gnu::noinline]] void TenantAccounts::charge_return_to_tenant(const QueueRecord& queue,
                                                               std::uint32_t q, JobRecord& job,
                                                               std::uint64_t cost) {
  TenantCharge charge{job.tenant.get(), cost};
  std::uint64_t used = 0;
  for (;;) {
    const AccountMark found(job.account.load());
    if (found.was_brought_in()) {
      if (charge.account != kNoIndex) take_back_charge(charge);
      return;
    }
    if (charge.account == kNoIndex && (queue.flags.load() & kTenants) != 0)
      charge_account(q, charge, {}, 0, used);
    const AccountMark mark(job.generation.get(), charge.account);
    if (job.account.cas_once(found.word, mark.word, Point::kSlotMarked)) return;
  }
}

void TenantAccounts::take_back_charge(TenantCharge& charge) {
  AccountTally& mine = touch(charge.account);
  mine.out.set_ordered(mine.out.get() + charge.cost, Point::kTallyOut);
  charge.account = kNoIndex;
}

/// Of a job in this lane's hands that counts no longer. A mark that is just being made stands from
/// here on, whatever comes in its place.
[[gnu::noinline]] void TenantAccounts::leave_account(std::uint32_t slot, JobRecord& job) {
  const AccountMark mark(job.account.load());
  if (!mark.counts()) return;  // its maker has just taken it back
  Word& marking = store_.header().marking;
  const Marking pending(slot, job.generation.get());
  begin_accounts();
  AccountTally& mine = touch(mark.account());
  if (!job.account.cas_once(mark.word, mark.given_back().word, Point::kSlotMarked))
    return;                                                     // its maker took it back
  if (mark.was_brought_in() && marking.load() == pending.word)  // and not one of its own since
    marking.cas_once(pending.word, pending.standing().word, Point::kSlotMarked);
  mine.out.set_ordered(mine.out.get() + charge(1, job.body_length()), Point::kTallyOut);
}

// ---- bounds that are set while jobs wait --------------------------------------------------------

/// Brings a waiting job that has no mark into its tenant's account. 1. charge; 2. the mark, by a
/// cas: a fetch that finds it gives the charge back; 3. a lane that claimed the job before may have
/// missed it: then it is taken back, if it is still there. False when a lane holds the job, or
/// may hold it.
bool TenantAccounts::mark_waiting(std::uint32_t slot, std::uint32_t q) {
  JobRecord& job = store_.job(slot);
  for (unsigned look = 0; look < 100; ++look) {
    const Control before(job.control.load());
    const std::uint32_t generation = job.generation.get(), found = job.account.load();
    TenantCharge charge{job.tenant.get(), engine::charge(1, job.body_length())};
    const bool ours = job.queue.get() == q && !AccountMark(found).marked();
    // its enqueue looks itself
    if (is_exclusive(before.state())) return !ours || before.state() == kSlotFilling;
    if (!ours || !holds_job(before.state()) || !counts_as_depth(job_state(before.state())))
      return true;
    if (job.control.load() != before.word) continue;
    store_.header().marking.store(Marking(slot, generation).word, Point::kSlotMarked);
    intend_bare(Op::kMark, q, slot);
    std::uint64_t used = 0;
    if (charge_account(q, charge, {}, 0, used) != Outcome::kOk) {  // 1
      intend_nothing();
      return true;
    }
    const AccountMark mark = AccountMark(generation, charge.account).brought_in();
    const bool marked = job.control.load() == before.word &&
                        job.account.cas_once(found, mark.word, Point::kSlotMarked) &&  // 2
                        // 3
                        (job.control.load() == before.word || !take_back_mark(job, mark, found));
    if (!marked) {
      AccountTally& mine = touch(charge.account);
      mine.out.set_ordered(mine.out.get() + charge.cost, Point::kTallyOut);
    }
    intend_nothing();
    if (marked) return true;
  }
  return false;
}

/// Takes this lane's own mark back. False when the charge stands: the lane that has the job has
/// given it back meanwhile. A mark that was written over, with another job in the slot, is gone.
bool TenantAccounts::take_back_mark(JobRecord& job, AccountMark mark, std::uint32_t found) {
  std::uint32_t word = mark.word;
  while (word == mark.word)
    if (job.account.cas(word, found, Point::kSlotMarked)) return true;
  return word != mark.given_back().word && (store_.header().marking.load() & Marking::kStands) == 0;
}

/// Of a dead lane that was bringing the job in: whether that happened. A mark of its that has not
/// been given back, on a job that another lane holds and may have claimed before, is taken back
/// here, as by step 3.
bool TenantAccounts::mark_stands(std::uint32_t slot) {
  if (slot >= store_.slots()) return false;
  JobRecord& job = store_.job(slot);
  for (;;) {
    // before the look at `marking`, which outlives the job
    const AccountMark mark(job.account.load());
    const Marking marking(store_.header().marking.load());
    if ((marking.word & Marking::kStands) != 0) return true;
    if ((mark.word & AccountMark::kBroughtIn) == 0 || !mark.of(marking.generation())) return false;
    if (!mark.counts()) return true;
    const Control control(job.control.load());
    if (!holds_job(control.state()) || !counts_as_depth(job_state(control.state())))
      return !job.account.cas_once(mark.word, mark.none().word, Point::kSlotMarked);
    if (job.account.load() == mark.word) return true;  // else it may be another job that waits
  }
}

/// A job that a stopped process holds is left to the next call. The lane leaves the seat before it
/// waits for a held job: the lane that holds the job may need an account for it.
void TenantAccounts::gather_accounts(std::uint32_t q, unsigned patience) {
  std::vector<std::uint32_t> left(store_.slots());
  std::iota(left.begin(), left.end(), 0U);
  for (unsigned look = 0; look < patience && seat().take(patience); ++look) {
    std::erase_if(left, [this, q](std::uint32_t slot) { return mark_waiting(slot, q); });
    store_.header().marking.store(0, Point::kSlotMarked);
    seat().leave();
    if (left.empty()) return;
    shm::wait_for_another(look);
  }
}

/// After the death of its lane: the job waits again, and stands in its account's charge as before.
/// A mark that says otherwise was made in the operation that is undone.
void TenantAccounts::keep_charge(std::uint32_t slot) {
  JobRecord& job = store_.job(slot);
  const AccountMark found(job.account.load());
  const Marking marking(slot, job.generation.get());
  // Its bringer, whose charge this operation gave back, has to look for itself again.
  if ((found.word & AccountMark::kBroughtIn) != 0)
    store_.header().marking.cas_once(marking.standing().word, marking.word, Point::kSlotMarked);
  job.account.cas_once(found.word, found.kept().word, Point::kSlotMarked);
}

}  // namespace ojs_shm::engine
