// SPDX-License-Identifier: Apache-2.0
#include "engine/tenants/tenant_turns.hpp"

#include <bit>
#include <tuple>

namespace ojs_shm::engine {

namespace {

/// The place of a job in the order: the smallest goes first.
using Standing = std::tuple<std::int64_t, std::uint64_t, std::int64_t>;

}  // namespace

bool TenantTurns::look(QueueRecord& queue, Search::Look& look, std::uint32_t& left,
                       Search::Live& best) {
  const FlowLine tenants = TenantLine{search.rings_, store}.of(queue);
  const std::uint32_t q = store.number_of(queue);
  for (; tenants.ring != kNoIndex && left > 1; --left) {
    const shm::Peeked head = search.rings_.peek(tenants.ring);
    if (head.empty()) return false;
    FlowControl found(0);
    const std::uint32_t at = tenants.led_to(head, found);
    if (at == kNoIndex) continue;
    FlowRecord& turn = store.flows[at];
    const std::uint64_t tenant = turn.tenant.load();
    const bool its = turn.key.load() == key_of_turn(q, tenant);
    const auto holds_job = [&] {
      const std::uint32_t ring = turn.ring.load();
      return ring != 0 && !search.rings_.peek(ring - 1).empty();
    };
    // A job that came while the flow was another's: it gets a place of its own.
    if (holds_job() && !search.first_in_flow(tenants, at, found, &head, q, left, best)) continue;
    if (its && best_of(queue, tenant, look, left, best)) {
      if (best.flow != kNoIndex) look.tenant_turn = at;
      return true;
    }
    tenants.end(turn, found, &head,
                [&] { return !holds_job() && (!its || has_none(queue, tenant)); });
  }
  return false;
}

/// The best of its jobs; what was given back, and what stands in line by itself, whosever it is:
/// that had its turn, or gets none.
bool TenantTurns::best_of(QueueRecord& queue, std::uint64_t tenant, Search::Look& look,
                          std::uint32_t& left, Search::Live& best) {
  const bool ages = (look.flags & kAges) != 0;
  const Aging aging = store.aging(queue);
  const std::uint64_t now = look.now = ages ? store.now_ms() : 0;
  bool found = false;
  Standing standing;
  for (unsigned p = 0; search.see_part(queue, look, p); ++p) {
    Search::Look::Seen& part = look.part[p];
    const std::uint8_t rate =
        Store::age_rate(queue, (look.flags & kSharded) != 0 ? 0 : part.number, aging);
    part.any_open([&](unsigned number) {
      Search::Live live;
      if (!first_at(queue, tenant, part, number, look, left, live)) return false;
      const std::uint64_t age = now > live.available_at ? now - live.available_at : 0;
      const Standing here(ages ? aging.effective(rank_of_ring(number), age, rate) : number,
                          live.available_at, number);
      if (!found || here < standing) found = true, standing = here, best = live;
      return !ages;
    });
  }
  return found;
}

/// At one level, whose line loses what is dead at its head.
bool TenantTurns::first_at(QueueRecord& queue, std::uint64_t tenant, const Search::Look::Seen& part,
                           unsigned number, Search::Look& look, std::uint32_t& left,
                           Search::Live& live) {
  const FlowLine level{store, search.rings_, shm::Rings::find(*part.rings, number), part.rings,
                       number};
  if (level.ring == kNoIndex) return false;  // PAIR ring-name
  FlowControl found(0);
  for (; left > 1; --left) {
    const shm::Peeked head = search.rings_.peek(level.ring);
    if (!head.empty() && head.hint().leads_to_line()) {
      if (level.led_to(head, found) != kNoIndex) break;
      continue;
    }
    if (search.look_along(*part.rings, number, look, left, live) && live.flow == kNoIndex)
      return true;
    break;
  }
  const std::uint32_t q = store.number_of(queue);
  const std::uint32_t at =
      take_flow(store, mix_key(place_of_flows(q, part.number, number), tenant), false);
  if (at == kNoIndex) return false;
  found = FlowControl(store.flows[at].control.load());
  return found.in_line() && store.flows[at].ring.load() != 0 &&
         search.first_in_flow(level, at, found, nullptr, q, left, live);
}

/// Whether no flow of the tenant that is in line has any hint, dead or alive. Hints in other flows
/// are dead: an enqueue puts the flow of its job in line, and then the tenant.
bool TenantTurns::has_none(QueueRecord& queue, std::uint64_t tenant) const {
  const std::uint32_t q = store.number_of(queue);
  for (std::uint32_t left = queue.parts(queue.flags.load()); left != 0; left &= left - 1) {
    const auto part = static_cast<unsigned>(std::countr_zero(left));
    const shm::RingSet& rings = part == 0 ? queue.rings : store.rings_of_part(queue, part);
    for (unsigned i = 0; i < shm::kIndexWords; ++i)
      for (auto open = static_cast<std::uint32_t>(rings.index[i].load()); open != 0;
           open &= open - 1) {
        const unsigned number = i * 32 + static_cast<unsigned>(std::countr_zero(open));
        const std::uint32_t at =
            take_flow(store, mix_key(place_of_flows(q, part, number), tenant), false);
        if (at == kNoIndex) continue;
        const FlowRecord& flow = store.flows[at];
        const std::uint32_t ring = flow.ring.load();
        if (FlowControl(flow.control.load_seq_cst()).in_line() && ring != 0 &&
            !search.rings_.peek(ring - 1).empty())
          return false;
      }
  }
  return true;
}

/// One that has no job left is taken out by the next look.
void TenantTurns::end(QueueRecord& queue, std::uint32_t turn, std::uint64_t weight) {
  const FlowLine tenants = TenantLine{search.rings_, store}.of(queue);
  if (tenants.ring != kNoIndex) tenants.end_turn(turn, weight, [] { return false; });
}

}  // namespace ojs_shm::engine
