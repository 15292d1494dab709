// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/enqueue/filler.hpp"
#include "engine/straight/plain.hpp"
#include "engine/tables/fetched.hpp"

// The straight way of straight() jobs in queues without options, of unique ones besides, and what
// it shares with the general way (plain.cpp, plain_batch.cpp, take.cpp): three layers, for a job
// that is put in, taken out, and ended.

namespace ojs_shm::engine {

/// New jobs, alone and many at a time.
class StraightEnqueue : protected Filler {
 protected:
  StraightEnqueue(Store& store, std::uint32_t lane) : Filler(store, lane) {
    current_ = {0, &store_.queue(0), tallies_};
  }
  ~StraightEnqueue() override = default;

  bool has_options(std::uint32_t queue) {
    return set_current_queue(queue), any_option(current_.queue->flags.load());
  }

  /// It has a bound and no other option.
  bool has_bound_alone(std::uint32_t queue) {
    return set_current_queue(queue), !any_option(current_.queue->flags.load() ^ kBounded);
  }

  Straight enqueue_plain(const PlainJob& job, const JobForm& form, JobId& id);
  OJS_SHM_INLINE Straight enqueue_plain(const NewJob& job, JobId& id) {
    return enqueue_plain(PlainJob::of(job), JobForm(job), id);
  }
  /// The same into a queue that has_bound_alone().
  Straight enqueue_under_bound(const PlainJob& job, const JobForm& form, JobId& id);
  OJS_SHM_INLINE Straight enqueue_under_bound(const NewJob& job, JobId& id) {
    return enqueue_under_bound(PlainJob::of(job), JobForm(job), id);
  }
  /// kDone with an outcome.
  Straight enqueue_unique(const NewJob& job, JobId& id, Outcome& outcome);
  Straight enqueue_batch_plain(std::span<const NewJob> jobs, std::span<JobId> ids);
  /// So many (plain_batch.hpp).
  template <class Jobs>
  Straight enqueue_batch_plain(std::uint32_t queue, std::size_t count, Jobs& jobs);

  /// From here on `current_` is that queue.
  OJS_SHM_INLINE void set_current_queue(std::uint32_t q) {
    if (q == current_.number) [[likely]]
      return;
    current_ = {q, &store_.queue(q), &tally(q)};
    plain_look_.forget();
  }
  struct CurrentQueue {  ///< a queue, and this lane's tally of it
    std::uint32_t number = kNoIndex;
    QueueRecord* queue = nullptr;
    QueueTally* tally = nullptr;
  };
  CurrentQueue current_;  ///< that of the last call
  PlainLook plain_look_;  ///< at that queue

 private:
  void give_room_back(std::uint64_t size);
  enum class Put : std::uint8_t { kAlone, kUnderKey, kUnderBound };
  template <Put kPut>
  Straight put_straight(const PlainJob& spec, const JobForm& form, const NewAnnex* annex, JobId& id,
                        Outcome& outcome);
  void tell_birth(std::uint32_t queue, std::uint8_t rank, const JobForm& form, JobId id,
                  Control filling);
  Straight replace_straight(const PlainJob& spec, const JobForm& form, const NewAnnex& annex,
                            JobId& id, Outcome& outcome);
  struct Filled {
    JobRecord* job;
    std::uint64_t word;
    std::uint32_t slot, ring;
    unsigned number;  ///< of the ring in its set
  };
  void publish_filled(const Filled& one, shm::RingSet& rings, shm::Rings::PushRun& run);
  void publish_all(std::span<const Filled> batch, std::uint64_t now);
  Straight claim_straight(const NewAnnex& annex, std::uint8_t rank, std::uint32_t slot,
                          Control filling, std::uint64_t now, Outcome& outcome);
  bool hint_or_undo(QueueTally& mine, std::uint32_t ring, std::uint32_t slot, Control published,
                    std::uint64_t size);
};

/// Fetches, alone and many at a time, and how a claimed job begins.
class StraightFetch : protected StraightEnqueue {
 protected:
  StraightFetch(Store& store, std::uint32_t lane) : StraightEnqueue(store, lane) {}
  ~StraightFetch() override = default;

  Straight fetch_plain(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned, Fetched& job);
  /// As many as go straight, the best first, into a Receiver; how many (fetch_batch.hpp).
  template <class Receiver>
  std::size_t fetch_batch_plain(std::uint32_t queue, std::uint32_t lease_ms, bool lease_owned,
                                std::size_t wanted, Receiver& receiver);
  Outcome end_of_claim(std::uint32_t q, std::uint32_t slot, Control claimed, std::uint64_t now);
  /// take.hpp
  template <class Out>
  void take(JobRecord& job, Control claimed, QueueTally& mine, std::uint32_t lease_ms,
            bool lease_owned, std::uint64_t now, Out& out);
  Straight found_nothing(QueueRecord& queue, std::uint32_t q);
  virtual void workflow_begins(const Membership& member) = 0;

  std::uint64_t taken_ = 0;  ///< jobs fetched by this handle

 private:
  void tell_start(const Start& start, const JobRecord& job, Control active);
  template <class Out>
  std::uint64_t begin(JobRecord& job, Control active, std::uint32_t lease_ms, std::uint64_t now,
                      Out& out);
  bool pick(QueueRecord& queue, unsigned most, Picked& picked, PlainLook::Sight& sight);
  bool claim_best(std::uint32_t queue, unsigned most, Picked& jobs);
  void begin_all(const Picked& jobs, std::uint64_t cost, std::uint64_t shortest_lease_ms,
                 std::uint64_t now);
  template <class Out>
  bool begin_alone(std::uint32_t queue, const Picked::One& claimed, std::uint32_t lease_ms,
                   bool lease_owned, std::uint64_t now, Out& out);
  void tidy_passed(QueueRecord& queue, bool all);
  void read_blocks(std::uint32_t slot, const JobRecord& job, std::uint64_t size,
                   std::string& body) const;
};

/// Acknowledgements, alone and many at a time.
class StraightAck : protected StraightFetch {
 protected:
  StraightAck(Store& store, std::uint32_t lane) : StraightFetch(store, lane) {}
  ~StraightAck() override = default;

  Outcome ack(std::uint32_t slot, std::uint64_t& word, std::string_view result);
  Outcome ack_at(std::uint32_t slot, std::uint64_t& word, std::string_view result,
                 std::uint64_t now);
  /// Of several without results.
  void ack_batch(std::span<Ack> acks);

 private:
  std::size_t ack_run(std::span<Ack> acks, std::uint64_t now);
  void finish_alone(std::uint32_t queue, std::uint32_t slot, Control settling);
  bool keep_result(std::uint32_t slot, std::uint64_t& word, std::string_view result);
};

}  // namespace ojs_shm::engine
