// SPDX-License-Identifier: Apache-2.0
#include "engine/crons/crons.hpp"

#include "engine/limits/limit_turn.hpp"

// Setting crons, and what every change of one has in common.

namespace ojs_shm::engine {

using shm::Point;

Crons& Actor::crons() {
  if (!crons_) crons_ = std::make_unique<Crons>(*this);
  return *crons_;
}

namespace {

/// All of a record but its control word.
constexpr Word CronRecord::*kWords[] = {
    &CronRecord::next,       &CronRecord::last,    &CronRecord::runs,   &CronRecord::skips,
    &CronRecord::created_at, &CronRecord::last_hi, &CronRecord::last_lo};

std::uint64_t with(CronControl control, CronOverlap overlap, bool enabled, std::uint32_t slot) {
  using C = CronControl;
  std::uint64_t word = C::There::with(control.word, 1);
  word = C::Overlap::with(word, static_cast<std::uint64_t>(overlap));
  return C::Template::with(C::Enabled::with(word, enabled ? 1 : 0), slot);
}

}  // namespace

// ---- a change -----------------------------------------------------------------------------------

/// What the record shall be, and whose template goes with the change.
void Crons::write_down(const CronFacts& facts, CronControl leaving, std::uint64_t due) {
  CronTable& table = store_.cron_table();
  table.due.store(due, Point::kCronStaged);
  CronRecord& staged = table.staged;
  staged.control.store(facts.control.after_change().word, Point::kCronStaged);
  const std::uint64_t values[] = {facts.next,       facts.last,       facts.runs,
                                  facts.skips,      facts.created_at, facts.last_job.hi,
                                  facts.last_job.lo};
  for (std::size_t i = 0; i < std::size(values); ++i)
    (staged.*kWords[i]).store(values[i], Point::kCronStaged);
  const std::uint64_t old =
      !leaving.there() || leaving.slot() >= store_.slots()
          ? 0
          : std::uint64_t{store_.job(leaving.slot()).generation.get()} << 32 | (leaving.slot() + 1);
  table.leaving.store(old, Point::kCronStaged);
}

void Crons::commit(CronChange change) {
  store_.cron_table().change.store(change.word, Point::kCronCommitted);
  apply();
}

/// Does what is committed: 1. its template stands; 2. the record; 3. the old template goes.
void Crons::apply() {
  CronTable& table = store_.cron_table();
  const CronChange change{table.change.load()};
  if (change.kind() == CronChange::kNone) return;
  const CronFacts facts = read_facts(table.staged);
  const std::uint32_t owner = actor_.lane() + 1;
  if (facts.control.there()) {  // 1
    Word& control = store_.job(facts.control.slot()).control;
    const Control found(control.load());
    if (found.state() == kSlotFilling && found.owner() == owner)
      control.store(found.to(kSlotTemplate, found.ring(), 0).word, Point::kCronTemplateKept);
  }
  if (actor_.tellings().on()) tell(change, facts);
  CronRecord& record = store_.crons[change.record()];  // 2
  record.control.store(CronControl(record.control.load()).as_changing().word, Point::kCronChanged);
  for (Word CronRecord::*word : kWords)
    (record.*word).store((table.staged.*word).load(), Point::kCronChanged);
  record.control.store(facts.control.word, Point::kCronChanged);  // PAIR cron-change
  const std::uint64_t leaving = table.leaving.load();             // 3
  const std::uint32_t slot = static_cast<std::uint32_t>(leaving & 0xFF'FFFF) - 1;
  if (slot < store_.slots()) {
    JobRecord& old = store_.job(slot);
    const Control found(old.control.load());
    const Control held = found.to(kSlotFilling, 0, owner);
    if (found.state() == kSlotTemplate && old.generation.get() == leaving >> 32 &&
        old.control.cas_once(found.word, held.word, Point::kSlotFilling))
      actor_.slots().free(slot, held);
  }
  table.change.store(0, Point::kCronChanged);
}

/// For a repair whose batch, if there was one, has been judged.
void Crons::end_change() {
  if (!seat().ours()) return;
  CronTable& table = store_.cron_table();
  if (CronChange{table.change.load()}.kind() == CronChange::kFired)
    table.change.store(0, Point::kCronChanged);  // its batch was not committed
  apply();
  seat().leave();
}

// ---- setting ------------------------------------------------------------------------------------

/// A slot that holds what the cron's jobs are made from, in this lane's hands: a death frees it.
Outcome Crons::write_template(const NewCron& cron, std::uint32_t& slot) {
  NewAnnex annex = cron.job.annex != nullptr ? *cron.job.annex : NewAnnex{};
  annex.bits = kOfCron;
  NewJob spec = cron.job;
  spec.annex = &annex;
  spec.scheduled_at = 0;
  spec.expires_at = cron.lifetime_ms;
  if (spec.size() > store_.max_body()) return Outcome::kTooLarge;
  std::uint64_t word = 0;
  slot = actor_.slots().take(word);
  if (slot == kNoIndex) return Outcome::kNoSlots;
  JobRecord& job = store_.job(slot);
  JobId id;
  Outcome outcome = actor_.fill_aside(spec, slot, id);
  job.attempt.set(static_cast<std::uint16_t>(spec.age_rate ? *spec.age_rate + 1 : 0));
  const std::string texts = cron.texts.encode();
  if (outcome == Outcome::kOk) {
    const std::uint32_t block = actor_.slots().write(slot, job.generation.get(), texts);
    job.result_block.set(block);
    job.result_length.set(static_cast<std::uint32_t>(texts.size()));
    if (block == kNoIndex) outcome = Outcome::kNoBlocks;
  }
  const Control held = Control(word).to(kSlotFilling, normal_ring(spec.rank), actor_.lane() + 1);
  job.control.store(held.word, Point::kSlotFilling);
  if (outcome != Outcome::kOk) actor_.slots().free(slot, held);
  return outcome;
}

/// Whether the template in the slot has the same times.
bool Crons::says_the_same(std::uint32_t slot, const CronTexts& texts) const {
  const auto from = read_template(store_, slot, false);
  return from && from->texts.expression == texts.expression &&
         from->texts.timezone == texts.timezone;
}

Outcome Crons::define(const NewCron& cron, bool& made) {
  if (!seat().take()) return Outcome::kBusy;
  // until the template stands, it does not name its limit
  const LimitsHold hold(store_, actor_.limits_held(), std::span(&cron.job, 1));
  std::uint32_t at = find_cron(store_, cron.texts.name), slot = kNoIndex;
  made = at == kNoIndex;
  for (std::uint32_t i = 0; made && at == kNoIndex && i < kCrons; ++i)
    if (!CronControl(store_.crons[i].control.load()).there()) at = i;
  Outcome outcome = Outcome::kOk;
  if (at == kNoIndex) outcome = Outcome::kNoCrons;
  if (!hold.stand()) outcome = Outcome::kLimitsMoved;
  if (outcome == Outcome::kOk) outcome = write_template(cron, slot);
  if (outcome != Outcome::kOk) {
    seat().leave();
    return outcome;
  }
  const CronFacts before = read_facts(store_.crons[at]);
  CronFacts facts = made ? CronFacts{} : before;
  facts.control = before.control;
  if (made) {
    facts.control.word =
        CronControl::Life::with(before.control.word, (before.control.life() + 1) & 0xFFFF);
    facts.created_at = store_.now_ms();
  }
  facts.control.word = with(facts.control, cron.overlap, cron.enabled, slot);
  const bool goes_on = !made && before.control.enabled() && before.next != 0 &&
                       says_the_same(before.control.slot(), cron.texts);
  facts.next = !cron.enabled ? 0 : goes_on ? before.next : cron.next;
  write_down(facts, before.control);
  commit(CronChange::of(CronChange::kSet, at));
  store_.cron_table().turn.fetch_add(1, Point::kCronTurned);  // PAIR cron-turn
  seat().leave();
  if (facts.next != 0) actor_.bell().ring_supervisor_for(facts.next);
  return Outcome::kOk;
}

Outcome Crons::remove(std::string_view name) {
  if (!seat().take()) return Outcome::kBusy;
  const std::uint32_t at = find_cron(store_, name);
  if (at != kNoIndex) {
    CronFacts facts;
    const CronControl before(store_.crons[at].control.load());
    facts.control.word =
        before.word & (CronControl::Version::with(0, 0xFFFF) | CronControl::Life::with(0, 0xFFFF));
    write_down(facts, before);
    commit(CronChange::of(CronChange::kSet, at));
  }
  seat().leave();
  return at == kNoIndex ? Outcome::kNotFound : Outcome::kOk;
}

Outcome Crons::enable(
    std::string_view name, bool enabled,
    const std::function<std::optional<std::uint64_t>(const CronTexts&)>& next_of) {
  if (!seat().take()) return Outcome::kBusy;
  const std::uint32_t at = find_cron(store_, name);
  CronFacts facts = read_facts(store_.crons[at]);
  // one that is enabled already goes on as it does
  if (at != kNoIndex && facts.control.enabled() != enabled) {
    const auto from = read_template(store_, facts.control.slot(), false);
    const auto next = enabled && from ? next_of(from->texts) : std::optional<std::uint64_t>(0);
    if (!next) {
      seat().leave();
      return Outcome::kWrongState;
    }
    facts.control.word = CronControl::Enabled::with(facts.control.word, enabled ? 1 : 0);
    facts.next = *next;
    write_down(facts, CronControl());
    commit(CronChange::of(CronChange::kSet, at));
    store_.cron_table().turn.fetch_add(1, Point::kCronTurned);
  }
  seat().leave();
  if (at == kNoIndex) return Outcome::kNotFound;
  if (facts.next != 0) actor_.bell().ring_supervisor_for(facts.next);
  return Outcome::kOk;
}

void Crons::mend() {
  if (!seat().take()) return;  // else a change may give a cron a template that this look misses
  std::vector<bool> named(store_.slots(), false);
  for (std::uint32_t at = 0; at < kCrons; ++at)
    if (const CronControl control(store_.crons[at].control.load());
        control.there() && control.slot() < store_.slots())
      named[control.slot()] = true;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    Word& control = store_.job(slot).control;
    const Control found(control.load());
    const Control held = found.to(kSlotFilling, 0, actor_.lane() + 1);
    if (found.state() == kSlotTemplate && !named[slot] &&
        control.cas_once(found.word, held.word, Point::kSlotFilling))
      actor_.slots().free(slot, held);
  }
  seat().leave();
}

}  // namespace ojs_shm::engine
