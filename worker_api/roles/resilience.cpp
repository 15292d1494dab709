// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/resilience.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace ojs_shm {

bool is_refusal(Code code) noexcept {
  return code == Code::kQueueFull || code == Code::kSegmentFull;
}

std::chrono::milliseconds recommended_delay(const Error& refusal) noexcept {
  return std::max<std::chrono::milliseconds>(std::chrono::seconds(1),
                                             std::chrono::milliseconds(refusal.retry_after_ms));
}

std::chrono::milliseconds next_delay(std::chrono::milliseconds last,
                                     std::chrono::milliseconds recommended,
                                     std::chrono::milliseconds max_delay) noexcept {
  const std::chrono::milliseconds doubled = last < max_delay / 2 ? 2 * last : max_delay;
  return last.count() <= 0 ? recommended : std::max(last, doubled);
}

Clock::~Clock() = default;

namespace {

class HostClock final : public Clock {
 public:
  time_point now() const override { return std::chrono::steady_clock::now(); }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
            time_point until) override {
    if (until == time_point::max()) {
      changed.wait(lock);
    } else {
      changed.wait_until(lock, until);
    }
  }
};

}  // namespace

std::shared_ptr<Clock> host_clock() {
  static const std::shared_ptr<Clock> clock = std::make_shared<HostClock>();
  return clock;
}

// --- The circuit breaker -------------------------------------------------------------------------

struct CircuitBreaker::Impl {
  struct Circuit {
    std::uint32_t refusals = 0;  ///< in a row
    /// no request before; min: it is closed
    Clock::time_point closed_until = Clock::time_point::min();
    Error last;
  };

  Options options;
  std::shared_ptr<Clock> clock;
  mutable std::mutex mutex;
  /// of queues whose last answer was a refusal
  std::map<std::string, Circuit, std::less<>> circuits;
};

CircuitBreaker::CircuitBreaker(Options options, std::shared_ptr<Clock> clock)
    : impl_(new Impl{options, std::move(clock), {}, {}}) {
  impl_->options.refusals = std::max(options.refusals, 1U);
}
CircuitBreaker::~CircuitBreaker() = default;

std::optional<Error> CircuitBreaker::admit(std::string_view queue) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->circuits.find(queue);
  if (found == impl_->circuits.end() || found->second.refusals < impl_->options.refusals)
    return std::nullopt;
  Impl::Circuit& circuit = found->second;
  const Clock::time_point now = impl_->clock->now();
  if (now >= circuit.closed_until) {
    // This caller tries. Should it never tell what came of it, another one may after a further
    // cooldown.
    circuit.closed_until = now + impl_->options.cooldown;
    return std::nullopt;
  }
  Error error = circuit.last;
  error.message += "; after " + std::to_string(circuit.refusals) +
                   " refusals in a row it is left alone for a while";
  return error;
}

void CircuitBreaker::settle(std::string_view queue, const Error* error) {
  const std::lock_guard lock(impl_->mutex);
  if (error == nullptr) {
    if (const auto found = impl_->circuits.find(queue); found != impl_->circuits.end())
      impl_->circuits.erase(found);
  } else if (is_refusal(error->code)) {
    Impl::Circuit& circuit = impl_->circuits[std::string(queue)];
    circuit.last = *error;
    if (circuit.refusals < impl_->options.refusals) ++circuit.refusals;
    if (circuit.refusals == impl_->options.refusals)
      circuit.closed_until = impl_->clock->now() + impl_->options.cooldown;
  } else if (const auto found = impl_->circuits.find(queue); found != impl_->circuits.end()) {
    // it was no answer, so the next caller may try
    found->second.closed_until = impl_->clock->now();
  }
}

CircuitBreaker::State CircuitBreaker::state(std::string_view queue) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->circuits.find(queue);
  if (found == impl_->circuits.end() || found->second.refusals < impl_->options.refusals)
    return State::kClosed;
  return impl_->clock->now() < found->second.closed_until ? State::kOpen : State::kHalfOpen;
}

// --- The producer --------------------------------------------------------------------------------

struct ResilientProducer::Impl {
  Producer producer;
  ResilienceOptions options;

  template <class Send>
  auto attempt(std::span<const JobSpec> jobs, Send send) -> decltype(send());
  void pause(std::chrono::milliseconds delay);
};

void ResilientProducer::Impl::pause(std::chrono::milliseconds delay) {
  const Clock::time_point until = options.clock->now() + delay;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (options.clock->now() < until) options.clock->wait(lock, never, until);
}

template <class Send>
auto ResilientProducer::Impl::attempt(std::span<const JobSpec> jobs, Send send)
    -> decltype(send()) {
  const std::string_view queue = jobs.front().queue;
  std::chrono::milliseconds delay{0};
  for (std::uint32_t retries = 0;; ++retries) {
    if (options.breaker) {
      if (auto open = options.breaker->admit(queue)) return *std::move(open);
    }
    auto sent = send();
    if (options.breaker) options.breaker->settle(queue, sent ? nullptr : &sent.error());
    if (sent || !is_refusal(sent.code()) || retries >= options.retry.retries) return sent;
    const Error& error = sent.error();
    // No waiting makes room for a batch that is larger than the bound.
    if (error.code == Code::kQueueFull && error.unit == "jobs" && jobs.size() > error.bound)
      return sent;
    delay = next_delay(delay, recommended_delay(error), options.retry.max_delay);
    pause(delay);
  }
}

ResilientProducer::ResilientProducer(Producer producer, ResilienceOptions options)
    : impl_(new Impl{std::move(producer), std::move(options)}) {}
ResilientProducer::ResilientProducer(ResilientProducer&&) noexcept = default;
ResilientProducer& ResilientProducer::operator=(ResilientProducer&&) noexcept = default;
ResilientProducer::~ResilientProducer() = default;

Producer& ResilientProducer::producer() { return impl_->producer; }
const ResilienceOptions& ResilientProducer::options() const { return impl_->options; }

Result<ResilientProducer::Receipt> ResilientProducer::enqueue(const JobSpec& job) {
  Impl& impl = *impl_;
  LocalBuffer* const buffer = impl.options.buffer.get();
  const std::span<const JobSpec> one(&job, 1);
  std::optional<Error> refusal;
  if (buffer == nullptr || !buffer->holds(job.queue)) {
    const auto sent = impl.attempt(one, [&] { return impl.producer.enqueue(job); });
    if (sent) return Receipt{sent.value()};
    if (buffer == nullptr || !is_refusal(sent.code())) return sent.error();
    refusal = sent.error();
  }
  const auto kept = buffer->put(one, refusal ? &*refusal : nullptr);
  if (!kept) return kept.error();
  return Receipt{kept->front(), true};
}

Result<ResilientProducer::BatchReceipt> ResilientProducer::enqueue_batch(
    std::span<const JobSpec> jobs) {
  Impl& impl = *impl_;
  if (jobs.empty()) return BatchReceipt{};
  LocalBuffer* const buffer = impl.options.buffer.get();
  std::optional<Error> refusal;
  if (buffer == nullptr || !buffer->holds(jobs.front().queue)) {
    auto sent = impl.attempt(jobs, [&] { return impl.producer.enqueue_batch(jobs); });
    if (sent) return BatchReceipt{std::move(sent).value()};
    if (buffer == nullptr || !is_refusal(sent.code())) return sent.error();
    refusal = sent.error();
  }
  auto kept = buffer->put(jobs, refusal ? &*refusal : nullptr);
  if (!kept) return kept.error();
  return BatchReceipt{std::move(kept).value(), true};
}

}  // namespace ojs_shm
