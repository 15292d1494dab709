// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <concurrentqueue/blockingconcurrentqueue.h>

#include <ojs_shm/runtime.hpp>

#include "shm/atomics.hpp"
#include "worker_api/runtime/runtime_bell.hpp"
#include "worker_api/runtime/runtime_station.hpp"

namespace ojs_shm::internal {

/// The threads of a Runtime and what passes between them.
///
///   run() fetches:  free_ -> a station -> fetch into it -> ready_
///   pool thread:    ready_ -> handler -> ack or nack -> free_
///   keeper:         sleeps until a lease wants extending or a bell rings
///
/// There are as many stations as pool threads, so a fetch happens only when a thread is free, and
/// the job it brings is the best of that moment. Held by a shared_ptr of each pool thread: a
/// handler that outlives its grace time must not find its crew gone.
class Crew : public std::enable_shared_from_this<Crew> {
 public:
  static Result<std::shared_ptr<Crew>> create(const Segment& segment,
                                              const RuntimeOptions& options);

  Status handle(std::string type, Handler handler, std::optional<std::int64_t> default_priority);
  HandlerChain& middleware() noexcept { return middleware_; }
  Status run();
  void stop() noexcept {
    stopped_.set();
    stop_.ring();
  }
  void be_quiet(bool quiet) noexcept {
    quiet_.set(quiet);
    do {  // another signal may come in between, and is then the last one
      quiet = quiet_.get();
      quiet ? fetcher_.quiet() : fetcher_.resume();
    } while (quiet_.get() != quiet);
  }

 private:
  using Clock = Station::Clock;
  using Stations = moodycamel::BlockingConcurrentQueue<Station*>;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  Crew(const Segment& segment, const RuntimeOptions& options, Worker fetcher, Worker keeper,
       std::vector<Worker> hands);

  Status start(std::vector<std::thread>& pool, std::thread& keeper);
  Status fetch_until_stopped();
  void tell_state();
  std::size_t drain();

  void work(Worker& worker);
  void run_job(Worker& worker, Station& station);

  void keep();
  Clock::time_point extend_leases();
  void announce(Clock::time_point due);

  const Segment segment_;
  const RuntimeOptions options_;
  // not changed once running_
  std::unordered_map<std::string, Handler, Hash, std::equal_to<>> handlers_;
  HandlerChain middleware_;

  Worker fetcher_;             // the thread in run()
  Worker keeper_;              // the keeper, and run() once the keeper has ended
  std::vector<Worker> hands_;  // one for each pool thread
  std::vector<std::unique_ptr<Station>> stations_;
  Stations free_;  // stations without a job; null: stop fetching
  // stations with a job that no thread has begun; null: one pool thread ends
  Stations ready_;
  std::size_t home_ = 0;  // stations that run() took out of free_ and did not fill

  shm::LocalFlag stopped_;  // after stop(), so that not one more fetch is begun
  shm::LocalFlag quiet_;    // between quiet() and resume()
  WorkerDirective said_ = WorkerDirective::kRunning;  // run() alone
  Bell stop_;                                         // stays rung
  Bell wake_;                                         // the keeper should look again

  std::mutex mutex_;  // guards everything below
  bool running_ = false;
  bool ended_ = false;
  Clock::time_point keeper_wakes_ = Clock::time_point::max();
};

}  // namespace ojs_shm::internal
