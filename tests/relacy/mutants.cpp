// SPDX-License-Identifier: Apache-2.0
#include "tests/relacy/scenes.hpp"

namespace ojs_shm::test {

using shm::Point;
using Kind = MemoryAccess::Kind;

namespace {

using Order = std::memory_order;
constexpr Order kRelaxed = Order::relaxed, kAcquire = Order::acquire, kRelease = Order::release;

auto written_at(Point point, Order order) {
  return [=](const Stage&, const MemoryAccess& access) { return access.point == point ? order : access.order; };
}
auto loads_of(std::string_view name, Order order) {
  return [=](const Stage& stage, const MemoryAccess& access) {
    return access.kind == Kind::kLoad && stage.name_of(access.word) == name ? order : access.order;
  };
}
/// Whoever reads the name of a ring, also by failing to set it.
Order ring_name_unacquired(const Stage& stage, const MemoryAccess& access) {
  if (stage.name_of(access.word) != "ring name") return access.order;
  return access.kind == Kind::kLoad ? kRelaxed : kRelease;
}
/// Relacy orders a sequentially consistent load after every such write made before it, which is more than C++ does, and
/// enough to judge relaxed fields by. So the looks at the control word acquire and no more here.
auto fields(Kind kind) {
  return [kind](const Stage& stage, const MemoryAccess& access) {
    const std::string_view name = stage.name_of(access.word);
    if (name == "control" && access.kind == Kind::kLoad) return kAcquire;
    return name == "record" && access.kind == kind ? kRelaxed : access.order;
  };
}

}  // namespace

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      // the pairs of docs/memory_ordering.md: first the release, then the acquire
      {"cell-publish released", "put four | take four", written_at(Point::kCellFilled, kAcquire)},
      {"cell-publish acquired", "put four | take four", loads_of("cell", kRelaxed)},
      {"link-publish released", "put, put | put, put | take four", written_at(Point::kLinkSet, kAcquire)},
      {"link-publish acquired", "push eight | pass eight", loads_of("next", kRelaxed)},
      {"ring-name released", "new rings: put | put | take", written_at(Point::kRingNamed, kAcquire)},
      {"ring-name acquired", "new rings: put | put | take", ring_name_unacquired},
      {"ring-index released", "close | close | put", written_at(Point::kIndexOpened, kAcquire)},
      {"ring-index acquired", "new rings: put | lie down", loads_of("index", kRelaxed)},
      {"slot-publish released", "live and die | look", written_at(Point::kSlotPublished, kRelaxed)},
      {"slot-publish acquired", "turn over | take, take", written_at(Point::kSlotClaimed, kRelaxed)},
      {"slot-active released", "live and die | look", written_at(Point::kSlotActive, kRelaxed)},
      {"slot-settle released", "live and die | look", written_at(Point::kSlotSettled, kRelaxed)},
      {"slot-settle acquired", "live and die | look", loads_of("control", kRelaxed)},
      {"the tail released", "new rings: put | put | take", written_at(Point::kTailMoved, kAcquire)},
      {"the tail acquired", "new rings: put | put | take", loads_of("tail", kRelaxed)},
      {"a slot taken", "new rings: put | put | take", written_at(Point::kSlotFilling, kRelaxed)},
      // fields that are judged by the control word afterwards
      {"fields released", "live and die | look", fields(Kind::kStore)},
      {"fields acquired", "live and die | look", fields(Kind::kLoad)},
      // total orders of a write and a later load of another word
      {"idle: the sleeper's bit", "put | lie down", written_at(Point::kWaiterSet, kRelaxed)},
      {"idle: the sleeper's look", "put | lie down", loads_of("cell", kAcquire)},
      {"idle: the waker's look", "put | lie down", loads_of("waiters", kAcquire)},
      {"idle: the sleeper's look at another line", "lines: lie down | put", loads_of("cell", kAcquire)},
      {"idle: the sleeper's look at a new line", "new lines: put | lie down", loads_of("index", kAcquire)},
      {"idle: the sleeper's look at whether there are lines", "lie down | more lines, put",
       loads_of("flags", kAcquire)},
      {"idle: the look of a waker of another line", "lines: lie down | put", loads_of("waiters", kAcquire)},
      {"waited for: the wish", "end | wait", written_at(Point::kWaitFlagSet, kRelaxed)},
      {"waited for: the waiter's look", "end | wait", loads_of("control", kAcquire)},
      {"waited for: the finisher's write", "end | wait", written_at(Point::kSlotSettling, kRelaxed)},
      {"waited for: the finisher's look", "end | wait", loads_of("signals", kAcquire)},
      {"timer: the supervisor's announcement", "put for later | supervise", written_at(Point::kDoorbellRung, kRelaxed)},
      {"timer: the supervisor's look", "put for later | supervise", loads_of("cell", kAcquire)},
      {"timer: the other's look", "put for later | supervise", loads_of("sleeping", kAcquire)},
      {"keys: the entry", "bring | bring", written_at(Point::kKeyTentative, kRelaxed)},
      {"keys: its confirmation", "bring | bring", written_at(Point::kKeyConfirmed, kRelaxed)},
      {"keys: the look at others", "bring | bring | bring", loads_of("key", kAcquire)},
  };
  return all;
}

}  // namespace ojs_shm::test
