// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/actor.hpp"
#include "engine/limits/limit_setter.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/limits/rates.hpp"
#include "shm/parking.hpp"

// Keys that are not needed any more are given up when a lane finds no room for a new one. Such is a
// key that jobs brought, that no waiting, working or dead letter job names, and whose
// windows and pace have forgotten every beginning: it is as if it had never been, but for the limit
// that was brought last.
//
// Between the look-up of a key and the publication of its job nothing names it. So a job carries
// the turn at which its key was looked up, and its enqueue 1. says that it is at it; 2. goes on if
// the turn still is the same. The sweep 1. makes the turn odd; 2. waits until no lane is at it that
// might have seen the old turn; 3. looks which keys are named; 4. gives the rest up; 5. makes the
// turn even. One side sees the other. A death in the middle of a sweep leaves some keys given
// up and some not; its repair makes the turn even.

namespace ojs_shm::engine {

using shm::Point;

std::uint64_t limits_turn(const Store& store) {
  const Word& word = store.header().limit_turn;
  std::uint64_t turn = word.load();
  // an enqueue that is refused looks again
  for (unsigned look = 0; turn % 2 != 0 && look < kPatience / 16; ++look) {
    shm::wait_for_another(look);
    turn = word.load();
  }
  return turn;
}

LimitsHold::LimitsHold(const Store& store, shm::LaneWord& held, std::span<const NewJob> jobs)
    : held_(held) {
  if (std::ranges::none_of(jobs, [](const NewJob& job) { return job.limit != 0; })) return;
  ours_ = held_.get() == 0;
  if (ours_) held_.exchange(1, Point::kLimitsHeld);                     // PAIR limits-held
  const std::uint64_t turn = store.header().limit_turn.load_seq_cst();  // PAIR limit-turn
  stand_ = turn % 2 == 0 && std::ranges::all_of(jobs, [turn](const NewJob& job) {
             return job.limit == 0 || job.limits_turn == turn;
           });
}

LimitsHold::~LimitsHold() {
  if (ours_) held_.set_ordered(0, Point::kLimitsHeld);
}

/// Whether no lane is at an enqueue under a key any more that began before.
bool LimitSetter::others_are_through() const {
  for (std::uint32_t lane = 0; lane < store_.lanes(); ++lane)
    for (unsigned look = 0;
         store_.segment().lane(lane).counters[kLimitsHeld].get_ordered() != 0;  // PAIR limits-held
         ++look) {
      if (look == kPatience) return false;
      shm::wait_for_another(look);
    }
  return true;
}

/// Which keys must stay for what names them; with `lost` also for jobs that may be retried though
/// they are no dead letters.
std::vector<bool> LimitSetter::named_keys(bool lost) const {
  std::vector<bool> named(store_.limit_keys.size(), false);
  const auto name = [&](std::uint64_t key) {
    if (key < named.size()) named[key] = true;
  };
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& job = store_.job(slot);
    const unsigned state = Control(job.control.load()).state();
    const bool comes_back =
        job.flags().has(Policy::kDead) || (lost && state != kSlotCompleted && is_finished(state));
    if (state == kSlotFree || state == kSlotFilling || (is_finished(state) && !comes_back))
      continue;
    name(own_limit(job.limits.get()));
    if (store_.parked(job)) name(store_.lots[second_limit(job.limits.get())].key());
  }
  for (std::uint32_t q = 0; q < store_.queue_count(); ++q) name(store_.queue(q).limit.load() - 1);
  return named;
}

/// What stands on a type or a tenant is looked up by each fetch, and a pool's key by each of its
/// workers: they stay.
bool LimitSetter::is_idle(std::uint32_t at, std::uint64_t now) const {
  const LimitKey& key = store_.limit_keys[at];
  return (key.config.load() & (kLimitSetByOperator | kLimitOfType | kLimitOfTenant)) == 0 &&
         !limit_name(store_, at).starts_with(kPoolLimit) &&
         Permits(store_).count(key.permits) == 0 && Rates(store_).begun(key, now) == 0 &&
         key.next_us.load() <= now * 1000 && Rates::closed_until(key, now) == 0;
}

/// Makes a key that was given up as good as new. May be cut off anywhere and begun again.
void LimitSetter::clean(std::uint32_t at) {
  LimitKey& key = store_.limit_keys[at];
  for (Half& lot : key.lot) lot.store(0, Point::kLimitGivenUp);
  for (std::uint32_t lot = 0; lot < store_.lots.size(); ++lot)
    if (store_.lots[lot].key() == at) store_.lots[lot].owner.store(kLotGone, Point::kLotTaken);
  const Permits permits(store_);
  permits.set_limit(key.permits, at * 2, PermitSet::kNone);
  permits.drop(key.permits, at * 2);
  permits.drop(key.log, at * 2 + 1);
  for (Word* word : {&key.rate, &key.throttle, &key.window, &key.begun, &key.next_us,
                     &key.closed_until, &key.exceeded, &key.released, &key.dropped})
    word->store(0, Point::kLimitGivenUp);
  key.config.store((key.config.load() & ~(kLimitVersion - 1)) + kLimitVersion,
                   Point::kLimitGivenUp);
}

/// Gives up what is not needed, but for the key that the caller has in mind. Returns how many. A
/// lost job that is retried after its key was given up has none, or that of another: keys that such
/// jobs name go only when no other does.
std::uint32_t LimitSetter::sweep(std::uint32_t keep) {
  Word& turn = store_.header().limit_turn;
  turn.fetch_add(1, Point::kLimitTurn);  // 1. PAIR limit-turn
  std::uint32_t given_up = 0;
  if (others_are_through()) {                    // 2
    given_up = give_up(named_keys(true), keep);  // 3
    if (given_up == 0) given_up = give_up(named_keys(false), keep);
    forget_gone();
  }
  turn.fetch_add(1, Point::kLimitTurn);  // 5
  return given_up;
}

std::uint32_t LimitSetter::give_up(const std::vector<bool>& named, std::uint32_t keep) {
  std::uint32_t given_up = 0;
  const std::uint64_t now = store_.now_ms();
  for (std::uint32_t at = 0; at < store_.limit_keys.size(); ++at) {
    LimitKey& key = store_.limit_keys[at];
    const std::uint64_t name = key.name_hash.load();
    const bool stays = named[at] || at == keep || !is_idle(at, now);
    if (name <= kLimitGone || stays) continue;
    key.name_hash.store(kLimitGone, Point::kLimitGivenUp);  // 4
    clean(at);
    ++given_up;
  }
  return given_up;
}

/// A key that was given up and has no other behind it in its row need not be passed by any more.
void LimitSetter::forget_gone() {
  const std::uint32_t keys = store_.limit_keys.size();
  for (std::uint32_t i = keys * 2; i > 0; --i) {
    LimitKey& key = store_.limit_keys[(i - 1) % keys];
    if (key.name_hash.load() != kLimitGone || store_.limit_keys[i % keys].name_hash.load() != 0)
      continue;
    clean((i - 1) % keys);
    key.name_hash.store(0, Point::kLimitGivenUp);
  }
}

}  // namespace ojs_shm::engine
