// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/observing/job_tellings.hpp"
#include "engine/pools/pool.hpp"
#include "engine/pools/pool_look.hpp"

namespace ojs_shm::engine {

/// What the operations of one lane tell of jobs, as JobTellings says, and of all else: workflows,
/// queues, pools, workers, processes.
class Tellings : public JobTellings {
 public:
  using JobTellings::JobTellings;

  // ---- workflows
  /// Begins what is told of the workflow of that head, while that stands there.
  static EventFacts of_workflow(EventKind kind, const JobRecord& head, Control control);
  void about_workflow(const EventFacts& event) { log_.write(event); }

  // ---- queues and pools
  void paused(std::uint32_t queue, bool paused);
  void starved(std::uint32_t queue, std::uint64_t ms, std::uint64_t available);
  void about_queue(EventKind kind, std::uint32_t queue, std::uint64_t jobs);
  void pressure(EventKind kind, std::uint32_t queue, const Fullness& fullness);
  /// So many refusals; `type` of the last job. The rest of a long one follows.
  void refused(std::uint32_t queue, std::uint64_t times, const Fullness& fullness,
               std::string_view type);
  void rebalanced(std::uint32_t pool, PoolStrategy before, PoolStrategy after);
  void overloaded(std::uint32_t pool, const PoolLoad& load);
  /// One of `at_once` processes that were found dead, when `mended` slots were mended for them.
  void repaired(std::uint32_t dead, std::uint32_t by, std::uint64_t at_once, std::uint64_t mended);
  /// About a registered worker.
  void about_worker(EventKind kind, std::string_view id, std::uint64_t tag, std::uint64_t value,
                    std::uint8_t rank = 0);
  /// A request about so many jobs, of which it was done to `done`, all or none if it is `atomic`.
  void bulk(EventKind kind, std::uint64_t jobs, std::uint64_t done, bool atomic);
  /// The event and, in further ones, the text.
  void with_text(EventFacts event, std::string_view text);

  /// Gives the open page back, as each lane must do at its end.
  void close() { log_.close(); }
  /// After the death of the lane.
  void close_left() { log_.close_left(); }
};

}  // namespace ojs_shm::engine
