// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/producer.hpp>

#include <algorithm>
#include <array>
#include <set>

#include "engine/straight/plain_batch.hpp"
#include "engine/tables/job_look.hpp"
#include "shm/parking.hpp"
#include "worker_api/roles/producer_impl.hpp"
#include "worker_api/roles/results.hpp"

namespace ojs_shm {

using internal::Handle;

std::string_view JobIdText::view() const {
  if (text_[0] == '\0') {
    engine::print_id({hi, lo}, std::span<char, engine::kJobIdLength>(text_, engine::kJobIdLength));
    text_[engine::kJobIdLength] = '\0';
  }
  return {text_, engine::kJobIdLength};
}

Producer::Producer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Producer::Producer(Producer&&) noexcept = default;
Producer& Producer::operator=(Producer&&) noexcept = default;
Producer::~Producer() = default;

Result<Producer> Producer::attach(const Segment& segment) {
  auto handle = Handle::make(segment);
  if (!handle) return handle.error();
  auto impl = std::make_unique<Impl>();
  impl->handle = std::move(handle).value();
  return Producer(std::move(impl));
}

Result<Producer> Producer::attach(const SegmentName& name) {
  const Result<Segment> segment = Segment::attach(name);
  if (!segment) return segment.error();
  return attach(segment.value());
}

const Segment& Producer::segment() const { return impl_->handle->segment(); }

using internal::may_be_the_dead;
using internal::text_of;

/// Of any job, and after a failure whose reason may pass.
[[gnu::noinline]] Result<JobIdText> Producer::Impl::enqueue_patiently(const JobSpec& spec) {
  engine::NewJob job;
  engine::JobId id;
  actor().conflicts().ignored.clear();
  ignored = false;
  auto fault = handle->read(spec, job);
  const auto read = [&] {
    fault = internal::read_spec(actor(), spec, job);
    return fault == internal::SpecFault::kNone;
  };
  if (fault != internal::SpecFault::kNone) return internal::error_of(fault, spec, store());
  const std::span one(&spec, 1);
  const engine::Outcome outcome =
      patiently(one, [&] { return settled(read, [&] { return actor().enqueue(job, id); }); });
  if (outcome == engine::Outcome::kOk) return text_of(id);
  if (outcome == engine::Outcome::kClash) return clash(spec);
  return refusal(outcome, job.queue, spec.id.empty() ? "body" : spec.id, one);
}

Result<JobIdText> Producer::Impl::clash(const JobSpec& spec) {
  if (spec.unique->on_conflict() != OnConflict::kIgnore) return clash_error({&spec, 1});
  ignored = true;
  return text_of(actor().conflicts().clash.id);
}

Error internal::key_taken(const engine::Clash& by, std::string_view id) {
  const std::string other = engine::to_string(by.id);
  return Error{Code::kDuplicate, "job " + other + ", which is " +
                                     std::string(engine::name_of(by.state)) +
                                     ", has the unique key of job " + std::string(id)}
      .about(other)
      .in_state(engine::name_of(by.state));
}

Error Producer::Impl::clash_error(std::span<const JobSpec> specs) {
  const engine::Clash& clash = actor().conflicts().clash;
  const std::size_t at = std::min(actor().conflicts().at, specs.size() - 1);
  const std::string key = specs[at].unique->key();
  const std::string which =
      specs.size() > 1 ? "job " + std::to_string(at + 1) + " of the batch: " : std::string();
  if (clash.id == engine::JobId{})
    return Error{Code::kDuplicate,
                 which + "another job of the batch has the same unique key " + key}
        .about("batch");
  const std::string id = text_of(clash.id).str();
  return Error{Code::kDuplicate, which + "job " + id + ", which is " +
                                     std::string(engine::name_of(clash.state)) +
                                     ", has the same unique key " + key}
      .about(id)
      .in_state(engine::name_of(clash.state));
}

bool Producer::deduplicated(std::size_t at) const { return impl_->deduplicated(at); }

/// Of a job without an id of its own, after it was refused.
[[gnu::noinline]] Result<JobIdText> Producer::Impl::enqueue_again(const JobSpec& spec,
                                                                  std::uint32_t queue,
                                                                  engine::Outcome outcome) {
  if (outcome == engine::Outcome::kMustDrop) return enqueue_patiently(spec);
  if (may_be_the_dead(outcome) && handle->attachment().repair_the_dead() != 0)
    return enqueue_patiently(spec);
  return refusal(outcome, queue, "body", std::span(&spec, 1));
}

/// Of a unique job, which mostly is as plain as can be but for its key.
[[gnu::flatten]] Result<JobIdText> Producer::Impl::enqueue_unique(const JobSpec& spec) {
  const std::uint32_t queue = actor().known_queue(spec.queue);
  std::uint8_t rank = 0;
  if (queue == engine::kNoIndex || !internal::only_basics_and_key(spec) ||
      internal::check_basics(actor(), spec, rank) != internal::SpecFault::kNone) [[unlikely]]
    return enqueue_with_options(spec);
  engine::NewJob job = internal::basic_job(spec, queue, rank);
  job.annex = static_cast<const engine::NewAnnex*>(spec.unique->annex());
  engine::JobId id;
  engine::Outcome outcome = engine::Outcome::kOk;
  if (actor().enqueue_unique(job, id, outcome) != engine::Straight::kDone) [[unlikely]]
    return enqueue_with_options(spec);
  actor().conflicts().ignored.clear();
  ignored = false;
  if (outcome == engine::Outcome::kOk) [[likely]]
    return text_of(id);
  return outcome == engine::Outcome::kClash ? clash(spec) : enqueue_again(spec, queue, outcome);
}

/// Of a job of a few words into a queue that has a bound and no other option. False: it goes
/// another way.
[[gnu::noinline, gnu::flatten]] bool Producer::Impl::enqueue_under_bound(const JobSpec& spec,
                                                                         engine::JobId& id) {
  const std::uint32_t queue = actor().known_queue(spec.queue);
  std::uint8_t rank = 0;
  if (queue == engine::kNoIndex || !actor().has_bound_alone(queue) ||
      !internal::only_basics(spec) ||
      internal::check_basics(actor(), spec, rank) != internal::SpecFault::kNone)
    return false;
  const engine::NewJob job = internal::basic_job(spec, queue, rank);
  // in parts, so that they stay in registers
  return job.plain() && actor().enqueue_under_bound(engine::PlainJob::of(job), engine::JobForm(job),
                                                    id) == engine::Straight::kDone;
}

/// Of any job into any queue.
[[gnu::noinline]] Result<JobIdText> Producer::Impl::enqueue_with_options(const JobSpec& spec) {
  if (engine::JobId id; enqueue_under_bound(spec, id)) return text_of(id);
  if (spec.result_ttl_s) [[unlikely]]
    return enqueue_patiently(internal::KeptSpecs({&spec, 1}).all().front());
  engine::NewJob job;  // stays in registers, as nothing that is called keeps it
  if (const auto fault = internal::read_spec(actor(), spec, job);
      fault != internal::SpecFault::kNone) [[unlikely]]
    return internal::error_of(fault, spec, store());
  if (!job.plain() || job.queue == engine::kNoIndex) [[unlikely]]
    return enqueue_patiently(spec);
  engine::JobId id;
  const engine::Outcome outcome = actor().enqueue_short(job, id);
  if (outcome == engine::Outcome::kOk) [[likely]]
    return text_of(id);
  return enqueue_again(spec, job.queue, outcome);
}

[[gnu::flatten, gnu::hot]] Result<JobIdText> Producer::enqueue(const JobSpec& spec) {
  Impl& impl = *impl_;
  if (impl.handle->closed()) [[unlikely]]
    return internal::closed();
  if (spec.unique != nullptr) return impl.enqueue_unique(spec);
  engine::Actor& actor = impl.actor();
  const std::uint32_t queue = actor.known_queue(spec.queue);
  std::uint8_t rank = 0;
  if (queue != engine::kNoIndex && !actor.has_options(queue) &&
      internal::only_basics_and_key(spec) &&
      internal::check_basics(actor, spec, rank) == internal::SpecFault::kNone) [[likely]] {
    const engine::NewJob job = internal::basic_job(spec, queue, rank);
    engine::JobId id;
    if (job.plain() && actor.enqueue_plain(job, id) == engine::Straight::kDone) [[likely]]
      return text_of(id);
  }
  return impl.enqueue_with_options(spec);
}

Result<std::vector<engine::NewJob>> Producer::Impl::read_batch(std::span<const JobSpec> specs) {
  std::vector<engine::NewJob> jobs;
  jobs.reserve(specs.size());
  const auto refused = [&](internal::SpecFault fault, std::size_t at) {
    Error error = internal::error_of(fault, specs[at], store());
    if (specs.size() > 1)
      error.message = "job " + std::to_string(at + 1) + " of the batch: " + error.message;
    return error;
  };
  for (const JobSpec& spec : specs) {
    engine::NewJob job;
    if (const auto fault = internal::read_spec(actor(), spec, job);
        fault != internal::SpecFault::kNone)
      return refused(fault, jobs.size());
    jobs.push_back(job);
  }
  std::size_t at = 0;
  if (std::ranges::find(jobs, engine::kNoIndex, &engine::NewJob::queue) != jobs.end())
    if (const auto fault = handle->make_queues(specs, jobs, at);
        fault != internal::SpecFault::kNone)
      return refused(fault, at);
  return jobs;
}

std::string_view Producer::Impl::duplicate_of(std::span<const JobSpec> specs) {
  std::set<std::string_view> seen;
  for (const JobSpec& spec : specs) {
    if (spec.id.empty()) continue;
    const auto id = engine::parse_id(spec.id);
    if (!seen.insert(spec.id).second || (id && engine::find_job(store(), *id) != engine::kNoIndex))
      return spec.id;
  }
  return {};
}

bool Producer::Impl::read_again(std::span<const JobSpec> specs, std::vector<engine::NewJob>& jobs) {
  const auto read = read_batch(specs);
  if (read) std::copy(read.value().begin(), read.value().end(), jobs.begin());
  return read.ok();
}

namespace {

/// Jobs of basics for one queue, as enqueue_batch_plain() wants them.
struct BasicJobs {
  engine::Actor& actor;
  const JobSpec* specs;
  std::uint32_t queue;
  JobIdText* ids;
  OJS_SHM_INLINE std::uint32_t rank(std::size_t i) const {
    const JobSpec& spec = specs[i];
    std::uint8_t rank = 0;
    const bool basic = internal::only_basics(spec) &&
                       engine::same_name(spec.queue, specs[0].queue) &&
                       internal::check_basics(actor, spec, rank) == internal::SpecFault::kNone;
    return basic ? rank : engine::kNoIndex;
  }
  OJS_SHM_INLINE engine::PlainJob job(std::size_t i) const {
    return {specs[i].type, specs[i].args, {}, queue, 0};
  }
  OJS_SHM_INLINE engine::JobForm form(std::size_t i) const {
    return engine::JobForm(internal::basic_job(specs[i], queue, 0));
  }
  OJS_SHM_INLINE void made(std::size_t i, engine::JobId id) const { ids[i].assign(id.hi, id.lo); }
};

}  // namespace

/// Nothing has happened when it is false.
[[gnu::flatten]] bool Producer::Impl::enqueue_batch_plain(std::span<const JobSpec> specs,
                                                          JobIdText* ids) {
  if (specs.empty()) return false;
  const std::uint32_t queue = actor().known_queue(specs.front().queue);
  if (queue == engine::kNoIndex) return false;
  BasicJobs jobs{actor(), specs.data(), queue, ids};
  return actor().enqueue_batch_plain(queue, specs.size(), jobs) == engine::Straight::kDone;
}

Status Producer::enqueue_batch(std::span<const JobSpec> specs, std::span<JobIdText> ids) {
  if (impl_->handle->closed()) return internal::closed();
  if (ids.size() < specs.size())
    return Error{Code::kInvalid, "there is not room for the ids of all jobs"}.about("ids");
  if (impl_->enqueue_batch_plain(specs, ids.data())) [[likely]]
    return {};
  const auto accepted = impl_->enqueue_batch_in_order(specs);
  if (!accepted) return accepted.error();
  std::copy(accepted->begin(), accepted->end(), ids.begin());
  return {};
}

Result<std::vector<JobIdText>> Producer::enqueue_batch(std::span<const JobSpec> specs) {
  if (impl_->handle->closed()) return internal::closed();
  std::vector<JobIdText> ids(specs.size());
  if (impl_->enqueue_batch_plain(specs, ids.data())) [[likely]]
    return ids;
  return impl_->enqueue_batch_in_order(specs);
}

Result<std::vector<JobIdText>> Producer::Impl::enqueue_batch_in_order(
    std::span<const JobSpec> given) {
  const internal::KeptSpecs kept(given);
  const std::span specs = kept.all();
  ignored = false;
  auto jobs = read_batch(specs);
  if (!jobs) return jobs.error();
  std::vector<engine::JobId> ids;
  const engine::Outcome outcome = patiently(specs, [&] {
    return settled([&] { return read_again(specs, *jobs); },
                   [&] { return actor().enqueue_batch(*jobs, ids); });
  });
  if (outcome != engine::Outcome::kOk) return refusal(outcome, refusing(*jobs), "batch", specs);
  return internal::texts_of(ids);
}

Result<JobInfo> Producer::get(std::string_view id) const {
  const Result<engine::JobId> parsed = impl_->parse(id);
  if (!parsed) return parsed.error();
  for (int look = 0; look < 1000; ++look) {
    const std::uint32_t slot = engine::find_job(impl_->store(), parsed.value());
    if (slot == engine::kNoIndex) break;
    const auto snapshot = engine::snapshot(impl_->store(), slot);
    if (snapshot && snapshot->id == parsed.value())
      return internal::info_of(impl_->store(), *snapshot);
  }
  return impl_->failed(engine::Outcome::kNotFound, id, {}, "");
}

Result<JobInfo> Producer::wait(std::string_view id, std::chrono::milliseconds timeout) {
  const Result<engine::JobId> parsed = impl_->parse(id);
  if (!parsed) return parsed.error();
  engine::Store& store = impl_->store();
  const auto end = std::chrono::steady_clock::now() + internal::within_reach(timeout);
  for (unsigned looks = 0;;) {
    const std::uint32_t slot = engine::find_job(store, parsed.value());
    if (slot == engine::kNoIndex) return impl_->failed(engine::Outcome::kNotFound, id, {}, "");
    engine::JobRecord& job = store.job(slot);
    // Ask to be woken, then look: the finisher looks at the wish after it has taken the slot into
    // its hands.
    job.signals.fetch_or(engine::kWaited, shm::Point::kWaitFlagSet);
    const shm::Half& bell = store.segment().header().completions[slot % 64];
    const std::uint32_t rung = bell.load();
    const engine::Control control(job.control.load_seq_cst());
    if (engine::is_finished(control.state())) {
      Result<JobInfo> info = get(id);
      if (!info || is_terminal(info->state)) return info;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0)
      return Error{Code::kTimeout, "job " + std::string(id) + " has not finished yet"}.about(
          std::string(id));
    const bool in_hands = engine::is_exclusive(control.state());
    shm::futex_wait(bell, rung,
                    std::min<std::uint64_t>(static_cast<std::uint64_t>(left), in_hands ? 1 : 100));
    // In the hands of one that may have died, too.
    if ((in_hands && ++looks % 100 != 0) || bell.load() != rung) continue;
    impl_->handle->attachment().repair_the_dead();
    if (!store.segment().named())
      return Error{Code::kCannotAttach, "segment " + store.segment().path() +
                                            " was removed, and job " + std::string(id) + " with it"}
          .about("segment");
  }
}

Result<JobInfo> Producer::cancel(std::string_view id) {
  const Result<engine::JobId> parsed = impl_->parse(id);
  if (!parsed) return parsed.error();
  Result<JobInfo> before = get(id);
  engine::JobState found{};
  const engine::Outcome outcome = impl_->actor().cancel(parsed.value(), found);
  if (outcome != engine::Outcome::kOk)
    return impl_->failed(outcome, id, found, "waiting or active");
  Result<JobInfo> after = get(id);
  if (after || !before) return after;
  before->state = State::kCancelled;  // another job needed its room at once
  before->previous_state = static_cast<State>(found);
  before->cancelled_at_ms = impl_->store().now_ms();
  return before;
}

Result<std::int64_t> Producer::reprioritize(std::string_view id, std::int64_t priority) {
  const Result<engine::JobId> parsed = impl_->parse(id);
  if (!parsed) return parsed.error();
  const engine::Convention convention = impl_->store().convention();
  const engine::ConventionInfo& known = engine::info(convention);
  const auto rank = engine::rank_of(convention, priority);
  if (!rank)
    return Error{Code::kInvalid,
                 "priority " + std::to_string(priority) + " is out of range: the minimum is " +
                     std::to_string(known.min) + " and the maximum is " + std::to_string(known.max)}
        .about("priority")
        .at_most(static_cast<std::uint64_t>(known.max));
  if (impl_->store().immutable_priorities())
    return Error{Code::kWrongState,
                 "a job of this segment keeps the priority it was enqueued with; "
                 "the broker's --immutable-priorities false lets it change"}
        .about("immutable_priorities");
  std::uint8_t previous = 0;
  engine::JobState found{};
  const engine::Outcome outcome =
      impl_->actor().reprioritize(parsed.value(), *rank, previous, found);
  if (outcome != engine::Outcome::kOk)
    return impl_->failed(outcome, id, found, "available or scheduled");
  return engine::priority_of(convention, previous);
}

Status Producer::activate(std::string_view id) {
  return impl_->activate(id, engine::Activation::kPending, "pending");
}

Status Producer::promote(std::string_view id) {
  return impl_->activate(id, engine::Activation::kTimed, "scheduled or retryable");
}

Status Producer::retry(std::string_view id) {
  const Result<engine::JobId> parsed = impl_->parse(id);
  if (!parsed) return parsed.error();
  engine::JobState found{};
  engine::Actor& actor = impl_->actor();
  const engine::Outcome outcome = actor.retry(parsed.value(), engine::Lost::kAny, found);
  if (outcome == engine::Outcome::kClash) return internal::key_taken(actor.conflicts().clash, id);
  if (outcome != engine::Outcome::kOk)
    return impl_->failed(outcome, id, found, "discarded or cancelled");
  return {};
}

Status Producer::Impl::activate(std::string_view id, engine::Activation what,
                                std::string_view wanted) {
  const Result<engine::JobId> parsed = parse(id);
  if (!parsed) return parsed.error();
  engine::JobState found{};
  const engine::Outcome outcome = actor().activate(parsed.value(), what, found);
  if (outcome != engine::Outcome::kOk) return failed(outcome, id, found, wanted);
  return {};
}

}  // namespace ojs_shm
