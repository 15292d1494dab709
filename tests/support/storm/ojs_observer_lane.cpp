// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/census.hpp>
#include <ojs_shm/transfer.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tests/support/storm/ojs_lanes.hpp"

namespace ojs_shm::test {
namespace {

/// The jobs of an export to which time does nothing, each with its line; but for its fence, which
/// goes on.
class CalmJobs {
 public:
  void note(std::string_view line) {
    constexpr std::string_view kJob = R"({"job":{"id":")";
    if (!line.starts_with(kJob)) return;
    for (const std::string_view moving : {R"("state":"active")", R"("state":"scheduled")",
                                          R"("state":"retryable")", R"("expires_at":)"})
      if (line.find(moving) != std::string_view::npos) return;
    const std::size_t fence = line.find(R"("fence":)"), behind = line.find(',', fence);
    std::string& kept = lines_[std::string(line.substr(kJob.size(), 36))];
    kept =
        fence == line.npos ? line : std::string(line.substr(0, fence)).append(line.substr(behind));
  }
  std::size_t size() const { return lines_.size(); }
  /// Of one that `other` has otherwise, or not at all, its id and both lines from a little before
  /// the difference on; empty: there is none.
  std::string missing_in(const CalmJobs& other) const {
    for (const auto& [id, line] : lines_) {
      const auto found = other.lines_.find(id);
      if (found == other.lines_.end()) return id + " is not there";
      if (found->second == line) continue;
      const auto differs = std::ranges::mismatch(line, found->second).in1 - line.begin();
      const std::size_t from = static_cast<std::size_t>(std::max<std::ptrdiff_t>(differs - 30, 0));
      return fmt::format("{} was {:.75} and is {:.75}", id, line.substr(from),
                         found->second.substr(from));
    }
    return {};
  }

 private:
  std::unordered_map<std::string, std::string> lines_;
};

class ObserverLane {
 public:
  ObserverLane(Lane& lane, const OjsPlan& plan, Observer observer)
      : lane_(lane),
        dice_(lane.seed),
        plan_(plan),
        observer_(std::move(observer)),
        events_(observer_.events({.from_start = dice_.chance(0.5)})) {
    plan_.name = copy_of(plan.name);
    plan_.options.retention_ms = 0;
  }

  void run() {
    look_after_forerunner();
    while (!lane_.asked_to_leave()) {
      lane_.step();
      read_events();
      if (dice_.chance(0.01)) look_around();
      if (dice_.chance(0.01)) go_on();
      if (dice_.chance(0.002)) copy();
      nap_us(2000);
    }
    remove_copy();
  }

 private:
  /// Of one handle each number comes once and in order, and what is missing was counted as lost.
  void read_events() {
    for (Event event; events_.next(event); lane_.book().events.fetch_add(1)) {
      std::uint64_t& last = last_[event.handle];
      if (event.sequence <= last)
        lane_.accuse(
            Offence::kBadEvent, {},
            fmt::format("{} {} after {} of {}", event.type, event.sequence, last, event.source));
      if (last != 0) missing_ += event.sequence - last - 1;
      last = event.sequence;
      last_id_ = event.id;
    }
    lane_.book().events_lost.fetch_add(events_.lost() - lost_);
    lost_ = events_.lost();
    if (missing_ <= lost_) return;
    lane_.accuse(Offence::kBadEvent, {},
                 fmt::format("{} are missing, {} are said to be lost", missing_, lost_));
    missing_ = lost_;
  }

  /// Behind the last event that was read; those of late tellers may come again, but not that one.
  void go_on() {
    if (last_id_.empty()) return;
    EventReader events =
        observer_.events({.after = last_id_, .after_position = events_.position()});
    Event event;
    while (events.next(event))
      if (event.id == last_id_)
        lane_.accuse(Offence::kBadEvent, {}, event.id + " comes behind itself");
    const std::uint64_t told = std::max(events.position(), events_.position());
    if (events.lost() > told)
      lane_.accuse(Offence::kBadEvent, {},
                   fmt::format("{} were lost of {}, {}", events.lost(), told,
                               events.resumed() ? "behind a kept one" : "behind one that is gone"));
  }

  /// All that can be seen of a segment at work, each by itself as in its list.
  void look_around() {
    const std::vector<QueueInfo> queues = observer_.queues();
    for (const QueueInfo& queue : queues)
      if (queue.name != kPassingQueue && !observer_.queue(queue.name).ok())
        unseen("queue", queue.name);
    for (const LimitInfo& limit : observer_.limits())
      if (const auto alone = observer_.limit(limit.key);
          !alone.ok() && alone.code() != Code::kNotFound)
        unseen("limit", limit.key);
    for (const WorkerPoolInfo& pool : observer_.pools())
      if (pool.name == kStormPool && !observer_.pool(pool.name).ok()) unseen("pool", pool.name);
    for (const RegisteredWorker& worker : observer_.registered_workers())
      if (const auto alone = observer_.registered_worker(worker.id);
          alone.ok() ? alone->id != worker.id : alone.code() != Code::kNotFound)
        unseen("worker", worker.id);
    for (const QueueScheduling& one : observer_.scheduling_stats().queues)
      if (one.dispatch_ratio_1m < 0 || one.dispatch_ratio_1m > 1) unseen("statistics", one.queue);
    for (const TenantCensus& tenant : observer_.census().tenants)
      if (tenant.actual < 0 || tenant.actual > 1) unseen("share", tenant.tenant);
    for (const Transition& each : observer_.recent(50))
      if (each.from == "unknown" || each.to == "unknown") unseen("transition", each.job);
    if (observer_.maintenance().enabled) unseen("maintenance", "that was never set");
    for (const LevelWaits& waits : observer_.waits())
      // a worker killed between its counts leaves some of them
      if (waits.from_enqueue.count + waits.from_available.count + waits.runs.count == 0)
        unseen("waits", waits.queue);
    if (!observer_.priority_by_name("high").ok()) unseen("priority", "high");
    if (const auto priority = observer_.default_priority("storm.one"); priority && *priority > 4)
      unseen("default priority", "storm.one");
  }

  void unseen(std::string_view what, std::string_view name) {
    lane_.accuse(Offence::kUnexpectedAnswer, {},
                 fmt::format("{} {} is not what it should be", what, name));
  }

  /// Moves the living segment into another one, line by line, and judges that one.
  void copy() {
    remove_copy();
    const auto segment = Segment::create(plan_.name, plan_.options);
    if (!segment.ok()) return bad("create", segment.error());
    auto import = Import::attach(*segment);
    if (!import.ok()) return bad("attach", import.error());
    if (auto admin = Admin::attach(*segment); admin.ok()) (void)admin->set_dead_retention({0, 0});
    CalmJobs before, after;
    const Status moved = export_segment(observer_.segment(), [&](std::string_view line) {
      lane_.step();
      before.note(line);
      return import->take(line);
    });
    if (!moved.ok()) return bad("move", moved.error());
    if (const Status finished = import->finish(); !finished.ok())
      return bad("finish", finished.error());
    const Observer copied = Observer::attach(*segment).value();
    judge(copied, "a copy");
    (void)export_segment(copied.segment(), [&](std::string_view line) {
      return lane_.step(), after.note(line), Status();
    });
    if (const std::string changed = before.missing_in(after); !changed.empty())
      lane_.accuse(Offence::kBadCopy, {}, changed);
    lane_.book().copies.fetch_add(1);
    lane_.book().copied_jobs.fetch_add(before.size());
  }

  void judge(const Observer& copied, std::string_view what) {
    for (const Violation& violation : copied.audit())
      lane_.accuse(Offence::kBadCopy, {},
                   fmt::format("{}: invariant {}: {}", what, violation.invariant, violation.text));
    for (const JobInfo& job : copied.list({}))
      if (!key_of(job))
        lane_.accuse(Offence::kCorruptPayload, {}, fmt::format("{}: {}", what, job.id));
    for (const JobInfo& job : copied.page({.limit = 100}).jobs)
      if (!key_of(job))
        lane_.accuse(Offence::kCorruptPayload, {}, fmt::format("{}, a page: {}", what, job.id));
  }

  /// It may have been killed in the middle of a copy.
  void look_after_forerunner() {
    auto admin = Admin::attach(plan_.name);
    if (!admin.ok()) return;
    if (const auto repaired = admin->repair(); !repaired.ok())
      return bad("repair", repaired.error());
    judge(Observer::attach(admin->segment()).value(), "half a copy");
  }

  void remove_copy() { (void)remove_segment(plan_.name, Removal::kForced); }

  void bad(std::string_view what, const Error& error) {
    lane_.accuse(Offence::kBadCopy, {},
                 fmt::format("{}: {} ({})", what, error.message, code_name(error.code)));
  }

  Lane& lane_;
  Dice dice_;
  OjsPlan plan_;  // of the copy
  Observer observer_;
  EventReader events_;
  std::map<std::uint32_t, std::uint64_t> last_;
  std::string last_id_;
  std::uint64_t missing_ = 0, lost_ = 0;
};

}  // namespace

SegmentName copy_of(const SegmentName& name) { return {name.name + "-copy", name.dir}; }

void observe_jobs(Lane& lane, const OjsPlan& plan) {
  auto observer = attach_patiently<Observer>(lane, [&] { return Observer::attach(plan.name); });
  if (observer) ObserverLane(lane, plan, std::move(*observer)).run();
}

}  // namespace ojs_shm::test
