// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <ojs_shm/export.hpp>
#include <ojs_shm/middleware.hpp>
#include <ojs_shm/worker.hpp>

namespace ojs_shm {

/// What a handler sees of its job.
class JobContext {
 public:
  virtual ~JobContext() = default;
  virtual const Job& job() const = 0;
  virtual bool cancel_requested() const = 0;
  virtual void progress(double fraction) = 0;
  /// With a text for people and JSON for programs, or empty: Worker::progress().
  virtual void progress(double fraction, std::string_view message, std::string_view data = {}) = 0;
  /// Worker::checkpoint(); job().last_checkpoint() reads it.
  virtual void checkpoint(std::string_view data) = 0;
  /// Empty when the job begins; for middlewares and handler alone.
  virtual Metadata& metadata() = 0;
};

/// Returns the result as JSON (may be empty). Throwing std::exception nacks with its text; throw
/// HandlerFailure to choose the code and whether it may be retried.
using Handler = std::function<std::string(JobContext&)>;

struct OJS_SHM_API HandlerFailure {
  std::string code = "error";
  std::string message = {};
  std::string details = {};
  bool retryable = true;
  std::uint64_t rate_limit_until_ms = 0;  ///< Failure::rate_limit_until_ms
};

struct RuntimeOptions {
  WorkerOptions worker = {};
  std::uint32_t concurrency = 1;            ///< handlers at once
  std::chrono::milliseconds heartbeat{0};   ///< 0: a third of the lease
  std::chrono::milliseconds grace{30'000};  ///< how long drain waits for running handlers
};

/// Runs handlers by job type on a pool of threads: fetches when a thread is free, keeps leases
/// alive, drains on stop(). Every member but handle() may be called from any thread; stop(),
/// quiet() and resume() also from a signal handler.
class OJS_SHM_API Runtime {
 public:
  static Result<Runtime> create(const Segment& segment, const RuntimeOptions& options);
  Runtime(Runtime&&) noexcept;
  ~Runtime();
  /// Registers before run(). `default_priority` becomes the segment's default for jobs of this
  /// type.
  Status handle(std::string type, Handler handler,
                std::optional<std::int64_t> default_priority = {});
  /// Around every handler; complete before run(). An exception of a middleware itself, not of the
  /// handler, is recorded with the code "middleware_error".
  HandlerChain& middleware() noexcept;
  /// Returns after stop(), when an operator tells its worker to terminate, or with a fetch's error:
  /// no new fetches, running handlers finish or are given back at the end of the grace time
  /// (kTimeout).
  Status run();
  void stop() noexcept;
  /// No new fetches until resume(); running handlers go on. What SIGTSTP and SIGCONT are for.
  /// Source: ojs-graceful-shutdown 4.
  void quiet() noexcept;
  void resume() noexcept;

 private:
  struct Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ojs_shm
