// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/explorer.hpp"

#include <algorithm>

namespace ojs_shm::test {

Explored Explorer::explore(const Scenario& scenario, const Limits& limits) {
  scenario_ = &scenario;
  limits_ = limits;
  result_ = {};
  readers_.clear();
  writers_.clear();
  pending_.clear();
  for (std::uint32_t first = 0; first < scenario.parts.size(); ++first) {
    learn(play({first, {}}));  // so that the very first choices know what is contended
    if (!result_.failure.empty()) return result_;
    pending_.push_back({first, {}});
  }
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
  if (!verdict.empty()) result_.failure = scenario_->name + ": " + verdict + "\n" + text_of(run, fibers.steps());
  return fibers.steps();
}

void Explorer::learn(const std::vector<Step>& steps) {
  for (const Step& step : steps) (step.writes ? writers_ : readers_)[step.word] |= 1U << step.fiber;
}

bool Explorer::contended(const void* word) const {
  const auto writers = writers_.find(word);
  if (writers == writers_.end()) return false;
  const auto readers = readers_.find(word);
  const unsigned all = writers->second | (readers == readers_.end() ? 0 : readers->second);
  return (all & (all - 1)) != 0;
}

/// Every run that differs from this one by one more switch, later than all of its own.
void Explorer::extend(const Run& run, const std::vector<Step>& steps) {
  const std::size_t from = run.switches.empty() ? 1 : run.switches.back().access + 1;
  std::vector<std::size_t> last(scenario_->parts.size(), 0), previous(scenario_->parts.size(), 0);
  for (std::size_t i = 0; i < steps.size(); ++i) last[steps[i].fiber] = i + 1;
  for (std::size_t access = 1; access <= steps.size(); ++access) {
    const Step& step = steps[access - 1];
    const std::size_t before = std::exchange(previous[step.fiber], access);
    if (access < from) continue;
    for (std::uint32_t to = 0; to < scenario_->parts.size(); ++to) {
      if (to == step.fiber || last[to] <= access) continue;
      if (run.preemptions < limits_.preemptions && contended(step.word)) {
        Run next = run;
        next.switches.push_back({static_cast<std::uint32_t>(access), to, false});
        ++next.preemptions;
        pending_.push_back(std::move(next));
      }
    }
    // A kill is worth trying where the fiber's last access was a write.
    if (run.kills < limits_.kills && before != 0 && steps[before - 1].writes) {
      Run next = run;
      next.switches.push_back({static_cast<std::uint32_t>(access),
                               static_cast<std::uint32_t>((step.fiber + 1) % scenario_->parts.size()), true});
      ++next.kills;
      pending_.push_back(std::move(next));
    }
  }
}

std::string Explorer::text_of(const Run& run, const std::vector<Step>& steps) const {
  std::string text = "  begins with fiber " + std::to_string(run.first);
  for (const Switch& change : run.switches)
    text += ", before access " + std::to_string(change.access) +
            (change.kill ? " kills it and goes on with " : " goes to ") + std::to_string(change.to);
  return text + "; " + std::to_string(steps.size()) + " accesses in all";
}

}  // namespace ojs_shm::test
