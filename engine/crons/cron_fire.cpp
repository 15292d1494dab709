// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "engine/crons/crons.hpp"
#include "engine/limits/limit_turn.hpp"
#include "engine/tables/job_look.hpp"

// Firing. The cron's job is a batch of one: the store that commits the batch commits also the next
// time of the cron. Two processes that both hold themselves for the supervisor take turns at the
// seat, and the second finds the time gone.

namespace ojs_shm::engine {

using shm::Point;

/// What a job of the cron is enqueued as. The views are the template's.
static NewJob job_of(const Store& store, const CronTemplate& from, std::uint64_t now) {
  const Snapshot& s = from.job;
  const std::string_view body(s.body);
  NewJob job;
  job.type = body.substr(0, s.type_length);
  job.args = body.substr(std::min<std::size_t>(body.size(), s.type_length), s.args_length);
  job.extra =
      body.substr(std::min<std::size_t>(body.size(), std::size_t{s.type_length} + s.args_length));
  job.queue = s.queue;
  job.rank = rank_of_ring(s.control.ring());
  job.expires_at = s.expires_at == 0 ? 0 : now + s.expires_at;
  job.times = s.times;
  job.timeout_ms = s.timeout_ms;
  job.lease_ms = s.lease_ms;
  job.pending = s.policy.has(Policy::kBornPending);
  job.retry = s.retry;
  if (s.attempt != 0) job.age_rate = static_cast<std::uint8_t>(s.attempt - 1);
  job.tenant = store.job(s.slot).tenant.get();
  // The template names the key, so that it stays; kNoIndex + 1 is none.
  job.limit = static_cast<std::uint16_t>(own_limit(s.limits) + 1);
  job.limits_turn = limits_turn(store);
  return job;
}

/// Whether the job waits, runs, or is to be tried again.
bool Crons::is_unfinished(JobId id) const {
  if (id == JobId{}) return false;
  const std::uint32_t slot = find_job(store_, id);
  return slot != kNoIndex && !is_finished(Control(store_.job(slot).control.load()).state());
}

/// The cron's next time stands in `facts` already; `due` is the one that came. This lane has the
/// seat.
Outcome Crons::run(std::uint32_t at, CronFacts facts, std::uint64_t due, JobId& id,
                   std::uint32_t& queue) {
  const std::uint64_t now = store_.now_ms();
  const bool unfinished = is_unfinished(facts.last_job);
  const CronOverlap overlap = facts.control.overlap();
  const auto from = read_template(store_, facts.control.slot());
  if (!from || from->job.queue >= store_.queue_count()) return Outcome::kNotFound;  // damaged
  queue = from->job.queue;
  if (unfinished && overlap == CronOverlap::kSkip) return Outcome::kWrongState;
  // A death in between leaves the time to the next supervisor.
  JobState before{};
  if (unfinished && overlap == CronOverlap::kCancelPrevious)
    (void)actor_.cancel(facts.last_job, before);
  NewJob job = job_of(store_, *from, now);
  NewAnnex annex = from->job.annex;
  annex.cron = static_cast<std::uint16_t>(at);
  annex.cron_life = facts.control.life();
  job.annex = &annex;
  facts.last = now;
  ++facts.runs;
  write_down(facts, CronControl(), due);
  firing_ = true;
  fired_ = at;
  std::vector<JobId> ids;
  const Outcome outcome = actor_.enqueue_batch(std::span(&job, 1), ids);
  const bool fired = !firing_;
  firing_ = false;
  if (!fired) return outcome == Outcome::kOk ? Outcome::kClash : outcome;
  id = ids.front();
  return Outcome::kOk;
}

void Crons::stage(JobId id) {
  CronTable& table = store_.cron_table();
  table.staged.last_hi.store(id.hi, Point::kCronStaged);
  table.staged.last_lo.store(id.lo, Point::kCronStaged);
  table.change.store(CronChange::of(CronChange::kFired, fired_).word, Point::kCronStaged);
  firing_ = false;
}

void Crons::skip(std::uint32_t at, CronFacts facts, std::uint64_t due, CronSkip why) {
  ++facts.skips;
  write_down(facts, CronControl(), due);
  commit(CronChange::of(CronChange::kSkipped, at, static_cast<std::uint64_t>(why)));
}

Outcome Crons::fire(std::uint32_t at, const CronFacts& seen, std::uint64_t next) {
  // The supervisor has other work than to wait for a stopped process.
  constexpr unsigned kGlance = std::min(kPatience, 256U);
  if (!seat().take(kGlance)) return Outcome::kBusy;
  CronFacts facts = read_facts(store_.crons[at]);
  Outcome outcome = Outcome::kEmpty;
  if (facts.control.word == seen.control.word && facts.control.enabled() && facts.next != 0 &&
      facts.next <= store_.now_ms()) {
    const std::uint64_t due = std::exchange(facts.next, next);
    JobId id;
    std::uint32_t queue = 0;
    outcome = run(at, facts, due, id, queue);
    switch (outcome) {
      case Outcome::kOk: break;
      case Outcome::kBusy:
      case Outcome::kLimitsMoved:
      case Outcome::kRivalMoved: outcome = Outcome::kBusy; break;
      case Outcome::kWrongState: skip(at, facts, due, CronSkip::kOverlap); break;
      case Outcome::kClash:
      case Outcome::kDuplicate: skip(at, facts, due, CronSkip::kDuplicate); break;
      case Outcome::kQueueFull:
      case Outcome::kMustWait: skip(at, facts, due, CronSkip::kQueueFull); break;
      case Outcome::kNotFound: skip(at, facts, due, CronSkip::kDamaged); break;
      default: skip(at, facts, due, CronSkip::kNoMemory);
    }
  }
  seat().leave();
  return outcome;
}

Outcome Crons::trigger(std::string_view name, JobId& id, std::uint32_t& queue) {
  if (!seat().take()) return Outcome::kBusy;
  const std::uint32_t at = find_cron(store_, name);
  const Outcome outcome =
      at == kNoIndex ? Outcome::kNotFound : run(at, read_facts(store_.crons[at]), 0, id, queue);
  seat().leave();
  return outcome;
}

/// The job that was enqueued, or the one in the way; then the cron's name.
void Crons::tell(CronChange change, const CronFacts& facts) {
  if (change.kind() == CronChange::kSet) return;
  const auto from = read_template(store_, facts.control.slot(), false);
  if (!from) return;
  EventFacts event;
  event.kind =
      change.kind() == CronChange::kFired ? EventKind::kCronTriggered : EventKind::kCronSkipped;
  event.rank =
      change.kind() == CronChange::kFired ? rank_of_ring(from->job.control.ring()) : change.why();
  event.queue = from->job.queue;
  event.job = facts.last_job;
  event.value = facts.next;
  event.tag = store_.cron_table().due.load();
  event.attempt = static_cast<std::uint16_t>(facts.runs);
  event.max_attempts = static_cast<std::uint16_t>(facts.runs >> 16);
  actor_.tellings().with_text(event, from->texts.name);
}

}  // namespace ojs_shm::engine
