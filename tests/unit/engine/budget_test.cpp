// SPDX-License-Identifier: Apache-2.0
// What an operation costs: read-modify-writes of shared words, counted by the hook of this thread,
// and allocations. The table is printed; the budgets are promises of docs/cost.md. One
// thread, so that every run counts the same.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <new>
#include <string>

#include "tests/unit/engine/quiet_segment.hpp"

namespace {
thread_local std::uint64_t allocations = 0;
thread_local std::uint64_t writes = 0;
thread_local std::array<ojs_shm::shm::Point, 64> written{};  ///< where the first of them were

void count(ojs_shm::shm::Access access, ojs_shm::shm::Point point, const void*) {
  if (access != ojs_shm::shm::Access::kRmw) return;
  if (writes < written.size()) written[writes] = point;
  ++writes;
}
}  // namespace

// Not inlined: the compiler would take malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ojs_shm::test {
namespace {

struct Cost {
  double rmw = 0, allocations = 0;
  std::uint64_t most = 0;
  std::string worst;  ///< the points of the worst
};

/// Counts calls of one operation.
class Count {
 public:
  void of(const std::function<void()>& operation) {
    writes = 0;
    allocations = 0;
    shm::thread_hook = count;
    operation();
    shm::thread_hook = nullptr;
    const std::uint64_t rmw = writes, made = allocations;
    ++times_;
    rmw_ += rmw;
    made_ += made;
    if (rmw <= cost_.most) return;
    cost_.most = rmw;
    cost_.worst.clear();
    for (std::size_t i = 0; i < std::min<std::size_t>(rmw, written.size()); ++i)
      cost_.worst += ' ' + std::string(shm::point_name(written[i]));
  }
  /// Prints it and gives it.
  Cost cost(const std::string& name) {
    cost_.rmw = static_cast<double>(rmw_) / times_;
    cost_.allocations = static_cast<double>(made_) / times_;
    std::cout << std::left << std::setw(34) << name << std::right << std::fixed
              << std::setprecision(2) << std::setw(8) << cost_.rmw << std::setw(7) << cost_.most
              << std::setw(14) << cost_.allocations << "  " << cost_.worst << '\n';
    return cost_;
  }

 private:
  int times_ = 0;
  std::uint64_t rmw_ = 0, made_ = 0;
  Cost cost_;
};

/// The mean and the worst over `times` calls.
Cost cost_of(const char* name, int times, const std::function<void(int)>& operation) {
  Count count;
  for (int i = 0; i < times; ++i) count.of([&] { operation(i); });
  return count.cost(name);
}

constexpr int kTimes = 140;  // ten batches of finished slots

TEST(Budget, of_each_operation_in_its_steady_state) {
  QuietSegment s(few_slots(4096));
  s.put(2);  // the level is there and not empty
  std::vector<Job> jobs(kTimes);
  std::vector<JobIdText> ids(kTimes);
  const JobSpec spec = spec_of(2);
  auto enqueue = [&](int i) {
    ids[static_cast<std::size_t>(i)] = s.producer.enqueue(spec).value();
  };
  auto fetch = [&](int i) {
    ASSERT_TRUE(s.worker.try_fetch(jobs[static_cast<std::size_t>(i)]).ok());
  };
  auto ack = [&](int i) { ASSERT_TRUE(s.worker.ack(jobs[static_cast<std::size_t>(i)]).ok()); };
  for (int round = 0; round < 3; ++round) {  // buffers have their size, every hint word its owner
    for (int i = 0; i < kTimes; ++i) enqueue(i);
    for (int i = 0; i < kTimes; ++i) fetch(i);
    for (int i = 0; i < kTimes; ++i) ack(i);
  }
  std::cout << "operation                         RMW mean  worst   allocations\n";
  const Cost enqueued = cost_of("enqueue", kTimes, enqueue);
  const Cost fetched = cost_of("fetch", kTimes, fetch);
  const Cost acked = cost_of("ack, its batches included", kTimes, ack);
  for (int i = 0; i < kTimes; ++i) enqueue(i);
  const Cost moved = cost_of("reprioritize", kTimes, [&](int i) {
    ASSERT_TRUE(s.producer.reprioritize(ids[static_cast<std::size_t>(i)].view(), 3).ok());
  });
  engine::JobState found{};
  const Cost cancelled = cost_of("cancel, its batches included", kTimes, [&](int i) {
    ASSERT_EQ(s.actor().cancel(*engine::parse_id(ids[static_cast<std::size_t>(i)].view()), found),
              engine::Outcome::kOk);
  });
  ASSERT_TRUE(s.admin.set_queue("default", {1'000'000, {}, {}}).ok());
  enqueue(0);
  const Cost bounded = cost_of("enqueue into a bounded queue", kTimes, enqueue);

  EXPECT_LE(enqueued.rmw, 4.0);
  EXPECT_LE(bounded.rmw, enqueued.rmw + 1.1);  // one, and another share of the chunks
  EXPECT_LE(fetched.rmw, 2.25);                // two, and a fourteenth part of leaving a chunk
  EXPECT_LE(acked.rmw, 1.25);                  // one, and the batch of fourteen
  EXPECT_LE(moved.rmw, 3.25);                  // three, and the chunks of the new level
  EXPECT_LE(cancelled.rmw, 2.35);              // two, and the batch of fourteen
  EXPECT_GE(acked.rmw, 1.0);                   // the hook is alive
  EXPECT_GE(fetched.rmw, 2.0);

  // Its slot; 64 more slots at once; a new chunk, taken, linked, tail moved, marked as linked.
  EXPECT_EQ(enqueued.most, 6U) << enqueued.worst;
  EXPECT_EQ(bounded.most, 7U) << bounded.worst;  // and the bound
  // Its slot and the head; a chunk that is left, given to the spare ones and told to others.
  EXPECT_EQ(fetched.most, 5U) << fetched.worst;
  // Its slot; the batch of fourteen goes into the ring of the finished: a cell and the tail.
  EXPECT_EQ(acked.most, 3U) << acked.worst;
  // The first job of a level: its ring is made with a chunk and named, the index opened, then cell,
  // tail and slot.
  EXPECT_EQ(moved.most, 10U) << moved.worst;
  // Its slot and a counter; the ring of the finished gets a new chunk.
  EXPECT_EQ(cancelled.most, 6U) << cancelled.worst;
  for (const Cost* cost : {&enqueued, &bounded, &fetched, &acked, &moved, &cancelled})
    EXPECT_EQ(cost->allocations, 0.0);
}

TEST(Budget, of_an_enqueue_while_slots_are_used_again) {
  QuietSegment s(few_slots(256));
  const JobSpec spec = spec_of(2);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(s.producer.enqueue(spec).ok());
    ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
  }
  Cost cycle = cost_of("enqueue, fetch and ack", kTimes * 4, [&](int) {
    ASSERT_TRUE(s.producer.enqueue(spec).ok());
    ASSERT_TRUE(s.worker.try_fetch(s.job).ok());
    ASSERT_TRUE(s.worker.ack(s.job).ok());
  });
  EXPECT_LE(cycle.rmw, 7.0);
  // six, and a batch of finished slots that is opened, its chunk given back
  EXPECT_EQ(cycle.most, 11U) << cycle.worst;
  EXPECT_EQ(cycle.allocations, 0.0);
}

/// Of the ends of a workflow's jobs, but the last.
Cost ends_in(QuietSegment& s, WorkflowKind kind, const std::string& name) {
  WorkflowSpec spec;
  spec.kind = kind;
  for (int i = 0; i < kTimes; ++i) spec.steps.emplace_back().job = spec_of(2);
  EXPECT_TRUE(s.producer.create_workflow(spec).ok());
  Count count;
  for (int i = 1; i < kTimes; ++i) {
    EXPECT_TRUE(s.worker.try_fetch(s.job).ok());
    count.of([&] { EXPECT_TRUE(s.worker.ack(s.job).ok()); });
  }
  EXPECT_EQ(s.drain().size(), 1U);
  return count.cost(name);
}

TEST(Budget, of_the_end_of_a_member_and_of_letting_another_run) {
  QuietSegment s(few_slots(2048));
  ends_in(s, WorkflowKind::kChain, "warm");
  const Cost ended = ends_in(s, WorkflowKind::kGroup, "ack of a member");
  const Cost released = ends_in(s, WorkflowKind::kChain, "ack that lets one run");
  EXPECT_LE(ended.most, 2U) << "one more than an ack: " << ended.worst;
  EXPECT_LE(released.rmw, 2.0 + 8.0) << released.worst;
  EXPECT_LE(released.most, 2U + 8U) << released.worst;
}

// ---- options ------------------------------------------------------------------------------------

struct Life {
  Cost enqueue, fetch, ack;
};

/// A steady job's: one at a time beside two that wait, in slots that are used again. A job of
/// another queue now and then shifts the batches of finished slots against the chunks of the queue,
/// so that every coincidence of the two comes about.
Life life_of(const std::string& name, QuietSegment& s, Worker& worker,
             const std::function<const JobSpec&(int)>& spec) {
  constexpr int kWarm = 1000, kShifts = 14, kBetween = 196;
  Count enqueue, fetch, ack;
  Worker aside = Worker::attach(s.segment, {.queues = {"aside"}}).value();
  for (int i = -2; i < 0; ++i) s.put(spec(kWarm + i));
  for (int i = 0; i < kWarm + kShifts * kBetween; ++i) {
    if (i % kBetween == 0) {
      s.put(2, "aside");
      EXPECT_TRUE(aside.try_fetch(s.job).ok() && aside.ack(s.job).ok());
    }
    const JobSpec& job = spec(i);
    auto put = [&] { ASSERT_TRUE(s.producer.enqueue(job).ok()); };
    auto take = [&] { ASSERT_TRUE(worker.try_fetch(s.job).ok()); };
    auto end = [&] { ASSERT_TRUE(worker.ack(s.job).ok()); };
    if (i < kWarm) {
      put(), take(), end();
    } else {
      enqueue.of(put), fetch.of(take), ack.of(end);
    }
  }
  return {enqueue.cost(name + ": enqueue"), fetch.cost(name + ": fetch"), ack.cost(name + ": ack")};
}

/// What is chosen beside a job without options, and what it costs.
struct Option {
  const char* name;
  std::array<int, 3> more;             ///< read-modify-writes of each enqueue, fetch and ack
  std::array<std::uint64_t, 3> worst;  ///< of any of them, chunks and batches included
  std::function<void(QuietSegment&, JobSpec&, WorkerOptions&)> choose = {};
  int tenants = 0;  ///< jobs belong to so many, in turns
  int queues = 1;   ///< jobs go into so many, in turns
  bool unique = false;
};

void choose_queue(QuietSegment& s, const std::function<void(QueueSettings&)>& change) {
  QueueSettings settings;
  change(settings);
  ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
}

void choose_pool(QuietSegment& s, WorkerOptions& worker, PoolStrategy strategy,
                 std::uint64_t concurrency = 0) {
  PoolSettings pool;
  pool.queues = {"default", "other"};
  pool.strategy = strategy;
  pool.concurrency = concurrency;
  ASSERT_TRUE(s.admin.set_pool("p", pool).ok());
  worker.pool = "p";
}

const JobLimit kTwoAtOnce{"k", {.concurrency = 2}},
    kInEachHour{"k", {.rate = 100'000, .rate_period_ms = 3'600'000}};
constexpr auto kFair = [](QueueSettings& queue) { queue.tenant_fairness = TenantFairness{}; };

// The table of docs/cost.md. In the worst enqueue a batch of finished slots is opened (2),
// the chunk that named it left and given back (3), and the queue's ring gets a new chunk (1). In
// the worst fetch a chunk is left (2). In the worst ack a batch is full, and its ring gets a new
// chunk for it (4).
const Option kOptions[] = {
    {"none", {0, 0, 0}, {9, 4, 5}},
    {"ageing",
     {0, 0, 0},
     {9, 4, 5},
     [](auto& s, auto&, auto&) { choose_queue(s, [](auto& q) { q.aging.emplace(); }); }},
    {"weights of levels",
     {0, 1, 0},  // the turn
     {9, 5, 5},
     [](auto& s, auto&, auto&) {
       choose_queue(s, [](auto& q) { q.level_weights = {{{"2", 2}, {"*", 1}}}; });
     }},
    {"shards",
     {0, 0, 0},
     {9, 4, 5},
     [](auto& s, auto&, auto&) { choose_queue(s, [](auto& q) { q.shards = 4; }); }},
    {"tenants, a job each",
     // a place in the line and the flow's word; its end is announced and sealed, and the second
     // head
     {3, 3, 0},
     {12, 10, 4},
     [](auto& s, auto&, auto&) { choose_queue(s, kFair); },
     3},
    {"a tenant with more jobs",
     // the flow gets its next place: a cell, the tail, the flow's word, and the second head
     {0, 4, 0},
     {9, 9, 5},
     [](auto& s, auto&, auto&) { choose_queue(s, kFair); },
     1},
    {"a limit: concurrency",
     {1, 1, 1},  // the key is held while it is looked up; the permit
     {10, 5, 6},
     [](auto&, auto& job, auto&) { job.limit = &kTwoAtOnce; }},
    {"a limit: a window",
     {1, 1, 0},
     {10, 5, 5},
     [](auto&, auto& job, auto&) { job.limit = &kInEachHour; }},
    {"events",
     {0, 0, 0},
     {9, 6, 5},
     [](auto& s, auto&, auto&) { ASSERT_TRUE(s.admin.set_events(true).ok()); }},
    {"two queues",
     {0, 0, 0},
     {9, 4, 4},
     [](auto&, auto&, auto& worker) {
       worker.queues = {"default", "other"};
     },
     0,
     2},
    {"a pool, round-robin",
     {0, 2, 0},  // the turn, and the count of the queue's dispatches
     {9, 6, 5},
     [](auto& s, auto&, auto& worker) { choose_pool(s, worker, PoolStrategy::kRoundRobin); },
     0,
     2},
    {"a pool, weighted",
     {0, 2, 0},
     {9, 6, 5},
     [](auto& s, auto&, auto& worker) { choose_pool(s, worker, PoolStrategy::kWeighted); },
     0,
     2},
    {"a pool, strict",
     {0, 1, 0},
     {9, 7, 4},
     [](auto& s, auto&, auto& worker) { choose_pool(s, worker, PoolStrategy::kStrict); },
     0,
     2},
    {"a pool, least-loaded",
     {1, 2, 0},  // the backlog
     {10, 6, 5},
     [](auto& s, auto&, auto& worker) { choose_pool(s, worker, PoolStrategy::kLeastLoaded); },
     0,
     2},
    {"a pool with a concurrency",
     {0, 3, 1},  // the permit
     {9, 7, 6},
     [](auto& s, auto&, auto& worker) { choose_pool(s, worker, PoolStrategy::kRoundRobin, 2); },
     0,
     2},
    {"a bound",
     {1, 0, 0},
     {10, 4, 5},
     [](auto& s, auto&, auto&) { choose_queue(s, [](auto& q) { q.max_depth = 100; }); }},
    {"a bound that is near",
     {2, 1, 0},  // the warning comes and goes
     {11, 5, 5},
     [](auto& s, auto&, auto&) { choose_queue(s, [](auto& q) { q.max_depth = 3; }); }},
    {"a bound of each tenant",
     {1, 1, 0},
     {10, 5, 5},
     [](auto& s, auto&, auto&) { choose_queue(s, [](auto& q) { q.tenant_max_depth = 100; }); },
     3},
    {"unique",
     {2, 0, 0},  // its entry; the entry of the job that had the slot before
     {11, 4, 5},
     {},
     0,
     1,
     true},
};

/// Of jobs that have nothing in common.
std::vector<JobUnique> unlike_keys(std::size_t count) {
  std::vector<JobUnique> keys;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string args = "[" + std::to_string(i) + "]";
    JobSpec spec = spec_of(2);
    spec.args = args;
    keys.push_back(JobUnique::of(spec, {.args = true}).value());
  }
  return keys;
}

TEST(Budget, of_a_steady_job_with_each_option) {
  constexpr double kShare = 0.5;  // of chunks, batches and pages of events
  const std::vector<JobUnique> keys = unlike_keys(1000);
  for (const Option& option : kOptions) {
    SCOPED_TRACE(option.name);
    QuietSegment s(few_slots(256));
    JobSpec job = spec_of(2);
    WorkerOptions options;
    if (option.choose) option.choose(s, job, options);
    Worker worker = Worker::attach(s.segment, options).value();
    const Life life = life_of(option.name, s, worker, [&](int i) -> const JobSpec& {
      if (option.tenants != 0)
        job.tenant = std::array{"x", "y", "z"}[static_cast<std::size_t>(i % option.tenants)];
      job.queue = i % option.queues == 0 ? "default" : "other";
      if (option.unique) job.unique = &keys[static_cast<std::size_t>(i) % keys.size()];
      return job;
    });
    int alone = 3;  // of an enqueue; two of a fetch and one of an ack
    std::size_t which = 0;
    for (const Cost* cost : {&life.enqueue, &life.fetch, &life.ack}) {
      const int all = alone-- + option.more[which];
      EXPECT_GE(cost->rmw, all);
      EXPECT_LE(cost->rmw, all + kShare);
      EXPECT_LE(cost->most, option.worst[which++]) << cost->worst;
      EXPECT_EQ(cost->allocations, 0.0);
    }
  }
}

}  // namespace
}  // namespace ojs_shm::test
