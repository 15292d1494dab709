// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/visitor.hpp"

#include <stdexcept>
#include <utility>

#include <ojs_shm/census.hpp>

#include "tests/catalogue/operations.hpp"
#include "tests/fuzz/surroundings.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/envelope_event.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::fuzz {
namespace {

constexpr std::string_view kQueues[] = {"default", "bounded", "other", "one-too-many"};
constexpr std::string_view kTypes[] = {"fuzz.even", "fuzz.odd"};

void print(const JobInfo& job) {
  require(json::check(print_job(job)).ok(), "a job was printed as something else");
}

}  // namespace

void look_around(const Segment& segment) {
  const auto seen = Observer::attach(segment);
  if (!seen.ok()) return;
  (void)seen->segment_info();
  (void)seen->segment_settings();
  (void)seen->maintenance();
  (void)seen->queues();
  (void)seen->audit();
  (void)seen->default_priority("fuzz.even");
  (void)seen->waits();
  require(json::check(print_census(seen->census())).ok(), "a census was printed as something else");
  for (const Transition& each : seen->recent())
    require(json::check(print_transition(each)).ok(), "a transition that is no JSON");
  look_at_policies(*seen);
  EventOptions options{.from_start = true, .settle_ms = 0};
  for (int look = 0; look < 2; ++look) {  // then from behind the last
    EventReader events = seen->events(options);
    Event event;
    for (int i = 0; i < 1000 && events.next(event); ++i)
      require(json::check(print_event(event)).ok(), "an event was printed as something else");
    require(look != 0 || !events.resumed(), "it resumed behind nothing");
    options.after = event.id;
    options.after_position = events.position();
  }
  const std::vector<JobInfo> jobs = seen->list({});
  for (const JobInfo& job : jobs) (void)seen->get(job.id);
  if (!jobs.empty()) print(jobs.back());
}

Visitor::Visitor(Segment segment, std::vector<std::string> ids)
    : segment_(std::move(segment)), ids_(std::move(ids)) {
  ids_.emplace_back("0199461a-0000-7000-8000-000000000099");
  open();
}

Visitor::~Visitor() { close(); }

void Visitor::open() {
  if (auto made = Producer::attach(segment_); made.ok()) producer_.emplace(std::move(*made));
  WorkerOptions options;
  options.queues = {"default", "bounded"};
  if (auto made = Worker::attach(segment_, options); made.ok()) worker_.emplace(std::move(*made));
  options.pool = "crew";
  if (auto made = Worker::attach(segment_, options); made.ok()) pooled_.emplace(std::move(*made));
  if (auto made = Admin::attach(segment_); made.ok()) admin_.emplace(std::move(*made));
  if (auto made = Proxy::attach(segment_); made.ok()) proxy_.emplace(std::move(*made));
  if (const auto lane = segment_.attachment()->take_lane(true); lane.ok()) {
    lane_ = *lane;
    actor_ = std::make_unique<engine::Actor>(segment_.attachment()->store(), *lane);
    supervisor_ = std::make_unique<engine::Supervisor>(*actor_);
  }
}

void Visitor::close() {
  supervisor_.reset();
  if (actor_) actor_->retire();
  actor_.reset();
  if (lane_) segment_.attachment()->give_lane(*lane_);
  lane_.reset();
  import_.reset();
  proxy_.reset();
  admin_.reset();
  pooled_.reset();
  worker_.reset();
  waiting_.clear();
  producer_.reset();
}

const std::vector<Visitor::Act>& Visitor::acts() {
  static const auto* all = new std::vector<Act>{&Visitor::enqueue,
                                                &Visitor::fetch,
                                                &Visitor::ack,
                                                &Visitor::nack,
                                                &Visitor::cancel,
                                                &Visitor::tick,
                                                &Visitor::mend,
                                                &Visitor::repair,
                                                &Visitor::reprioritize,
                                                &Visitor::list,
                                                &Visitor::look,
                                                &Visitor::get,
                                                &Visitor::enqueue_batch,
                                                &Visitor::fetch_batch,
                                                &Visitor::requeue,
                                                &Visitor::heartbeat,
                                                &Visitor::progress,
                                                &Visitor::activate,
                                                &Visitor::retry_dead,
                                                &Visitor::drop_dead,
                                                &Visitor::set_queue,
                                                &Visitor::set_default,
                                                &Visitor::reopen,
                                                &Visitor::enqueue_held,
                                                &Visitor::begin,
                                                &Visitor::poll,
                                                &Visitor::enqueue_patiently,
                                                &Visitor::enqueue_prepared,
                                                &Visitor::fetch_pooled,
                                                &Visitor::wait,
                                                &Visitor::set_limit,
                                                &Visitor::clear_limit,
                                                &Visitor::set_pool,
                                                &Visitor::remove_pool,
                                                &Visitor::direct_worker,
                                                &Visitor::set_policy,
                                                &Visitor::set_default_aging,
                                                &Visitor::unset_default,
                                                &Visitor::import,
                                                &Visitor::finish_import,
                                                &Visitor::create_workflow,
                                                &Visitor::cancel_workflow,
                                                &Visitor::set_cron,
                                                &Visitor::change_cron,
                                                &Visitor::fire_crons,
                                                &Visitor::fetch_for_client,
                                                &Visitor::hand_over,
                                                &Visitor::end_by_id,
                                                &Visitor::tell_by_id,
                                                &Visitor::report_worker,
                                                &Visitor::drop,
                                                &Visitor::run_from_catalogue};
  return *all;
}

void Visitor::act(Input& input) {
  const Act chosen = acts()[input.below(acts().size())];
  if (producer_ && worker_ && admin_ && proxy_ && supervisor_) (this->*chosen)(input);
}

void Visitor::run_from_catalogue(Input& input) {
  const std::vector<test::Operation>& all = test::operations();
  const test::Operation& operation = all[input.number(2) % all.size()];
  if (*operation.not_in_storms != '\0') return;  // waits for what no other does here
  try {
    test::Hands hands(segment_);
    operation.prepare(hands);
    operation.act(hands);
  } catch (const std::runtime_error&) {
    // refused, for the segment is not the one that it was written for
  }
}

const std::string& Visitor::some_id(Input& input) { return ids_[input.below(ids_.size())]; }

void Visitor::remember(std::string_view id) {
  require(id.size() == 36, "an id of another length");
  ids_.emplace_back(id);
}

JobSpec Visitor::some_spec(Input& input) {
  JobSpec spec;
  const unsigned choice = input.byte();
  args_ = "[\"" + std::string(input.below(64) * 64, 'y') + "\"]";
  spec.type = kTypes[choice & 1];
  spec.args = args_;
  spec.queue = kQueues[choice >> 1 & 3];
  if ((choice & 8) != 0) spec.priority = static_cast<std::int64_t>(input.below(100));
  if ((choice & 16) != 0) spec.scheduled_at_ms = 1'800'000'000'000 + input.number(2);
  if ((choice & 32) != 0) spec.expires_at_ms = 1'800'000'000'000 + input.number(2);
  if ((choice & 64) != 0) spec.id = some_id(input);
  spec.pending = choice == 0x80;
  if (choice % 16 == 9) spec.priority_age_rate = input.byte();
  spec.retry.max_attempts = static_cast<std::uint16_t>(choice >> 5);
  spec.retry.dead_letter = (choice & 4) != 0;
  return spec;
}

void Visitor::enqueue(Input& input) {
  if (const auto id = producer_->enqueue(some_spec(input)); id.ok()) remember(id->view());
}

void Visitor::enqueue_prepared(Input& input) {
  const JobSpec spec = some_spec(input);
  const auto kind = producer_->prepare(spec);
  if (!kind.ok()) return;
  if (const auto id = producer_->enqueue(*kind, spec.args, input.byte()); id.ok())
    remember(id->view());
}

void Visitor::enqueue_batch(Input& input) {
  const std::vector<JobSpec> specs(1 + input.below(20), some_spec(input));
  const auto ids = producer_->enqueue_batch(specs);
  if (!ids.ok()) return;
  for (const JobIdText& id : *ids) remember(id.view());
}

void Visitor::fetch(Input& input) {
  Job& job = some_job(input);
  if (!worker_->try_fetch(job).ok()) return;
  (void)job.type();
  (void)job.args();
  (void)job.extra();
  (void)job.cancel_requested();
}

void Visitor::fetch_batch(Input& input) {
  auto jobs = worker_->fetch_batch(1 + input.below(20));
  if (!jobs.ok()) return;
  for (std::size_t i = 0; i < jobs->size(); ++i) jobs_[i % jobs_.size()] = std::move((*jobs)[i]);
}

void Visitor::ack(Input& input) {
  Job& job = some_job(input);
  const std::string result = "[\"" + std::string(input.below(70) * 64, 'z') + "\"]";
  if (!job.valid()) return;
  if (result.size() % 128 == 4)
    (void)worker_->ack_batch(std::span(&job, 1));
  else
    (void)worker_->ack(job, result);
}

void Visitor::nack(Input& input) {
  Job& job = some_job(input);
  const std::string message(input.byte(), 'm');
  if (job.valid())
    (void)worker_->nack(job, {.message = message, .retryable = message.size() % 4 != 0});
}

void Visitor::requeue(Input& input) {
  if (Job& job = some_job(input); job.valid()) (void)worker_->requeue(job);
}

void Visitor::heartbeat(Input& input) {
  Job& job = some_job(input);
  const auto lease = static_cast<std::uint32_t>(input.number(2));
  if (job.valid()) (void)worker_->heartbeat(job, lease);
  worker_->beat();
  (void)worker_->say(static_cast<WorkerDirective>(lease % 3));
  Job none;
  worker_->quiet();
  (void)worker_->try_fetch(none);
  worker_->resume();
  (void)worker_->directive();
}

void Visitor::progress(Input& input) {
  Job& job = some_job(input);
  const double done = static_cast<double>(input.byte()) / 255;
  if (!job.valid()) return;
  const unsigned choice = input.byte();
  if (choice % 4 == 2)
    (void)worker_->checkpoint(job, '"' + std::string(input.below(64) * 64, 'c') + '"');
  else if (choice % 4 == 0)
    (void)worker_->progress(job, done);
  else
    (void)worker_->progress(job, done, std::string(input.below(64) * 64, 'm'), "{}");
}

void Visitor::cancel(Input& input) {
  if (const auto job = producer_->cancel(some_id(input)); job.ok()) print(*job);
}
void Visitor::reprioritize(Input& input) {
  const std::string& id = some_id(input);
  (void)producer_->reprioritize(id, static_cast<std::int64_t>(input.below(100)));
}
void Visitor::activate(Input& input) {
  const unsigned choice = input.byte();
  if (choice % 4 == 1) return (void)producer_->promote(some_id(input));
  if (choice % 8 == 3) return (void)producer_->retry(some_id(input));
  if (choice % 4 == 2)
    return (void)admin_->bulk(static_cast<BulkAction>(choice / 4 % 6),
                              {.queue = std::string(kQueues[choice / 16 & 3])});
  (void)producer_->activate(some_id(input));
}
void Visitor::get(Input& input) {
  if (const auto job = producer_->get(some_id(input)); job.ok()) print(*job);
}
void Visitor::retry_dead(Input& input) { (void)admin_->retry_dead(some_id(input)); }
void Visitor::drop_dead(Input& input) { (void)admin_->drop_dead(some_id(input)); }
void Visitor::drop(Input& input) {
  (void)admin_->drop(some_id(input));
  admin_->tell_bulk(BulkKind::kDelete, input.byte(), input.byte());
}

void Visitor::set_queue(Input& input) {
  QueueSettings settings;
  const unsigned choice = input.byte();
  if ((choice & 4) != 0) settings.max_depth = input.byte();
  if ((choice & 8) != 0) settings.max_size_bytes = input.number(2);
  if ((choice & 16) != 0) settings.paused = (choice & 32) != 0;
  if (choice >= 0xC0) {
    const unsigned order = input.byte();
    if ((order & 1) != 0) settings.aging.emplace().enabled = (order & 2) != 0;
    if ((order & 4) != 0) settings.level_weights.emplace();
    for (unsigned level = 0; (order & 12) == 12 && level < order >> 4; ++level)
      settings.level_weights->push_back({std::to_string(level * 3), input.byte()});
    if ((order & 0x30) == 0x30) settings.shards = order >> 4;
  }
  if ((choice & 64) != 0) (void)admin_->set_events((choice & 128) != 0);
  if ((choice & 64) != 0) (void)admin_->set_strict_envelopes((choice & 32) != 0);
  if ((choice & 64) != 0) (void)admin_->set_immutable_priorities((choice & 32) != 0);
  if (choice == 0xFD) (void)admin_->set_maintenance((input.byte() & 1) != 0, "fuzz");
  if (choice == 0xFF)
    (void)admin_->set_dead_retention({.max_age_ms = input.number(2), .max_count = input.byte()});
  if (choice == 0xFE)
    (void)admin_->delete_queue(kQueues[input.byte() & 3], QueueDeletion::kDiscard);
  (void)admin_->set_queue(kQueues[choice & 3], settings);
}

void Visitor::set_default(Input& input) {
  const std::string type = "fuzz.made" + std::to_string(input.byte());
  (void)admin_->set_default_priority(type, static_cast<std::int64_t>(input.below(100)));
}

void Visitor::list(Input& input) {
  const auto seen = Observer::attach(segment_);
  if (!seen.ok()) return;
  JobFilter filter;
  const unsigned choice = input.byte();
  if ((choice & 1) != 0) filter.queue = kQueues[choice >> 1 & 3];
  if ((choice & 8) != 0) filter.state = static_cast<State>(choice >> 4 & 7);
  filter.dead_letter = (choice & 0x80) != 0;
  if (const auto jobs = seen->list(filter); !jobs.empty()) print(jobs[choice % jobs.size()]);
  JobPageRequest request{filter};
  request.order = static_cast<JobOrder>(choice % 3);
  request.falls = choice % 2 == 0;
  if (choice % 5 == 0) request.type_prefix = "fuzz";
  request.offset = choice % 7;
  for (const JobInfo& job : seen->page(request).jobs) print(job);
  for (const BriefJob& job : seen->brief_list(request)) require(job.id.size() == 36, "an id");
}

void Visitor::look(Input&) { look_around(segment_); }
void Visitor::mend(Input&) { (void)admin_->mend(); }
void Visitor::repair(Input&) { (void)admin_->repair(); }

void Visitor::tick(Input& input) {
  advance_clock(input.number(2) * (1 + input.below(2) * 1000));
  engine::Supervisor::Report report;
  const std::uint64_t now = segment_.attachment()->store().now_ms();
  for (int i = 0; i < 4 && supervisor_->tick(now, report) <= now; ++i) {}
}

}  // namespace ojs_shm::fuzz
