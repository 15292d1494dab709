// SPDX-License-Identifier: Apache-2.0
#include "worker_api/runtime/middleware.hpp"

#include <cstddef>
#include <stdexcept>
#include <utility>

namespace ojs_shm {
namespace internal {
namespace {

/// One job on its way through the chain to its handler.
class Passage {
 public:
  Passage(const HandlerChain& chain, const Handler& handler, JobContext& context)
      : chain_(chain), handler_(handler), context_(context) {}

  std::string go(std::size_t place) {
    if (place == chain_.size()) return handle();
    bool called = false;
    return chain_.at(place)(context_, [this, place, &called] {
      if (std::exchange(called, true))
        throw std::logic_error("a middleware called next() a second time");
      return go(place + 1);
    });
  }
  bool handler_threw() const noexcept { return threw_; }

 private:
  std::string handle() {
    try {
      return handler_(context_);
    } catch (...) {
      threw_ = true;
      throw;
    }
  }

  const HandlerChain& chain_;
  const Handler& handler_;
  JobContext& context_;
  bool threw_ = false;
};

}  // namespace

std::string call_through(const HandlerChain& chain, const Handler& handler, JobContext& context,
                         bool& handled) {
  if (chain.empty()) return handler(context);
  Passage passage(chain, handler, context);
  try {
    return passage.go(0);
  } catch (...) {
    handled = passage.handler_threw();
    throw;
  }
}

}  // namespace internal

namespace {

Error invalid(std::string message, std::string subject) {
  return Error{Code::kInvalid, std::move(message)}.about(std::move(subject));
}

Enqueued enqueue_from(const EnqueueChain& chain, std::size_t place, const JobSpec& job,
                      const EnqueueNext& store) {
  if (place == chain.size()) return store(job);
  bool called = false;
  return chain.at(place)(job, [&](const JobSpec& passed) -> Enqueued {
    if (std::exchange(called, true))
      return invalid("a middleware called next() a second time", "middleware");
    if (passed.id != job.id) return invalid("a middleware must not change the id of a job", "id");
    return enqueue_from(chain, place + 1, passed, store);
  });
}

/// Jobs that pass their chains one inside the other, so that all that their middlewares made for
/// them is still there when they are stored together.
class BatchPassage {
 public:
  BatchPassage(const EnqueueChain& chain, Producer& producer, std::span<const JobSpec> jobs,
               const EnqueueOptions& options)
      : chain_(chain), producer_(producer), jobs_(jobs), options_(options), ids_(jobs.size()) {}

  Result<std::vector<std::optional<JobIdText>>> run() {
    go(0);
    if (failure_) return *failure_;
    return std::move(ids_);
  }

 private:
  void go(std::size_t place) {
    if (place == jobs_.size()) return store();
    bool passed = false;
    const Enqueued done =
        enqueue_from(chain_, 0, jobs_[place], [&](const JobSpec& job) -> Enqueued {
          passed = true;
          kept_.push_back(job);
          places_.push_back(place);
          go(place + 1);
          if (failure_) return *failure_;
          return ids_[place];
        });
    if (!done && !failure_) failure_ = done.error();
    if (!passed && !failure_) go(place + 1);
  }

  void store() {
    if (kept_.empty()) return;
    const auto made = producer_.enqueue_batch(kept_, options_);
    if (!made) {
      failure_ = made.error();
      return;
    }
    for (std::size_t i = 0; i < places_.size(); ++i) ids_[places_[i]] = (*made)[i];
  }

  const EnqueueChain& chain_;
  Producer& producer_;
  const std::span<const JobSpec> jobs_;
  const EnqueueOptions& options_;
  std::vector<JobSpec> kept_;
  std::vector<std::size_t> places_;  // of those kept, among all
  std::vector<std::optional<JobIdText>> ids_;
  std::optional<Error> failure_;
};

}  // namespace

Enqueued enqueue_through(const EnqueueChain& chain, Producer& producer, const JobSpec& job,
                         const EnqueueOptions& options) {
  return enqueue_from(chain, 0, job, [&](const JobSpec& passed) -> Enqueued {
    const auto id = producer.enqueue(passed, options);
    if (!id) return id.error();
    return std::optional<JobIdText>(*id);
  });
}

Result<std::vector<std::optional<JobIdText>>> enqueue_batch_through(const EnqueueChain& chain,
                                                                    Producer& producer,
                                                                    std::span<const JobSpec> jobs,
                                                                    const EnqueueOptions& options) {
  return BatchPassage(chain, producer, jobs, options).run();
}

}  // namespace ojs_shm
