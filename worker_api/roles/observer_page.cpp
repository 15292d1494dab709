// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <ojs_shm/observer.hpp>

#include "engine/tables/job_look.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/births.hpp"
#include "worker_api/roles/observer_info.hpp"

namespace ojs_shm {
namespace {

using engine::Control;
using engine::JobRecord;

/// Where a job stands in the list. What is compared comes first.
struct Standing {
  std::int64_t by = 0;
  std::uint64_t created_at = 0;
  engine::JobId id;
  std::uint32_t slot = 0;
  engine::JobState state{};
  bool dead = false;

  bool operator<(const Standing& other) const {
    if (by != other.by) return by < other.by;
    return created_at != other.created_at ? created_at < other.created_at : id < other.id;
  }
};

/// The first so many of what it is given, behind a job if one is named, in their order at the end.
/// Keeps at most twice as many, and knows after a while which ones cannot be among them.
class First {
 public:
  First(std::size_t most, bool falls, std::optional<Standing> behind)
      : most_(most), falls_(falls), behind_(behind) {}

  /// Whether a job may be among them, as far as it is known yet.
  bool may_be(const Standing& job) const {
    return !(full_ && !before(job, worst_)) && !(behind_ && !before(*behind_, job));
  }
  void add(const Standing& job) {
    kept_.push_back(job);
    if (kept_.size() >= 2 * most_ + 128) shrink();
  }
  std::vector<Standing> take() {
    std::ranges::sort(kept_, [this](const auto& a, const auto& b) { return before(a, b); });
    if (kept_.size() > most_) kept_.resize(most_);
    return std::move(kept_);
  }

 private:
  bool before(const Standing& a, const Standing& b) const { return falls_ ? b < a : a < b; }
  void shrink() {
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(most_);
    std::nth_element(kept_.begin(), last, kept_.end(),
                     [this](const auto& a, const auto& b) { return before(a, b); });
    worst_ = *last;
    full_ = true;
    kept_.erase(last, kept_.end());
  }

  std::size_t most_;
  bool falls_, full_ = false;
  std::optional<Standing> behind_;
  Standing worst_;
  std::vector<Standing> kept_;
};

/// Which jobs are meant, as far as their records say it: of a text no more is read than the type.
class Choice {
 public:
  Choice(const engine::Store& store, internal::Births& births, const JobPageRequest& request)
      : store_(store),
        births_(births, store.slots()),
        request_(request),
        queue_(request.filter.queue.empty() ? engine::kNoIndex
                                            : store.find_queue(request.filter.queue)) {
    if (request.filter.tenant) tenant_ = engine::hash_tenant(*request.filter.tenant);
  }

  /// Whether there is such a queue, if one was asked for.
  bool possible() const { return request_.filter.queue.empty() || queue_ != engine::kNoIndex; }

  /// Asks for what look() reads of nearly every slot.
  OJS_SHM_INLINE void prefetch(std::uint32_t slot) const {
    if (slot >= store_.slots()) return;
    const JobRecord& job = store_.job(slot);
    __builtin_prefetch(&job.control);
    if (!births_.knows_some(slot)) __builtin_prefetch(&job.created_at);
  }

  enum class Fit { kNone, kMeant, kWanted };
  /// Whether the job in the slot is meant. Fills `at` when it may be among the first.
  OJS_SHM_INLINE Fit look(std::uint32_t slot, const First& first, Standing& at) {
    const JobRecord& job = store_.job(slot);
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Control control(job.control.load());
      if (!engine::holds_job(control.state()) && !engine::is_exclusive(control.state()))
        return Fit::kNone;
      const std::uint32_t generation = job.generation.get();
      const auto* const known = births_.find(slot, generation);
      at.created_at = known != nullptr ? known->created_at : job.created_at.get();
      at.id = known != nullptr ? known->id : job.id();
      at.slot = slot;
      Fit fit = Fit::kNone;
      if (is_meant(job, control, at)) {
        at.by = place(job, control);
        fit = first.may_be(at) ? Fit::kWanted : Fit::kMeant;
      }
      if (fit == Fit::kWanted) at.dead = job.flags().has(engine::Policy::kDead);
      if (Control(job.control.load()) != control) continue;
      if (known == nullptr) births_.remember(slot, {at.created_at, at.id, generation});
      return fit;
    }
    return Fit::kNone;  // it changes all the time: it stands in the next look
  }

 private:
  /// Of a job whose slot and time of creation stand in `at`; says its state there.
  OJS_SHM_INLINE bool is_meant(const JobRecord& job, Control control, Standing& at) {
    const JobFilter& filter = request_.filter;
    if (engine::holds_job(control.state()))
      at.state = engine::job_state(control.state());
    else if (!read_state_before(at))
      return false;
    if (!filtered_) return true;
    if (queue_ != engine::kNoIndex && job.queue.get() != queue_) return false;
    if (filter.state && at.state != static_cast<engine::JobState>(*filter.state)) return false;
    if (filter.waiting && !engine::counts_as_depth(at.state)) return false;
    if (filter.unique && !(engine::is_unique(job) && holds_key(job, at))) return false;
    if (filter.dead_letter && !job.flags().has(engine::Policy::kDead)) return false;
    if (filter.created_before_ms != 0 && at.created_at >= filter.created_before_ms) return false;
    if (at.created_at < request_.created_from_ms) return false;
    if (!internal::ended_as_wanted(filter, at.state, job.finished_at.get())) return false;
    if (tenant_ && job.tenant.get() != *tenant_) return false;
    if (filter.priority && priority(control) != *filter.priority) return false;
    if (!filter.error_type.empty() && !failed_so(at.slot)) return false;
    return (filter.type.empty() && request_.type_prefix.empty()) || has_type(at.slot, job);
  }

  static bool filters(const JobPageRequest& request) {
    const JobFilter& filter = request.filter;
    return !filter.queue.empty() || filter.state || filter.waiting || filter.unique ||
           filter.dead_letter || filter.created_before_ms != 0 || request.created_from_ms != 0 ||
           filter.tenant || filter.priority || !filter.type.empty() ||
           !request.type_prefix.empty() || filter.ended_from_ms != 0 ||
           filter.ended_before_ms != 0 || !filter.error_type.empty();
  }

  [[gnu::noinline]] bool failed_so(std::uint32_t slot) const {
    const auto job = engine::snapshot(store_, slot);
    return job && internal::failed_as_wanted(request_.filter, *job);
  }

  /// Of a job that a lane holds exclusively: it is what it was before.
  [[gnu::noinline]] bool read_state_before(Standing& at) const {
    const auto held = engine::snapshot(store_, at.slot, false);
    if (held) at.state = held->state();
    return held.has_value();
  }

  bool holds_key(const JobRecord& job, const Standing& at) const {
    return internal::keeps_others_out({job.annex().uniqueness.get()}, at.state, at.created_at,
                                      now_);
  }

  std::int64_t priority(Control control) const {
    return engine::priority_of(store_.convention(), engine::rank_of_ring(control.ring()));
  }

  [[gnu::noinline]] bool has_type(std::uint32_t slot, const JobRecord& job) {
    read_type(slot, job);
    return (request_.filter.type.empty() || type_ == request_.filter.type) &&
           type_.starts_with(request_.type_prefix);
  }

  void read_type(std::uint32_t slot, const JobRecord& job) {
    type_.clear();
    const std::uint32_t length = job.type_length();
    if (job.body_block.get() != engine::kNoIndex)
      return shm::Blocks::read(store_.segment(), job.body_block.get(), slot, job.generation.get(),
                               length, type_);
    type_.resize(std::min<std::size_t>(length, engine::kInlineBytes));
    shm::copy_out(type_.data(), job.inline_bytes, type_.size());
  }

  /// What the order looks at before it looks at the time of creation.
  std::int64_t place(const JobRecord& job, Control control) const {
    if (request_.order == JobOrder::kCreated) return 0;
    return request_.order == JobOrder::kPriority
               ? priority(control)
               : static_cast<std::int64_t>(job.scheduled_at.get());
  }

  const engine::Store& store_;
  internal::Births::Walk births_;
  const JobPageRequest& request_;
  std::uint32_t queue_;
  std::optional<std::uint64_t> tenant_;
  bool filtered_ = filters(request_);
  std::uint64_t now_ = store_.now_ms();
  std::string type_;
};

/// Whether the job's own text names another tenant than the one whose hash it has. A native job may
/// have no such text.
bool names_another(const JobFilter& filter, const engine::Snapshot& job) {
  if (!filter.tenant) return false;
  const std::size_t begin = std::size_t{job.type_length} + job.args_length;
  const std::string named =
      tenant_of(std::string_view(job.body).substr(std::min<std::size_t>(job.body.size(), begin)));
  return !named.empty() && named != *filter.tenant;
}

/// Slots that are asked for before they are looked at.
constexpr std::uint32_t kAhead = 64;

}  // namespace

JobPage Observer::page(const JobPageRequest& request) const {
  const engine::Store& store = segment_.attachment()->store();
  JobPage page;
  Choice choice(store, *births_, request);
  std::optional<Standing> behind;
  if (request.behind) {
    const auto id = engine::parse_id(request.behind->second);
    behind = Standing{.created_at = request.behind->first, .id = id.value_or(engine::JobId{})};
  }
  const std::size_t most = store.slots();  // there are no more jobs, whatever is asked for
  const std::size_t begin = std::min<std::size_t>(request.offset, most);
  const std::size_t end = begin + std::min<std::size_t>(request.limit, most);
  First first(end + 1, request.falls, behind);
  // In a young segment later slots have later jobs: those that come first in the list are met
  // first.
  const std::uint32_t slots = choice.possible() ? store.slots() : 0;
  Standing at;
  const std::uint32_t step = request.falls ? ~0U : 1U;
  std::uint32_t slot = request.falls ? slots - 1 : 0;
  for (std::uint32_t i = 0; i < slots; ++i, slot += step) {
    choice.prefetch(slot + step * kAhead);
    const Choice::Fit fit = choice.look(slot, first, at);
    if (fit != Choice::Fit::kNone) ++page.total;
    if (fit == Choice::Fit::kWanted) first.add(at);
  }
  const std::vector<Standing> found = first.take();
  page.more = found.size() > end;
  for (std::size_t i = begin; i < std::min(found.size(), end); ++i) {
    // what has changed its place meanwhile is in the next look
    const auto job = engine::snapshot(store, found[i].slot);
    if (job && job->id == found[i].id && !names_another(request.filter, *job))
      page.jobs.push_back(internal::info_of(store, *job));
  }
  return page;
}

std::vector<BriefJob> Observer::brief_list(const JobPageRequest& request) const {
  const engine::Store& store = segment_.attachment()->store();
  Choice choice(store, *births_, request);
  First all(store.slots(), request.falls, {});
  for (std::uint32_t slot = 0; choice.possible() && slot < store.slots(); ++slot)
    if (Standing at; choice.look(slot, all, at) == Choice::Fit::kWanted) all.add(at);
  std::vector<BriefJob> jobs;
  for (const Standing& each : all.take()) {
    const auto job = request.filter.tenant ? engine::snapshot(store, each.slot) : std::nullopt;
    if (request.filter.tenant &&
        (!job || job->id != each.id || names_another(request.filter, *job)))
      continue;
    jobs.push_back({engine::to_string(each.id), static_cast<State>(each.state), each.dead});
  }
  return jobs;
}

}  // namespace ojs_shm
