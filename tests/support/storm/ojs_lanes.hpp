// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>
#include <ojs_shm/unique.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/storm/subject.hpp"

namespace ojs_shm::test {

struct OjsPlan {
  SegmentName name;
  SegmentOptions options;
  /// every operation, not only enqueue, fetch and the ways to end an attempt
  bool everything = false;
  /// jobs with tenants and limits, unique jobs, a pool of workers, queues that wait or drop,
  /// imports
  bool policies = false;
  bool tight = false;              ///< a segment that is full all the time
  std::uint64_t backlog = 10'000;  ///< where producers slow down
  std::uint64_t epoch_ms = 0;      ///< the time in the ids that producers make themselves
};

/// Everything about the job of a key follows from the key, so that all that meet it know what it
/// should look like, and a producer born again can repeat an enqueue of which its forerunner did
/// not see the end.
struct PlannedJob {
  PlannedJob(PayloadKey key, const OjsPlan& plan);
  /// The same job as a member of a batch: in that queue, and one that must come out, so that half a
  /// batch shows.
  PlannedJob(PayloadKey key, const OjsPlan& plan, std::string_view batch_queue);
  /// Views into this object; times count from now.
  JobSpec spec() const;

  /// The same as a line of an export; only of a job that brings no times.
  std::string export_line() const;
  bool has_times() const { return delay_ms + life_ms != 0 || pending; }

  std::string queue, type, args, extra, tenant, id;  ///< id: empty where the engine makes one
  std::int64_t priority = 0;
  bool ranked = true;  ///< brings its priority
  std::uint32_t marks = 0;
  std::uint32_t delay_ms = 0, life_ms = 0, timeout_ms = 0, lease_ms = 0;
  bool pending = false;
  std::optional<std::uint32_t> age_rate;
  std::optional<JobLimit> limit;
  std::optional<JobUnique> unique;
  Retry retry;

 private:
  PlannedJob(PayloadKey key, const OjsPlan& plan, std::optional<std::string_view> batch_queue,
             Dice dice);
  void add_policy(PayloadKey key, bool of_batch, Dice& dice);
  void add_unique(Dice& dice);
};

/// The queues of the storm; the last one has a small bound.
const std::vector<std::string>& storm_queues();
inline constexpr std::uint64_t kStormBound = 300;

/// And those whose jobs have a tenant and many a limit. Nothing else ends them, and nothing but
/// their holder's death gives them back, so that each permit can be followed from outside.
inline constexpr std::string_view kFairQueue = "storm-fair", kKeyedQueue = "storm-keyed",
                                  kWaitingQueue = "storm-waiting",
                                  kDroppingQueue = "storm-dropping";
const std::vector<std::string>& policy_queues();
std::vector<std::string> queues_of(const OjsPlan& plan);
bool has_policy(std::string_view queue);
inline constexpr std::string_view kStormPool = "crew";
PoolSettings storm_pool(Dice& dice);
/// And one of the other queues that comes and goes.
inline constexpr std::string_view kPassingPool = "shift";
PoolSettings passing_pool(Dice& dice);
/// It has no jobs, and is deleted and made anew.
inline constexpr std::string_view kPassingQueue = "storm-passing";
/// Of a queue with a policy; what may change on the way follows from the dice.
QueueSettings storm_policy(std::string_view queue, Dice& dice);

/// The limits of the storm, by number: of the pool, and of the keys that jobs bring.
inline constexpr std::uint32_t kPoolLimit = 1, kFirstKey = 2, kPoolConcurrency = 6;
constexpr std::uint32_t concurrency_of(std::uint32_t limit) {
  return limit == kPoolLimit ? kPoolConcurrency : 1 + limit % 4;
}
/// The number of the key in a job's extra; 0: none.
std::uint32_t limit_in(std::string_view extra);

/// What a body is judged against.
std::string payload_context(std::string_view queue, std::string_view type);
/// The key of a job found in the segment; nothing when its body is not what it should be.
std::optional<PayloadKey> key_of(const JobInfo& job);

/// Put jobs in until asked to leave.
void produce_jobs(Lane& lane, const OjsPlan& plan);
/// Take jobs out until asked to leave.
void work_on_jobs(Lane& lane, const OjsPlan& plan);
/// Sends dead letters out again or drops them, up to so many.
void tend_the_dead(Lane& lane, Dice& dice, Admin& admin, std::size_t most);
/// Where an observer copies the segment to.
SegmentName copy_of(const SegmentName& name);
/// Read events and copy the segment into another until asked to leave.
void observe_jobs(Lane& lane, const OjsPlan& plan);

inline void nap_us(std::uint64_t us) {
  const timespec pause{static_cast<time_t>(us / 1'000'000U),
                       static_cast<long>(us % 1'000'000U) * 1000};
  ::nanosleep(&pause, nullptr);
}

/// Attaches. A record or a handle that a death just left behind may be in the way for a moment, so
/// a full segment is asked again, and a stopped process where it must first go on; nothing after
/// 30 s of that (and an accusation), or when the lane has to leave.
template <class Attached>
std::optional<Attached> attach_patiently(Lane& lane,
                                         const std::function<Result<Attached>()>& attach) {
  for (const std::uint64_t began = monotonic_ns(); !lane.asked_to_leave(); nap_us(500)) {
    Result<Attached> attached = attach();
    if (attached.ok()) return std::move(attached).value();
    lane.step();
    const bool may_pass =
        attached.code() == Code::kSegmentFull || attached.code() == Code::kTimeout;
    if (may_pass && monotonic_ns() - began < 30'000'000'000U) continue;
    lane.accuse(Offence::kUnexpectedAnswer, {}, "attach: " + attached.error().message);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ojs_shm::test
