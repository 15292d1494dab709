// SPDX-License-Identifier: Apache-2.0
#include "engine/limits/rates.hpp"

#include <algorithm>
#include <bit>

#include "engine/tables/store.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

using CountBits = shm::Field<0, 28>;
using WindowBits = shm::Field<28, 36>;
/// An entry of the log: 63..22 when it began, ms  21..0 its number's low bits
using NumberBits = shm::Field<0, 22>;
using TimeBits = shm::Field<22, 42>;

constexpr std::uint64_t window_of(WindowRule rule, std::uint64_t now) {
  return now / rule.period_ms() & WindowBits::kMax;
}
constexpr std::uint64_t count_in(std::uint64_t spent, std::uint64_t window) {
  return WindowBits::get(spent) == window ? CountBits::get(spent) : 0;
}

/// When the throttle lets the next begin, microseconds.
constexpr std::uint64_t earliest_us(ThrottleRule rule, std::uint64_t next_us) {
  const std::uint64_t slack = (rule.burst() - 1ULL) * rule.interval_us();
  return next_us > slack ? next_us - slack : 0;
}

std::uint32_t capacity(const LimitKey& key) {
  const std::uint64_t high = key.log.high.load();
  return std::bit_ceil(static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(high, kPermitsPerPage, kMostInSlidingWindow)));
}

}  // namespace

/// When the one of that number began; 0 when the log has forgotten. It stands at its number modulo
/// the log's size then, and the log has only grown since.
std::uint64_t Rates::time_of(const LimitKey& key, std::uint64_t number) const {
  if (number == 0 || key.log.high.load() == 0) return 0;
  for (std::uint32_t size = capacity(key); size >= kPermitsPerPage; size /= 2) {
    const std::uint64_t entry =
        Permits(store_).at(key.log, static_cast<std::uint32_t>(number % size)).load();
    if (NumberBits::get(entry) == (number & NumberBits::kMax)) return TimeBits::get(entry);
  }
  return 0;
}

std::uint64_t Rates::next_in_window(const LimitKey& key, WindowRule rule, std::uint64_t now) const {
  if (!rule.sliding()) {
    const std::uint64_t window = window_of(rule, now);
    return count_in(key.window.load(), window) < rule.most()
               ? 0
               : (now / rule.period_ms() + 1) * rule.period_ms();
  }
  const std::uint64_t begun = key.begun.load();
  if (begun < rule.most()) return 0;
  const std::uint64_t first = time_of(key, begun + 1 - rule.most());
  return first + rule.period_ms() > now ? first + rule.period_ms() : 0;
}

std::uint64_t Rates::next(const LimitKey& key, std::uint64_t now) const {
  std::uint64_t at = closed_until(key, now);
  if (const WindowRule rule(key.rate.load()); rule.word != 0)
    at = std::max(at, next_in_window(key, rule, now));
  if (const ThrottleRule rule(key.throttle.load()); rule.word != 0)
    if (const std::uint64_t us = earliest_us(rule, key.next_us.load()); us > now * 1000)
      at = std::max(at, (us + 999) / 1000);
  return at;
}

/// 1. it is closed for as long; 2. it becomes so.
void Rates::close(LimitKey& key, std::uint64_t until) {
  std::uint64_t found = key.closed_until.load();
  while (found < until &&                                              // 1
         !key.closed_until.cas(found, until, Point::kLimitClosed)) {}  // 2
}

bool Rates::take_fixed(LimitKey& key, WindowRule rule, std::uint64_t now) const {
  const std::uint64_t window = window_of(rule, now);
  std::uint64_t found = key.window.load();
  for (;;) {
    const std::uint64_t count = count_in(found, window);
    if (count >= rule.most()) return false;
    if (key.window.cas(found, WindowBits::put(window) | CountBits::put(count + 1),
                       Point::kRateTaken))
      return true;
  }
}

/// 1. the one `most` places before us began a period ago; 2. our number is had by one cas on its
///    place in the log; 3. it is
/// taken: help the count on, and try the next. A place says which number it holds, so that a slow
/// cas fails.
bool Rates::take_sliding(LimitKey& key, WindowRule rule, std::uint64_t now) const {
  for (;;) {
    const std::uint64_t config = key.config.load();
    const std::uint64_t begun = key.begun.load(), mine = begun + 1;
    // 1
    if (begun >= rule.most() && time_of(key, mine - rule.most()) + rule.period_ms() > now)
      return false;
    const std::uint64_t stamp = std::max(now, time_of(key, begun));
    Word& place = Permits(store_).at(key.log, static_cast<std::uint32_t>(mine % capacity(key)));
    const std::uint64_t found = place.load();
    if (key.begun.load() != begun) continue;
    const std::uint64_t entry = TimeBits::put(stamp) | NumberBits::put(mine);
    const bool taken = NumberBits::get(found) == (mine & NumberBits::kMax) ||  // 3
                       !place.cas_once(found, entry, Point::kRateTaken);       // 2
    key.begun.cas_once(begun, mine, Point::kRateTaken);
    if (!taken && key.config.load() == config) return true;
  }
}

bool Rates::take_throttle(LimitKey& key, ThrottleRule rule, std::uint64_t now) const {
  std::uint64_t found = key.next_us.load();
  for (;;) {
    if (earliest_us(rule, found) > now * 1000) return false;
    if (key.next_us.cas(found, std::max(found, now * 1000) + rule.interval_us(), Point::kRateTaken))
      return true;
  }
}

bool Rates::take(LimitKey& key, std::uint64_t now) const {
  const ThrottleRule throttle(key.throttle.load());
  const WindowRule window(key.rate.load());
  if (throttle.word != 0 && !take_throttle(key, throttle, now)) return false;
  if (window.word == 0 ||
      (window.sliding() ? take_sliding(key, window, now) : take_fixed(key, window, now)))
    return true;
  if (throttle.word != 0) key.next_us.fetch_add(0 - throttle.interval_us(), Point::kRateGiven);
  return false;
}

void Rates::set_pace(LimitKey& key, ThrottleRule rule, std::uint64_t now) {
  key.throttle.store(rule.word, Point::kSetChanged);
  const std::uint64_t latest = now * 1000 + rule.burst() * rule.interval_us();
  std::uint64_t found = key.next_us.load();
  while (rule.word != 0 && found > latest &&
         !key.next_us.cas(found, now * 1000, Point::kRateGiven)) {}
}

void Rates::give_back(LimitKey& key, std::uint64_t now) const {
  if (const ThrottleRule throttle(key.throttle.load()); throttle.word != 0) {
    // The rule may be another since.
    std::uint64_t next = key.next_us.load();
    while (
        !key.next_us.cas(next, next - std::min(next, throttle.interval_us()), Point::kRateGiven)) {}
  }
  const WindowRule rule(key.rate.load());
  if (rule.word == 0 || rule.sliding()) return;
  std::uint64_t found = key.window.load();
  while (count_in(found, window_of(rule, now)) > 0 &&
         !key.window.cas(found, found - 1, Point::kRateGiven)) {}
}

std::uint32_t Rates::begun(const LimitKey& key, std::uint64_t now) const {
  const WindowRule rule(key.rate.load());
  if (rule.word == 0) return 0;
  if (!rule.sliding())
    return static_cast<std::uint32_t>(count_in(key.window.load(), window_of(rule, now)));
  std::uint32_t count = 0;
  const std::uint64_t last = key.begun.load();
  while (count < rule.most() && count < last && time_of(key, last - count) + rule.period_ms() > now)
    ++count;
  return count;
}

}  // namespace ojs_shm::engine
