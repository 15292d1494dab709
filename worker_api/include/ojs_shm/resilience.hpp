// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/job.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>

/// What a producer may do when its job is refused because something is full: retry with backoff,
/// stop asking for a while (circuit breaker), keep the job in this process and enqueue it later
/// (local buffer). A plain Producer does none of these.
namespace ojs_shm {

/// kQueueFull and kSegmentFull: refusals that pass when there is room.
OJS_SHM_API bool is_refusal(Code code) noexcept;
/// How long a refusal asks its producer to wait before it retries; a second if it does not say.
OJS_SHM_API std::chrono::milliseconds recommended_delay(const Error& refusal) noexcept;

/// The clock that measures the waits. Thread-safe.
class OJS_SHM_API Clock {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  virtual ~Clock();
  virtual time_point now() const = 0;
  /// Releases `lock` until `changed` is notified or `until` is reached; may return early.
  virtual void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                    time_point until) = 0;
};
/// The host's steady clock.
OJS_SHM_API std::shared_ptr<Clock> host_clock();

struct RetryOnFull {
  /// after the first refusal; then the caller gets the error
  std::uint32_t retries = 0;
  /// where doubling ends; a longer recommendation is followed
  std::chrono::milliseconds max_delay{60'000};
};

/// The pause before the next retry: at first `recommended`, then twice the last pause up to
/// `max_delay`, and never less than that one.
OJS_SHM_API std::chrono::milliseconds next_delay(std::chrono::milliseconds last,
                                                 std::chrono::milliseconds recommended,
                                                 std::chrono::milliseconds max_delay) noexcept;

/// Stops asking a queue that refuses: open after so many refusals in a row, half-open after the
/// cooldown, when one caller may try. That caller's success closes it; a refusal opens it for
/// another cooldown. Each queue has its own state. Thread-safe, and meant to be shared by the
/// producers of a process.
class OJS_SHM_API CircuitBreaker {
 public:
  enum class State : std::uint8_t { kClosed, kOpen, kHalfOpen };
  struct Options {
    std::uint32_t refusals = 5;  ///< at least 1
    std::chrono::milliseconds cooldown{10'000};
  };
  explicit CircuitBreaker(Options options, std::shared_ptr<Clock> clock = host_clock());
  ~CircuitBreaker();

  /// Nothing: the caller may ask, and then reports the outcome with settle(). Else the last
  /// refusal, for the caller to return.
  std::optional<Error> admit(std::string_view queue);
  /// nullptr: accepted. An error that is not a refusal does not count.
  void settle(std::string_view queue, const Error* error);
  State state(std::string_view queue) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A JobSpec that keeps its texts.
class OJS_SHM_API OwnedJobSpec {
 public:
  explicit OwnedJobSpec(const JobSpec& job);
  /// Views into this object.
  JobSpec view() const;
  std::size_t bytes() const noexcept;  ///< of its texts, without the id
  std::string id;

 private:
  JobSpec plain_;
  std::string type_, args_, queue_, extra_, tenant_;
  std::optional<JobLimit> limit_;
  std::optional<JobUnique> unique_;
};

/// A job that is not in the segment, and the last error that it got.
struct UnsentJob {
  OwnedJobSpec job;
  Error error;
};

struct LocalBufferOptions {
  std::size_t max_jobs = 10'000;
  std::size_t max_bytes = std::size_t{64} << 20;  ///< of the jobs' texts
  std::chrono::milliseconds max_delay{60'000};
};

/// Refused jobs wait here, in the memory of this process. A thread of the buffer enqueues them, in
/// order within each queue, with the backoff of RetryOnFull and without an end to its retries.
///
/// Durability: none. A job in the buffer dies with the process, unlike one in the segment. Nothing
/// is dropped otherwise: close() gives back the jobs that were not enqueued; the destructor without
/// close() loses them.
///
/// Thread-safe. In the child of a fork the buffer is closed and empty.
class OJS_SHM_API LocalBuffer {
 public:
  /// Errors: kSegmentFull (no free handle), kPermission (the segment only observes), kClosed.
  static Result<std::shared_ptr<LocalBuffer>> start(
      const Segment& segment, const LocalBufferOptions& options,
      std::shared_ptr<CircuitBreaker> breaker = nullptr,
      std::shared_ptr<Clock> clock = host_clock());
  ~LocalBuffer();

  /// Keeps the jobs, which go to one queue and are enqueued all or none. Returns the ids that they
  /// will have. Errors, when the buffer is full or closed, or the jobs go to several queues:
  /// `refusal` if it is given, else kQueueFull, kClosed, kInvalid. A bad id is kInvalid, and after
  /// a fork it is kClosed, with a `refusal` too.
  Result<std::vector<JobIdText>> put(std::span<const JobSpec> jobs, const Error* refusal);
  /// Whether jobs of that queue wait here: then later jobs must go behind them.
  bool holds(std::string_view queue) const;
  std::size_t jobs() const;
  /// Waits until no job is left to enqueue. Errors: kTimeout (`depth`: how many are left),
  /// kClosed.
  Status flush(std::chrono::milliseconds timeout);
  /// Jobs that were refused for good, by an error that does not pass with time. They count against
  /// the bounds until taken.
  std::vector<UnsentJob> take_failed();
  /// Ends the thread and gives back every job that is not in the segment. Again: nothing.
  std::vector<UnsentJob> close();

 private:
  struct Impl;
  explicit LocalBuffer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct ResilienceOptions {
  RetryOnFull retry = {};
  std::shared_ptr<CircuitBreaker> breaker = nullptr;  ///< none: always asks
  std::shared_ptr<LocalBuffer> buffer = nullptr;      ///< none: the caller gets the refusal
  std::shared_ptr<Clock> clock = host_clock();
};

/// A Producer that answers refusals as its options say: retries, then the buffer, then the error.
/// An open breaker ends the retries. One thread at a time; several producers may share a breaker
/// and a buffer.
class OJS_SHM_API ResilientProducer {
 public:
  struct Receipt {
    JobIdText id;
    bool buffered = false;  ///< in the local buffer, not yet in the segment
  };
  struct BatchReceipt {
    std::vector<JobIdText> ids;
    bool buffered = false;
  };
  ResilientProducer(Producer producer, ResilienceOptions options);
  ResilientProducer(ResilientProducer&&) noexcept;
  ResilientProducer& operator=(ResilientProducer&&) noexcept;
  ~ResilientProducer();

  /// Blocks for the pauses of its retries. Errors: those of Producer::enqueue. Behind buffered jobs
  /// of its queue a job is buffered unchecked; if something is wrong with it,
  /// LocalBuffer::take_failed() has it.
  Result<Receipt> enqueue(const JobSpec& job);
  Result<BatchReceipt> enqueue_batch(std::span<const JobSpec> jobs);

  Producer& producer();
  const ResilienceOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ojs_shm
