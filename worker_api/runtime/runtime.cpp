// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/runtime.hpp>

#include <utility>

#include "worker_api/runtime/runtime_crew.hpp"

namespace ojs_shm {

struct Runtime::Impl {
  std::shared_ptr<internal::Crew> crew;
};

Result<Runtime> Runtime::create(const Segment& segment, const RuntimeOptions& options) {
  auto crew = internal::Crew::create(segment, options);
  if (!crew) return crew.error();
  return Runtime(std::make_unique<Impl>(Impl{std::move(*crew)}));
}

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime::~Runtime() = default;

Status Runtime::handle(std::string type, Handler handler,
                       std::optional<std::int64_t> default_priority) {
  return impl_->crew->handle(std::move(type), std::move(handler), default_priority);
}

HandlerChain& Runtime::middleware() noexcept { return impl_->crew->middleware(); }

Status Runtime::run() { return impl_->crew->run(); }

void Runtime::stop() noexcept {
  if (impl_) impl_->crew->stop();
}

void Runtime::quiet() noexcept {
  if (impl_) impl_->crew->be_quiet(true);
}

void Runtime::resume() noexcept {
  if (impl_) impl_->crew->be_quiet(false);
}

}  // namespace ojs_shm
