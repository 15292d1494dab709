// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/segment.hpp>

namespace ojs_shm::cli {

enum class Verdict : std::uint8_t { kOk, kWarning, kProblem };
std::string_view verdict_name(Verdict verdict) noexcept;

/// One thing that was looked at, what was seen, and what to do about it.
struct Finding {
  std::string check;
  Verdict verdict = Verdict::kOk;
  std::string text;
  std::string advice;
};

/// What to do when a segment cannot be attached to; empty where nothing is known.
std::string advice_for(const Error& error, const SegmentName& where);

/// " --dir D" for a command that is to find the segment, nothing for the usual directory.
std::string dir_flag(const SegmentName& where);
std::string broker_command(const SegmentName& where);

/// What the machine gives: directory, space, memory, limits.
void check_machine(const SegmentName& where, std::vector<Finding>& findings);
/// Files of segments that no process holds any more, or that cannot be read; of all in the
/// directory, or of this one segment. Those of other users are no problem of this one.
void check_files(const SegmentName& where, bool this_one, std::vector<Finding>& findings);
/// The segment itself: permissions, versions, pools, processes, queues, invariants.
void check_segment(const SegmentName& where, std::vector<Finding>& findings);
/// What its jobs say: queues that fill or starve, jobs that are held for too long, the clock.
void check_jobs(const Observer& observer, const SegmentInfo& info,
                const std::vector<QueueInfo>& queues, std::vector<Finding>& findings);

}  // namespace ojs_shm::cli
