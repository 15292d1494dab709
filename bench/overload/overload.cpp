// SPDX-License-Identifier: Apache-2.0
//
// Producers that offer ten times what a worker can do, on a core of their own, under each strategy
// of a bounded queue; and the same worker over a prefilled queue with no other beside it, by turns.
// Prints a JSON object for each run; a run that loses count of a job ends the program.
// bench/overload.py runs it, judges and draws.
//
//   1. A lone worker fetches, keeps its core busy for the service time, acks: its throughput.
//   2. Two producers offer at ten times that. The first also samples the depth.
//   3. What was offered must be what was served, is left, was refused or was dropped.
//
// Offered is what was brought to the queue. A producer that waits brings nothing meanwhile, so with
// `block` that is less than wanted, what it would have brought by then; an offer whose wait was in
// vain is refused.
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <ojs_shm/observer.hpp>

#include "bench/peers/ojs_shm.hpp"
#include "bench/shared_array.hpp"
#include "bench/stage.hpp"
#include "worker_api/roles/attachment.hpp"

namespace {

using namespace ojs_shm;
using namespace ojs_shm::bench;

struct Strategy {
  const char* name;
  const char* settings;  ///< of the queue
  bool waits = false;    ///< its producers wait for room
};
constexpr Strategy kStrategies[] = {
    {"reject", R"({"backpressure":{"max_depth":10000,"strategy":"reject"}})"},
    {"block", R"({"backpressure":{"max_depth":10000,"strategy":"block"}})", true},
    {"drop_oldest", R"({"backpressure":{"max_depth":10000,"strategy":"drop_oldest"}})"},
};

constexpr double kServiceNs = 10'000;
constexpr double kOverload = 10;
constexpr unsigned kProducers = 2, kSamples = 400;
constexpr std::chrono::milliseconds kWait{100};

struct Board {
  std::uint64_t wanted[kProducers] = {}, offered[kProducers] = {}, accepted[kProducers] = {},
                refused[kProducers] = {};
  std::uint64_t served = 0;
  double worker_share = 0;  ///< of its time that the worker had its core
  long resident_growth = 0;
  std::uint64_t depth[kSamples] = {};  ///< one for each of as many parts of the run
};

double processor_ns() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
}

/// The process's own: which pages of the segment it has touched says nothing, for they are all
/// there.
long resident_bytes() {
  long all = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> shared;
  return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

class Run {
 public:
  Run(const char* settings, double seconds, bool waits = false)
      : peer_(plan_of(settings)), seconds_(seconds), waits_(waits), board_(1) {}

  /// The worker alone, over more jobs than it can do. Jobs a second.
  double unloaded() {
    {
      OjsShm::Producer producer(peer_);
      const Body body = blank_body();
      for (double jobs = seconds_ * 1.3e9 / kServiceNs; jobs > 0; --jobs) producer.enqueue(2, body);
    }
    Stage stage(Cast::kProcesses);
    stage.add(0, [](Stage::Part& part) {
      part.begin();
      part.end();
    });
    stage.add(1, [this](Stage::Part& part) { work(part); });
    return play(stage);
  }

  double overloaded(double offers_per_second) {
    Stage stage(Cast::kProcesses);
    for (unsigned self = 0; self < kProducers; ++self)
      stage.add(0, [this, self, offers_per_second](Stage::Part& part) {
        offer(part, self, offers_per_second / kProducers);
      });
    stage.add(1, [this](Stage::Part& part) { work(part); });
    return play(stage);
  }

  Board& board() { return *board_; }
  const Outcome& outcome() const { return outcome_; }
  QueueInfo queue() {
    return value_of(value_of(Observer::attach(peer_.attached()), "observe").queue("default"),
                    "queue");
  }
  std::uint64_t segment_bytes_in_use() {
    struct stat file {};
    ::stat(peer_.attached().path().c_str(), &file);
    return static_cast<std::uint64_t>(file.st_blocks) * 512;
  }

 private:
  static Plan plan_of(const char* settings) {
    Plan plan;
    plan.settings = settings;
    return plan;
  }

  double play(Stage& stage) {
    new (&*board_) Board;
    outcome_ = stage.play();
    if (!outcome_.trouble.empty()) throw std::runtime_error(outcome_.trouble);
    return static_cast<double>(board_->served) / seconds_;
  }

  void work(Stage::Part& part) {
    OjsShm::Worker worker(peer_);
    Body body;
    part.begin();
    const std::uint64_t begun = ticks();
    const double begun_at = processor_ns();
    std::uint64_t served = 0;
    while (ns_between(begun, ticks()) < seconds_ * 1e9) {
      if (!worker.poll(body)) continue;
      stay_busy_ns(kServiceNs);
      worker.ack();
      ++served;
    }
    const double share = (processor_ns() - begun_at) / ns_between(begun, ticks());
    part.end();
    board_->served = served;
    board_->worker_share = share;
  }

  void offer(Stage::Part& part, unsigned self, double per_second) {
    ojs_shm::Producer producer = value_of(ojs_shm::Producer::attach(peer_.attached()), "attach");
    engine::Store& store = peer_.attached().attachment()->store();
    const Body body = blank_body();
    JobSpec job;
    job.type = "bench.job";
    job.args = {body.bytes, sizeof body};
    job.priority = 2;
    std::uint64_t offered = 0, accepted = 0, refused = 0;
    unsigned sampled = 0;
    long resident = 0;
    part.begin();
    const std::uint64_t begun = ticks();
    for (double passed = 0; passed < seconds_; passed = ns_between(begun, ticks()) * 1e-9) {
      const auto sample =
          std::min(static_cast<unsigned>(passed / seconds_ * kSamples), kSamples - 1);
      if (self == 0 && sample >= sampled) {
        const std::uint64_t depth =
            engine::charged_jobs(store.depth_charge(store.find_queue("default")));
        while (sampled <= sample) board_->depth[sampled++] = depth;
        if (resident == 0 && passed > seconds_ / 5) resident = resident_bytes();
      }
      if (static_cast<double>(offered) >= passed * per_second) {
        ::sched_yield();  // for the other producer on this core
        continue;
      }
      ++offered;
      const auto answer =
          waits_ ? producer.enqueue(job, {.block_timeout = kWait}) : producer.enqueue(job);
      if (answer.ok()) {
        ++accepted;
      } else if (answer.code() == Code::kQueueFull) {
        ++refused;
      } else {
        throw_error("enqueue", answer.error());
      }
    }
    part.end();
    board_->wanted[self] = std::max(offered, static_cast<std::uint64_t>(seconds_ * per_second));
    board_->offered[self] = offered;
    board_->accepted[self] = accepted;
    board_->refused[self] = refused;
    if (self == 0) board_->resident_growth = resident_bytes() - resident;
  }

  OjsShm peer_;
  double seconds_;
  bool waits_;
  SharedArray<Board> board_;
  Outcome outcome_;
};

void print_run(const Strategy& strategy, double seconds) {
  Run calm("", seconds);
  const double alone = calm.unloaded();
  Run run(strategy.settings, seconds, strategy.waits);
  const std::uint64_t before = run.segment_bytes_in_use();
  const double loaded = run.overloaded(kOverload * alone);
  const Board& board = run.board();
  const QueueInfo queue = run.queue();
  const std::uint64_t offered = board.offered[0] + board.offered[1],
                      accepted = board.accepted[0] + board.accepted[1],
                      refused = board.refused[0] + board.refused[1];
  // A job that a worker had fetched when its time was over is served.
  const std::uint64_t kept = board.served + queue.depth;
  if (offered != accepted + refused || accepted != kept + queue.discarded_total ||
      refused != queue.rejected_total) {
    throw std::runtime_error(
        "of " + std::to_string(offered) + " offers " + std::to_string(accepted) +
        " were accepted and " + std::to_string(refused) + " refused; the segment says " +
        std::to_string(kept) + " kept, " + std::to_string(queue.rejected_total) + " refused, " +
        std::to_string(queue.discarded_total) + " dropped");
  }
  std::printf(
      R"({"strategy":"%s","seconds":%g,"unloaded_per_second":%.0f,"served_per_second":%.0f,"wanted":%llu,"offered":%llu,)"
      R"("accepted":%llu,"rejected":%llu,"dropped":%llu,"served":%llu,"left":%llu,"bound":%llu,)"
      R"("resident_growth":%ld,"segment_growth":%lld,"worker_share":%g,"line_rtt_ns":%g,"depth":[)",
      strategy.name, seconds, alone, loaded,
      static_cast<unsigned long long>(board.wanted[0] + board.wanted[1]),
      static_cast<unsigned long long>(offered),
      static_cast<unsigned long long>(accepted - queue.discarded_total),
      static_cast<unsigned long long>(refused),
      static_cast<unsigned long long>(queue.discarded_total),
      static_cast<unsigned long long>(board.served), static_cast<unsigned long long>(queue.depth),
      static_cast<unsigned long long>(queue.max_depth), board.resident_growth,
      static_cast<long long>(run.segment_bytes_in_use() - before),
      std::min(calm.board().worker_share, board.worker_share), run.outcome().line_round_trip_ns);
  for (unsigned i = 0; i < kSamples; ++i)
    std::printf("%s%llu", i == 0 ? "" : ",", static_cast<unsigned long long>(board.depth[i]));
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ojs_shm_overload SECONDS PAIRS\n");
    return 2;
  }
  try {
    for (int pair = 0; pair < std::atoi(argv[2]); ++pair)
      for (const Strategy& strategy : kStrategies) print_run(strategy, std::atof(argv[1]));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
  return 0;
}
