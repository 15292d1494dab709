// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include <ojs_shm/observer.hpp>

#include "worker_api/roles/attachment.hpp"
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

  auto key() const { return std::tie(by, created_at, id); }
};

/// The first so many of what it is given, in their order at the end. Keeps at most twice as many,
/// and knows after a while which ones cannot be among them.
class First {
 public:
  First(std::size_t most, bool falls) : most_(most), falls_(falls) {}

  void add(const Standing& job) {
    if (full_ && !before(job, worst_)) return;
    kept_.push_back(job);
    if (kept_.size() >= 2 * most_ + 1024) shrink();
  }
  std::vector<Standing> take() {
    std::ranges::sort(kept_, [this](const auto& a, const auto& b) { return before(a, b); });
    if (kept_.size() > most_) kept_.resize(most_);
    return std::move(kept_);
  }
  bool before(const Standing& a, const Standing& b) const {
    return falls_ ? b.key() < a.key() : a.key() < b.key();
  }

 private:
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
  Standing worst_;
  std::vector<Standing> kept_;
};

/// Which jobs are meant, as far as their records say it: of a text no more is read than the type.
class Choice {
 public:
  Choice(const engine::Store& store, const JobPageRequest& request)
      : store_(store),
        request_(request),
        queue_(request.filter.queue.empty() ? engine::kNoIndex
                                            : store.find_queue(request.filter.queue)) {
    if (request.filter.tenant) tenant_ = engine::Store::hash_tenant(*request.filter.tenant);
  }

  /// Whether there is such a queue, if one was asked for.
  bool possible() const { return request_.filter.queue.empty() || queue_ != engine::kNoIndex; }

  /// Asks for what take() reads of nearly every slot.
  void prefetch(std::uint32_t slot) const {
    const JobRecord& job = store_.job(slot);
    __builtin_prefetch(&job.control);
    __builtin_prefetch(&job.created_at);
  }

  /// Fills `at` when the job in the slot is meant.
  bool take(std::uint32_t slot, Standing& at) {
    const JobRecord& job = store_.job(slot);
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Control control(job.control.load());
      if (!engine::holds_job(control.state()) && !engine::is_exclusive(control.state()))
        return false;
      engine::JobState state{};
      const bool meant = is_meant(slot, job, control, state);
      if (meant) at = standing(slot, job, control, state);
      if (Control(job.control.load()) == control) return meant;
    }
    return false;  // it changes all the time: it stands in the next look
  }

 private:
  bool is_meant(std::uint32_t slot, const JobRecord& job, Control control,
                engine::JobState& state) {
    const JobFilter& filter = request_.filter;
    if (engine::holds_job(control.state())) {
      state = engine::job_state(control.state());
    } else {
      const auto held = store_.snapshot(slot, false);  // it is what it was before
      if (!held) return false;
      state = held->state();
    }
    if (queue_ != engine::kNoIndex && job.queue.get() != queue_) return false;
    if (filter.state && state != static_cast<engine::JobState>(*filter.state)) return false;
    if (filter.waiting && !engine::counts_as_depth(state)) return false;
    if (filter.unique && !(engine::is_unique(job) && holds_key(job, state))) return false;
    if (filter.dead_letter && !job.flags().has(engine::Policy::kDead)) return false;
    const std::uint64_t created = job.created_at.get();
    if (filter.created_before_ms != 0 && created >= filter.created_before_ms) return false;
    if (created < request_.created_from_ms) return false;
    if (tenant_ && job.tenant.get() != *tenant_) return false;
    if (filter.priority && priority(control) != *filter.priority) return false;
    if (filter.type.empty() && request_.type_prefix.empty()) return true;
    read_type(slot, job);
    return (filter.type.empty() || type_ == filter.type) && type_.starts_with(request_.type_prefix);
  }

  bool holds_key(const JobRecord& job, engine::JobState state) const {
    return internal::keeps_others_out({job.annex().uniqueness.get()}, state, job.created_at.get(),
                                      now_);
  }

  std::int64_t priority(Control control) const {
    return engine::priority_of(store_.convention(), engine::rank_of_ring(control.ring()));
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

  Standing standing(std::uint32_t slot, const JobRecord& job, Control control,
                    engine::JobState state) const {
    Standing at{
        0, job.created_at.get(), job.id(), slot, state, job.flags().has(engine::Policy::kDead)};
    switch (request_.order) {
      case JobOrder::kCreated: break;
      case JobOrder::kScheduled: at.by = static_cast<std::int64_t>(job.scheduled_at.get()); break;
      case JobOrder::kPriority: at.by = priority(control); break;
    }
    return at;
  }

  const engine::Store& store_;
  const JobPageRequest& request_;
  std::uint32_t queue_;
  std::optional<std::uint64_t> tenant_;
  std::uint64_t now_ = store_.now_ms();
  std::string type_;
};

/// Slots that are asked for before they are looked at.
constexpr std::uint32_t kAhead = 16;

}  // namespace

JobPage Observer::page(const JobPageRequest& request) const {
  const engine::Store& store = segment_.attachment()->store();
  JobPage page;
  Choice choice(store, request);
  std::optional<Standing> behind;
  if (request.behind) {
    const auto id = engine::parse_id(request.behind->second);
    behind = Standing{.created_at = request.behind->first, .id = id.value_or(engine::JobId{})};
  }
  First first(request.offset + request.limit + 1, request.falls);
  // In a young segment later slots have later jobs: those that come first in the list are met first.
  const std::uint32_t slots = choice.possible() ? store.slots() : 0;
  for (std::uint32_t i = 0; i < slots; ++i) {
    const std::uint32_t slot = request.falls ? slots - 1 - i : i;
    choice.prefetch(request.falls ? slot - kAhead : slot + kAhead);
    Standing at;
    if (!choice.take(slot, at)) continue;
    ++page.total;
    if (!behind || first.before(*behind, at)) first.add(at);
  }
  const std::vector<Standing> found = first.take();
  const std::size_t end = request.offset + request.limit;
  page.more = found.size() > end;
  for (std::size_t i = request.offset; i < std::min(found.size(), end); ++i) {
    // what has changed its place meanwhile is in the next look
    const auto job = store.snapshot(found[i].slot);
    if (job && job->id == found[i].id) page.jobs.push_back(internal::info_of(store, *job));
  }
  return page;
}

std::vector<BriefJob> Observer::brief_list(const JobPageRequest& request) const {
  const engine::Store& store = segment_.attachment()->store();
  Choice choice(store, request);
  First all(store.slots(), request.falls);
  for (std::uint32_t slot = 0; choice.possible() && slot < store.slots(); ++slot)
    if (Standing at; choice.take(slot, at)) all.add(at);
  std::vector<BriefJob> jobs;
  for (const Standing& each : all.take())
    jobs.push_back({engine::to_string(each.id), static_cast<State>(each.state), each.dead});
  return jobs;
}

}  // namespace ojs_shm
