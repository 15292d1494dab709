// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/explorer.hpp"

#include <malloc.h>

#include <utility>

namespace ojs_shm::test {

/// What a run has given back is kept for the next, which needs as much.
Explorer::Explorer(World& world) : world_(world) {
  constexpr int kNever = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kNever);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
}

Explored Explorer::explore(const Scenario& scenario, const Limits& limits) {
  scenario_ = &scenario;
  limits_ = limits;
  result_ = {};
  words_.clear();
  extended_.clear();
  pending_.clear();
  for (auto first = static_cast<std::uint32_t>(scenario.parts.size()); first-- > 0;)
    pending_.push_back({first, {}});
  while (!pending_.empty()) {
    if (result_.runs >= limits.most_runs) {
      result_.complete = false;
      return result_;
    }
    const Run run = std::move(pending_.back());
    pending_.pop_back();
    const std::vector<Step> steps = play(run);
    if (!result_.failure.empty()) return result_;
    learn(steps);
    extend(run, steps);
  }
  return result_;
}

std::vector<Step> Explorer::play(const Run& run) {
  world_.begin_anew();
  scenario_->prepare(world_);
  std::vector<std::function<void()>> parts;
  for (std::uint32_t i = 0; i < scenario_->parts.size(); ++i)
    parts.emplace_back([this, i] { scenario_->parts[i](world_, i); });
  Fibers fibers(std::move(parts));
  const bool ended = fibers.run(run.first, run.switches);
  for (std::uint32_t i = 0; i < scenario_->parts.size(); ++i)
    if (fibers.killed(i)) world_.died(i);
  std::string verdict = ended ? world_.verdict() : "the fibers wait for each other for ever";
  ++result_.runs;
  result_.kills += run.kills;
  result_.accesses += fibers.steps().size();
  if (!verdict.empty())
    result_.failure = scenario_->name + ": " + verdict + "\n" + text_of(run, fibers.steps());
  return fibers.steps();
}

bool Explorer::Touched::contended() const {
  const unsigned all = readers | writers;
  return writers != 0 && (all & (all - 1)) != 0;
}

/// What was postponed because of a word has its turn when that turns out to be contended.
void Explorer::learn(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    Touched& word = words_[step.word];
    (step.writes ? word.writers : word.readers) |= 1U << step.fiber;
    if (!word.contended() || word.postponed.empty()) continue;
    for (const Postponed& one : std::exchange(word.postponed, {}))
      branch(extended_[one.run], one.access, one.to, Switch::Why::kPreempted);
  }
}

void Explorer::branch(const Run& run, std::size_t access, std::uint32_t to, Switch::Why why) {
  Run& next = pending_.emplace_back(run);
  next.switches.push_back({static_cast<std::uint32_t>(access), to, why});
  next.preemptions += why == Switch::Why::kPreempted ? 1 : 0;
  next.kills += why == Switch::Why::kKilled ? 1 : 0;
}

/// Every run that differs from this one by one more switch, later than all of its own. There is
/// none before the first access of a fiber that just goes on: the one that made it go on could have
/// made the other go on.
void Explorer::extend(const Run& run, const std::vector<Step>& steps) {
  const auto fibers = static_cast<std::uint32_t>(scenario_->parts.size());
  const std::size_t from = run.switches.empty() ? 2 : run.switches.back().access + 1;
  std::vector<std::size_t> last(fibers, 0), previous(fibers, 0);
  for (std::size_t i = 0; i < steps.size(); ++i) last[steps[i].fiber] = i + 1;
  bool kept = false;
  for (std::size_t access = 1; access <= steps.size(); ++access) {
    const Step& step = steps[access - 1];
    const std::size_t before = std::exchange(previous[step.fiber], access);
    if (access < from) continue;
    const std::uint32_t one_before = steps[access - 2].fiber;
    const bool ended = one_before != step.fiber && last[one_before] == access - 1;
    // A kill is worth trying where the fiber's last access was a write.
    const bool kill =
        !ended && run.kills < limits_.kills && before != 0 && steps[before - 1].writes;
    bool alone = true;
    for (std::uint32_t to = 0; to < fibers; ++to) {
      if (to == step.fiber || last[to] <= access) continue;
      alone = false;
      if (ended) branch(run, access, to, Switch::Why::kEnded);
      if (kill) branch(run, access, to, Switch::Why::kKilled);
      if (ended || run.preemptions == limits_.preemptions) continue;
      if (Touched& word = words_[step.word]; word.contended()) {
        branch(run, access, to, Switch::Why::kPreempted);
      } else {
        if (!std::exchange(kept, true)) extended_.push_back(run);
        word.postponed.push_back({static_cast<std::uint32_t>(extended_.size() - 1),
                                  static_cast<std::uint32_t>(access) & 0xFF'FFFF, to & 0xFF});
      }
    }
    if (kill && alone) branch(run, access, (step.fiber + 1) % fibers, Switch::Why::kKilled);
  }
}

std::string Explorer::text_of(const Run& run, const std::vector<Step>& steps) const {
  std::string text = "  begins with fiber " + std::to_string(run.first);
  for (const Switch& change : run.switches)
    text += ", before access " + std::to_string(change.access) +
            (change.why == Switch::Why::kKilled  ? " kills it and goes on with "
             : change.why == Switch::Why::kEnded ? " one ended, goes on with "
                                                 : " goes to ") +
            std::to_string(change.to);
  return text + "; " + std::to_string(steps.size()) + " accesses in all";
}

}  // namespace ojs_shm::test
