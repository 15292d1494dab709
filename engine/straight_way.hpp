// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/fetched.hpp"
#include "engine/filler.hpp"
#include "engine/plain.hpp"

namespace ojs_shm::engine {

/// The straight way of straight() jobs in queues without options, of unique ones besides, and what
/// it shares with the general way (plain.cpp, plain_batch.cpp, take.cpp).
class StraightWay : protected Filler {
 protected:
  StraightWay(Store& store, std::uint32_t lane) : Filler(store, lane) {
    near_ = {0, &store_.queue(0), tallies_};
  }
  ~StraightWay() override = default;

  bool has_options(std::uint32_t queue) {
    return come_near(queue), any_option(near_.queue->flags.load());
  }

  // ---- putting in
  Straight enqueue_plain(const PlainJob& job, const JobForm& form, JobId& id);
  OJS_SHM_INLINE Straight enqueue_plain(const NewJob& job, JobId& id) {
    return enqueue_plain(PlainJob::of(job), JobForm(job), id);
  }
  /// kDone with an outcome.
  Straight enqueue_unique(const NewJob& job, JobId& id, Outcome& outcome);
  Straight enqueue_batch_plain(std::span<const NewJob> jobs, std::span<JobId> ids);
  Straight enqueue_batch_plain(std::span<const FormedJob> jobs, std::span<JobId> ids);
  /// Of that kind, each with args and a rank of its own.
  Straight enqueue_batch_plain(const PlainJob& kind, const JobForm& form,
                               std::span<const ArgsAndRank> jobs, std::span<JobId> ids);

  // ---- taking out
  Straight fetch_plain(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  /// The next of so many that one call takes, at that time; end_run() follows on the last.
  Straight fetch_plain_next(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                            std::uint64_t now, unsigned wanted, Fetched& job);
  void end_run();
  Outcome end_of_claim(std::uint32_t q, std::uint32_t slot, Control claimed, std::uint64_t now);
  void take(JobRecord& job, Control claimed, QueueTally& mine, std::uint32_t lease_ms,
            bool lease_owned, std::uint64_t now, Fetched& out);
  Straight found_nothing(QueueRecord& queue, std::uint32_t q);
  virtual void workflow_begins(const Membership& member) = 0;

  // ---- ending
  Outcome ack(std::uint32_t slot, std::uint64_t& word, std::string_view result);
  Outcome ack_at(std::uint32_t slot, std::uint64_t& word, std::string_view result,
                 std::uint64_t now);

  /// Has the queue in near_.
  OJS_SHM_INLINE void come_near(std::uint32_t q) {
    if (q == near_.number) [[likely]]
      return;
    near_ = {q, &store_.queue(q), &tally(q)};
    plain_look_.forget();
  }
  struct Near {  ///< a queue, and this lane's tally of it
    std::uint32_t number = kNoIndex;
    QueueRecord* queue = nullptr;
    QueueTally* tally = nullptr;
  };
  Near near_;                ///< that of the last call
  std::uint64_t taken_ = 0;  ///< jobs fetched by this handle

 private:
  void tell_start(const Start& start, const JobRecord& job, Control active);
  template <bool kKeyed>
  Straight put_straight(const PlainJob& spec, const JobForm& form, const NewAnnex* annex, JobId& id,
                        Outcome& outcome);
  void tell_birth(std::uint32_t queue, std::uint8_t rank, const JobForm& form, JobId id,
                  Control filling);
  template <class Each>
  Straight put_batch_straight(std::uint32_t queue, std::size_t count, Each&& each,
                              std::span<JobId> ids);
  Straight replace_straight(const PlainJob& spec, const JobForm& form, const NewAnnex& annex,
                            JobId& id, Outcome& outcome);
  using PushRuns = std::array<shm::Rings::PushRun, 8>;  ///< by level
  void publish_straight(QueueRecord& queue, std::uint32_t slot, Control filling, std::uint64_t now,
                        shm::Rings::PushRun& run);
  Straight claim_straight(const NewAnnex& annex, std::uint8_t rank, std::uint32_t slot,
                          Control filling, std::uint64_t now, Outcome& outcome);
  bool hint_or_undo(QueueTally& mine, std::uint32_t ring, std::uint32_t slot, Control published,
                    std::uint64_t size);
  template <bool kSeveral>
  Straight take_straight(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                         std::uint64_t now_ms, unsigned wanted, Fetched& out);
  void tidy_passed(QueueRecord& queue);
  void read_blocks(std::uint32_t slot, const JobRecord& job, std::uint64_t size,
                   std::string& body) const;
  bool keep_result(std::uint32_t slot, std::uint64_t& word, std::string_view result);

  PlainLook plain_look_;  ///< at that queue
};

}  // namespace ojs_shm::engine
