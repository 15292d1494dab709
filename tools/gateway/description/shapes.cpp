// SPDX-License-Identifier: Apache-2.0
//
// The bodies of requests and replies. The table of routes names them; tests hold what is really
// sent against them.
#include "tools/gateway/description/shapes.hpp"

namespace ojs_shm::gateway {
namespace {

// clang-format off
constexpr Shape kShapes[] = {
    {"Error", "error: Refusal"},
    {"Refusal", "code: text, type: text, message: text, retryable: boolean, details?: object, hint: text, "
                "docs_url: text, request_id: text, queue?: text, tenant?: text, depth?: integer, bound?: integer, "
                "strategy?: text, unit?: text, tenant_id?: text, limit?: text, current?: integer, maximum?: integer, "
                "max_batch_size?: integer, extension?: text"},

    // Jobs
    {"JobState", "= 'scheduled'|'available'|'pending'|'active'|'completed'|'retryable'|'cancelled'|'discarded'"},
    {"JobError", "code: text, type: text, message: text, retryable: boolean, details?: any, backtrace?: [text], "
                 "timeout_kind?: text, "
                 "limit_seconds?: number, elapsed_seconds?: number, attempt: integer, occurred_at?: time, timestamp?: time"},
    {"Job", "specversion: text, id: text, type: text, queue: text, args: array|text, meta: any, priority: integer, "
            "priority_age_rate?: integer, state: JobState, attempt: integer, max_attempts: integer, "
            "timeout_ms?: integer, visibility_timeout_ms?: integer, retry: any, created_at?: time, "
            "enqueued_at?: time, scheduled_at?: text, expires_at?: text, started_at?: time, completed_at?: time, "
            "cancelled_at?: time, discarded_at?: time, next_attempt_at?: time, next_retry_at?: time, "
            "retry_delay_ms?: integer, previous_state?: JobState, discard_reason?: text, dead_letter?: boolean, progress?: number, "
            "progress_message?: text, progress_data?: any, progress_at?: time, last_checkpoint?: any, "
            "result?: any, result_stored_at?: time, result_expires_at?: time, result_size_bytes?: integer, "
            "result_pruned?: boolean, worker_id?: text, workflow_id?: text, cron_name?: text, "
            "parent_results?: array, error?: JobError, errors?: [JobError], unique?: any, ..."},
    {"NewJob", "type: text, args?: array, id?: text|null, queue?: text|null, priority?: integer|text|null, "
               "priority_age_rate?: integer|null, timeout_ms?: integer|null, timeout?: integer|text|null, "
               "visibility_timeout_ms?: integer|null, visibility_timeout?: number|text|null, "
               "scheduled_at?: text|null, delay_until?: text|null, expires_at?: text|null, retry?: object|null, "
               "retry_policy?: object|null, max_attempts?: integer|null, pending?: boolean|null, "
               "meta?: object|null, metadata?: object|null, tags?: [text]|null, unique?: any, "
               "rate_limit?: object|null, result_ttl?: any, enqueue_ttl?: integer|null, total_timeout?: integer|null, "
               "grace_period?: integer|null, heartbeat_timeout?: integer|null, schema?: text|null, options?: object|null, "
               "workflow?: object|null, ..."},
    {"JobName", "id: text, type: text"},
    {"Enqueued", "job: Job|JobName, id?: text, type?: text, state?: text, deduplicated?: boolean, workflow?: Workflow"},
    {"NewJobs", "jobs: [NewJob]"},
    {"EnqueuedJobs", "jobs: [Job|JobName], count: integer"},
    {"ManyNewJobs", "jobs: [object], atomicity?: 'partial'|'atomic', idempotency_key?: text"},
    {"BulkEnqueued", "total: integer, succeeded: integer, failed: integer, items: [BulkEnqueuedItem]"},
    {"BulkEnqueuedItem", "index: integer, status: 'created'|'duplicate'|'failed', job?: Job|JobName, error?: object"},
    {"ChosenJobs", "job_ids?: [text], filter?: JobChoice, atomicity?: 'partial', idempotency_key?: text"},
    {"JobChoice", "type?: text, queue?: text, state?: [text]|text, enqueued_before?: time, enqueued_after?: time, "
                  "priority?: integer, meta?: object"},
    {"BulkChanged", "total_matched: integer, cancelled?: integer, retried?: integer, deleted?: integer, "
                    "skipped: integer, items: [BulkChangedItem]"},
    {"BulkChangedItem", "index: integer, job_id: text, status: 'cancelled'|'retried'|'deleted'|'skipped', reason?: text, "
                        "error?: object"},
    {"ShownJob", "job: Job, +Job"},
    {"JobChange", "priority: integer"},
    {"ChangedJob", "id: text, priority: integer, previous_priority: integer"},
    {"ResultError", "code: text, type: text, message: text"},
    {"JobResult", "job_id: text, state: JobState, result: any, error: ResultError|null, completed_at?: time, "
                  "result_stored_at?: time, result_expires_at?: time, result_size_bytes?: integer"},
    {"NoResult", "job_id: text, state: JobState|null, result: null, error: NoResultError"},
    {"NoResultError", "code: text, message: text"},
    {"WantedResults", "job_ids?: [text], ids?: [text]"},
    {"JobResults", "results: {JobResult|NoResult}"},
    {"Progress", "job_id: text, state: JobState, progress: number|null, message: text|null, data: any, "
                 "updated_at: time|null, checkpoint?: any"},
    {"ProgressReport", "progress?: number|null, percentage?: number|null, message?: text|null, data?: object|null, "
                       "checkpoint?: object|null"},
    {"WorkerProgress", "job_id: text, +ProgressReport, worker_id?: text"},

    // Workers
    {"Fetch", "queues: [text], worker_id?: text, pool?: text, count?: integer, batch_size?: integer, "
              "visibility_timeout_ms?: integer|text, wait_ms?: integer|text, "
              "strategy?: 'strict'|'weighted'|'round-robin'|'least-loaded', weights?: {integer}"},
    {"FetchedJobs", "jobs: [Job]"},
    {"JobAck", "worker_id?: text, result?: any"},
    {"Ack", "job_id: text, +JobAck"},
    {"Acked", "acknowledged: boolean, id: text, job_id: text, state: 'completed', completed_at: time"},
    {"JobNack", "worker_id?: text, requeue?: boolean, error?: Failure"},
    {"Nack", "job_id: text, +JobNack"},
    {"Failure", "code?: text, message: text, type?: text, details?: any, backtrace?: [text], retryable?: boolean, "
                "rate_limit_until?: time"},
    {"Nacked", "id: text, job_id: text, state: JobState, attempt: integer, max_attempts: integer, "
               "next_attempt_at?: time, next_retry_at?: time, retry_delay_ms?: integer, discarded_at?: time, completed_at?: time"},
    {"Heartbeat", "worker_id?: text, active_jobs?: [text]|integer, active_job_ids?: [text], job_id?: text, job_ids?: [text], "
                  "visibility_timeout_ms?: integer|text, shutdown?: boolean, pool?: text, "
                  "state?: 'running'|'quiet'|'terminate'|'drain'|'draining'|'shutting_down', "
                  "hostname?: text, version?: text, queues?: [text], pid?: integer, concurrency?: integer, "
                  "labels?: any, metadata?: any"},
    {"HeartbeatReply", "state: 'running'|'quiet'|'terminate', acknowledged: boolean, jobs_extended: [text], jobs_cancelled: [text], "
                       "server_time: time"},
    {"Registration", "worker_id?: text, id?: text, pool?: text, queues?: [text], concurrency?: integer, "
                     "hostname?: text, version?: text, pid?: integer, labels?: any, metadata?: any, "
                     "strategy?: 'strict'|'weighted'|'round-robin', weights?: {integer}, worker?: Registration"},
    {"Registered", "ok: boolean, worker_id: text, server_time: time, heartbeat_interval: integer, "
                   "heartbeat_timeout: integer, visibility_timeout_default: integer"},
    {"RemovedWorker", "ok: boolean, deleted: boolean, worker_id: text"},
    {"WorkerHealth", "worker_id: text, state: text, active_jobs: integer, last_heartbeat_at: time"},
    {"Worker", "id: text, state: text, directive: 'running'|'quiet'|'terminate', pool?: text, queues?: [text], "
               "concurrency: integer, active_jobs: integer, hostname?: text, version?: text, pid?: integer, "
               "labels?: any, metadata?: any, native: boolean, started_at: time, last_heartbeat_at: time, silent_ms: integer, "
               "ended?: text, returned_jobs?: integer"},
    {"WorkerDetail", "+Worker, jobs: [Job]"},
    {"WorkerCounts", "total: integer, running: integer, quiet: integer, stale: integer"},
    {"WorkerPage", "items: [Worker], pagination: Page, summary: WorkerCounts"},
    {"Directive", "directive?: text, state?: text, worker_id?: text"},
    {"Directed", "directive: text, workers: [text]"},

    // Lists
    {"Page", "total: integer, page: integer, per_page: integer, has_more: boolean, next_cursor?: text"},
    {"Slice", "total: integer, limit: integer, offset: integer, page?: integer, per_page?: integer, has_more: boolean, next_cursor?: text"},
    {"Deleted", "deleted: boolean, name?: text, key?: text, uri?: text"},

    // Queues
    {"JobCounts", "available: integer, active: integer, scheduled: integer, retryable: integer, pending: integer, "
                  "completed: integer, discarded: integer, cancelled: integer"},
    {"Queue", "name: text, status: 'active'|'paused', state: 'active'|'paused', paused: boolean, +JobCounts, "
              "depth: integer, max_depth: integer, dead: integer, waiting: integer, enqueued_total: integer, "
              "pressure: number, created_at?: time"},
    {"Aging", "enabled: boolean, preset?: text, interval?: text, rate?: integer, cap?: integer, floor?: integer"},
    {"TenantFairness", "enabled: boolean, strategy: 'fair-share', scope: 'within'|'across', "
                       "default_weight: integer, weights: {integer}"},
    {"TenantBound", "max_depth?: integer, max_size_bytes?: integer"},
    {"Backpressure", "max_depth: integer, max_size_bytes: integer, strategy: 'reject'|'block'|'drop_oldest', "
                     "warning_threshold: number, clear_threshold: number, drop: 'oldest'|'lowest_priority', "
                     "tenant_max_depth: integer, tenant_max_size_bytes: integer, tenant_bounds: {TenantBound}"},
    {"QueuePolicy", "aging: Aging, level_weights: {integer}, shards: integer, tenant_fairness: TenantFairness, "
                    "backpressure: Backpressure, retention: QueueRetention"},
    {"QueueRetention", "completed?: text|null, discarded?: text|null, cancelled?: text|null"},
    {"SetQueue", "name?: text, paused?: boolean, aging?: object|'default', level_weights?: {integer}, "
                 "shards?: integer, tenant_fairness?: object, backpressure?: object, "
                 "concurrency?: integer|null, rate_limit?: object|null, max_size?: integer, max_size_bytes?: integer|text, overflow_policy?: text, "
                 "retention?: QueueRetention, config?: SetQueue"},
    {"NewQueue", "name: text, +SetQueue"},
    {"QueueConfig", "config: QueueSettings"},
    {"QueueSettings", "+QueueConfiguration, max_size?: integer, max_size_bytes?: integer, overflow_policy: text"},
    {"NewlyMade", "+Queue, +QueueConfig"},
    {"CreatedQueue", "queue: NewlyMade, +NewlyMade"},
    {"QueueAndPolicy", "+Queue, +QueuePolicy, +QueueConfig, stats: Queue"},
    {"ShownQueue", "queue: QueueAndPolicy, +QueueAndPolicy"},
    {"QueueList", "queues: [Queue], total: integer, pagination: Slice"},
    {"QueueSpeed", "completed_last_hour?: integer, failed_last_hour?: integer, avg_duration_ms?: integer, "
                  "avg_wait_ms?: integer, throughput_per_second?: number"},
    {"MeasuredQueue", "+Queue, +QueueSpeed"},
    {"QueueNumbers", "queue: text, +MeasuredQueue"},
    {"QueueStats", "queue: MeasuredQueue|text, stats: QueueNumbers, computed_at: time, +MeasuredQueue?"},
    {"PausedQueue", "queue?: Queue, name: text, paused: boolean, status?: text, paused_at?: time, resumed_at?: time"},
    {"QueueDeletion", "strategy?: 'reject'|'discard'"},
    {"DeletedQueue", "deleted: boolean, queue: text, name: text, strategy: text, jobs_affected: integer, "
                     "state: 'deleted'"},
    {"PriorityCount", "priority: integer, count: integer"},
    {"LevelStats", "queue: text, counts_by_priority: {integer}, total: integer, distribution: [PriorityCount]"},
    {"QueueSummary", "name: text, state: 'active'|'paused', counts: JobCounts, paused: boolean, depth: integer, "
                     "throughput?: Throughput, latency_ms?: Latency, created_at?: time"},
    {"Latency", "p50: integer, p95: integer, p99: integer"},
    {"QueueView", "+QueueSummary, configuration: QueueConfiguration, oldest_available_at: time|null, +QueuePolicy, +QueueConfig"},
    {"QueueConfiguration", "+QueuePolicy, concurrency?: integer, rate_limit?: object"},
    {"QueuePage", "items: [QueueSummary], pagination: Page"},
    {"Purge", "states: [text], older_than?: integer|text, confirm: boolean"},
    {"Purged", "purged_count: integer, states: [text]"},

    // Dead letters
    {"DeadLetters", "jobs: [Job], total: integer, pagination: Slice"},
    {"DeadLetterStats", "total: integer, by_queue: {integer}, by_type: {integer}, by_error_type: {integer}, "
                        "oldest_at: time|null, newest_at: time|null, retention: RetentionRule"},
    {"RetentionRule", "max_age: text|null, max_count: integer|null, next_prune_at: time"},
    {"NewRetention", "max_age?: text|null, max_count?: integer|null, retention?: object, dead_letter?: object"},
    {"Retention", "retention: RetentionRule"},
    {"ChosenDeadLetters", "queue?: text, type?: text, error_type?: text, since?: time, until?: time, older_than?: text"},
    {"ConfirmedDeadLetters", "+ChosenDeadLetters, filter?: ChosenDeadLetters, confirm: boolean"},
    {"SomeDeadLetters", "+ChosenDeadLetters, filter?: ChosenDeadLetters, confirm?: boolean"},
    {"Retried", "retried: integer, succeeded: integer, matched: integer, skipped: integer, failed: integer"},
    {"Dropped", "purged: integer, deleted: integer, matched: integer, skipped: integer, failed: integer"},
    {"DeletedJob", "deleted: boolean, job_id: text"},
    {"DeadTimes", "created_at: time, discarded_at: time"},
    {"DeadJob", "+Job, metadata: DeadTimes"},
    {"DeadLetter", "job: DeadJob, +DeadJob"},

    // Events
    {"Event", "specversion: text, id: text, type: text, source: text, time: time, subject?: text, data: object, ..."},
    {"EventSlice", "total: integer, limit: integer, page?: integer, per_page?: integer, has_more: boolean, next_cursor?: text"},
    {"EventList", "events: [Event], items: [Event], cursor: text, has_more: boolean, pagination: EventSlice"},

    // Crons and workflows
    {"NewCron", "name: text, expression?: text, cron?: text, schedule?: text, timezone?: text, enabled?: boolean, "
                "job_template?: object, type?: text, args?: array, meta?: object, options?: object, ..."},
    {"CronChange", "name?: text, enabled?: boolean, expression?: text, job_template?: object, ..."},
    {"Cron", "cron: text, +CronFields"},
    {"CronFields", "id: text, name: text, expression: text, schedule: text, timezone: text, overlap_policy: text, "
             "enabled: boolean, status: 'active'|'paused', description?: text, job_template: object, "
             "created_at?: time, next_run_at?: time|null, last_run_at?: time|null, run_count: integer, "
             "skipped_count: integer, last_job_id?: text, ..."},
    {"OneCron", "cron: Cron, cron_job: Cron, +CronFields"},
    {"RemovedCron", "cron: Cron, deleted: boolean, name: text"},
    {"TriggeredCron", "triggered: boolean, name: text, job_id: text, job?: Job, cron: Cron"},
    {"CronList", "crons: [Cron], cron_jobs: [Cron], items: [Cron], total: integer, count: integer, "
                 "pagination: Slice"},
    {"NewWorkflow", "type?: text, name?: text, steps?: array, jobs?: array, callbacks?: object, ..."},
    {"WorkflowError", "job_id: text, code: text, message: text, attempt: integer, callback?: text"},
    {"Step", "index?: integer, id?: text, name?: text, type: text, state: text, steps?: [Step], jobs?: [Step], "
             "callbacks?: {Step}, queue?: text, job_id?: text|null, depends_on?: [text], result?: any, "
             "started_at?: time, completed_at?: time, error?: WorkflowError"},
    {"WorkflowTimes", "created_at?: time, started_at?: time, completed_at?: time, cancelled_at?: time"},
    {"WorkflowFailures", "failed_step_index?: integer, failed_job_ids?: [text], errors?: [WorkflowError]"},
    {"WorkflowMetadata", "+WorkflowTimes, +WorkflowFailures, job_count: integer, completed_count: integer, "
                         "failed_count: integer"},
    {"Workflow", "id: text, name: text, type?: text, state: 'running'|'completed'|'failed'|'cancelled', "
                 "tenant_id?: text, steps_total?: integer, steps_completed?: integer, jobs_total?: integer, "
                 "jobs_completed?: integer, steps?: [Step], jobs?: [Step], callbacks?: {Step}, "
                 "+WorkflowFailures, "
                 "steps_cancelled?: integer, steps_already_completed?: integer, "
                 "metadata: WorkflowMetadata, +WorkflowTimes"},
    {"ShownWorkflow", "workflow: Workflow, +Workflow"},
    {"WorkflowProgress", "workflow_id: text, type?: text, state: 'running'|'completed'|'failed'|'cancelled', "
                         "progress: number, steps: [StepProgress], updated_at: time|null"},
    {"StepProgress", "id: text, job_id?: text|null, type: text, state: text, progress: number|null, "
                     "message?: text, data?: any, steps?: [StepProgress]"},
    {"WorkflowList", "workflows: [Workflow], items: [Workflow], total: integer, pagination: Slice"},

    // Limits, pools, tenants, schemas
    {"LimitSettings", "key?: text, concurrency?: integer|null, rate?: integer|object|null, limit?: integer, period?: text, window?: text, "
                      "max_per_second?: number, throttle?: object|null, on_limit?: 'wait'|'reschedule'|'drop'|null, "
                      "expires_at?: time|null"},
    {"LimitUse", "limit?: integer, available?: integer, active: integer"},
    {"Rate", "limit: integer, period: text, window: 'sliding'|'fixed', current_count: integer, "
             "window_resets_at?: time"},
    {"Throttle", "limit: integer, period: text, burst: integer, next_allowed_at?: time"},
    {"Limit", "key: text, concurrency: LimitUse, rate?: Rate, throttle?: Throttle, next_allowed_at?: time, closed_until?: time, "
              "on_limit: 'wait'|'reschedule'|'drop', override: boolean, expires_at?: time, active_count: integer, waiting_count: integer, "
              "exceeded_total: integer, released_total: integer, dropped_total: integer"},
    {"LimitPage", "items: [Limit], pagination: Page, rate_limits: [Limit]"},
    {"LimitList", "items: [Limit], total?: integer, pagination: Slice|Page, rate_limits: [Limit]"},
    {"PoolSettings", "name?: text, id?: text, queues: [text|object], strategy?: text, concurrency?: integer|null, "
                     "weights?: {integer}, isolated?: boolean, starvation_prevention?: object"},
    {"Prevention", "enabled: boolean, rotation_interval: text, min_dispatch_ratio: number"},
    {"Pool", "name: text, id: text, queues: [text], concurrency: integer|null, strategy: text, weights?: {integer}, "
             "isolated: boolean, starvation_prevention: Prevention, active_workers: integer, active_jobs: integer, "
             "waiting_jobs: integer, utilization?: number, dispatched: {integer}, workers: [text]"},
    {"ShownPool", "pool: Pool, +Pool"},
    {"PoolList", "items: [Pool], pools: [Pool], pagination: Page"},
    {"QueueScheduling", "name: text, dispatch_count_1m: integer, dispatch_ratio_1m: number, avg_wait_ms: number, "
                        "active_jobs: integer, dispatched?: integer, starved?: integer"},
    {"SchedulingWindow", "queues: [QueueScheduling], window: text"},
    {"SchedulingStats", "+SchedulingWindow, stats: SchedulingWindow, strategy: text"},
    {"TenantLimits", "max_queue_depth?: integer|null, max_concurrency?: integer|null, reason?: text, limits?: TenantLimits"},
    {"TenantShare", "tenant_id?: text, id?: text, limits?: TenantLimits|null, fairness_weight?: integer|null, priority_boost?: number|null"},
    {"SetTenantLimits", "max_queue_depth?: integer, max_concurrency?: integer"},
    {"TenantThroughput", "processed_per_minute: integer, enqueued_per_minute: integer"},
    {"TenantJobs", "+JobCounts, completed_24h: integer, failed_24h: integer"},
    {"TenantNumbers", "tenant_id: text, id: text, total_jobs: integer, jobs: TenantJobs, "
                      "throughput: TenantThroughput, fairness_weight?: integer"},
    {"Tenant", "+TenantNumbers, limits?: SetTenantLimits"},
    {"TenantLimitUse", "limit: integer, current: integer"},
    {"TenantLimitUses", "max_queue_depth?: TenantLimitUse, max_concurrency?: TenantLimitUse"},
    {"FairShare", "weight: integer, effective_share: number, actual_share: number"},
    {"TenantStats", "+TenantNumbers, limits?: TenantLimitUses, fairness?: FairShare"},
    {"RemovedTenant", "tenant_id: text, deleted: boolean, jobs_kept: integer"},
    {"TenantPage", "items: [Tenant], pagination: Page"},
    {"JobPage", "items: [Job], jobs?: [Job], pagination: Page"},
    {"NewSchema", "uri: text, type: text, version?: integer|text, schema: object"},
    {"Schema", "uri: text, type: text, version: integer|text, schema?: object, created_at: time"},
    {"OneSchema", "schema: Schema"},
    {"SchemaList", "schemas: [Schema], total: integer, pagination: Slice"},

    // For operators
    {"Filter", "queue?: text, state?: JobState, type?: text, since?: text, until?: text, tenant?: text"},
    {"ManyJobs", "filter?: Filter, confirm: boolean"},
    {"BulkError", "job_id: text, error: text"},
    {"BulkReport", "action: text, matched: integer, succeeded: integer, failed: integer, errors: [BulkError]"},
    {"JobTimes", "created_at: time|null, enqueued_at: time|null, started_at: time|null, scheduled_at: time|null, "
                 "completed_at: time|null, cancelled_at: time|null, discarded_at: time|null"},
    {"JobDetail", "+Job, retry_policy: any, metadata: JobTimes"},
    {"Throughput", "processed_per_minute: number, failed_per_minute?: number"},
    {"AllJobCounts", "+JobCounts, dead: integer"},
    {"Stats", "queues: integer, workers: integer, jobs: AllJobCounts, throughput: Throughput, "
              "uptime_seconds: integer"},
    {"StatsPoint", "timestamp: time, span_ms: integer, enqueued: integer, dispatched: integer, processed: integer, "
                   "failed: integer, discarded: integer, retried: integer, rejected: integer, "
                   "latency_p50_ms: integer, latency_p99_ms: integer, depth: integer, "
                   "available: integer, active: integer, dead: integer, oldest_age_ms: integer, "
                   "bytes_used?: integer, bytes_total?: integer, deaths_total?: integer, repairs_total?: integer"},
    {"StatsHistory", "queue?: text, period: text, interval_ms: integer, data: [StatsPoint]"},
    {"Histogram", "count: integer, sum_ms: integer, up_to_ms: {integer}"},
    {"LevelWaits", "queue: text, priority: integer, from_enqueue: Histogram, from_available: Histogram, "
                   "runs: Histogram"},
    {"WaitList", "items: [LevelWaits]"},
    {"Access", "tokens: boolean, scopes: [text], segment: text, version: text"},
    {"SetMaintenance", "enabled?: boolean, maintenance?: boolean, reason?: text, "
                       "estimated_duration?: text, duration?: text, estimated_end?: time"},
    {"Maintenance", "enabled: boolean, maintenance: boolean, reason: text, since?: time, enabled_at?: time, "
                    "estimated_end?: time"},
    {"Configuration", "segment: SegmentConfiguration, gateway: GatewayConfiguration"},
    {"SegmentConfiguration", "name: text, convention: text, format: integer, size_bytes: integer, slots: integer, "
                             "max_body_bytes: integer, default_lease_ms: integer, retention_ms: integer, "
                             "dead_letter: Retention, events: boolean, immutable_priorities: boolean, "
                             "created_at: time"},
    {"GatewayConfiguration", "version: text, max_connections: integer, max_body_bytes: integer, tokens: boolean, "
                             "test_hooks: boolean"},

    // The gateway itself
    {"Health", "status: 'ok'|'degraded', version: text, uptime_seconds: integer, backend: BackendHealth, "
               "queues: QueueTotals, workers: WorkerTotals"},
    {"BackendHealth", "type: 'shm', status: 'ok'|'degraded', latency_ms: integer, error?: text"},
    {"QueueTotals", "total: integer, active: integer, paused: integer"},
    {"WorkerTotals", "total: integer, active: integer, connected: integer, stale: integer"},
    {"Ready", "status: 'ready'"},
    {"Manifest", "specversion: text, ojs_version: text, implementation: object, conformance_level: integer, "
                 "conformance_tier: text, protocols: [text], backend: text, delivery: text, "
                 "unique_job_strength: text, unique_job_mechanism: text, event_delivery: text, capabilities: {boolean}, extensions: object, endpoints: {text}, "
                 "priority: object, queue_strategies: [text]"},
    {"Description", "openapi: text, info: object, paths: object, components: object"},
    {"Reset", "reset: boolean, cancelled: integer, dropped: integer"},
    {"ClockStep", "advance_ms: integer"},
    {"Clock", "now: time"},
};
// clang-format on

}  // namespace

std::span<const Shape> shapes() { return kShapes; }

}  // namespace ojs_shm::gateway
