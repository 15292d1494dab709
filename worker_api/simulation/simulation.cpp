// SPDX-License-Identifier: Apache-2.0
#include "worker_api/simulation/simulation.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <set>

#include "engine/workflows/workflow_look.hpp"
#include "shm/member.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/simulation/trace_workflows.hpp"

namespace ojs_shm {
namespace {

constexpr std::uint64_t kBeginMs = 1'700'000'000'000;  // some moment; the same in every simulation

/// A segment of this process alone. Its files have no name once it is there, so that nothing is
/// left behind; we sit in the broker's seat, so that only the simulation does anything.
class PrivateSegment {
 public:
  static Result<PrivateSegment> make(const SegmentOptions& options) {
    char dir[] = "/dev/shm/ojs-shm-simulation.XXXXXX";
    if (::mkdtemp(dir) == nullptr)
      return Error{Code::kPermission, std::string(dir) + ": " + std::strerror(errno)};
    const SegmentName name{"private", dir};
    PrivateSegment made;
    std::string problem = made.seat_.open(internal::path_of(name), true, 0600, {});
    if (problem.empty() && !made.seat_.try_lock(shm::kBrokerSeat)) problem = "the seat is taken";
    Result<Segment> segment =
        problem.empty() ? Segment::create(name, options) : Error{Code::kInternal, problem};
    (void)remove_segment(name, Removal::kForced);
    ::unlink(shm::LockFile::path_of(internal::path_of(name)).c_str());
    ::rmdir(dir);
    if (!segment) return segment.error();
    made.segment_.emplace(std::move(segment).value());
    made.stand_at(0);
    return made;
  }

  const Segment& get() const { return *segment_; }
  static std::uint64_t moment(std::int64_t us) {
    return kBeginMs + static_cast<std::uint64_t>(us) / 1000;
  }
  void stand_at(std::int64_t us) {
    // NO CRASH POINT: the segment dies with us
    segment_->attachment()->segment().header().clock_offset_ms.store(
        shm::kStandingClock | moment(us), shm::Point::kNone);
  }

 private:
  PrivateSegment() = default;
  shm::LockFile seat_;
  std::optional<Segment> segment_;
};

/// A worker and what it does. Which queue a fetch takes from is Worker's own choice, made here and
/// nowhere else.
struct Server {
  Worker worker;
  std::uint32_t free;
  std::string pool;
};

/// The pool that Worker::attach() takes for a worker of these options.
std::string pool_of(const WorkerOptions& options, const Trace& trace) {
  const bool has_default =
      std::ranges::any_of(trace.pools, [](const auto& pool) { return pool.name == "default"; });
  return options.pool.empty() && has_default ? "default" : options.pool;
}

/// Those of the pools, in their order, and then those of the plan.
Result<std::vector<Server>> servers_of(const Segment& segment, const Trace& trace,
                                       const SimulationPlan& plan) {
  std::vector<SimulatedWorkers> kinds;
  for (const SimulatedPool& pool : trace.pools) {
    SimulatedWorkers& kind = kinds.emplace_back();
    kind.options.pool = pool.name;
    kind.options.concurrency = pool.concurrency;
    kind.count = pool.workers;
    kind.concurrency = pool.concurrency;
  }
  kinds.insert(kinds.end(), plan.workers.begin(), plan.workers.end());
  std::vector<Server> servers;
  for (const SimulatedWorkers& kind : kinds) {
    for (std::uint32_t i = 0; i < kind.count; ++i) {
      auto worker = Worker::attach(segment, kind.options);
      if (!worker) return worker.error();
      servers.push_back(
          {std::move(worker).value(), kind.concurrency, pool_of(kind.options, trace)});
    }
  }
  if (servers.empty())
    return Error{Code::kInvalid, "a simulation needs a worker: --workers N"}.about("workers");
  return servers;
}

struct Completion {
  std::int64_t at_us;
  std::uint64_t order;
  std::uint32_t server;
  std::uint32_t place;  ///< of the job among those in service
  std::uint32_t arrival;
  bool operator>(const Completion& other) const {
    return at_us != other.at_us ? at_us > other.at_us : order > other.order;
  }
};

/// The parts of a job's spec that it only views.
struct JobText {
  std::string args, extra, name;
};

class Simulation {
 public:
  Simulation(const Trace& trace, const TraceWorkflows& workflows, PrivateSegment& segment,
             std::unique_ptr<internal::Handle> supervising, Producer producer,
             std::vector<Server> servers)
      : trace_(trace),
        workflows_(workflows),
        segment_(segment),
        supervising_(std::move(supervising)),
        producer_(std::move(producer)),
        servers_(std::move(servers)),
        open_(trace.arrivals.size()),
        ids_(workflows.all().size()) {
    for (std::uint32_t server = 0; server < servers_.size(); ++server) {
      idle_.push_back(server);
      outcome_.pool_of_worker.push_back(servers_[server].pool);
    }
    outcome_.came_us.assign(trace.arrivals.size(), SimulationOutcome::kNever);
    outcome_.workflows.resize(workflows.all().size());
    for (const auto& arrivals : workflows.all()) left_.push_back(arrivals.size());
    for (std::uint32_t i = 0; i < open_.size(); ++i)
      if ((open_[i] = trace.arrivals[i].after.size()) == 0) order_.push_back(i);
  }

  void play_sizes_of(const std::string& queue) { sized_.insert(queue); }

  /// Of two things at one moment a job ends before another one arrives, and all of that moment is
  /// done before any worker looks for work.
  Status run(const std::function<void(std::size_t)>& progress) {
    const auto comes = [this](std::size_t at) {
      return at < order_.size() ? trace_.arrivals[order_[at]].at_us : SimulationOutcome::kNever;
    };
    std::size_t next = 0;
    while (next < order_.size() || !ends_.empty()) {
      now_ = std::min(comes(next), ends_.empty() ? SimulationOutcome::kNever : ends_.top().at_us);
      segment_.stand_at(now_);
      while (!ends_.empty() && ends_.top().at_us == now_)
        if (Status ended = end_first(); !ended) return ended;
      for (; comes(next) == now_; ++next)
        if (Status arrived = arrive(order_[next]); !arrived) return arrived;
      if (Status begun = begin_all(); !begun) return begun;
      if (progress) progress(next);
    }
    outcome_.end_us = now_;
    return {};
  }

  SimulationOutcome take() { return std::move(outcome_); }

 private:
  /// The job of an arrival; `text` is what it views.
  JobSpec spec_of(std::uint32_t number, JobText& text) const {
    const TraceArrival& arrival = trace_.arrivals[number];
    text.args = "[" + std::to_string(number) + "]";
    if (!arrival.tenant.empty()) {
      json::ObjectWriter writer(text.extra);
      json::ObjectWriter meta(writer.open("meta"));
      meta.text("tenant_id", arrival.tenant);
      meta.close();
      writer.close();
    }
    if (const std::size_t small = text.args.size() + text.extra.size() + 3;
        arrival.size > small && sized_.contains(arrival.queue))
      text.args.insert(text.args.size() - 1, ",\"" + std::string(arrival.size - small, 'x') + "\"");
    JobSpec spec;
    spec.type = arrival.type;
    spec.queue = arrival.queue;
    spec.priority = arrival.priority;
    spec.args = text.args;
    spec.extra = text.extra;
    spec.lease_ms = std::numeric_limits<std::uint32_t>::max();
    return spec;
  }

  Status arrive(std::uint32_t number) {
    if (const std::uint32_t workflow = workflows_.workflow_of(number);
        workflow != TraceWorkflows::kNone)
      return arrive_in(workflow, number);
    JobText text;
    JobSpec spec = spec_of(number, text);
    std::optional<JobUnique> unique;
    if (const std::string& policy = trace_.arrivals[number].unique; !policy.empty()) {
      auto read = JobUnique::of(spec, policy);
      if (!read) return of_arrival(number, read.error());
      spec.unique = &unique.emplace(std::move(read).value());
    }
    outcome_.came_us[number] = now_;
    const auto stored = producer_.enqueue(spec);
    if (stored && !producer_.deduplicated()) return {};
    if (stored || stored.code() == Code::kDuplicate)
      outcome_.duplicates.push_back(number);
    else if (stored.code() == Code::kQueueFull)
      outcome_.refused.push_back(number);
    else
      return of_arrival(number, stored.error());
    return {};
  }

  /// The first arrival of a workflow creates it. Another arrival that comes after no job waits in
  /// it for its time.
  Status arrive_in(std::uint32_t workflow, std::uint32_t number) {
    SimulatedWorkflow& played = outcome_.workflows[workflow];
    if (ids_[workflow].empty() && !played.refused) return create(workflow);
    if (played.refused || outcome_.came_us[number] != SimulationOutcome::kNever) return {};
    const engine::Store& store = supervising_->store();
    const auto id = engine::parse_id(ids_[workflow]);
    const auto found = engine::snapshot_workflow(store, engine::find_workflow(store, *id));
    if (!found) return {};  // it was failed, and has ended
    const std::vector<std::uint32_t>& arrivals = workflows_.all()[workflow];
    const auto member =
        static_cast<std::size_t>(std::ranges::find(arrivals, number) - arrivals.begin());
    const engine::WorkflowGraph::Member& at = found->graph.members[member];
    if (engine::Control(store.job(at.slot).control.load()).state() != engine::kSlotScheduled)
      return {};
    supervising_->actor().tend(at.slot, at.generation, PrivateSegment::moment(now_));
    outcome_.came_us[number] = now_;
    return {};
  }

  Status create(std::uint32_t workflow) {
    const std::vector<std::uint32_t>& arrivals = workflows_.all()[workflow];
    std::vector<JobText> texts(arrivals.size());
    std::map<std::uint32_t, std::string_view> names;
    WorkflowSpec whole;
    whole.kind = WorkflowKind::kGraph;
    const std::uint64_t now = PrivateSegment::moment(now_);
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      WorkflowSpec& step = whole.steps.emplace_back();
      step.job = spec_of(arrivals[i], texts[i]);
      step.name = names[arrivals[i]] = texts[i].name = std::to_string(i);
      const TraceArrival& arrival = trace_.arrivals[arrivals[i]];
      if (const std::uint64_t due = PrivateSegment::moment(arrival.at_us);
          arrival.after.empty() && due > now)
        step.job.scheduled_at_ms = due;
    }
    for (std::size_t i = 0; i < arrivals.size(); ++i)
      for (const std::uint32_t before : trace_.arrivals[arrivals[i]].after)
        whole.steps[i].depends_on.push_back(names.at(before));
    SimulatedWorkflow& played = outcome_.workflows[workflow];
    played.began_us = now_;
    const auto created = producer_.create_workflow(whole);
    played.refused = !created && created.code() == Code::kQueueFull;
    if (played.refused)
      outcome_.refused.insert(outcome_.refused.end(), arrivals.begin(), arrivals.end());
    if (!created) return played.refused ? Status() : of_arrival(arrivals.front(), created.error());
    ids_[workflow] = created.value();
    for (std::size_t i = 0; i < arrivals.size(); ++i)
      if (open_[arrivals[i]] == 0 && whole.steps[i].job.scheduled_at_ms == 0)
        outcome_.came_us[arrivals[i]] = now_;
    return {};
  }

  static Error of_arrival(std::uint32_t number, Error error) {
    error.message = "arrival " + std::to_string(number + 1) + ": " + error.message;
    return error;
  }

  /// The worker that has been idle longest looks first, again until no worker finds anything.
  Status begin_all() {
    for (std::size_t looks = idle_.size(); looks > 0; --looks) {
      const std::uint32_t number = idle_.front();
      idle_.pop_front();
      if (spare_.empty())
        spare_.push_back(static_cast<std::uint32_t>(jobs_.size())), jobs_.emplace_back();
      Server& server = servers_[number];
      Job& job = jobs_[spare_.back()];
      Status fetched = server.worker.try_fetch(job);
      if (!fetched) {
        if (fetched.code() != Code::kEmpty) return fetched;
        idle_.push_back(number);
        continue;
      }
      std::uint32_t arrival = 0;
      std::from_chars(job.args().data() + 1, job.args().data() + job.args().size(), arrival);
      outcome_.dispatches.push_back({now_, arrival, number});
      ends_.push({now_ + trace_.arrivals[arrival].service_us, ++order_of_end_, number,
                  spare_.back(), arrival});
      spare_.pop_back();
      if (--server.free != 0) {
        idle_.push_back(number);
        ++looks;  // it may take another one
      }
    }
    return {};
  }

  Status end_first() {
    const Completion end = ends_.top();
    ends_.pop();
    Server& server = servers_[end.server];
    const Status done = server.worker.ack(jobs_[end.place]);
    // a job that was replaced meanwhile is no longer its worker's
    if (!done && done.code() != Code::kLost) return done;
    if (done) let_follow(end.arrival);
    spare_.push_back(end.place);
    if (server.free++ == 0) idle_.push_back(end.server);
    return {};
  }

  /// The ack has let those jobs run that came after this one alone by now.
  void let_follow(std::uint32_t arrival) {
    for (const std::uint32_t next : workflows_.followers(arrival))
      if (--open_[next] == 0) outcome_.came_us[next] = now_;
    const std::uint32_t workflow = workflows_.workflow_of(arrival);
    if (workflow == TraceWorkflows::kNone || --left_[workflow] != 0) return;
    outcome_.workflows[workflow].completed = true;
    outcome_.workflows[workflow].ended_us = now_;
  }

  const Trace& trace_;
  const TraceWorkflows& workflows_;
  PrivateSegment& segment_;
  std::unique_ptr<internal::Handle> supervising_;
  Producer producer_;
  std::vector<Server> servers_;
  std::set<std::string> sized_;
  std::vector<std::uint32_t> order_;  ///< arrivals that come after none
  std::vector<std::size_t> open_;     ///< of each arrival: how many before it have not ended
  std::vector<std::size_t> left_;     ///< of each workflow: jobs that have not ended
  std::vector<std::string> ids_;      ///< of each workflow that was created
  std::deque<std::uint32_t> idle_;    ///< servers that could begin a job
  std::deque<Job> jobs_;              ///< in service, and the spare ones
  std::vector<std::uint32_t> spare_;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> ends_;
  std::int64_t now_ = 0;
  std::uint64_t order_of_end_ = 0;
  SimulationOutcome outcome_;
};

SegmentOptions options_for(const Trace& trace, const TraceWorkflows& workflows,
                           const SimulationPlan& plan) {
  std::set<std::string> queues = {"default"};
  for (const TraceArrival& arrival : trace.arrivals) queues.insert(arrival.queue);
  for (const auto& [name, settings] : plan.queues) queues.insert(name);
  std::uint32_t workers = 0;
  std::size_t permits = 0;
  for (const SimulatedPool& pool : trace.pools) {
    workers += pool.workers;
    queues.insert(pool.settings.queues.begin(), pool.settings.queues.end());
    permits += std::min<std::uint64_t>(pool.settings.concurrency, engine::kMostPermits);
  }
  for (const SimulatedWorkers& kind : plan.workers) {
    workers += kind.count;
    queues.insert(kind.options.queues.begin(), kind.options.queues.end());
  }
  SegmentOptions options;
  options.convention = trace.convention;
  // A segment has a permit for a quarter of its slots, and a limit's come in sizes that double.
  const std::size_t jobs = trace.arrivals.size() + workflows.all().size();
  options.slots = static_cast<std::uint32_t>(
      std::min<std::size_t>(std::max(jobs * 9 / 8, permits * 8) + 512, 4'000'000));
  options.max_queues = static_cast<std::uint32_t>(queues.size() + 1);
  options.max_handles = std::max(workers + 8, 32U);
  return options;
}

}  // namespace

Result<SimulationOutcome> simulate(const Trace& trace, const SimulationPlan& plan,
                                   const std::function<void(std::size_t)>& progress) {
  const auto workflows = TraceWorkflows::of(trace);
  if (!workflows) return workflows.error();
  auto segment = PrivateSegment::make(options_for(trace, *workflows, plan));
  if (!segment) return segment.error();
  auto admin = Admin::attach(segment->get());
  if (!admin) return admin.error();
  if (plan.default_aging)
    if (const Status set = admin->set_default_aging(*plan.default_aging); !set) return set.error();
  for (const auto& [queue, settings] : plan.queues)
    if (const Status set = admin->set_queue(queue, settings); !set) return set.error();
  for (const SimulatedPool& pool : trace.pools) {
    if (pool.concurrency == 0)
      return Error{Code::kInvalid, "a worker of pool '" + pool.name + "' does no job"}.about(
          "concurrency");
    const auto set = admin->set_pool(pool.name, pool.settings);
    if (!set) return set.error();
    if (!set.value())
      return Error{Code::kInvalid, "pool '" + pool.name + "' is there twice"}.about("pool");
  }
  auto producer = Producer::attach(segment->get());
  if (!producer) return producer.error();
  auto servers = servers_of(segment->get(), trace, plan);
  if (!servers) return servers.error();
  auto supervising = internal::Handle::make(segment->get());
  if (!supervising) return supervising.error();
  Simulation simulation(trace, *workflows, *segment, std::move(supervising).value(),
                        std::move(producer).value(), std::move(servers).value());
  for (const auto& [queue, settings] : plan.queues)
    if (settings.max_size_bytes.value_or(0) != 0) simulation.play_sizes_of(queue);
  if (const Status run = simulation.run(progress); !run) return run.error();
  return simulation.take();
}

}  // namespace ojs_shm
