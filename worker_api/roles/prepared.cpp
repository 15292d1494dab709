// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "engine/straight/plain_batch.hpp"
#include "worker_api/roles/producer_impl.hpp"

// Jobs that are alike but for args and priority: what they have in common is checked and translated
// once, and an enqueue only looks at the rest.

namespace ojs_shm {

using internal::SpecFault;
using internal::text_of;

struct PreparedJob::Impl {
  std::array<std::string, 4> texts;  ///< what `spec` and `job` point into
  std::optional<JobLimit> limit;
  JobSpec spec;
  engine::NewJob job;
  std::optional<engine::JobForm> form;  ///< only of plain jobs
  std::shared_ptr<internal::Attachment> where;
};

PreparedJob::PreparedJob(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

JobSpec PreparedJob::with(std::string_view args, std::optional<std::int64_t> priority) const {
  JobSpec spec = impl_->spec;
  spec.args = args;
  if (priority) spec.priority = priority;
  return spec;
}

Result<PreparedJob> Producer::prepare(const JobSpec& kind) {
  if (impl_->handle->closed()) return internal::closed();
  if (!kind.id.empty() || kind.unique != nullptr)
    return Error{Code::kInvalid,
                 "an id or a unique key belongs to one job and not to a kind of jobs"}
        .about(kind.unique != nullptr ? "unique" : "id");
  auto made = std::make_shared<PreparedJob::Impl>();
  made->spec = kind;
  made->spec.args = JobSpec{}.args;
  std::size_t text = 0;
  for (std::string_view* view :
       {&made->spec.type, &made->spec.queue, &made->spec.extra, &made->spec.tenant})
    *view = made->texts[text++] = *view;
  if (kind.limit != nullptr) made->spec.limit = &made->limit.emplace(*kind.limit);
  if (!internal::only_basics(kind)) {
    std::uint8_t rank = 0;
    if (const SpecFault fault = internal::check_basics(impl_->actor(), made->spec, rank);
        fault != SpecFault::kNone)
      return internal::error_of(fault, made->spec, impl_->store());
    return PreparedJob(std::move(made));
  }
  if (const SpecFault fault = impl_->handle->read(made->spec, made->job); fault != SpecFault::kNone)
    return internal::error_of(fault, made->spec, impl_->store());
  made->form.emplace(made->job);
  made->where = segment().attachment();
  return PreparedJob(std::move(made));
}

/// The rank of one job of a kind; kNoIndex: its args or its priority are wrong, or it is too long.
OJS_SHM_INLINE static std::uint32_t rank_of(engine::Actor& actor, const JobSpec& kind,
                                            std::string_view args,
                                            const std::optional<std::int64_t>& wanted) {
  if (args.size() < 2 || args.size() > engine::kInlineBytes || args.front() != '[' ||
      args.back() != ']') [[unlikely]]
    return engine::kNoIndex;
  const std::optional<std::int64_t>& priority = wanted ? wanted : kind.priority;
  if (!priority) return actor.default_rank(kind.type);
  const auto rank = actor.ranks().of(*priority);
  return rank ? *rank : engine::kNoIndex;
}

[[gnu::flatten, gnu::hot]] Result<JobIdText> Producer::enqueue(
    const PreparedJob& kind, std::string_view args, std::optional<std::int64_t> priority) {
  Impl& impl = *impl_;
  const PreparedJob::Impl& known = *kind.impl_;
  if (impl.handle->closed()) [[unlikely]]
    return internal::closed();
  if (known.form && known.where.get() == &impl.handle->attachment()) [[likely]] {
    const std::uint32_t rank = rank_of(impl.actor(), known.spec, args, priority);
    const engine::PlainJob job{
        known.job.type, args, {}, known.job.queue, static_cast<std::uint8_t>(rank)};
    engine::JobId id;
    if (rank != engine::kNoIndex && job.size() <= engine::kInlineBytes &&
        impl.actor().enqueue_plain(job, *known.form, id) == engine::Straight::kDone) [[likely]]
      return text_of(id);
  }
  return enqueue(kind.with(args, priority));
}

/// Some of a kind, as enqueue_batch_plain() wants them.
struct PreparedJob::JobsOfKind {
  engine::Actor& actor;
  const Impl& kind;
  const PreparedArgs* jobs;
  JobIdText* ids;
  OJS_SHM_INLINE std::uint32_t rank(std::size_t i) const {
    return rank_of(actor, kind.spec, jobs[i].args, jobs[i].priority);
  }
  OJS_SHM_INLINE engine::PlainJob job(std::size_t i) const {
    return {kind.job.type, jobs[i].args, {}, kind.job.queue, 0};
  }
  const engine::JobForm& form(std::size_t) const { return *kind.form; }
  OJS_SHM_INLINE void made(std::size_t i, engine::JobId id) const { ids[i].assign(id.hi, id.lo); }
};

[[gnu::flatten]] Status Producer::enqueue_batch(const PreparedJob& kind,
                                                std::span<const PreparedArgs> jobs,
                                                std::span<JobIdText> ids) {
  Impl& impl = *impl_;
  const PreparedJob::Impl& known = *kind.impl_;
  if (impl.handle->closed()) [[unlikely]]
    return internal::closed();
  if (known.form && known.where.get() == &impl.handle->attachment() && jobs.size() <= ids.size())
      [[likely]] {
    PreparedJob::JobsOfKind of_kind{impl.actor(), known, jobs.data(), ids.data()};
    if (impl.actor().enqueue_batch_plain(known.job.queue, jobs.size(), of_kind) ==
        engine::Straight::kDone) [[likely]]
      return {};
  }
  std::vector<JobSpec> specs;
  specs.reserve(jobs.size());
  for (const PreparedArgs& job : jobs) specs.push_back(kind.with(job.args, job.priority));
  return enqueue_batch(specs, ids);
}

}  // namespace ojs_shm
