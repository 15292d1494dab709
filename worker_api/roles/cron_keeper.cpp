// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/cron_keeper.hpp"

#include <algorithm>

#include "worker_api/cron/schedule.hpp"

namespace ojs_shm::internal {
namespace {

constexpr std::uint64_t kLongestSleepMs = 60'000;
/// until what another process is in the middle of is looked at again
constexpr std::uint64_t kBusyMs = 100;
/// until the end of a maintenance is looked for again
constexpr std::uint64_t kMaintainedMs = 1000;

}  // namespace

std::optional<std::uint64_t> next_time(const engine::CronTexts& texts, std::uint64_t due,
                                       std::uint64_t now) {
  const auto schedule = CronSchedule::read(texts.expression, texts.timezone);
  if (!schedule) return std::nullopt;
  const auto after = [&](std::uint64_t time) {
    const auto next = schedule->next_after(static_cast<std::int64_t>(time));
    return next && *next > 0 ? static_cast<std::uint64_t>(*next) : 0;
  };
  const std::uint64_t next = after(due);
  return next != 0 && next <= now ? after(now) : next;
}

std::uint64_t CronKeeper::look(std::uint64_t now) {
  const engine::Store& store = actor_.store();
  turn_ = store.cron_table().turn.load();  // PAIR cron-turn
  // The times that pass meanwhile are one afterwards, as all missed times are.
  if (engine::MaintenanceWord(store.header().maintenance.load()).on()) return now + kMaintainedMs;
  std::uint64_t again = now + kLongestSleepMs;
  for (std::uint32_t at = 0; at < engine::kCrons; ++at) {
    const engine::CronRecord& record = store.crons[at];
    if (!engine::CronControl(record.control.load()).enabled()) continue;
    const std::uint64_t due = record.next.load();
    if (due != 0) again = std::min(again, due > now ? due : fire(at, now));
  }
  return std::max(again, now + 1);
}

/// When to look at it again. Without its zone it does not fire: another process may have it.
std::uint64_t CronKeeper::fire(std::uint32_t at, std::uint64_t now) {
  const engine::Store& store = actor_.store();
  const engine::CronFacts seen = engine::look_at_cron(store, at);
  const auto from = engine::read_template(store, seen.control.slot(), false);
  // Without a template a cron passes its times over, and has no more.
  const auto next = from ? next_time(from->texts, seen.next, now) : std::optional<std::uint64_t>(0);
  if (!next) return now + kLongestSleepMs;
  if (actor_.crons().fire(at, seen, *next) == engine::Outcome::kBusy) return now + kBusyMs;
  return *next != 0 ? *next : now + kLongestSleepMs;
}

}  // namespace ojs_shm::internal
