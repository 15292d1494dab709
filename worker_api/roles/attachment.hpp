// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <ojs_shm/backpressure.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/segment.hpp>

#include "engine/actor.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/make.hpp"
#include "engine/tables/store.hpp"
#include "shm/member.hpp"
#include "shm/segment.hpp"

namespace ojs_shm::internal {

/// What one repair found.
struct Deaths {
  std::uint32_t by = 0;             ///< pid of the repairer
  std::vector<std::uint32_t> pids;  ///< as the dead knew themselves, in their own pid namespaces
  std::uint32_t mended = 0;         ///< slots
  /// For the log: how many died, which, how that is known, and what was mended.
  std::string text() const;
};

/// One attachment of this process: the mapping, the process record whose lock byte proves that we
/// live, and a keeper thread that takes the supervisor's role when it is free. Thread-safe.
class Attachment : public std::enable_shared_from_this<Attachment> {
 public:
  enum class Role : std::uint8_t {
    kMember,
    kBroker,
    kObserver,
    kExaminer,  ///< of a copy of a segment's file, whose clock stands
  };

  static Result<std::shared_ptr<Attachment>> open(const SegmentName& name, Role role);
  static Result<std::shared_ptr<Attachment>> create(const SegmentName& name,
                                                    const SegmentOptions& options, Role role);
  static Result<std::shared_ptr<Attachment>> examine(const std::string& path);
  Attachment(shm::Segment segment, SegmentName name, Role role);
  ~Attachment();
  Attachment(const Attachment&) = delete;

  engine::Store& store() { return store_; }
  shm::Segment& segment() { return segment_; }
  const shm::LockFile& locks() const { return locks_; }
  const SegmentName& name() const { return name_; }
  std::uint32_t process() const { return process_; }
  bool read_only() const { return role_ == Role::kObserver || post_mortem(); }
  /// A copy of a segment's file: no process lives in it, and its time is that of its last trace.
  bool post_mortem() const { return role_ == Role::kExaminer; }
  /// True in the child of a fork: everything here belongs to the parent. Also where the lock is
  /// lost.
  bool forked() const noexcept { return forked_.get(); }

  /// A lane for a handle, or, for service, also one of those that no handle gets. Errors:
  /// kSegmentFull when the living have all of them.
  Result<std::uint32_t> take_lane(bool for_service = false);
  void give_lane(std::uint32_t lane);

  /// Mends after every process found dead; how many there were. One caller at a time, other callers
  /// return 0 at once.
  std::uint32_t repair_the_dead(Deaths* deaths = nullptr);
  /// Looks everywhere and mends what a repair cannot know of. For a quiet segment.
  std::uint32_t mend();
  /// Whether the process of that record lives, by its lock byte.
  bool alive(std::uint32_t process) const;
  bool others_attached() const;

  /// Holds the supervisor's seat, already taken, until `stop` says so. `log` gets a line for each
  /// event.
  void supervise(const std::function<bool()>& stop,
                 const std::function<void(std::string_view)>& log);
  /// Wakes the supervisor.
  void ring_doorbell();

  void mark_forked();
  /// This process has closed its lock, so that others hold it for dead: nothing here is its own any
  /// more.
  void mark_lost();

 private:
  Status check_lock_file() const;
  bool has_free_record() const;
  Status join(Role role);
  Status start_keeper();
  void keep();
  void wait_for_vacancy();
  bool broker_lives() const;
  bool repair(Deaths& deaths);
  void tell(const Deaths& deaths);

  shm::Segment segment_;
  engine::Store store_;
  SegmentName name_;
  Role role_;
  shm::LockFile locks_;
  std::uint32_t process_ = shm::kNoIndex;
  shm::LocalFlag forked_, stopping_;
  int stop_fd_ = -1;
  std::thread keeper_;
  std::mutex repair_;
};

/// Of a thread of the parent, in the child of a fork: neither joined nor detached, as another
/// thread may have its number by now.
void abandon(std::thread& thread);
/// A wait that can be added to a clock: what is longer is a hundred years.
inline std::chrono::milliseconds within_reach(std::chrono::milliseconds wait) {
  return std::min(wait,
                  std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::years(100)));
}
/// The end of a refusal: by which two commands the jobs of a segment come into another one.
std::string how_to_move(const SegmentName& name, std::string_view whose = {});
std::string path_of(const SegmentName& name);
/// Empty when the name and the directory may be used, else what is wrong.
std::string problem_of(const SegmentName& name);
Error error_of(const shm::Opened& opened);
/// What the engine's outcome means to a caller; knows the pools of the segment.
Error error_of(engine::Outcome outcome, engine::Store& store, std::uint32_t queue,
               std::string_view subject);
/// Completes the error of a full queue, which names the queue already.
/// `error` names the queue, and the tenant if the bound is a tenant's.
void describe_refusal(const engine::Meeting& met, Error& error);
/// The name of its tenant, "" without one.
std::string tenant_of(const JobSpec& spec);
/// Another process is in the middle of bringing a job with the id of `what`: an id, or "batch".
Error just_brought(std::string_view what);
/// Another job has the unique key of the job of that id.
Error key_taken(const engine::Clash& by, std::string_view id);
/// Each record of a cron is taken.
Error no_cron_left();
/// Of a text that is not the id of a "job" or a "workflow".
Error not_an_id(std::string_view text, std::string_view whose = "job");
Error wrong_state(std::string_view id, engine::JobState found, std::string_view wanted);
JobInfo info_of(const engine::Store& store, const engine::Snapshot& snapshot);
/// What is wrong with a spec.
enum class SpecFault : std::uint8_t {
  kNone,
  kType,
  kArgs,
  kTooLarge,
  kQueue,
  kNoQueues,
  kNoSlots,
  kDuplicate,
  kPriority,
  kId,
  kCoefficient,
  kBackoff,
  kAgeRate,
  kTenant,
  kResultTtl,
  kTotalTimeout,
  kLimit,
  kNoLimits,
  kBusy
};
/// Checks a spec and translates it into `job`, whose strings stay views into `spec`. A queue that
/// does not exist is left open, kNoIndex, for Handle::make_queues().
SpecFault read_spec(engine::Actor& actor, const JobSpec& spec, engine::NewJob& job);
inline engine::RetryPolicy retry_of(const Retry& retry) {
  return {retry.max_attempts,
          retry.initial_ms,
          retry.max_ms,
          retry.coefficient,
          static_cast<engine::Backoff>(retry.backoff),
          retry.jitter,
          retry.dead_letter};
}
/// Checks the part of it that every job has: type, arguments, priority and retry policy.
SpecFault check_basics(engine::Actor& actor, const JobSpec& spec, std::uint8_t& rank);
/// A job of that part alone.
inline engine::NewJob basic_job(const JobSpec& spec, std::uint32_t queue, std::uint8_t rank) {
  return {.type = spec.type,
          .args = spec.args,
          .queue = queue,
          .rank = rank,
          .timeout_ms = spec.timeout_ms,
          .lease_ms = spec.lease_ms,
          .retry = retry_of(spec.retry)};
}
/// Whether a spec has no more than that.
inline bool only_basics_and_key(const JobSpec& spec) {
  return (spec.id.size() | spec.extra.size() | spec.tenant.size() | spec.scheduled_at_ms |
          spec.expires_at_ms | spec.enqueue_ttl_s | spec.total_timeout_s | spec.grace_period_s) ==
             0 &&
         spec.limit == nullptr && !spec.pending && !spec.priority_age_rate && !spec.result_ttl_s;
}
inline bool only_basics(const JobSpec& spec) {
  return spec.unique == nullptr && only_basics_and_key(spec);
}
Error error_of(SpecFault fault, const JobSpec& spec, engine::Store& store);
Error closed();
/// This process has no descriptor left.
Error no_descriptor();

/// A lane and its Actor, given back at the end. The base of every handle.
class Handle {
 public:
  static Result<std::unique_ptr<Handle>> make(const Segment& segment);
  Handle(Segment segment, std::uint32_t lane);
  ~Handle();
  Handle(const Handle&) = delete;

  engine::Actor& actor() { return actor_; }
  engine::Store& store() { return attachment_->store(); }
  Attachment& attachment() { return *attachment_; }
  const Segment& segment() const { return segment_; }
  std::uint32_t lane() const { return actor_.lane(); }
  bool closed() const { return attachment_->forked(); }

  /// Reads a spec and makes its queue if need be.
  SpecFault read(const JobSpec& spec, engine::NewJob& job);
  /// Makes the queues of jobs for which there is none yet, unless one of them, the one at `at`,
  /// will be refused: a queue stays for ever.
  SpecFault make_queues(std::span<const JobSpec> specs, std::span<engine::NewJob> jobs,
                        std::size_t& at);

 private:
  Segment segment_;
  std::shared_ptr<Attachment> attachment_;
  engine::Actor actor_;
};

}  // namespace ojs_shm::internal
