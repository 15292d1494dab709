// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "engine/fetch/queue_order.hpp"
#include "engine/tenants/flows.hpp"

namespace ojs_shm::engine {

struct FlowLine;

/// How a lane finds the best job that waits in a queue, with the proof that no better one waits
/// (search.cpp, survey.cpp; flow_fetch.cpp where tenants share the queue).
class Search : protected Flows {
 protected:
  Search(Store& store, std::uint32_t lane);
  virtual ~Search();
  struct Look;
  struct Live;

  // ---- a look (search.cpp, look.hpp)
  /// This lane's look, for a search that begins.
  Look& begin_look();
  /// Finds the best available job and fills `look` with it and with the proofs; false when there is
  /// none. The proofs have been looked at twice when it returns.
  bool look(QueueRecord& queue, Look& look);
  /// Whether a fetch would find something: a full look, in total order after our last RMW.
  bool sees_work(std::uint32_t queue);
  bool unchanged(const QueueRecord& queue, const Look& look) const;
  template <bool kTrusting>
  OJS_SHM_INLINE bool first_live(shm::RingSet& rings, unsigned number, Look& look,
                                 std::uint32_t& left, Live& live);
  bool look_along(shm::RingSet& rings, unsigned number, Look& look, std::uint32_t& left,
                  Live& live);
  OJS_SHM_INLINE void prefetch_behind(const shm::Peeked& head) const;
  void tidy_index(const Look& look);
  OJS_SHM_INLINE void tidy_ring(shm::RingSet& rings, unsigned number, const Word& cell,
                                std::uint64_t empty, unsigned of);
  void found_in(unsigned number) { passed_empty_[number % passed_empty_.size()] = 0; }
  // ---- whether it may be said that a queue has no job
  /// After a fetch found nothing. Whether the queue may have a job.
  bool settle_quiet(std::uint32_t queue);
  /// Whether the queue has an available job for any. If not, pools know.
  bool has_waiting(std::uint32_t queue);

  /// From now on this lane looks also at queues that are isolated, for the workers of their pools.
  void look_for_pools(bool on) { sees_isolated_ = on; }
  /// Whether this handle gets no job of the queue, whatever it has.
  OJS_SHM_INLINE bool shut(const QueueRecord& queue, std::uint64_t flags) const {
    return (flags & (kShut | kIsolated)) != 0 &&
           ((flags & kShut) != 0 || !(sees_isolated_ || pool_worker_.owns(queue)));
  }

  // ---- in an order that is not plain (survey.cpp)
  QueueOrder order() const { return {store_, lane_}; }  ///< within a queue
  bool survey(QueueRecord& queue, Look& look, std::uint32_t left);
  bool see_part(QueueRecord& queue, Look& look, unsigned at);
  bool take_turn(QueueRecord& queue, Look& look);

  // ---- tenants that share (flow_fetch.cpp)
  bool first_of_flow(shm::RingSet& rings, unsigned number, std::uint32_t queue,
                     const shm::Peeked& head, std::uint32_t& left, Live& live);
  bool first_in_flow(const FlowLine& line, std::uint32_t flow, FlowControl found,
                     const shm::Peeked* head, std::uint32_t queue, std::uint32_t& left, Live& live);
  void end_turn(QueueRecord& queue, const Look& look, std::uint64_t tenant);

 private:
  friend struct TenantTurns;
  OJS_SHM_INLINE bool see_head(shm::RingSet& rings, unsigned number, Look& look,
                               std::uint32_t& left, Live& live);
  OJS_SHM_INLINE void choose(Look& look, const Live& live);
  bool survey_levels(QueueRecord& queue, Look& look, std::uint32_t& left, Live& best);
  bool survey_turns(QueueRecord& queue, Look& look, std::uint32_t& left, Live& best);
  bool unchanged_parts(const QueueRecord& queue, const Look& look) const;

  std::unique_ptr<Look> look_;  ///< kept, so that no fetch clears it anew
  bool past_gates_ = false, sees_isolated_ = false;
  std::array<std::uint8_t, 64> passed_empty_{};
};

}  // namespace ojs_shm::engine
