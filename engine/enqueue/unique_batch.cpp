// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/enqueue/batches.hpp"
#include "engine/tables/patience.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

Outcome Actor::UniqueBatch::enter(std::vector<JobId>& ids) {
  Outcome outcome = Outcome::kBusy;
  for (unsigned looks = 0; looks < kPatience; ++looks) {
    outcome = choose();
    if (outcome == Outcome::kClash) break;
    std::vector<JobId> made;
    if (!chosen_.empty()) outcome = actor_.enter_batch(chosen_, made);
    if (outcome == Outcome::kOk) {
      tell(made, ids);
      return outcome;
    }
    if (outcome == Outcome::kQueueFull) actor_.refused_at(places_);
    if (outcome == Outcome::kClash) conflicts().at = places_[conflicts().at];
    if (outcome != Outcome::kRivalMoved && !(outcome == Outcome::kClash && content(conflicts().at)))
      break;
    shm::wait_for_another(looks);
  }
  ids.clear();
  if (outcome == Outcome::kClash) actor_.count_conflict(specs_[conflicts().at].queue);
  return outcome == Outcome::kRivalMoved ? Outcome::kBusy : outcome;
}

/// Which of them to enqueue; kClash: one of them may not be.
Outcome Actor::UniqueBatch::choose() {
  conflicts().ignored.assign(specs_.size(), false);
  others_.assign(specs_.size(), {});
  same_as_.assign(specs_.size(), specs_.size());
  places_.clear();
  chosen_.clear();
  Short<std::pair<UniqueKey, std::size_t>> keys;  // of those before
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const NewJob& spec = specs_[i];
    if (spec.unique()) {
      const UniqueKey key = key_of(*spec.annex);
      const auto before = std::ranges::find(keys, key, &std::pair<UniqueKey, std::size_t>::first);
      conflicts().at = i;
      const bool again = before != keys.end();
      if (again) {
        conflicts().clash = {};
        same_as_[i] = before->second;
      } else if (!Uniqueness{spec.annex->uniqueness}.replaces() &&
                 actor_.foresee_clash(*spec.annex) == Outcome::kClash) {
        others_[i] = conflicts().clash.id;
      }
      conflicts().ignored[i] = again || others_[i] != JobId{};
      if (conflicts().ignored[i] && !content(i)) return Outcome::kClash;
      if (conflicts().ignored[i]) continue;
      keys.emplace_back(key, i);
    }
    places_.push_back(i);
    chosen_.push_back(spec);
  }
  return Outcome::kOk;
}

/// The id of each: its own, or that of the job that has its key.
void Actor::UniqueBatch::tell(std::span<const JobId> made, std::vector<JobId>& ids) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (same_as_[i] != specs_.size())
      actor_.count_conflict(specs_[i].queue);
    else if (conflicts().ignored[i])
      actor_.raise_other(*specs_[i].annex, specs_[i].queue, specs_[i].rank, others_[i]);
  }
  ids = others_;
  for (std::size_t n = 0; n < places_.size(); ++n) ids[places_[n]] = made[n];
  for (std::size_t i = 0; i < specs_.size(); ++i)
    if (same_as_[i] != specs_.size()) ids[i] = ids[same_as_[i]];
}

}  // namespace ojs_shm::engine
