// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "tests/relacy/scenes.hpp"

namespace ojs_shm::test {

using shm::Point;
using Kind = MemoryAccess::Kind;

namespace {

using Order = std::memory_order;
constexpr Order kRelaxed = Order::relaxed, kAcquire = Order::acquire, kRelease = Order::release;
constexpr Order kNoTotalOrder = Order::acq_rel;  ///< acquire and release, as far as the access can

auto written_at(Point point, Order order) {
  return [=](const Stage&, const MemoryAccess& access) {
    return access.point == point ? order : access.order;
  };
}
auto loads_of(std::string_view name, Order order) {
  return [=](const Stage& stage, const MemoryAccess& access) {
    return access.kind == Kind::kLoad && stage.name_of(access.word) == name ? order : access.order;
  };
}
/// Both at once: where one order alone would not do, since another carries the same.
template <class One, class Other>
auto both(One one, Other other) {
  return [=](const Stage& stage, const MemoryAccess& access) {
    const Order order = one(stage, access);
    return order != access.order ? order : other(stage, access);
  };
}
/// A lane that reads the name of a ring, also by failing to set it.
Order ring_name_unacquired(const Stage& stage, const MemoryAccess& access) {
  if (stage.name_of(access.word) != "ring name") return access.order;
  return access.kind == Kind::kLoad ? kRelaxed : kRelease;
}
/// Relacy orders a sequentially consistent load after every such write made before it, which is
/// more than C++ does, and enough to judge relaxed fields by. So the looks at the control word
/// acquire and no more here.
auto judged(std::string_view fields, std::string_view judge, Kind kind) {
  return [=](const Stage& stage, const MemoryAccess& access) {
    const std::string_view name = stage.name_of(access.word);
    if (name == judge && access.kind == Kind::kLoad) return kAcquire;
    return name == fields && access.kind == kind ? kRelaxed : access.order;
  };
}

std::vector<Mutant> mutants_of_queues() {
  return {
      // the pairs of docs/memory_ordering.md: first the release, then the acquire
      {"cell-publish released", "put four | take four", written_at(Point::kCellFilled, kAcquire)},
      {"cell-publish acquired", "put four | take four", loads_of("cell", kRelaxed)},
      {"link-publish released", "put, put | put, put | take four",
       written_at(Point::kLinkSet, kAcquire)},
      {"link-publish acquired", "push eight | pass eight", loads_of("next", kRelaxed)},
      {"ring-name released", "new rings: put | put | take",
       written_at(Point::kRingNamed, kAcquire)},
      {"ring-name acquired", "new rings: put | put | take", ring_name_unacquired},
      {"ring-index released", "close | close | put", written_at(Point::kIndexOpened, kAcquire)},
      {"ring-index acquired", "new rings: put | lie down", loads_of("index", kRelaxed)},
      {"slot-publish released", "live and die | look", written_at(Point::kSlotPublished, kRelaxed)},
      {"slot-publish acquired", "turn over | take, take",
       written_at(Point::kSlotClaimed, kRelaxed)},
      {"slot-active released", "live and die | look", written_at(Point::kSlotActive, kRelaxed)},
      {"slot-settle released", "live and die | look", written_at(Point::kSlotSettled, kRelaxed)},
      {"slot-settle acquired", "live and die | look", loads_of("control", kRelaxed)},
      {"the tail released", "new rings: put | put | take", written_at(Point::kTailMoved, kAcquire)},
      {"the tail acquired", "new rings: put | put | take", loads_of("tail", kRelaxed)},
      {"a slot taken", "new rings: put | put | take", written_at(Point::kSlotFilling, kRelaxed)},
      // fields that are judged by the control word afterwards
      {"fields released", "live and die | look", judged("record", "control", Kind::kStore)},
      {"fields acquired", "live and die | look", judged("record", "control", Kind::kLoad)},
      // total orders of a write and a later load of another word
      {"idle: the sleeper's bit", "put | lie down", written_at(Point::kWaiterSet, kRelaxed)},
      {"idle: the sleeper's look", "put | lie down", loads_of("cell", kAcquire)},
      {"idle: the waker's look", "put | lie down", loads_of("waiters", kAcquire)},
      {"idle: the sleeper's look at another line", "lines: lie down | put",
       loads_of("cell", kAcquire)},
      {"idle: the sleeper's look at a new line", "new lines: put | lie down",
       loads_of("index", kAcquire)},
      {"idle: the sleeper's look at whether there are lines", "lie down | more lines, put",
       loads_of("flags", kAcquire)},
      {"idle: the look of a waker of another line", "lines: lie down | put",
       loads_of("waiters", kAcquire)},
      {"waited for: the wish", "end | wait", written_at(Point::kWaitFlagSet, kRelaxed)},
      {"waited for: the waiter's look", "end | wait", loads_of("control", kAcquire)},
      {"waited for: the finisher's write", "end | wait",
       written_at(Point::kSlotSettling, kRelaxed)},
      {"waited for: the finisher's look", "end | wait", loads_of("signals", kAcquire)},
      {"timer: the supervisor's announcement", "put for later | supervise",
       written_at(Point::kDoorbellRung, kRelaxed)},
      {"timer: the supervisor's look", "put for later | supervise", loads_of("cell", kAcquire)},
      {"timer: the other's look", "put for later | supervise", loads_of("sleeping", kAcquire)},
      {"keys: the entry", "bring | bring", written_at(Point::kKeyPlaced, kRelaxed)},
      {"keys: the look at others", "bring | bring | use again", loads_of("key", kAcquire)},
  };
}

std::vector<Mutant> mutants_of_policies() {
  return {
      // the pairs once more; of a total order, each half
      {"limit-name released", "name a key | read", written_at(Point::kLimitNamed, kRelaxed)},
      {"limit-name acquired", "name a key | read", loads_of("limit name", kRelaxed)},
      {"queue-name released", "name a queue | read", written_at(Point::kSetNamed, kRelaxed)},
      {"queue-name acquired", "name a queue | read", loads_of("queue name", kRelaxed)},
      {"pool-name released", "name a pool | read", written_at(Point::kPoolNamed, kRelaxed)},
      {"pool-name acquired", "name a pool | read", loads_of("pool name", kRelaxed)},
      {"sample released", "sample | read", written_at(Point::kSampleTaken, kRelaxed)},
      {"sample acquired", "sample | read", loads_of("sample time", kRelaxed)},
      {"event-told released", "events: tell | read", written_at(Point::kEventCounted, kRelaxed)},
      {"event-told acquired", "events: tell | read", loads_of("told", kRelaxed)},
      {"event-page released", "events, all pages used: tell | read",
       judged("event", "page control", Kind::kStore)},
      {"event-page acquired", "events, all pages used: tell | read",
       judged("event", "page control", Kind::kLoad)},
      {"intent released", "counted again: put | put",
       both(written_at(Point::kIntentSet, kRelaxed), written_at(Point::kIntentCleared, kRelaxed))},
      {"intent acquired", "counted again: put | put", loads_of("intent", kRelaxed)},
      {"intent of accounts released", "tenants, counted again: put | put",
       both(written_at(Point::kIntentSet, kRelaxed), written_at(Point::kIntentCleared, kRelaxed))},
      {"intent of accounts acquired", "tenants, counted again: put | put",
       loads_of("intent", kRelaxed)},
      {"block-taken released", "repair | put large",
       both(written_at(Point::kBlockTaken, kRelaxed), loads_of("control", kAcquire))},
      {"block-taken acquired", "repair | put large",
       both(loads_of("block word", kRelaxed), loads_of("control", kAcquire))},
      {"limits-held: the announcement", "keys: put | give up",
       written_at(Point::kLimitsHeld, kNoTotalOrder)},
      {"limits-held: the look", "keys: put | give up", loads_of("limits held", kAcquire)},
      {"limit-turn: the announcement", "keys: put | give up",
       written_at(Point::kLimitTurn, kNoTotalOrder)},
      {"limit-turn: the look", "keys: put | give up", loads_of("limit turn", kAcquire)},
      {"flow-line: the announcement", "flows: put | take the last",
       written_at(Point::kFlowEnding, kNoTotalOrder)},
      {"flow-line: the look of who ends", "flows: put | take the last", loads_of("cell", kAcquire)},
      {"flow-line: the look of who puts", "flows: put | take the last", loads_of("flow", kAcquire)},
      {"busy: the announcement", "pool, busy: settle | put, take",
       written_at(Point::kBusyCleared, kNoTotalOrder)},
      {"busy: the look of who settles", "pool, busy: settle | put, take",
       loads_of("cell", kAcquire)},
      {"busy: the look of who puts", "pool, busy: settle | put, take", loads_of("busy", kAcquire)},
      {"lot-name released", "limited: end | take the last", written_at(Point::kLotNamed, kRelaxed)},
      {"lot-name acquired", "limited: end | take the last", loads_of("lot name", kRelaxed)},
      // total orders
      {"unique: the entry", "unique: put | put", written_at(Point::kKeyPlaced, kRelaxed)},
      {"unique: the look at others", "unique: put | put", loads_of("key", kAcquire)},
      {"lots: the job", "limited: end | take the last",
       written_at(Point::kCellFilled, kNoTotalOrder)},
      {"lots: the look of who parks", "limited: end | take the last", loads_of("permit", kAcquire)},
      {"lots: the permit", "limited: end | take the last",
       written_at(Point::kPermitGiven, kNoTotalOrder)},
      {"lots: the look of who ends", "limited: end | take the last",
       both(loads_of("lot", kAcquire), loads_of("lot name", kAcquire))},
      {"lots: the look of who raises the limit", "limited: raise | take the last",
       both(loads_of("lot", kAcquire), loads_of("lot name", kAcquire))},
      {"lots: the look of who parks at the limit", "limited: raise | take the last",
       loads_of("permit set", kAcquire)},
      {"limit: the announcement", "limit: set | take | take",
       written_at(Point::kSetChanged, kNoTotalOrder)},
      {"limit: the look of who claims", "limit: set | take | take",
       loads_of("permit set", kAcquire)},
      {"limit: the look of who sets", "limit: set | take | take", loads_of("control", kAcquire)},
      {"limit: the claim", "limit: set | take | take",
       written_at(Point::kSlotClaimed, kNoTotalOrder)},
      {"adopted: the permit of who claims", "limit: set | take | take",
       written_at(Point::kPermitTaken, kNoTotalOrder)},
      {"adopted: the look of who claims", "limit: set | take",
       loads_of("permits adopted", kAcquire)},
      {"adopted: the announcement", "limit: set | take",
       written_at(Point::kSetChanged, kNoTotalOrder)},
      {"adopted: the look of who sets", "limit: set | take", loads_of("permit", kAcquire)},
      {"leases: the announcement", "take shortly | supervise",
       written_at(Point::kDoorbellRung, kNoTotalOrder)},
      {"leases: the supervisor's look", "take shortly | supervise",
       loads_of("shortest lease", kAcquire)},
      {"leases: the shorter one", "take shortly | supervise",
       written_at(Point::kLeaseMoved, kNoTotalOrder)},
      {"leases: the other's look", "take shortly | supervise", loads_of("sleeping", kAcquire)},
      {"pause: the sleeper's bit", "go on | lie down",
       written_at(Point::kWaiterSet, kNoTotalOrder)},
      {"pause: the sleeper's look", "go on | lie down", loads_of("flags", kAcquire)},
      {"pause: the waker's look", "go on | lie down", loads_of("waiters", kAcquire)},
      {"aging: the rate", "all age | make a queue", written_at(Point::kSetChanged, kNoTotalOrder)},
      {"aging: the look at queues", "all age | make a queue", loads_of("queue hash", kAcquire)},
      {"aging: the name", "all age | make a queue", written_at(Point::kSetNamed, kNoTotalOrder)},
      {"aging: the look at the rate", "all age | make a queue", loads_of("aging", kAcquire)},
      {"room: the wish", "full: wait | take", written_at(Point::kAttentionSet, kNoTotalOrder)},
      {"room: the look of who waits", "full: wait | take", loads_of("tally", kAcquire)},
      {"room: what leaves", "full: wait | take", written_at(Point::kTallyOut, kRelease)},
      {"room: the look of who takes out", "full: wait | take", loads_of("attention", kAcquire)},
      {"bound: it is set", "bound, put | put", written_at(Point::kSetChanged, kNoTotalOrder)},
      {"bound: the look at charges", "bound, put | put", loads_of("tally", kAcquire)},
      {"bound: the charge", "bound, put | put", written_at(Point::kTallyIn, kRelease)},
      {"bound: the look at it", "bound, put | put", loads_of("flags", kAcquire)},
      {"pools: the setup", "pool, limited: take", written_at(Point::kPoolSet, kRelease)},
      {"pools: the look at who works", "pool, limited: take", loads_of("control", kAcquire)},
      {"pools: the claim", "pool, limited: take", written_at(Point::kSlotClaimed, kNoTotalOrder)},
      {"pools: the look at the setup", "pool, limited: take", loads_of("pool setup", kAcquire)},
      {"marks: the mark", "tenants, bounded: take", written_at(Point::kSlotMarked, kNoTotalOrder)},
      {"marks: the look at the job", "tenants, bounded: take", loads_of("control", kAcquire)},
      {"marks: the claim", "tenants, bounded: take",
       written_at(Point::kSlotClaimed, kNoTotalOrder)},
      {"marks: the look at the mark", "tenants, bounded: take", loads_of("record", kAcquire)},
  };
}

}  // namespace

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> made = mutants_of_queues();
    std::ranges::copy(mutants_of_policies(), std::back_inserter(made));
    return made;
  }();
  return all;
}

}  // namespace ojs_shm::test
