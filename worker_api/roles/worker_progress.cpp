// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/worker.hpp>

#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/worker_impl.hpp"

// What a worker says of its running job.

namespace ojs_shm {

Status Worker::Impl::report(std::uint32_t slot, std::uint64_t word, const engine::Report& report,
                            std::uint64_t& lease_until) {
  if (handle->closed()) return internal::closed();
  if (report.fraction && !(*report.fraction >= 0.0 && *report.fraction <= 1.0))
    return Error{Code::kInvalid, "progress is a number from 0 to 1"}.about("progress").at_most(1);
  const engine::Outcome outcome = actor().report(slot, word, report, lease_until);
  if (outcome != engine::Outcome::kOk)
    return internal::error_of(outcome, handle->store(), engine::kNoIndex, "progress");
  return {};
}

Status Worker::progress(Job& job, double fraction) {
  if (Status may = impl_->may_end(job); !may) return may;
  beat();
  return impl_->report(job.slot_, job.word_, {.fraction = fraction}, job.deadline_ms_);
}

Status Worker::progress(Job& job, double fraction, std::string_view message,
                        std::string_view data) {
  if (Status may = impl_->may_end(job); !may) return may;
  beat();
  return impl_->report(job.slot_, job.word_,
                       {.fraction = fraction, .has_texts = true, .message = message, .data = data},
                       job.deadline_ms_);
}

Status Worker::checkpoint(Job& job, std::string_view data) {
  if (Status may = impl_->may_end(job); !may) return may;
  if (Status checked = internal::check_checkpoint(data); !checked) return checked;
  beat();
  return impl_->report(job.slot_, job.word_, {.fraction = {}, .checkpoint = data},
                       job.deadline_ms_);
}

/// Another process may report of the job at the same time: looks again.
std::string Job::last_checkpoint() const {
  if (!valid()) return {};
  const engine::Store& store = segment_->store();
  const engine::JobRecord& job = store.job(slot_);
  for (unsigned look = 0; look < 64; ++look) {
    const engine::ReportWord report(job.signals.load());  // PAIR report
    if (!report.has_texts() || job.control.load() != word_) return {};
    if (auto found = engine::read_report(store.segment(), report.first_block(), slot_,
                                         job.generation.get(), store.max_body()))
      return std::move(found->checkpoint);
  }
  return {};
}

}  // namespace ojs_shm
