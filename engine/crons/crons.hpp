// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "engine/actor.hpp"
#include "engine/crons/cron_look.hpp"

namespace ojs_shm::engine {

/// A cron to be made, already validated.
struct NewCron {
  CronTexts texts;
  CronOverlap overlap = CronOverlap::kSkip;
  bool enabled = true;
  std::uint64_t next = 0;         ///< when it fires first, Unix ms; 0: never
  NewJob job;                     ///< its jobs; neither an id nor times
  std::uint64_t lifetime_ms = 0;  ///< after which a job expires; 0: never
};

/// What one lane does with crons (crons.cpp, cron_fire.cpp).
///
/// A record changes in the hands of the lane that has the seat. The lane first writes down what the
/// record shall be, and one store commits it: the change's own word, or the commit of the batch
/// that enqueues the cron's job. Before that store a death leaves all as it was; after it the
/// repair does the rest, which may be done any number of times.
///
/// The engine knows no calendar: the caller says when a cron fires next.
class Crons {
 public:
  explicit Crons(Actor& actor) : actor_(actor), store_(actor.store()) {}

  /// Makes it, or replaces the one of that name, whose next time stays if its texts say the same.
  Outcome define(const NewCron& cron, bool& made);
  Outcome remove(std::string_view name);
  /// `next_of` is asked when it is to fire again; nothing: kWrongState, and all stays as it is.
  Outcome enable(std::string_view name, bool enabled,
                 const std::function<std::optional<std::uint64_t>(const CronTexts&)>& next_of);

  /// Its time has come, as `seen` says: enqueues its job or passes over it, and sets the next one.
  /// kEmpty: another process has done so, or it was changed. kBusy: later.
  Outcome fire(std::uint32_t at, const CronFacts& seen, std::uint64_t next);
  /// Enqueues its job now, and leaves its next time. kWrongState: its last job is in the way.
  Outcome trigger(std::string_view name, JobId& id, std::uint32_t& queue);

  // ---- of the batch that fires one (batch.cpp)
  bool firing() const { return firing_; }
  /// Right before its commit.
  void stage(JobId id);
  /// After its commit; also for a repair.
  void apply();

  // ---- after a death
  /// Ends the change that the dead lane was at, if it was.
  void end_change();
  /// Frees templates that no cron has, which only a stranger can leave.
  void mend();

 private:
  Outcome run(std::uint32_t at, CronFacts facts, std::uint64_t due, JobId& id,
              std::uint32_t& queue);
  void skip(std::uint32_t at, CronFacts facts, std::uint64_t due, CronSkip why);
  Outcome write_template(const NewCron& cron, std::uint32_t& slot);
  void write_down(const CronFacts& facts, CronControl leaving, std::uint64_t due = 0);
  void commit(CronChange change);
  bool is_unfinished(JobId id) const;
  bool says_the_same(std::uint32_t slot, const CronTexts& texts) const;
  void tell(CronChange change, const CronFacts& facts);
  Seat<Word> seat() const {
    return {store_.cron_table().seat, actor_.lane() + 1, shm::Point::kCronSeatTaken};
  }

  Actor& actor_;
  Store& store_;
  bool firing_ = false;
  std::uint32_t fired_ = 0;  ///< the record, while firing_
};

}  // namespace ojs_shm::engine
