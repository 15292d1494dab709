// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/observing/events.hpp"
#include "engine/tables/own_times.hpp"
#include "engine/tables/store.hpp"
#include "engine/workers/worker_record.hpp"

namespace ojs_shm::engine {

/// What is told of a new job.
struct Birth {
  std::uint64_t time_ms, due_at;
  std::uint32_t queue;
  std::uint16_t max_attempts;
  std::uint8_t rank;
  bool available;  ///< else scheduled
};

/// What is told of a dispatch.
struct Start {
  std::uint64_t time_ms, tag;
  JobId id;
  std::uint32_t queue;
  std::uint16_t attempt, max_attempts;
  std::uint8_t rank;
  WorkerKey worker;
};

/// What the operations of one lane tell of jobs while a reader wants to know: right before the
/// store that makes it so if a repair would finish that store, else after it. Nothing here decides
/// anything, and none of it runs while telling is off.
class JobTellings {
 public:
  JobTellings(Store& store, std::uint32_t lane) : store_(store), log_(store, lane) {}

  OJS_SHM_INLINE bool on() const { return log_.is_wanted(); }
  void turn(bool on) {
    shm::Word& telling = store_.header().telling;
    on ? telling.fetch_or(kTells, shm::Point::kSetChanged)
       : telling.fetch_and(~kTells, shm::Point::kSetChanged);
  }

  /// About a job that this lane holds or is about to publish.
  void tell(EventKind kind, const JobRecord& job, Control after, std::uint64_t value = 0);
  /// About a job that is active here, as far as we know: its lease may just have been ended.
  void held(EventKind kind, const JobRecord& job, Control active, std::uint64_t value);
  /// About a job that any lane may have by now.
  void born(const Birth& birth, JobId id, Control filling);
  void started(const Start& job);
  /// An attempt that is over; `after`: the state to which that leads, as far as it is known.
  void failed(const JobRecord& job, Control after, std::uint64_t now);
  /// Its time is over: that of its execution, or its lease.
  void timed_out(const JobRecord& job, Control after, std::uint64_t now, bool execution);
  /// One of its own times is over; what became of it is told next.
  void time_is_up(const JobRecord& job, Control held, std::uint64_t now, TimeUp why);
  void limit_closed(const JobRecord& job, Control held, std::uint32_t key, std::uint64_t until);
  void ended(const JobRecord& job, Control settled);
  void completed(const JobRecord& job, Control settled);
  void moved(JobId id, std::uint32_t queue, Control before, Control after);

 protected:
  const Store& store_;
  EventLog log_;

 private:
  void setback(EventKind kind, const JobRecord& job, Control after, std::uint64_t value);
  /// Puts the event that `kDescribe` writes from the rest. To turn the page first is a call at the
  /// end, so that the usual way keeps no register for it.
  template <auto kDescribe, class... Args>
  OJS_SHM_INLINE void put(Args... args) {
    if (log_.needs_page()) [[unlikely]]
      return put_in_next_page<kDescribe>(args...);
    log_.put([&](EventRecord& record) { kDescribe(record, args...); });
  }
  template <auto kDescribe, class... Args>
  [[gnu::noinline]] void put_in_next_page(Args... args) {
    log_.turn_page();
    log_.put([&](EventRecord& record) { kDescribe(record, args...); });
  }
};

}  // namespace ojs_shm::engine
