// SPDX-License-Identifier: Apache-2.0
#include "engine/limits/limits.hpp"

#include <algorithm>

#include "engine/actor.hpp"
#include "engine/limits/limit_setter.hpp"
#include "engine/limits/rates.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tables/queue_flags.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "shm/blocks.hpp"

namespace ojs_shm::engine {

using shm::Point;

// ---- reading ------------------------------------------------------------------------------------

std::string limit_name(const Store& store, std::uint32_t i) {
  const LimitKey& key = store.limit_keys[i];
  std::string name(std::min<std::uint64_t>(key.name_length.load(), sizeof key.name), '\0');
  shm::copy_out(name.data(), key.name, name.size());
  return name;
}

std::uint64_t hash_limit(std::string_view name) {
  return name.starts_with(kTenantLimit) ? hash_tenant(name.substr(kTenantLimit.size()))
                                        : Store::hash_name(name);
}

/// Keys stand at their hash or behind it, without a gap, and are compared by name: no two share
/// one.
std::uint32_t find_limit(const Store& store, std::string_view name) {
  const std::uint64_t hash = hash_limit(name);
  for (std::uint32_t i = 0; i < store.limit_keys.size(); ++i) {
    const auto at = static_cast<std::uint32_t>((hash + i) % store.limit_keys.size());
    const std::uint64_t found = store.limit_keys[at].name_hash.load();  // PAIR limit-name
    if (found == 0) break;
    if (found == hash && limit_name(store, at) == name) return at;
  }
  return kNoIndex;
}

std::uint32_t find_tenant_limit(const Store& store, std::uint64_t tenant) {
  for (std::uint32_t i = 0; i < store.limit_keys.size(); ++i) {
    const auto at = static_cast<std::uint32_t>((tenant + i) % store.limit_keys.size());
    const LimitKey& key = store.limit_keys[at];
    const std::uint64_t found = key.name_hash.load();  // PAIR limit-name
    if (found == 0) break;
    if (found == tenant && (key.config.load() & kLimitOfTenant) != 0) return at;
  }
  return kNoIndex;
}

LimitSettings settings_of(const LimitKey& key) {
  LimitSettings settings;
  const WindowRule window(key.rate.load());
  const ThrottleRule throttle(key.throttle.load());
  settings.concurrency = PermitSet::limit_of(key.permits.limit.load());
  settings.on_limit = on_limit_of(key.config.load());
  if (window.word != 0) {
    settings.rate = window.most();
    settings.rate_period_ms = static_cast<std::uint32_t>(window.period_ms());
    settings.sliding = window.sliding();
  }
  if (throttle.word != 0) {
    settings.throttle = throttle.most();
    settings.throttle_period_ms = throttle.period_ms();
    settings.burst = throttle.burst();
  }
  return settings;
}

void LimitList::add(std::uint32_t added, bool is_gate) {
  if (count == kMost || added > 0xFFFE) return;
  unsigned at = 0;
  while (at < count && key[at] < added) ++at;
  if (at < count && key[at] == added) {
    gates |= static_cast<std::uint32_t>(is_gate) << at;
    return;
  }
  for (unsigned i = count; i > at; --i) key[i] = key[i - 1];
  const std::uint32_t below = gates & ((1U << at) - 1);
  gates = below | static_cast<std::uint32_t>(is_gate) << at | (gates & ~((1U << at) - 1)) << 1;
  key[at] = static_cast<std::uint16_t>(added);
  ++count;
}

namespace {

/// The key on the job's type, or kNoIndex.
std::uint32_t type_limit(const Store& store, std::uint32_t slot, const JobRecord& job) {
  std::string name(kTypeLimit);
  const std::uint32_t length = job.type_length();
  if (job.body_block.get() == kNoIndex) {
    std::string type(std::min<std::size_t>(length, kInlineBytes), '\0');
    shm::copy_out(type.data(), job.inline_bytes, type.size());
    name += type;
  } else {
    shm::Blocks::read(store.segment(), job.body_block.get(), slot, job.generation.get(), length,
                      name);
  }
  return find_limit(store, name);
}

}  // namespace

LimitList limits_of(const Store& store, std::uint32_t slot, const JobRecord& job, bool held) {
  LimitList list;
  const std::uint32_t limits = job.limits.get();
  if (const std::uint32_t own = own_limit(limits); own < store.limit_keys.size())
    list.add(own, false);
  const std::uint64_t kinds = store.header().limiting.load();
  if ((kinds & kLimitsTenants) != 0 && job.tenant.get() != 0)
    if (const std::uint32_t key = find_tenant_limit(store, job.tenant.get()); key != kNoIndex)
      list.add(key, false);
  if ((kinds & kLimitsTypes) != 0)
    if (const std::uint32_t key = type_limit(store, slot, job);
        key != kNoIndex && (store.limit_keys[key].config.load() & kLimitOfType) != 0)
      list.add(key, false);
  if ((kinds & kLimitsQueues) != 0)
    if (const std::uint64_t key = store.queue(job.queue.get()).limit.load();
        key != 0 && key <= store.limit_keys.size())
      list.add(static_cast<std::uint32_t>(key - 1), true);
  if (held)
    if (const std::uint32_t key = second_limit(limits); key < store.limit_keys.size())
      list.add(key, true);
  return list;
}

bool may_begin(const Store& store, const LimitKey& key, std::uint64_t now, std::uint64_t* at) {
  const std::uint64_t next = Rates(store).next(key, now);
  if (at != nullptr) *at = next;
  return next == 0 && Permits(store).has_room(key.permits);
}

namespace {

LimitRule rule_in_the_way(const Store& store, const LimitKey& key, std::uint64_t now) {
  const Rates rates(store);
  const WindowRule window(key.rate.load());
  const ThrottleRule throttle(key.throttle.load());
  if (!Permits(store).has_room(key.permits)) return LimitRule::kConcurrency;
  if (Rates::closed_until(key, now) != 0) return LimitRule::kReport;
  if (window.word != 0 && rates.begun(key, now) >= window.most()) return LimitRule::kRate;
  if (throttle.word != 0 && rates.next(key, now) != 0) return LimitRule::kThrottle;
  if (settings_of(key).concurrency != PermitSet::kNone) return LimitRule::kConcurrency;
  return window.word != 0 ? LimitRule::kRate : LimitRule::kThrottle;
}

}  // namespace

std::uint64_t describe_rule(const Store& store, std::uint32_t key, std::uint64_t now) {
  const LimitRule rule = rule_in_the_way(store, store.limit_keys[key], now);
  return key | static_cast<std::uint64_t>(rule) << 32;
}

bool occupied(const ParkingLot& lot) {
  return std::ranges::any_of(lot.rings.index, [](const Word& word) {
    return static_cast<std::uint32_t>(word.load()) != 0;
  });
}

std::uint32_t find_lot(const Store& store, const LimitKey& key, std::uint32_t queue) {
  for (const Half& name : key.lot) {
    const std::uint32_t lot = name.load() - 1;  // PAIR lot-name
    if (lot >= store.lots.size()) break;
    if (store.lots[lot].queue() == queue) return lot;
  }
  return kNoIndex;
}

// ---- setting ------------------------------------------------------------------------------------

bool LimitSetter::begin() {
  if (!seat().take()) return false;
  end_sweep();  // of none that is still at it
  return true;
}

void LimitSetter::end_sweep() {
  if (Word& turn = store_.header().limit_turn; turn.load() % 2 != 0)
    turn.fetch_add(1, Point::kLimitTurn);
}

void LimitSetter::end() { seat().leave(); }

/// A place that is free, or that was given up.
std::uint32_t LimitSetter::place_for(std::uint64_t hash) const {
  // never full, so that look-ups stay short
  for (std::uint32_t i = 0; i < store_.limit_keys.size() * 7 / 8; ++i)
    if (const auto at = static_cast<std::uint32_t>((hash + i) % store_.limit_keys.size());
        store_.limit_keys[at].name_hash.load() <= kLimitGone)
      return at;
  return kNoIndex;
}

/// The key of that name, made if need be; the caller is the settler. No lane sees a key before its
/// hash, which comes last.
std::uint32_t LimitSetter::name_key(std::string_view name) {
  if (const std::uint32_t known = find_limit(store_, name); known != kNoIndex) return known;
  const std::uint64_t hash = hash_limit(name);
  std::uint32_t at = place_for(hash);
  if (at == kNoIndex && sweep(kNoIndex) != 0) at = place_for(hash);
  if (at == kNoIndex) return kNoIndex;
  LimitKey& key = store_.limit_keys[at];
  if (key.name_hash.load() == kLimitGone) clean(at);
  shm::copy_in(key.name, name.data(), name.size());  // NO CRASH POINT: the hash comes last
  key.name_length.store(static_cast<std::uint32_t>(name.size()), Point::kLimitNamed);
  key.ends_at.store(0, Point::kLimitNamed);
  key.name_hash.store(hash, Point::kLimitNamed);  // PAIR limit-name
  return at;
}

/// When permits are short, those of keys that are not needed are taken.
Outcome LimitSetter::write(std::uint32_t at, const LimitSettings& settings, bool by_operator,
                           bool fresh, std::uint32_t ends_at_s) {
  const Outcome outcome = try_to_write(at, settings, by_operator, fresh, ends_at_s);
  if (outcome != Outcome::kNoLimits || sweep(at) == 0) return outcome;
  return try_to_write(at, settings, by_operator, fresh, ends_at_s);
}

Outcome LimitSetter::try_to_write(std::uint32_t at, const LimitSettings& settings, bool by_operator,
                                  bool fresh, std::uint32_t ends_at_s) {
  LimitKey& key = store_.limit_keys[at];
  const Permits permits(store_);
  store_.header().limit_settler.store((actor_.lane() + 1) | (at + 1ULL) << 32, Point::kSettlerSet);
  if (settings.sliding && !permits.set_limit(key.log, at * 2 + 1, settings.rate))
    return Outcome::kNoLimits;
  const bool was_limited = PermitSet::limit_of(key.permits.limit.load()) != PermitSet::kNone;
  if (!permits.set_limit(key.permits, at * 2, settings.concurrency)) return Outcome::kNoLimits;
  key.ends_at.store(ends_at_s, Point::kSetChanged);
  key.rate.store(WindowRule(settings.sliding, settings.rate, settings.rate_period_ms).word,
                 Point::kSetChanged);
  Rates::set_pace(key, ThrottleRule(settings.throttle, settings.throttle_period_ms, settings.burst),
                  store_.now_ms());
  const std::uint64_t before = key.config.load();
  key.config.store((((before >> 32) + 1) << 32) | (before & (kLimitOfTenant | kLimitOfType)) |
                       static_cast<std::uint64_t>(settings.on_limit) << 3 |
                       (by_operator ? kLimitSetByOperator : 0),
                   Point::kSetChanged);
  if (!fresh && !was_limited && settings.concurrency != PermitSet::kNone && !adopt(at))
    return Outcome::kNoLimits;
  return Outcome::kOk;
}

/// Whether a worker of the pool has the job.
bool LimitSetter::at_work_for(std::uint32_t pool, const JobRecord& job) const {
  const std::uint32_t owner = Control(job.control.load()).owner();
  if (owner == 0 || owner > store_.lanes()) return false;
  return PoolSeat(store_.segment().lane(owner - 1).counters[kPoolSeat].get_ordered()).at(pool);
}

/// Jobs of the key that were at work before it had a limit take permits of their own. A job that is
/// being claimed meanwhile has either seen the limit, or is seen here. In the end the limit moves
/// once more, so that no lane goes by what it counted before.
bool LimitSetter::adopt(std::uint32_t at) {
  LimitKey& key = store_.limit_keys[at];
  const Permits permits(store_);
  const std::string name = limit_name(store_, at);
  const std::uint32_t pool =
      name.starts_with(kPoolLimit) ? find_pool(store_, name.substr(kPoolLimit.size())) : kNoIndex;
  bool room = true;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    const JobRecord& job = store_.job(slot);
    const Permit holder(slot, job.generation.get());
    if (!permits.holds(holder)) continue;
    const LimitList list = limits_of(store_, slot, job, true);
    if (std::find(list.key.begin(), list.key.begin() + list.count, at) ==
            list.key.begin() + list.count &&
        (pool == kNoIndex || !at_work_for(pool, job)))
      continue;
    room = permits.adopt(key.permits, at * 2, holder) && room;
  }
  return permits.set_limit(key.permits, at * 2, PermitSet::limit_of(key.permits.limit.load())) &&
         room;
}

bool LimitSetter::count_at_work(std::uint32_t pool) {
  const std::uint32_t at =
      find_limit(store_, std::string(kPoolLimit).append(pool_name(store_, pool)));
  if (at == kNoIndex) return true;
  if (!begin()) return false;
  store_.header().limit_settler.store((actor_.lane() + 1) | (at + 1ULL) << 32, Point::kSettlerSet);
  adopt(at);
  end();
  return true;
}

/// Lets `limiting` and the queue say that the key is there. What a job brings holds for such jobs
/// alone, whatever its name.
void LimitSetter::follow(std::string_view name, std::uint32_t at) {
  std::uint64_t kind = kLimitsJobs;
  if (name.starts_with(kTypeLimit)) kind = kLimitsTypes;
  if (name.starts_with(kTenantLimit)) kind = kLimitsTenants;
  if (kind != kLimitsJobs)
    store_.limit_keys[at].config.fetch_or(kind == kLimitsTypes ? kLimitOfType : kLimitOfTenant,
                                          Point::kSetChanged);
  if (name.starts_with(kQueueLimit)) {
    const std::uint32_t q = actor_.ensure_queue(name.substr(kQueueLimit.size()));
    if (q == kNoIndex) return;
    store_.queue(q).limit.store(at + 1, Point::kSetChanged);
    set_flags(store_.queue(q), 0, kLimited);
    kind = kLimitsQueues;
  }
  store_.header().limiting.fetch_or(kind | kLimitsJobs, Point::kSetChanged);
}

namespace {

/// The queue on which the key stands, or kNoIndex.
std::uint32_t queue_of(const Store& store, std::string_view name) {
  return name.starts_with(kQueueLimit) ? store.find_queue(name.substr(kQueueLimit.size()))
                                       : kNoIndex;
}

}  // namespace

/// The supervisor looks at `limits_end`, so it comes first: a death leaves a look for nothing.
void LimitSetter::announce_end(std::uint32_t ends_at_s) {
  const std::uint64_t end = std::uint64_t{ends_at_s} * 1000;
  Word& next = store_.header().limits_end;
  if (const std::uint64_t known = next.load(); end != 0 && (known == 0 || end < known))
    next.store(end, Point::kSetChanged);
}

std::uint64_t LimitSetter::end_overrides(std::uint64_t now) {
  Word& next = store_.header().limits_end;
  const std::uint64_t announced = next.load();
  if (announced == 0 || announced > now) return announced;
  if (!begin()) return now + 10;
  std::vector<std::uint32_t> ended;
  std::uint64_t earliest = 0;
  for (std::uint32_t at = 0; at < store_.limit_keys.size(); ++at) {
    const LimitKey& key = store_.limit_keys[at];
    const std::uint64_t end = std::uint64_t{key.ends_at.load()} * 1000;
    if (end == 0 || key.name_hash.load() <= kLimitGone) continue;
    if (end > now) {
      earliest = earlier(earliest, end);
      continue;
    }
    write(at, LimitSettings{}, false, true);  // it needs nothing, so it succeeds
    ended.push_back(at);
  }
  next.store(earliest, Point::kSetChanged);
  end();
  for (const std::uint32_t at : ended) let_begin(at, limit_name(store_, at));
  return earliest;
}

/// What may begin now that the key has other limits.
void LimitSetter::let_begin(std::uint32_t at, std::string_view name) {
  actor_.let_more_begin(at, kLotsPerKey * 2);
  if (const std::uint32_t q = queue_of(store_, name); q != kNoIndex)
    actor_.bell().wake_all(store_.queue(q));
}

Outcome LimitSetter::define(std::string_view name, const LimitSettings& settings,
                            std::uint32_t ends_at_s) {
  if (name.starts_with(kQueueLimit) &&
      actor_.ensure_queue(name.substr(kQueueLimit.size())) == kNoIndex)
    return Outcome::kNoQueues;
  if (!begin()) return Outcome::kBusy;
  const std::uint32_t at = name_key(name);
  // before the limit: a lane that claims a job from now on asks for it
  if (at != kNoIndex) follow(name, at);
  if (at != kNoIndex) announce_end(ends_at_s);
  const Outcome outcome =
      at == kNoIndex ? Outcome::kNoLimits : write(at, settings, true, false, ends_at_s);
  // An operator's word counts for more than that of a job that closed the key.
  if (outcome == Outcome::kOk) store_.limit_keys[at].closed_until.store(0, Point::kLimitClosed);
  end();
  if (outcome != Outcome::kOk) return outcome;
  let_begin(at, name);
  if (ends_at_s != 0) actor_.bell().ring_supervisor_for(std::uint64_t{ends_at_s} * 1000);
  return outcome;
}

/// 1. it stands as the job wants it: nothing to do; 2. an operator has set it: what jobs bring does
///    not count; 3. the last
/// that was brought holds.
Outcome LimitSetter::bring(std::string_view name, const LimitSettings& settings,
                           std::uint32_t& at) {
  at = find_limit(store_, name);
  const auto stands = [&] {
    return at != kNoIndex &&
           (!settings.any() || (store_.limit_keys[at].config.load() & kLimitSetByOperator) != 0 ||
            settings_of(store_.limit_keys[at]) == settings);
  };
  if (stands() && store_.header().limit_turn.load() % 2 == 0) return Outcome::kOk;  // 1, 2
  if (!begin()) return Outcome::kBusy;
  Outcome outcome = Outcome::kOk;
  const bool fresh = find_limit(store_, name) == kNoIndex;  // no job can have it yet
  at = name_key(name);
  if (at == kNoIndex) {
    outcome = Outcome::kNoLimits;
  } else {
    store_.header().limiting.fetch_or(kLimitsJobs, Point::kSetChanged);
    if (!stands()) outcome = write(at, settings, false, fresh);  // 3
  }
  end();
  if (outcome == Outcome::kOk) actor_.let_more_begin(at, kLotsPerKey * 2);
  return outcome;
}

Outcome LimitSetter::clear(std::string_view name) {
  if (find_limit(store_, name) == kNoIndex) return Outcome::kNotFound;
  if (!begin()) return Outcome::kBusy;
  const std::uint32_t at = find_limit(store_, name);
  if (at != kNoIndex) write(at, LimitSettings{}, false, true);
  end();
  if (at == kNoIndex) return Outcome::kNotFound;
  let_begin(at, name);
  return Outcome::kOk;
}

void LimitSetter::end_change() {
  if (!seat().ours()) return;
  if (const std::uint64_t at = (store_.header().limit_settler.load() >> 32) - 1;
      at < store_.limit_keys.size()) {
    const auto key = static_cast<std::uint32_t>(at);
    if (PermitSet::limit_of(store_.limit_keys[key].permits.limit.load()) != PermitSet::kNone)
      adopt(key);
  }
  end_sweep();
  seat().leave();
}

}  // namespace ojs_shm::engine
