// SPDX-License-Identifier: Apache-2.0
// Method: five workers of one pool and three producers, each for a queue of its own: one whose jobs
// have a limit by key, one that drops its oldest jobs when it is full, one whose producer waits for
// room. All of them are killed again and again. What must hold is judged from outside of the
// segment, in memory that survives every death: who holds a job, from the return of the fetch to
// the call of the ack, or until a process is about to kill him; and how often each job came out. No
// threads, and nothing depends on time.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

enum Queue : unsigned { kKeyed, kDropping, kBlocking, kQueues };
const std::string kNames[kQueues] = {"keyed", "dropping", "blocking"};
constexpr unsigned kWorkers = 5, kChildren = kQueues + kWorkers;
constexpr std::uint32_t kPoolLimit = 3, kKeyLimit = 2, kDropAt = 40, kBlockAt = 5;
constexpr std::uint32_t kJobs = 4'000;  ///< of each queue
constexpr std::uint32_t kKills = 120;

struct Books {
  std::atomic<std::uint32_t> holds[kChildren];  ///< job + 1, counted through all queues
  std::atomic<std::uint32_t> has[kChildren];    ///< the same, until the ack has returned
  /// it is about to be killed: what it holds counts no more
  std::atomic<std::uint32_t> doomed[kChildren];
  std::atomic<std::uint32_t> most_of_pool, offences, failed, stop, done;
  std::atomic<std::uint32_t> offered[kQueues], accepted[kQueues], refused[kQueues];
  /// out of the queue; with their holders
  std::atomic<std::uint32_t> came[kQueues * kJobs], lost[kQueues * kJobs];
  char ids[kQueues * kJobs][40];
  std::atomic<bool> known[kQueues * kJobs];

  /// Known once it is whole: its writer may be killed on the way.
  void id_of(std::uint32_t job, const std::string& id) {
    id.copy(ids[job], sizeof ids[job] - 1);
    known[job] = true;
  }
};

void note_most(std::atomic<std::uint32_t>& most, std::uint32_t now) {
  for (std::uint32_t seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {}
}

class PoolStorm : public testing::Test {
 protected:
  PoolStorm() {
    void* memory =
        ::mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    books_ = new (memory) Books;
  }
  ~PoolStorm() override {
    for (const pid_t child : children_)
      if (child > 0) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
    ::munmap(books_, sizeof(Books));
  }

  void begin(std::uint32_t pool_limit) {
    Admin admin = Admin::attach(segment_.where()).value();
    PoolSettings pool;
    pool.queues.assign(std::begin(kNames), std::end(kNames));
    pool.concurrency = pool_limit;
    ASSERT_TRUE(admin.set_pool("p", pool).ok());
    QueueSettings dropping, blocking;
    dropping.max_depth = kDropAt;
    dropping.strategy = BackpressureStrategy::kDropOldest;
    blocking.max_depth = kBlockAt;
    blocking.strategy = BackpressureStrategy::kBlock;
    ASSERT_TRUE(admin.set_queue(kNames[kDropping], dropping).ok());
    ASSERT_TRUE(admin.set_queue(kNames[kBlocking], blocking).ok());
    for (unsigned i = 0; i < kChildren; ++i) start(i);
  }
  void start(unsigned self) {
    const pid_t child = ::fork();
    if (child == 0) {
      self < kQueues ? produce(self) : work(self);
      ::_exit(0);
    }
    children_[self] = child;
  }
  void end(unsigned self) {
    ::waitpid(children_[self], nullptr, 0);
    children_[self] = 0;
  }
  void kill(unsigned victim) {
    books_->doomed[victim] = 1;
    ::kill(children_[victim], SIGKILL);
    end(victim);
    if (const std::uint32_t job = books_->has[victim].exchange(0); job != 0)
      ++books_->lost[job - 1];
    books_->holds[victim] = 0;
    books_->doomed[victim] = 0;
    start(victim);
  }
  bool in_time() const { return std::chrono::steady_clock::now() < bound_; }
  std::uint32_t at_work(std::uint32_t from, std::uint32_t to) const {
    std::uint32_t now = 0;
    for (unsigned i = 0; i < kChildren; ++i) {
      const std::uint32_t job = books_->holds[i].load();
      now += job > from && job <= to && books_->doomed[i] == 0 ? 1 : 0;
    }
    return now;
  }

  /// As many as the limits say are let in by what the kills have left, and no more.
  void both_limits_are_exact() {
    Producer producer = Producer::attach(segment_.where()).value();
    WorkerOptions options;
    options.pool = "p";
    Worker worker = Worker::attach(segment_.where(), options).value();
    const JobLimit limit = limit_of_key();
    JobSpec spec;
    spec.type = "storm.job";
    std::vector<Job> held(1);
    const auto fill = [&](Queue queue, const JobLimit* of_key) {
      spec.queue = kNames[queue];
      spec.limit = of_key;
      for (std::uint32_t i = 0; i <= kPoolLimit; ++i) ASSERT_TRUE(producer.enqueue(spec).ok());
      while (worker.try_fetch(held.back())) held.emplace_back();
    };
    ASSERT_NO_FATAL_FAILURE(fill(kKeyed, &limit));
    EXPECT_EQ(held.size() - 1, kKeyLimit);
    ASSERT_NO_FATAL_FAILURE(fill(kBlocking, nullptr));
    EXPECT_EQ(held.size() - 1, kPoolLimit);
    held.pop_back();
    for (Job& job : held) EXPECT_TRUE(worker.ack(job));
    Job job;
    while (worker.try_fetch(job)) EXPECT_TRUE(worker.ack(job));
  }

  LiveSegment segment_;
  Books* books_ = nullptr;

 private:
  static JobLimit limit_of_key() {
    JobLimit limit;
    limit.key = "k";
    limit.limit.concurrency = kKeyLimit;
    return limit;
  }
  void produce(unsigned queue) {
    Producer producer = Producer::attach(segment_.where()).value();
    const JobLimit limit = limit_of_key();
    for (std::uint32_t n = books_->offered[queue].fetch_add(1); n < kJobs;
         n = books_->offered[queue].fetch_add(1)) {
      // Not all of them before the first kill; and the second queue gets more than there is time
      // for.
      while (queue == kKeyed && n > books_->done.load() + 2 * kKills) ::sched_yield();
      while (queue == kDropping && n * 3 / 4 > books_->done.load()) ::sched_yield();
      const std::uint32_t job = queue * kJobs + n;
      const std::string args = "[" + std::to_string(job) + "]";
      JobSpec spec;
      spec.type = "storm.job";
      spec.args = args;
      spec.queue = kNames[queue];
      spec.priority = n % 3;
      spec.retry.max_attempts = 1000;
      if (queue == kKeyed) spec.limit = &limit;
      const auto id = producer.enqueue(
          spec, {.block_timeout = std::chrono::seconds(queue == kBlocking ? 60 : 0)});
      if (id) {
        books_->id_of(job, id->str());
        ++books_->accepted[queue];
      } else {
        ++(id.code() == Code::kQueueFull ? books_->refused[queue] : books_->failed);
      }
    }
  }
  void work(unsigned self) {
    WorkerOptions options;
    options.pool = "p";
    Worker worker = Worker::attach(segment_.where(), options).value();
    Job job;
    while (books_->stop.load() == 0) {
      if (!worker.fetch(job, std::chrono::milliseconds(50))) continue;
      std::uint32_t number = 0;
      const std::string_view args = job.args();
      std::from_chars(args.data() + 1, args.data() + args.size() - 1, number);
      books_->has[self] = books_->holds[self] = number + 1;
      ++books_->came[number];
      const std::uint32_t of_pool = at_work(0, kQueues * kJobs), of_key = at_work(0, kJobs);
      note_most(books_->most_of_pool, of_pool);
      if (of_pool > kPoolLimit || of_key > kKeyLimit) ++books_->offences;
      for (int i = 0; i < 3; ++i) ::sched_yield();
      books_->holds[self] = 0;
      if (!worker.ack(job) && books_->doomed[self] == 0) ++books_->failed;
      books_->has[self] = 0;
      ++books_->done;
    }
  }
  pid_t children_[kChildren] = {};
  std::chrono::steady_clock::time_point bound_ = std::chrono::steady_clock::now() + 4 * kBound;
};

TEST_F(PoolStorm, FS_R001_BP_T22_limits_bounds_and_victims_are_exact_under_kills) {
  Seeded random;
  ASSERT_NO_FATAL_FAILURE(begin(kPoolLimit));
  for (std::uint32_t kills = 0; kills < kKills; ++kills) {
    const std::uint32_t goal =
        books_->done.load() + static_cast<std::uint32_t>(random.between(1, 60));
    while (books_->done.load() < goal && in_time() &&
           books_->done.load() < 2 * kJobs * (kills + 1) / kKills)
      ::sched_yield();
    kill(static_cast<unsigned>(random.between(0, kChildren - 1)));
  }
  // they get all of it in: no process waits for the dead
  for (unsigned queue = 0; queue < kQueues; ++queue) end(queue);
  const Observer observer = Observer::attach(segment_.where()).value();
  const auto left = [&] {
    std::uint64_t jobs = 0;
    for (const std::string& name : kNames) jobs += unfinished(observer.queue(name).value());
    return jobs;
  };
  while (left() != 0 && in_time()) ::sched_yield();
  EXPECT_EQ(left(), 0U) << "jobs are held back though no process is at work";
  books_->stop = 1;
  for (unsigned i = kQueues; i < kChildren; ++i) end(i);

  EXPECT_EQ(books_->offences.load(), 0U);
  EXPECT_EQ(books_->failed.load(), 0U);
  for (unsigned q = 0; q < kQueues; ++q) {
    const QueueInfo queue = observer.queue(kNames[q]).value();
    const std::uint32_t accepted = books_->accepted[q].load(), refused = books_->refused[q].load();
    EXPECT_EQ(refused, queue.rejected_total) << kNames[q];
    EXPECT_LE(accepted, queue.enqueued_total) << kNames[q];  // some died before they knew
    EXPECT_LE(queue.enqueued_total + refused, kJobs) << kNames[q];
    EXPECT_GE(queue.enqueued_total + refused + kKills, kJobs) << kNames[q];
    EXPECT_EQ(queue.enqueued_total, queue.completed_total + queue.dropped_total) << kNames[q];
    EXPECT_EQ(queue.dropped_total != 0, q == kDropping) << kNames[q];
  }
  std::uint64_t discarded = 0;
  for (std::uint32_t job = 0; job < kQueues * kJobs; ++job) {
    if (!books_->known[job]) continue;
    const auto info = observer.get(books_->ids[job]);
    ASSERT_TRUE(info.ok()) << info.error().message;
    const std::uint32_t came = books_->came[job].load(), lost = books_->lost[job].load();
    if (info->state == State::kDiscarded) {
      ++discarded;
      EXPECT_LE(came, lost) << "job " << job << " was dropped, and a process ended it";
      EXPECT_EQ(job / kJobs, kDropping);
    } else {
      EXPECT_EQ(info->state, State::kCompleted);
    }
  }
  EXPECT_LE(discarded, observer.queue(kNames[kDropping])->dropped_total);
  both_limits_are_exact();
  for (const LimitInfo& limit : observer.limits())
    EXPECT_EQ(limit.active + limit.waiting, 0U) << limit.key;
  for (const Violation& v : observer.audit()) ADD_FAILURE() << "I" << v.invariant << " " << v.text;
  std::cout << books_->done.load() << " dispatches, " << discarded << " jobs dropped, " << kKills
            << " kills\n";
}

/// The control: in a pool without that limit the same look finds more at work.
TEST_F(PoolStorm, a_pool_without_a_limit_is_caught) {
  ASSERT_NO_FATAL_FAILURE(begin(0));
  while (books_->offences.load() == 0 && in_time()) ::sched_yield();
  EXPECT_GT(books_->most_of_pool.load(), kPoolLimit);
}

}  // namespace
}  // namespace ojs_shm::test
