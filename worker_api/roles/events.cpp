// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/events.hpp>

#include <ojs_shm/observer.hpp>

#include <algorithm>
#include <deque>

#include "engine/crons/cron_look.hpp"
#include "engine/observing/events.hpp"
#include "engine/pools/pool_look.hpp"
#include "engine/tables/job_look.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/last_error.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/event_choice.hpp"
#include "worker_api/roles/registered_workers.hpp"
#include "worker_api/roles/results.hpp"
#include "worker_api/roles/told_events.hpp"
#include "worker_api/roles/told_workflow.hpp"

namespace ojs_shm {

using engine::EventKind;

namespace {

std::string_view type_of(EventKind kind) {
  switch (kind) {
    case EventKind::kJobEnqueued: return "job.enqueued";
    case EventKind::kJobScheduled: return "job.scheduled";
    case EventKind::kJobStarted: return "job.started";
    case EventKind::kJobCompleted: return "job.completed";
    case EventKind::kJobFailed: return "job.failed";
    case EventKind::kJobRetrying: return "job.retrying";
    case EventKind::kJobDiscarded: return "job.discarded";
    case EventKind::kJobCancelled: return "job.cancelled";
    case EventKind::kJobExpired: return "job.expired";
    case EventKind::kJobHeartbeat: return "job.heartbeat";
    case EventKind::kJobProgress: return "job.progress";
    case EventKind::kPriorityChanged: return "priority.changed";
    case EventKind::kQueuePaused: return "queue.paused";
    case EventKind::kQueueResumed: return "queue.resumed";
    case EventKind::kRateLimitExceeded: return "rate_limit.exceeded";
    case EventKind::kRateLimitReleased: return "rate_limit.released";
    case EventKind::kRateLimitDropped: return "rate_limit.dropped";
    case EventKind::kQueueStarved: return "scheduling.queue_starved";
    case EventKind::kPoolOverloaded: return "scheduling.pool_overloaded";
    case EventKind::kPoolRebalanced: return "scheduling.rebalanced";
    case EventKind::kBackpressureWarning: return "backpressure.warning";
    case EventKind::kBackpressureCleared: return "backpressure.cleared";
    case EventKind::kBackpressureRejected: return "backpressure.rejected";
    case EventKind::kBackpressureDropped: return "backpressure.dropped";
    case EventKind::kWorkflowStarted: return "workflow.started";
    case EventKind::kWorkflowCompleted: return "workflow.completed";
    case EventKind::kWorkflowFailed: return "workflow.failed";
    case EventKind::kWorkflowCancelled: return "workflow.cancelled";
    case EventKind::kWorkflowStepCompleted: return "workflow.step_completed";
    case EventKind::kCronTriggered: return "cron.triggered";
    case EventKind::kCronSkipped: return "cron.skipped";
    case EventKind::kDeadLetterDeleted: return "dead_letter.deleted";
    case EventKind::kDeadLetterPruned: return "dead_letter.pruned";
    case EventKind::kQueueDeleted: return "queue.deleted";
    case EventKind::kJobTimeout: return "job.timeout";
    case EventKind::kJobStalled: return "job.stalled";
    case EventKind::kJobTtlExpired: return "job.ttl_expired";
    case EventKind::kJobTotalTimeout: return "job.total_timeout";
    case EventKind::kProcessRepaired: return "process.repaired";
    case EventKind::kWorkerLost: return "worker.lost";
    case EventKind::kWorkerStarted: return "worker.started";
    case EventKind::kWorkerQuiet: return "worker.quiet";
    case EventKind::kWorkerResumed: return "worker.resumed";
    case EventKind::kWorkerStopped: return "worker.stopped";
    case EventKind::kBulkEnqueue: return "bulk.enqueue.completed";
    case EventKind::kBulkCancel: return "bulk.cancel.completed";
    case EventKind::kBulkRetry: return "bulk.retry.completed";
    case EventKind::kBulkDelete: return "bulk.delete.completed";
    case EventKind::kRateLimitAdjusted: return "rate_limit.dynamic_adjusted";
    case EventKind::kText:
    case EventKind::kNone:
    case EventKind::kCount: break;
  }
  return "";
}

/// Eight bytes of a text in each word; it ends with the first NUL.
void append_text(std::initializer_list<std::uint64_t> words, std::string& text) {
  for (std::uint64_t word : words)
    for (; word != 0; word >>= 8) text += static_cast<char>(word & 0xFF);
}

bool failed(EventKind kind) {
  return kind == EventKind::kJobFailed || kind == EventKind::kJobRetrying ||
         kind == EventKind::kJobDiscarded || kind == EventKind::kRateLimitAdjusted;
}

/// The state of the job behind an attempt that is over. Nothing: the event does not say.
std::optional<State> state_behind(const engine::EventFacts& facts) {
  if (facts.kind == EventKind::kJobTtlExpired || facts.kind == EventKind::kJobTotalTimeout)
    return State::kDiscarded;
  const bool tells = facts.kind == EventKind::kJobFailed || facts.kind == EventKind::kJobTimeout ||
                     facts.kind == EventKind::kJobStalled;
  if (!tells || !engine::holds_job(facts.previous_rank)) return std::nullopt;
  return static_cast<State>(engine::job_state(facts.previous_rank));
}

/// What names the job's holder.
bool is_of_holder(EventKind kind) {
  return kind == EventKind::kJobStarted || kind == EventKind::kJobHeartbeat ||
         kind == EventKind::kJobProgress;
}

}  // namespace

std::vector<std::string_view> event_types() {
  std::vector<std::string_view> types;
  for (unsigned kind = 0; kind < static_cast<unsigned>(EventKind::kCount); ++kind)
    if (const std::string_view type = type_of(static_cast<EventKind>(kind)); !type.empty())
      types.push_back(type);
  return types;
}

struct EventReader::Impl {
  Segment segment;
  EventOptions options;
  internal::ToldEvents told;
  std::uint64_t position = 0;            ///< of the last one given out
  internal::ToldWorkflow workflow = {};  ///< of the last event about one

  Event translate(const engine::EventFacts& facts) const;
  void add_pool(const engine::EventFacts& facts, Event& event) const;
  static void add_repair(const engine::EventFacts& facts, Event& event);
  static void add_bulk(const engine::EventFacts& facts, Event& event);
  static void add_pressure(const engine::EventFacts& facts, Event& event);
  void add_job(const engine::EventFacts& facts, Event& event) const;
  void add_from_job(const engine::EventFacts& facts, Event& event) const;
  void add_cron(const engine::EventFacts& facts, Event& event) const;
  void add_from_cron(Event& event) const;
  static void add_worker(const engine::EventFacts& facts, Event& event);
  void add_from_worker(Event& event) const;
  void read(const engine::EventFacts& facts, Event& event);
};

EventReader::EventReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventReader::EventReader(EventReader&&) noexcept = default;
EventReader& EventReader::operator=(EventReader&&) noexcept = default;
EventReader::~EventReader() = default;

Event EventReader::Impl::translate(const engine::EventFacts& facts) const {
  const engine::Store& store = segment.attachment()->store();
  Event event;
  event.id = internal::event_id(facts, store.segment().header().salt);
  event.type = type_of(facts.kind);
  event.time_ms = facts.time_ms;
  event.handle = facts.lane;
  event.sequence = facts.sequence;
  event.source =
      "ojs://" + segment.attachment()->name().name + "/handles/" + std::to_string(facts.lane);

  // Events about no queue.
  if (facts.kind == EventKind::kPoolOverloaded || facts.kind == EventKind::kPoolRebalanced)
    return add_pool(facts, event), event;
  if (facts.kind == EventKind::kProcessRepaired) return add_repair(facts, event), event;
  if (engine::about_a_worker(facts.kind)) return add_worker(facts, event), event;
  if (engine::about_many_jobs(facts.kind)) return add_bulk(facts, event), event;

  event.queue = store.queue_name(facts.queue);
  if (facts.kind == EventKind::kQueueStarved) {
    event.duration_ms = facts.value;
    event.waiting_jobs = facts.tag;
  }
  if (engine::about_a_cron(facts.kind)) {
    add_cron(facts, event);
  } else if (engine::about_a_queue(facts.kind)) {
    event.count = facts.value;
  } else if (!engine::about_a_job(facts.kind)) {
    add_pressure(facts, event);
  } else if (facts.job != engine::JobId{}) {
    if (engine::about_a_workflow(facts.kind))
      internal::describe_told_workflow(facts, event);
    else
      add_job(facts, event);
  }
  return event;
}

void EventReader::Impl::add_pool(const engine::EventFacts& facts, Event& event) const {
  event.pool = engine::pool_name(segment.attachment()->store(), facts.queue);
  event.active_jobs = facts.tag;
  event.waiting_jobs = facts.value;
  event.previous_strategy = pool_strategy_name(static_cast<PoolStrategy>(facts.previous_rank));
  event.new_strategy = pool_strategy_name(static_cast<PoolStrategy>(facts.rank));
}

void EventReader::Impl::add_repair(const engine::EventFacts& facts, Event& event) {
  event.pid = static_cast<std::uint32_t>(facts.job.hi);
  event.repaired_by = static_cast<std::uint32_t>(facts.job.lo);
  event.repaired_at_once = facts.tag;
  event.mended = facts.value;
}

void EventReader::Impl::add_bulk(const engine::EventFacts& facts, Event& event) {
  event.count = facts.tag;
  event.done = facts.value;
  event.atomic = facts.rank != 0;
}

/// How full the queue is, and of a refusal also which type of jobs was refused how often.
void EventReader::Impl::add_pressure(const engine::EventFacts& facts, Event& event) {
  event.depth = facts.tag;
  event.bound = facts.value & ~engine::kOfBytes;
  event.unit = (facts.value & engine::kOfBytes) != 0 ? "bytes" : "jobs";
  if (facts.kind != EventKind::kBackpressureRejected) return;
  event.count = facts.attempt | std::uint64_t{facts.max_attempts} << 16;
  append_text({facts.job.hi, facts.job.lo}, event.job_type);
}

namespace {

/// `described`: as engine::describe_rule() says of it.
void add_limit(const engine::Store& store, std::uint64_t described, Event& event) {
  constexpr std::string_view kRuleNames[] = {"concurrency", "rate", "throttle", "report"};
  const auto key = static_cast<std::uint32_t>(described);
  if (key >= store.limit_keys.size()) return;
  const engine::LimitSettings set = engine::settings_of(store.limit_keys[key]);
  const bool is_set[] = {set.concurrency != engine::PermitSet::kNone, set.rate != 0,
                         set.throttle != 0, false};
  const std::uint64_t allows[] = {set.concurrency, set.rate, set.throttle, 0};
  const std::uint64_t rule = described >> 32 & 3;
  event.limit_key = engine::limit_name(store, key);
  event.limit_strategy = kRuleNames[rule];
  if (is_set[rule]) event.limit_allows = allows[rule];
}

}  // namespace

void EventReader::Impl::add_job(const engine::EventFacts& facts, Event& event) const {
  const engine::Store& store = segment.attachment()->store();
  event.job_id = engine::to_string(facts.job);
  event.priority = engine::priority_of(store.convention(), facts.rank);
  if (facts.kind == EventKind::kPriorityChanged)
    event.previous_priority = engine::priority_of(store.convention(), facts.previous_rank);
  event.attempt = facts.attempt;
  event.max_attempts = facts.max_attempts;
  if (facts.kind == EventKind::kJobCompleted || facts.kind == EventKind::kJobFailed)
    event.duration_ms = facts.value;
  else if (facts.kind == EventKind::kJobTimeout || facts.kind == EventKind::kJobStalled)
    event.limit_ms = facts.value >> 32, event.duration_ms = facts.value & 0xFFFF'FFFF;
  else if (facts.kind == EventKind::kJobTtlExpired || facts.kind == EventKind::kJobTotalTimeout)
    event.limit_ms = (facts.value >> 32) * 1000,
    event.duration_ms = (facts.value & 0xFFFF'FFFF) * 1000;
  else if (facts.kind == EventKind::kJobProgress)
    event.progress = static_cast<double>(facts.value) / 10'000;
  else if (facts.kind == EventKind::kJobStarted)
    event.worker_id =
        engine::worker_id_of(store, engine::WorkerKey(static_cast<std::uint32_t>(facts.value)));
  else if (facts.kind >= EventKind::kRateLimitExceeded &&
           facts.kind <= EventKind::kRateLimitDropped)
    add_limit(store, facts.value, event);
  else if (facts.kind == EventKind::kRateLimitAdjusted)
    event.limit_key = engine::limit_name(store, static_cast<std::uint32_t>(facts.value)),
    event.at_ms = facts.tag;
  else
    event.at_ms = facts.value;
  if (is_of_holder(facts.kind)) event.fence = facts.tag;
  event.led_to = state_behind(facts);
  add_from_job(facts, event);
}

/// The rest of its id follows as a text.
void EventReader::Impl::add_worker(const engine::EventFacts& facts, Event& event) {
  constexpr std::string_view kReasons[] = {"silent", "shutdown", "error"};  // WorkerEnd
  append_text({facts.job.hi, facts.job.lo}, event.worker_id);
  if (facts.kind == EventKind::kWorkerStarted) {
    event.worker_concurrency = facts.tag;
  } else if (facts.kind == EventKind::kWorkerQuiet || facts.kind == EventKind::kWorkerResumed) {
    event.active_jobs = facts.tag;
  } else {
    event.duration_ms = facts.value;
    if (facts.kind == EventKind::kWorkerLost)
      event.count = facts.tag;
    else if (facts.rank < std::size(kReasons))
      event.reason = kReasons[facts.rank];
  }
}

/// What has no room in an event, from the worker's record, if it is still there.
void EventReader::Impl::add_from_worker(Event& event) const {
  const engine::Store& store = segment.attachment()->store();
  if (auto worker = internal::describe_worker(store, engine::find_worker(store, event.worker_id)))
    event.worker_queues = std::move(worker->queues);
}

/// Its name follows as a text. The job is the new job, or the job in its way.
void EventReader::Impl::add_cron(const engine::EventFacts& facts, Event& event) const {
  constexpr std::string_view kReasons[] = {"overlap_skip", "queue_full", "duplicate",
                                           "segment_full", "damaged"};
  event.at_ms = facts.value;
  event.scheduled_at_ms = facts.tag;
  event.run_count = facts.attempt | std::uint64_t{facts.max_attempts} << 16;
  if (facts.job != engine::JobId{}) event.job_id = engine::to_string(facts.job);
  if (facts.kind == EventKind::kCronTriggered)
    event.priority = engine::priority_of(segment.attachment()->store().convention(), facts.rank);
  else if (facts.rank < std::size(kReasons))
    event.reason = kReasons[facts.rank];
}

/// What has no room in an event, from the cron itself, if it is still there.
void EventReader::Impl::add_from_cron(Event& event) const {
  const engine::Store& store = segment.attachment()->store();
  const std::uint32_t record = engine::find_cron(store, event.cron_name);
  if (record == engine::kNoIndex) return;
  const auto from =
      engine::read_template(store, engine::look_at_cron(store, record).control.slot());
  if (!from || from->texts.name != event.cron_name) return;
  event.job_type = from->job.body.substr(0, from->job.type_length);
  event.cron_expression = from->texts.expression;
  event.timezone = from->texts.timezone;
}

namespace {

/// By so much the coarse clock may be behind: a later error is one of a job that was retried since.
constexpr std::uint64_t kClockStepMs = 20;

/// Whether the job's own members say how long a silence may last.
bool limits_silence(std::string_view extra) {
  constexpr std::string_view kName = "heartbeat_timeout";
  if (extra.find(kName) == extra.npos || !json::check(extra) ||
      json::kind_of(json::trim(extra)) != json::Kind::kObject)
    return false;
  const std::vector<json::Member> members = json::members_of(json::trim(extra));
  return std::ranges::find(members, kName, &json::Member::name) != members.end();
}

/// A silence has another name then. Source: ojs-timeouts 7.3.
std::string_view type_of_error(const engine::Snapshot& job, const engine::ErrorEntry& error) {
  const std::string_view extra =
      std::string_view(job.body).substr(job.type_length + job.args_length);
  const bool is_silence = error.code == "visibility_timeout";
  return is_silence && limits_silence(extra) ? "stalled" : error.type;
}

}  // namespace

/// What has no room in an event, from the job itself, if it is still there.
void EventReader::Impl::add_from_job(const engine::EventFacts& facts, Event& event) const {
  const engine::Store& store = segment.attachment()->store();
  const std::uint32_t slot = engine::find_job(store, facts.job);
  const auto job = slot == engine::kNoIndex ? std::nullopt : engine::snapshot(store, slot);
  if (!job || job->id != facts.job) return;
  event.job_type = job->body.substr(0, job->type_length);
  event.tenant = tenant_of(std::string_view(job->body).substr(job->type_length + job->args_length));
  if (facts.kind == EventKind::kJobExpired && job->expires_at > facts.value)
    event.ttl_ms = job->expires_at - facts.value;
  if (facts.kind == EventKind::kJobExpired &&
      internal::discard_reason(*job) == "enqueue_ttl_expired")
    event.ttl_ms = std::uint64_t{job->times.enqueue_ttl_s} * 1000;
  // Another report may have taken the place of this one's texts.
  if (facts.kind == EventKind::kJobProgress && job->attempt == facts.attempt &&
      event.progress == job->fraction) {
    event.progress_message = job->report.message;
    event.progress_data = job->report.data;
  }
  if (is_of_holder(facts.kind) && event.worker_id.empty() && job->attempt == facts.attempt)
    event.worker_id = engine::worker_id_of(store, job->worker);
  if (!failed(facts.kind)) return;
  const std::string_view reason = internal::discard_reason(*job);
  if (facts.kind == EventKind::kJobDiscarded &&
      (reason == "dropped" || reason == "total_timeout")) {
    event.error = error_without_attempt(reason, facts.attempt, event.time_ms);
    return;
  }
  for (const engine::ErrorEntry& entry : engine::decode_errors(job->errors))
    if (entry.attempt == facts.attempt && entry.at_ms <= facts.time_ms + kClockStepMs)
      event.error = JobError{entry.attempt,
                             entry.at_ms,
                             std::string(entry.code),
                             std::string(type_of_error(*job, entry)),
                             std::string(entry.message),
                             std::string(entry.details),
                             entry.retryable};
}

/// With the texts behind it, and what the segment knows besides.
void EventReader::Impl::read(const engine::EventFacts& facts, Event& event) {
  event = translate(facts);
  std::uint64_t more = facts.sequence;
  while (const engine::EventFacts* const text = told.text_behind(facts, ++more))
    append_text({text->job.hi, text->job.lo, text->tag, text->value},
                engine::about_a_cron(facts.kind)     ? event.cron_name
                : engine::about_a_worker(facts.kind) ? event.worker_id
                                                     : event.job_type);
  event.position = told.position();
  if (facts.kind == EventKind::kWorkerStarted) add_from_worker(event);
  if (engine::about_a_cron(facts.kind)) add_from_cron(event);
  if (engine::about_a_workflow(facts.kind))
    workflow.add_to(event, segment.attachment()->store(), facts);
}

/// Asks the segment once at most, so that it ends however much is told meanwhile.
bool EventReader::next(Event& event) {
  bool asked = false;
  while (!asked || !impl_->told.is_read_up()) {
    asked = asked || impl_->told.is_read_up();
    const engine::EventFacts* const facts = impl_->told.next();
    if (facts == nullptr) return false;
    impl_->read(*facts, event);
    if (!internal::is_chosen(event, impl_->options)) continue;
    impl_->position = event.position;
    return true;
  }
  return false;
}

bool EventReader::holds_young() const { return impl_->told.left_some(); }

std::uint64_t EventReader::lost() const { return impl_->told.lost(); }

std::uint64_t EventReader::position() const { return impl_->position; }

bool EventReader::resumed() const { return impl_->told.resumed(); }

EventReader Observer::events(const EventOptions& options) const {
  return EventReader(std::make_unique<EventReader::Impl>(EventReader::Impl{
      segment_, options, internal::ToldEvents(segment_.attachment()->store(), options)}));
}

}  // namespace ojs_shm
