// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/actor.hpp"
#include "engine/bounds/refill.hpp"
#include "engine/crons/crons.hpp"
#include "engine/pools/pools.hpp"
#include "engine/tables/hint_lives.hpp"
#include "engine/tables/ring_look.hpp"
#include "engine/workflows/workflows.hpp"

// What no lane's death tells of: hints that are nowhere, chunks that leaked, and what belongs to
// all lanes.

namespace ojs_shm::engine {

/// Available jobs without a live hint, seen so twice, and timers of the waiting.
std::uint32_t Actor::mend_hints() {
  std::uint32_t mended = 0;
  std::vector<bool> hinted(store_.slots(), false);
  std::vector<std::uint64_t> before(store_.slots());
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
    before[slot] = store_.job(slot).control.load();
  for (const shm::RingSet* set : ring_sets(store_))
    for (unsigned n = 0; n < shm::kRingsPerSet; ++n)
      if (const std::uint32_t ring = shm::Rings::find(*set, n); ring != kNoIndex)
        shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
          if (hint_lives(segment_, shm::Hint(value))) hinted[shm::Hint(value).index()] = true;
        });
  each_flow(store_, [&](std::uint32_t flow, std::uint32_t ring) {
    if (!FlowControl(store_.flows[flow].control.load()).in_line()) return;
    shm::Rings::walk(segment_, ring, [&](std::uint32_t, unsigned, std::uint64_t value) {
      if (hint_lives(segment_, shm::Hint(value))) hinted[shm::Hint(value).index()] = true;
    });
  });
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const Control control(before[slot]);
    if (control.state() != kSlotAvailable || hinted[slot] ||
        store_.job(slot).control.load() != control.word)
      continue;
    republish(slot);
    ++mended;
  }
  return mended;
}

/// The rest of a death, once for all lanes: blocks without an owner, bounds to be counted again.
void Actor::repair_shared() {
  slots_.texts().sweep();
  for (std::uint32_t i = 0; i < store_.max_queues() && store_.queue(i).name_hash.load() != 0; ++i) {
    if (Refill(store_.queue(i).refill.load()).pending()) settle_reserved(i);
    if ((store_.queue(i).flags.load() & kCounted) != 0) recount_backlog(store_, i);
    if ((store_.queue(i).flags.load() & kTenants) != 0) gather_accounts(i, 100);
  }
  for (std::uint32_t at = 0; at < store_.accounts.size(); ++at)
    if (Refill(store_.accounts[at].refill.load()).pending()) settle_account(at);
  mend_limits();
  workflows().mend();
}

std::uint32_t Actor::mend() {
  std::uint32_t mended = collect_leaks();
  mended += mend_hints();
  crons().mend();
  slots_.sweep();
  repair_shared();
  return mended;
}

}  // namespace ojs_shm::engine
