// SPDX-License-Identifier: Apache-2.0
// Of the stage: names and settings, what is noted by the second, and what is told.
#include <algorithm>
#include <array>

#include "engine/limits/limit_setter.hpp"
#include "engine/limits/limits.hpp"
#include "engine/observing/events.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/pools/pools.hpp"
#include "engine/pools/samples.hpp"
#include "engine/pools/schedule_watch.hpp"
#include "engine/supervision/repairer.hpp"
#include "tests/relacy/stage.hpp"

namespace ojs_shm::test {

using engine::Outcome;
using shm::Point;

namespace {
constexpr std::string_view kLong = "a name of several words, each of which may come late";
constexpr std::uint32_t kShortMs = 50;
constexpr std::uint32_t kNobodys = 3;  ///< a lane
static_assert(kNobodys >= World::kFibers && kNobodys < World::kJanitor);
}  // namespace

// ---- names --------------------------------------------------------------------------------------

void Stage::name_queue(std::uint32_t self) { world_.actor(self).ensure_queue(kLong); }

void Stage::name_pool(std::uint32_t self) {
  engine::PoolSpec spec;
  spec.queues = {0};
  bool made = false;
  if (engine::Pools(world_.actor(self)).define(kLong, spec, made) != Outcome::kOk)
    wrong_ += "the pool was refused; ";
}

void Stage::name_key(std::uint32_t self) {
  if (engine::LimitSetter(world_.actor(self)).define(kLong, {.concurrency = 3}) != Outcome::kOk)
    wrong_ += "the limit was refused; ";
}

void Stage::read_names() {
  engine::Store& store = world_.store();
  const auto judge = [this](std::string_view what, const std::string& name) {
    if (!name.empty() && name != kLong)
      wrong_ += std::string(what) + " has the name '" + name.c_str() + "'; ";
  };
  judge("a queue", store.queue_name(1));
  judge("a pool", engine::pool_name(store, 0));
  for (std::uint32_t i = 0; i < store.limit_keys.size(); ++i)
    if (store.limit_keys[i].name_hash.load() == engine::hash_limit(kLong) &&
        engine::limit_name(store, i) != kLong)
      wrong_ += "a key has another name than its hash says; ";
}

// ---- settings -----------------------------------------------------------------------------------

void Stage::pause() { world_.actor(World::kJanitor).set_paused(0, true); }
void Stage::go_on(std::uint32_t self) { world_.actor(self).set_paused(0, false); }

void Stage::age_all(std::uint32_t self) {
  all_age_ = true;
  world_.actor(self).order().set_default_aging(
      engine::Aging(true, false, 3'600'000, 1, engine::Aging::kNoBest));
}

void Stage::make_queue(std::uint32_t self) { name_queue(self); }

/// As workers whose jobs count for its limit.
void Stage::join_pool() {
  world_.serve_a_pool(1);
  for (std::uint32_t lane = 0; lane < World::kFibers; ++lane)
    world_.actor(lane).pool_worker().join(0, 0);
}

void Stage::take_shortly(std::uint32_t self) {
  if (world_.actor(self).fetch(0, kShortMs, false, held_) != Outcome::kOk)
    wrong_ += "nothing to hold; ";
}

/// As the supervisor's process does before it sleeps for as long as the shortest lease allows.
void Stage::supervise_leases() {
  shm::Header& header = world_.store().segment().header();
  rung_ = header.doorbell.load();
  const std::uint64_t shortest = header.shortest_lease_ms.load();
  header.sleeping_until_ms.exchange(world_.store().now_ms() + shortest, Point::kDoorbellRung);
  oversleeps_ = header.shortest_lease_ms.load_seq_cst() == shortest && shortest > kShortMs;
}

void Stage::limit_pool(std::uint32_t self) {
  engine::PoolSpec spec;
  spec.queues = {0};
  spec.concurrency = 1;
  bool made = false;
  pool_limited_ = true;
  if (engine::Pools(world_.actor(self)).define("p", spec, made) != Outcome::kOk)
    wrong_ += "the pool was refused; ";
}

void Stage::doubt_charges() {
  engine::Store& store = world_.store();
  store.queue(0).refill.fetch_add(1, Point::kCreditSettled);
  for (std::uint32_t at = 0; at < store.accounts.size(); ++at)
    store.accounts[at].refill.fetch_add(1, Point::kCreditSettled);
}

void Stage::repair_nothing() { engine::Repairer::repair(world_.store(), std::array{kNobodys}); }

/// Of a pool that was limited, each job at work has a permit, and no more have begun than may.
std::string Stage::settings_text() {
  std::string text;
  engine::Store& store = world_.store();
  if (all_age_ && store.queue_count() == 2 && (store.queue(1).flags.load() & engine::kAges) == 0)
    text += "a queue that was made meanwhile does not age; ";
  if (oversleeps_ && store.segment().header().doorbell.load() == rung_)
    text += "the supervisor sleeps longer than a lease; ";
  if (!pool_limited_) return text;
  world_.forget_empties();
  std::uint32_t at_work = 0;
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot)
    at_work +=
        engine::Control(store.job(slot).control.load()).state() == engine::kSlotActive ? 1 : 0;
  const std::uint32_t key = engine::find_limit(store, std::string(engine::kPoolLimit).append("p"));
  const std::uint32_t counted = engine::Permits(store).count(store.limit_keys[key].permits);
  if (at_work != counted)
    text += std::to_string(at_work) + " of the pool are at work, and " + std::to_string(counted) +
            " count; ";
  engine::PoolSpec spec;
  spec.queues = {0};
  bool made = false;
  if (engine::Pools(world_.actor(World::kJanitor)).define("p", spec, made) != Outcome::kOk)
    text += "the pool was refused; ";
  return text;
}

// ---- what was handed out ------------------------------------------------------------------------

/// One job was handed out before the minute began, noted then, and two since: so two is right, and
/// none once that is noted.
void Stage::work_a_minute_ago() {
  shm::Word& clock = world_.store().segment().header().clock_offset_ms;
  const std::uint64_t then = world_.store().now_ms() + 10 * engine::kWindowMs;
  clock.store(shm::kStandingClock | then,
              Point::kNone);  // NO CRASH POINT: no other is there yet
  for (const unsigned job : {0U, 1U, 2U}) {
    world_.put(World::kJanitor, job, 1), world_.take(World::kJanitor),
        world_.finish(World::kJanitor);
    if (job == 0) take_sample(World::kJanitor);
  }
  const std::uint64_t now = then + 2 * engine::kWindowMs;
  clock.store(shm::kStandingClock | now, Point::kNone);  // NO CRASH POINT: as above
}

void Stage::take_sample(std::uint32_t self) {
  engine::ScheduleWatch(world_.actor(self)).look(world_.store().now_ms());
}

void Stage::read_window() {
  const std::uint64_t jobs = engine::dispatched_in_window(world_.store())[0].jobs;
  if (jobs != 2 && jobs != 0)
    wrong_ += std::to_string(jobs) + " were handed out in the last minute; ";
}

// ---- events -------------------------------------------------------------------------------------

namespace {

/// No other's event has the same number.
std::uint64_t number_of(std::uint32_t lane, std::uint64_t sequence) {
  return lane * 1'000ULL + sequence;
}

void tell(engine::Store& store, std::uint32_t lane, std::uint64_t first) {
  engine::EventLog log(store, lane);
  for (const std::uint64_t number : {number_of(lane, first), number_of(lane, first + 1)}) {
    engine::EventFacts event;
    event.kind = engine::EventKind::kJobHeartbeat;
    event.job = {number, number};
    event.tag = event.value = number;
    event.time_ms = 1;
    log.write(event);
  }
  log.close();
}

}  // namespace

/// The next page to be taken is one that was written before, by another lane.
void Stage::fill_pages() {
  for (std::uint32_t page = 0; page < world_.store().event_pages.size(); ++page)
    tell(world_.store(), World::kJanitor, page * 2 + 1);
}

void Stage::tell_two(std::uint32_t self) { tell(world_.store(), self, 1); }

void Stage::read_told(bool all_are_there) {
  std::vector<engine::EventFacts> events;
  engine::EventReader reader(world_.store(), true);
  if (reader.poll(events, 0) != 0 && all_are_there) wrong_ += "an event was missed; ";
  for (const engine::EventFacts& event : events)
    if (const std::uint64_t number = number_of(event.lane, event.sequence);
        event.value != number || event.tag != number || event.job != engine::JobId{number, number})
      wrong_ += "an event is made of two; ";
}

}  // namespace ojs_shm::test
