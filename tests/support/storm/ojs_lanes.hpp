// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>
#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>

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
  bool everything = false;         ///< every operation, not only enqueue, fetch and the ways to end an attempt
  bool tight = false;              ///< a segment that is full all the time
  std::uint64_t backlog = 10'000;  ///< where producers slow down
  std::uint64_t epoch_ms = 0;      ///< the time in the ids that producers make themselves
};

/// Everything about the job of a key follows from the key, so that whoever meets it knows what it should look like, and
/// a producer born again can repeat an enqueue of which its forerunner did not see the end.
struct PlannedJob {
  PlannedJob(PayloadKey key, const OjsPlan& plan);
  /// The same job as a member of a batch: in that queue, and one that must come out, so that half a batch shows.
  PlannedJob(PayloadKey key, const OjsPlan& plan, std::string_view batch_queue);
  /// Views into this object; times count from now.
  JobSpec spec() const;

  std::string queue, type, args, id;  ///< id: empty where the engine makes one
  std::int64_t priority = 0;
  std::uint32_t marks = 0;
  std::uint32_t delay_ms = 0, life_ms = 0, timeout_ms = 0, lease_ms = 0;
  bool pending = false;
  std::optional<std::uint32_t> age_rate;
  Retry retry;

 private:
  PlannedJob(PayloadKey key, const OjsPlan& plan, std::optional<std::string_view> batch_queue, Dice dice);
};

/// The queues of the storm; the last one has a small bound.
const std::vector<std::string>& storm_queues();
inline constexpr std::uint64_t kStormBound = 300;
/// What a body is judged against.
std::string payload_context(std::string_view queue, std::string_view type);
/// The key of a job found in the segment; nothing when its body is not what it should be.
std::optional<PayloadKey> key_of(const JobInfo& job);

/// Put jobs in until asked to leave.
void produce_jobs(Lane& lane, const OjsPlan& plan);
/// Take jobs out until asked to leave.
void work_on_jobs(Lane& lane, const OjsPlan& plan);

inline void nap_us(std::uint64_t us) {
  const timespec pause{static_cast<time_t>(us / 1'000'000U), static_cast<long>(us % 1'000'000U) * 1000};
  ::nanosleep(&pause, nullptr);
}

/// Attaches. A record or a handle that a death just left behind may be in the way for a moment, so a full segment
/// is asked again; nothing after 30 s of that (and an accusation), or when the lane has to leave.
template <class Attached>
std::optional<Attached> attach_patiently(Lane& lane, const std::function<Result<Attached>()>& attach) {
  for (const std::uint64_t began = monotonic_ns(); !lane.asked_to_leave(); nap_us(500)) {
    Result<Attached> attached = attach();
    if (attached.ok()) return std::move(attached).value();
    lane.step();
    if (attached.code() == Code::kSegmentFull && monotonic_ns() - began < 30'000'000'000U) continue;
    lane.accuse(Offence::kUnexpectedAnswer, {}, "attach: " + attached.error().message);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ojs_shm::test
