// SPDX-License-Identifier: Apache-2.0
// Enqueues of a hundred contended unique keys while producers and workers are killed. A ledger outside
// of the segment says who works a job of which key: of the keys that reject and ignore no two may be
// at work at once. In the end every key must be free.
#include <sched.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>
#include "tests/support/live_segment.hpp"

namespace {

using namespace ojs_shm;

constexpr std::string_view kUsage =
    "usage: stress_unique [--enqueues N]   (default 1000000; exit 1 on a failure)\n";
constexpr unsigned kKeys = 100, kStrict = 60, kProducers = 2, kWorkers = 2;
constexpr unsigned kMostLives = 100'000;

/// Shared by all processes; a death leaves only the mark of the worker that died.
struct Ledger {
  std::atomic<std::uint64_t> tried, stored, ignored, refused, replaced, worked, broken;
  std::array<std::atomic<std::uint32_t>, kKeys> at_work;  ///< life + 1 of the worker
  std::array<std::atomic<bool>, kMostLives> killed;       ///< lives, set before they are killed
};

template <class T>
T must(Result<T> result, const char* what) {
  if (!result) throw std::runtime_error(fmt::format("{}: {}", what, result.error().message));
  return std::move(result).value();
}

OnConflict conflict_of(unsigned key) {
  return key < kStrict / 2 ? OnConflict::kReject
         : key < kStrict   ? OnConflict::kIgnore
                           : OnConflict::kReplace;
}

void produce(const SegmentName& where, Ledger& ledger, std::uint64_t most, unsigned seed) {
  auto producer = must(Producer::attach(where), "attach");
  std::minstd_rand random(seed);
  while (ledger.tried.fetch_add(1) < most) {
    const auto key = static_cast<unsigned>(random() % kKeys);
    const std::string args = "[" + std::to_string(key) + "]";
    JobSpec spec{.type = "unique.storm", .args = args, .retry = {.max_attempts = 1000}};
    if (random() % 16 == 0) spec.scheduled_at_ms = 1;
    const auto unique = must(
        JobUnique::of(spec, UniquePolicy{.args = true, .on_conflict = conflict_of(key)}), "key");
    spec.unique = &unique;
    const auto id = producer.enqueue(spec);
    if (id)
      ++(producer.deduplicated() ? ledger.ignored : ledger.stored);
    else if (id.code() == Code::kDuplicate)
      ++ledger.refused;
    else if (id.code() != Code::kTimeout)
      throw std::runtime_error("enqueue: " + id.error().message);
  }
}

void work(const SegmentName& where, Ledger& ledger, std::uint32_t life) {
  auto worker = must(Worker::attach(where, {}), "attach");
  std::minstd_rand random(life);
  for (Job job;;) {
    if (const auto fetched = worker.fetch(job, std::chrono::milliseconds(100)); !fetched) {
      if (fetched.code() == Code::kEmpty || fetched.code() == Code::kTimeout) continue;
      throw std::runtime_error("fetch: " + fetched.error().message);
    }
    unsigned key = 0;
    const std::string_view args = job.args();
    std::from_chars(args.data() + 1, args.data() + args.size(), key);
    const bool strict = key < kStrict;
    if (strict) {
      const std::uint32_t other = ledger.at_work[key].exchange(life + 1);
      if (other != 0 && !ledger.killed[other - 1].load()) {
        ++ledger.broken;
        fmt::print(stderr, "key {} is at work twice\n", key);
      }
      if (random() % 8 == 0) ::sched_yield();  // it is at work for a while
      if (ledger.at_work[key].exchange(0) != life + 1) {
        ++ledger.broken;
        fmt::print(stderr, "key {} was taken from the one at work\n", key);
      }
    }
    if (worker.ack(job).ok()) ++ledger.worked;
  }
}

int run(std::uint64_t most) {
  const test::LiveSegment segment;
  const SegmentName where = segment.where();
  auto* ledger = static_cast<Ledger*>(
      ::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (ledger == MAP_FAILED) throw std::runtime_error("mmap");
  std::minstd_rand random(1);
  std::uint32_t lives = 0;
  struct Child {
    pid_t pid;
    std::uint32_t life;
  };
  std::array<Child, kProducers + kWorkers> children{};
  const auto begin = [&](std::size_t i) {
    const std::uint32_t life = lives++;
    const pid_t pid = ::fork();
    if (pid == 0) {
      try {
        if (i < kProducers)
          produce(where, *ledger, most, life);
        else
          work(where, *ledger, life);
        ::_exit(0);
      } catch (const std::exception& failure) {
        fmt::print(stderr, "{}\n", failure.what());
        ++ledger->broken;
        ::_exit(2);
      }
    }
    children[i] = {pid, life};
  };
  const auto end = [&](std::size_t i) {
    ledger->killed[children[i].life].store(true);
    ::kill(children[i].pid, SIGKILL);
    ::waitpid(children[i].pid, nullptr, 0);
  };
  for (std::size_t i = 0; i < children.size(); ++i) begin(i);
  std::uint64_t kills = 0;
  while (ledger->tried.load() < most && ledger->broken.load() == 0 && lives + 8 < kMostLives) {
    const std::uint64_t next = ledger->tried.load() + random() % 2000;
    test::eventually([&] { return ledger->tried.load() >= std::min(next, most); });
    const auto i = static_cast<std::size_t>(random() % children.size());
    end(i);
    begin(i);
    ++kills;
  }
  for (std::size_t i = 0; i < children.size(); ++i) end(i);

  // Everything is worked off, and every key is free.
  const Observer observer = must(Observer::attach(where), "attach");
  auto producer = must(Producer::attach(where), "attach");
  auto worker = must(Worker::attach(where, {}), "attach");
  const auto drain = [&] {
    for (Job job; worker.fetch(job, std::chrono::milliseconds(500));) (void)worker.ack(job);
  };
  test::eventually([&] {
    drain();
    const QueueInfo queue = observer.queue("default").value();
    return queue.depth == 0 && queue.by_state[static_cast<std::size_t>(State::kActive)] == 0;
  });
  unsigned taken = 0;
  for (unsigned key = 0; key < kKeys; ++key) {
    const std::string args = "[" + std::to_string(key) + "]";
    JobSpec spec{.type = "unique.storm", .args = args};
    const auto unique = must(JobUnique::of(spec, UniquePolicy{.args = true}), "key");
    spec.unique = &unique;
    if (const auto id = producer.enqueue(spec); !id) {
      ++taken;
      fmt::print(stderr, "key {} stays taken: {}\n", key, id.error().message);
    }
  }
  const auto violations = observer.audit();
  for (const Violation& v : violations) fmt::print(stderr, "I{} {}\n", v.invariant, v.text);
  drain();
  fmt::print(
      "{} enqueues of {} keys, {} kills: {} stored, {} refused, {} ignored, {} worked; {} at work "
      "twice, {} keys stay taken, {} violations\n",
      ledger->tried.load(), kKeys, kills, ledger->stored.load(), ledger->refused.load(),
      ledger->ignored.load(), ledger->worked.load(), ledger->broken.load(), taken,
      violations.size());
  return ledger->broken.load() == 0 && taken == 0 && violations.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t most = 1'000'000;
  if (argc == 3 && std::string_view(argv[1]) == "--enqueues") {
    const std::string_view text = argv[2];
    std::from_chars(text.data(), text.data() + text.size(), most);
  } else if (argc != 1) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  try {
    return run(most);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 1;
  }
}
