// SPDX-License-Identifier: Apache-2.0
#include "worker_api/runtime/runtime_crew.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <typeinfo>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <boost/core/demangle.hpp>

#include <ojs_shm/admin.hpp>

#include "worker_api/roles/attachment.hpp"
#include "worker_api/runtime/middleware.hpp"

namespace ojs_shm::internal {
namespace {

using std::chrono::milliseconds;

/// An empty fetch returns now and then so that a segment that has become unusable is noticed.
constexpr milliseconds kFetchWait = std::chrono::minutes(1);
/// That of a registered worker, which then says whether it is quiet.
constexpr milliseconds kRegisteredWait = std::chrono::seconds(1);
/// How often a registered worker gives a sign of life.
constexpr milliseconds kSignOfLife = std::chrono::seconds(5);

HandlerFailure failure(std::string_view code, std::string message, bool retryable) {
  return {.code = std::string(code),
          .message = std::move(message),
          .details = {},
          .retryable = retryable};
}

/// What a handler came to.
struct Outcome {
  std::string result;
  std::optional<HandlerFailure> failure;
  std::string type;  ///< the class of what it threw
};

Outcome call(const HandlerChain& chain, const Handler& handler, JobContext& context) {
  bool handled = true;  // what is thrown is the handler's
  const auto code = [&] { return handled ? "error" : "middleware_error"; };
  try {
    return {call_through(chain, handler, context, handled), std::nullopt, {}};
  } catch (const HandlerFailure& chosen) {
    return {{}, chosen, {}};
  } catch (const std::exception& thrown) {
    return {{}, failure(code(), thrown.what(), true), boost::core::demangle(typeid(thrown).name())};
  } catch (...) {
    return {
        {}, failure(code(), "the handler threw something that is not a std::exception", true), {}};
  }
}

/// A job that was lost meanwhile (cancelled, expired, given back) is no longer this crew's to
/// settle.
void settle(Worker& worker, Station& station, Outcome outcome) {
  Job* job = station.finish();
  if (job == nullptr) return;
  if (!outcome.failure) {
    const Status acked = worker.ack(*job, outcome.result);
    if (acked || acked.code() == Code::kLost || acked.code() == Code::kClosed) return;
    // The work is done but its result cannot be stored. Trying again helps only against a segment
    // that is full now.
    outcome.failure =
        failure(code_name(acked.code()), "the result could not be stored: " + acked.error().message,
                acked.code() == Code::kSegmentFull);
  }
  (void)worker.nack(*job, Failure{.code = outcome.failure->code,
                                  .message = outcome.failure->message,
                                  .type = outcome.type,
                                  .details = outcome.failure->details,
                                  .retryable = outcome.failure->retryable,
                                  .rate_limit_until_ms = outcome.failure->rate_limit_until_ms});
}

/// poll(2) with a time in whole milliseconds, never too short.
int poll_timeout(Station::Clock::time_point until) {
  using Clock = Station::Clock;
  if (until == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<milliseconds::rep>(left, 0, 3'600'000));
}

}  // namespace

Result<std::shared_ptr<Crew>> Crew::create(const Segment& segment, const RuntimeOptions& options) {
  if (options.concurrency == 0) {
    return Error{Code::kInvalid, "concurrency must be at least 1"}.about("concurrency");
  }
  if (options.heartbeat.count() < 0 || options.grace.count() < 0) {
    return Error{Code::kInvalid, "heartbeat and grace cannot be negative"}.about("grace");
  }
  // The fetcher is the registered worker, if it is to be one.
  WorkerOptions of_fetcher = options.worker, of_others = options.worker;
  if (of_fetcher.total_concurrency == 0) of_fetcher.total_concurrency = options.concurrency;
  of_others.id.clear();
  auto fetcher = Worker::attach(segment, of_fetcher);
  if (!fetcher) return fetcher.error();
  auto keeper = Worker::attach(segment, of_others);
  if (!keeper) return keeper.error();
  std::vector<Worker> hands;
  hands.reserve(options.concurrency);
  for (std::uint32_t i = 0; i < options.concurrency; ++i) {
    auto hand = Worker::attach(segment, of_others);
    if (!hand) return hand.error();
    hands.push_back(std::move(*hand));
  }
  std::shared_ptr<Crew> crew(
      new Crew(segment, options, std::move(*fetcher), std::move(*keeper), std::move(hands)));
  if (!crew->stop_.valid() || !crew->wake_.valid()) {
    return Error{Code::kInternal, "no file descriptor left for an eventfd"};
  }
  return crew;
}

Crew::Crew(const Segment& segment, const RuntimeOptions& options, Worker fetcher, Worker keeper,
           std::vector<Worker> hands)
    : segment_(segment),
      options_(options),
      fetcher_(std::move(fetcher)),
      keeper_(std::move(keeper)),
      hands_(std::move(hands)) {
  for (std::size_t i = 0; i < hands_.size(); ++i) {
    stations_.push_back(std::make_unique<Station>());
    free_.enqueue(stations_.back().get());
  }
}

Status Crew::handle(std::string type, Handler handler,
                    std::optional<std::int64_t> default_priority) {
  if (type.empty() || !handler) {
    return Error{Code::kInvalid, "a handler needs a job type and a function"}.about(
        std::move(type));
  }
  const std::lock_guard lock(mutex_);
  if (running_) {
    return Error{Code::kWrongState, "handlers are registered before run()"}.about(std::move(type));
  }
  if (handlers_.contains(type)) {
    return Error{Code::kInUse, fmt::format("job type {} has a handler already", type)}.about(
        std::move(type));
  }
  if (default_priority) {
    auto admin = Admin::attach(segment_);
    if (!admin) return admin.error();
    if (Status set = admin->set_default_priority(type, *default_priority); !set) return set;
  }
  handlers_.emplace(std::move(type), std::move(handler));
  return {};
}

Status Crew::run() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(running_, true)) {
      return Error{Code::kWrongState, "a runtime runs once"};
    }
    middleware_.freeze();
  }
  std::vector<std::thread> pool;
  std::thread keeper;
  Status status = start(pool, keeper);
  if (status) status = fetch_until_stopped();

  // Whether a caller asked for it or a fetch failed: from here on the way is the same.
  stop();
  // When it fails, lists of workers call this one running until it leaves; the drain goes on.
  (void)fetcher_.say(WorkerDirective::kTerminate);
  const std::size_t unfinished = drain();
  if (keeper.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.ring();
    keeper.join();
  }
  std::size_t given_back = 0;
  if (unfinished > 0) {
    for (const auto& station : stations_) given_back += station->give_back(keeper_) ? 1U : 0U;
  }
  // A thread cannot be taken out of a handler that does not return; it ends by itself, and acks
  // nothing any more.
  for (std::thread& thread : pool) unfinished > 0 ? thread.detach() : thread.join();
  if (status && given_back > 0) {
    return Error{
        Code::kTimeout,
        fmt::format(
            "{} jobs were still running after {} ms of grace and were given back for others to run",
            given_back, options_.grace.count())}
        .about("grace");
  }
  return status;
}

Status Crew::start(std::vector<std::thread>& pool, std::thread& keeper) {
  try {
    keeper = std::thread([this] { keep(); });
    pool.reserve(hands_.size());
    for (Worker& hand : hands_) {
      pool.emplace_back([crew = shared_from_this(), &hand] { crew->work(hand); });
    }
    return {};
  } catch (const std::system_error& refused) {
    return Error{Code::kInternal, fmt::format("cannot start a thread: {}", refused.what())};
  }
}

Status Crew::fetch_until_stopped() {
  const milliseconds wait = options_.worker.id.empty() ? kFetchWait : kRegisteredWait;
  for (;;) {
    Station* station = nullptr;
    while (!free_.wait_dequeue_timed(station, wait)) tell_state();
    if (station == nullptr) return {};  // from the keeper, which heard the bell
    if (stopped_.get()) {
      ++home_;
      return {};
    }
    Status fetched;
    do {
      tell_state();
      fetched = fetcher_.fetch(station->to_fetch_into(), wait);
    } while (fetched.code() == Code::kTimeout || fetched.code() == Code::kEmpty);
    if (!fetched) {
      ++home_;
      const bool told = stopped_.get() || fetcher_.directive() == WorkerDirective::kTerminate;
      return fetched.code() == Code::kClosed && told ? Status{} : fetched;
    }
    announce(station->begin(Clock::now(), options_.heartbeat));
    ready_.enqueue(station);
  }
}

/// Lists of workers would call a quiet one running.
void Crew::tell_state() {
  const auto state = quiet_.get() ? WorkerDirective::kQuiet : WorkerDirective::kRunning;
  if (std::exchange(said_, state) != state) (void)fetcher_.say(state);
}

/// Lets the pool end and waits for it until the grace time is over. Returns how many stations did
/// not come home.
std::size_t Crew::drain() {
  for (std::size_t i = 0; i < hands_.size(); ++i) ready_.enqueue(nullptr);
  const auto end = Clock::now() + within_reach(options_.grace);
  while (home_ < stations_.size()) {
    const auto left =
        std::chrono::ceil<milliseconds>(std::max(end - Clock::now(), Clock::duration::zero()));
    Station* station = nullptr;
    if (!free_.wait_dequeue_timed(station, std::min<milliseconds>(left, std::chrono::hours(1)))) {
      if (left.count() == 0) break;
      continue;
    }
    if (station != nullptr) ++home_;
  }
  return stations_.size() - home_;
}

void Crew::work(Worker& worker) {
  for (;;) {
    Station* station = nullptr;
    ready_.wait_dequeue(station);
    if (station == nullptr) return;
    if (station->start(worker)) run_job(worker, *station);
    free_.enqueue(station);
  }
}

void Crew::run_job(Worker& worker, Station& station) {
  const auto handler = handlers_.find(station.job().type());
  if (handler != handlers_.end())
    return settle(worker, station, call(middleware_, handler->second, station));
  const auto message = fmt::format("this worker has no handler for type {}", station.job().type());
  settle(worker, station, {{}, failure("no_handler", message, false), {}});
}

void Crew::keep() {
  bool stopping = false;
  for (;;) {
    const auto next = extend_leases();
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
    }
    // stop_ stays rung, so after it was seen only wake_ is waited for.
    pollfd bells[] = {{.fd = wake_.descriptor(), .events = POLLIN, .revents = 0},
                      {.fd = stop_.descriptor(), .events = POLLIN, .revents = 0}};
    if (::poll(bells, stopping ? 1 : 2, poll_timeout(next)) <= 0) continue;
    if (bells[0].revents != 0) wake_.hush();
    if (!stopping && bells[1].revents != 0) {
      stopping = true;
      free_.enqueue(nullptr);  // in case run() waits for a free thread
      fetcher_.interrupt();    // in case it waits for a job
    }
  }
}

Station::Clock::time_point Crew::extend_leases() {
  {
    const std::lock_guard lock(mutex_);
    // so that a job announced while we look rings the bell
    keeper_wakes_ = Clock::time_point::max();
  }
  auto next = Clock::time_point::max();
  for (const auto& station : stations_) next = std::min(next, station->beat(keeper_, Clock::now()));
  if (!options_.worker.id.empty()) {
    fetcher_.beat();  // also while every thread is busy and none fetches
    next = std::min(next, Clock::now() + kSignOfLife);
  }
  const std::lock_guard lock(mutex_);
  keeper_wakes_ = next;
  return next;
}

void Crew::announce(Clock::time_point due) {
  const std::lock_guard lock(mutex_);
  if (due < keeper_wakes_) wake_.ring();
}

}  // namespace ojs_shm::internal
