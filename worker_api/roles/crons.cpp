// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/cron.hpp>

#include <algorithm>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/worker.hpp>

#include "engine/crons/crons.hpp"
#include "worker_api/cron/schedule.hpp"
#include "worker_api/json/cron_text.hpp"
#include "worker_api/roles/admin_impl.hpp"
#include "worker_api/roles/cron_keeper.hpp"
#include "worker_api/roles/crons.hpp"
#include "worker_api/roles/producer_impl.hpp"
#include "worker_api/roles/results.hpp"

namespace ojs_shm {
namespace {

constexpr std::string_view kOverlapNames[] = {"skip", "enqueue", "allow", "cancel_previous"};

Error invalid(std::string_view member, std::string message, std::uint64_t bound = 0) {
  return Error{Code::kInvalid, std::move(message)}.about(std::string(member)).at_most(bound);
}

Error no_cron(std::string_view name) {
  return Error{Code::kNotFound, "no cron named '" + std::string(name) + "'"}.about("cron");
}

Status check(const CronSpec& spec) {
  const auto of_a_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  if (spec.name.empty() || spec.name.size() > kLongestCronName ||
      !std::ranges::all_of(spec.name, of_a_name) || spec.name[0] == '-' || spec.name[0] == '.')
    return invalid("name",
                   "name must be 1 to 255 characters of [a-z0-9.-], with a letter or a digit in "
                   "front",
                   kLongestCronName);
  const auto too_long = [](std::string_view text, std::string_view member, std::size_t most) {
    return text.size() <= most ? Status()
                               : invalid(member,
                                         std::string(member) + " is longer than the " +
                                             std::to_string(most) + " bytes it may be",
                                         most);
  };
  for (const Status& fits : {too_long(spec.expression, "expression", kLongestCronExpression),
                             too_long(spec.timezone, "timezone", kLongestTimezone),
                             too_long(spec.description, "description", kLongestCronDescription)})
    if (!fits) return fits;
  if (!spec.job.id.empty())
    return invalid("id", "the jobs of a cron get ids of their own: leave id out");
  if (spec.job.scheduled_at_ms != 0)
    return invalid("scheduled_at", "the jobs of a cron come at its times: leave scheduled_at out");
  if (spec.overlap == CronOverlap::kEnqueue && spec.job.limit != nullptr)
    return invalid("rate_limit",
                   "overlap 'enqueue' is a limit of its own: take 'allow' beside a rate_limit");
  return {};
}

/// The engine's act, and again when a dead process was in the way or keys of limits were given up.
template <class Act>
engine::Outcome patiently(internal::Handle& handle, const Act& act) {
  constexpr int kMostTurns = 32;
  engine::Outcome outcome = act();
  for (int i = 0; i < kMostTurns && outcome == engine::Outcome::kLimitsMoved; ++i) {
    handle.attachment().repair_the_dead();
    outcome = act();
  }
  if (internal::may_be_the_dead(outcome) && handle.attachment().repair_the_dead() != 0)
    outcome = act();
  return outcome;
}

Error failed(engine::Outcome outcome, engine::Store& store, std::uint32_t queue,
             std::string_view name) {
  if (outcome == engine::Outcome::kNotFound) return no_cron(name);
  if (outcome == engine::Outcome::kBusy)
    return Error{Code::kTimeout, "a stopped process is in the middle of changing a cron"}.about(
        "cron");
  return internal::error_of(outcome, store, queue, "body");
}

std::uint64_t first_time(const CronSchedule& schedule, std::uint64_t now) {
  const auto next = schedule.next_after(static_cast<std::int64_t>(now));
  return next && *next > 0 ? static_cast<std::uint64_t>(*next) : 0;
}

std::optional<CronInfo> describe(const engine::Store& store, std::uint32_t at) {
  for (int look = 0; look < 64; ++look) {
    const engine::CronFacts facts = engine::look_at_cron(store, at);
    if (!facts.control.there()) return std::nullopt;
    auto from = engine::read_template(store, facts.control.slot());
    if (!from && engine::CronControl(store.crons[at].control.load()).word == facts.control.word)
      return std::nullopt;  // damaged
    if (!from) continue;
    CronInfo info;
    info.name = from->texts.name;
    info.expression = from->texts.expression;
    info.timezone = from->texts.timezone;
    info.description = from->texts.description;
    info.overlap = static_cast<CronOverlap>(facts.control.overlap());
    info.enabled = facts.control.enabled();
    info.created_at_ms = facts.created_at;
    info.next_run_at_ms = facts.next;
    info.last_run_at_ms = facts.last;
    info.run_count = facts.runs;
    info.skipped_count = facts.skips;
    if (facts.last_job != engine::JobId{}) info.last_job = engine::to_string(facts.last_job);
    const std::uint16_t age_rate = std::exchange(from->job.attempt, std::uint16_t{0});
    from->job.control = engine::Control(engine::kSlotPending, from->job.control.ring(), 0, 0);
    from->job.created_at = 0;
    info.job = internal::info_of(store, from->job);
    info.job.id.clear();
    if (age_rate != 0) info.job.priority_age_rate = age_rate - 1;
    return info;
  }
  return std::nullopt;
}

}  // namespace

std::string_view cron_overlap_name(CronOverlap overlap) noexcept {
  const auto at = static_cast<std::size_t>(overlap);
  return at < std::size(kOverlapNames) ? kOverlapNames[at] : "";
}

std::optional<CronOverlap> cron_overlap_by_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kOverlapNames); ++i)
    if (name == kOverlapNames[i]) return static_cast<CronOverlap>(i);
  return std::nullopt;
}

Result<std::vector<std::uint64_t>> cron_times(std::string_view expression,
                                              std::string_view timezone, std::uint64_t after_ms,
                                              std::size_t count) {
  const auto schedule = CronSchedule::read(expression, timezone);
  if (!schedule) return schedule.error();
  std::vector<std::uint64_t> times;
  for (std::uint64_t time = after_ms; times.size() < count; times.push_back(time))
    if (time = first_time(*schedule, time); time == 0) break;
  return times;
}

Error internal::no_cron_left() {
  return Error{Code::kSegmentFull,
               "all " + std::to_string(engine::kCrons) + " places for crons are taken; remove one"}
      .about("crons")
      .uses(engine::kCrons, engine::kCrons, "crons");
}

// ---- an operator's part -------------------------------------------------------------------------

Result<bool> Admin::set_cron(const CronSpec& spec) {
  internal::Handle& handle = *impl_->handle;
  if (handle.closed()) return internal::closed();
  if (const Status checked = check(spec); !checked) return checked.error();
  const auto schedule = CronSchedule::read(spec.expression, spec.timezone);
  if (!schedule) return schedule.error();
  // Jobs that wait for each other are those of a limit of one.
  JobSpec job = spec.job;
  std::deque<std::string> texts;
  internal::keep_result_ttl(job, texts);
  const JobLimit one_by_one{"cron:" + std::string(spec.name.substr(0, 251)), {.concurrency = 1}};
  if (spec.overlap == CronOverlap::kEnqueue) job.limit = &one_by_one;

  engine::NewCron cron;
  cron.texts = {std::string(spec.name), std::string(spec.expression), std::string(spec.timezone),
                std::string(spec.description)};
  cron.overlap = static_cast<engine::CronOverlap>(spec.overlap);
  cron.enabled = spec.enabled;
  cron.lifetime_ms = spec.job.expires_at_ms;
  bool made = false;
  auto fault = internal::SpecFault::kNone;
  const engine::Outcome outcome = patiently(handle, [&] {
    fault = handle.read(job, cron.job);
    if (fault != internal::SpecFault::kNone) return engine::Outcome::kOk;
    cron.next = first_time(*schedule, handle.store().now_ms());
    return handle.actor().crons().define(cron, made);
  });
  if (fault != internal::SpecFault::kNone) return internal::error_of(fault, job, handle.store());
  if (outcome != engine::Outcome::kOk)
    return failed(outcome, handle.store(), cron.job.queue, spec.name);
  return made;
}

Status Admin::remove_cron(std::string_view name) {
  internal::Handle& handle = *impl_->handle;
  if (handle.closed()) return internal::closed();
  const engine::Outcome outcome =
      patiently(handle, [&] { return handle.actor().crons().remove(name); });
  if (outcome != engine::Outcome::kOk)
    return failed(outcome, handle.store(), engine::kNoIndex, name);
  return {};
}

Status Admin::enable_cron(std::string_view name, bool enabled) {
  internal::Handle& handle = *impl_->handle;
  if (handle.closed()) return internal::closed();
  Status unread;
  const auto next_of = [&](const engine::CronTexts& texts) -> std::optional<std::uint64_t> {
    const auto schedule = CronSchedule::read(texts.expression, texts.timezone);
    if (schedule) return first_time(*schedule, handle.store().now_ms());
    unread = schedule.error();
    return std::nullopt;
  };
  const engine::Outcome outcome =
      patiently(handle, [&] { return handle.actor().crons().enable(name, enabled, next_of); });
  if (!unread) return unread;
  if (outcome != engine::Outcome::kOk)
    return failed(outcome, handle.store(), engine::kNoIndex, name);
  return {};
}

Result<JobIdText> Admin::trigger_cron(std::string_view name) {
  internal::Handle& handle = *impl_->handle;
  if (handle.closed()) return internal::closed();
  engine::JobId id;
  std::uint32_t queue = engine::kNoIndex;
  const engine::Outcome outcome =
      patiently(handle, [&] { return handle.actor().crons().trigger(name, id, queue); });
  switch (outcome) {
    case engine::Outcome::kOk: return internal::text_of(id);
    case engine::Outcome::kWrongState:
      return Error{Code::kWrongState, "the last job of cron '" + std::string(name) +
                                          "' is not finished, and its overlap is 'skip'"}
          .about("cron");
    case engine::Outcome::kClash:
      return internal::key_taken(handle.actor().conflicts().clash, "of cron " + std::string(name));
    default: return failed(outcome, handle.store(), queue, name);
  }
}

Status internal::import_cron(
    Admin& admin, std::string_view text,
    const std::function<Result<std::uint8_t>(std::int64_t priority)>& rank_of) {
  const engine::Store& store = admin.segment().attachment()->store();
  const auto read = parse_cron(text, store.now_ms());
  if (!read) return read.error();
  CronSpec& spec = (*read)->spec;
  if (spec.job.priority) {
    const Result<std::uint8_t> rank = rank_of(*spec.job.priority);
    if (!rank) return rank.error();
    spec.job.priority = engine::priority_of(store.convention(), *rank);
  }
  const auto set = admin.set_cron(spec);
  return set ? Status() : Status(set.error());
}

std::string Job::cron_name() const {
  if (segment_ == nullptr) return {};
  const engine::Store& store = segment_->store();
  const engine::JobRecord& job = store.job(slot_);
  if ((job.signals.load() & engine::kOfCron) == 0) return {};
  const engine::NewAnnex annex = engine::read_annex(job.annex(), engine::kOfCron);
  // while it is held, the slot is its own
  return job.control.load() == word_ ? engine::cron_of(store, annex) : std::string();
}

// ---- looking ------------------------------------------------------------------------------------

std::vector<CronInfo> Observer::crons() const {
  const engine::Store& store = segment_.attachment()->store();
  std::vector<CronInfo> crons;
  for (std::uint32_t at = 0; at < engine::kCrons; ++at)
    if (auto info = describe(store, at)) crons.push_back(std::move(*info));
  std::ranges::sort(crons, {}, &CronInfo::name);
  return crons;
}

Result<CronInfo> Observer::cron(std::string_view name) const {
  const engine::Store& store = segment_.attachment()->store();
  for (int look = 0; look < 64; ++look) {
    const std::uint32_t at = engine::find_cron(store, name);
    if (at == engine::kNoIndex) break;
    if (auto info = describe(store, at); info && info->name == name) return std::move(*info);
  }
  return no_cron(name);
}

}  // namespace ojs_shm
