// SPDX-License-Identifier: Apache-2.0
// Enqueues of a hundred contended unique keys while producers and workers are killed. A ledger
// outside of the segment says who works a job of which key: of the keys that reject and ignore no
// two may be at work at once. It also has a line for each enqueue, and balances them: what was
// stored is worked once, or replaced; what was refused is never at work. In the end every key must
// be free.
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

/// What became of an enqueue, as the processes saw it: bits.
enum : std::uint8_t {
  kStored = 1,
  kRefused = 2,
  kSeen = 4,
  kEnding = 8,
  kEnded = 16,
  kStrictly = 32
};

/// Shared by all processes; a death leaves only the mark of the worker that died.
struct Ledger {
  std::atomic<std::uint64_t> tried, stored, ignored, refused, worked, broken;
  std::array<std::atomic<std::uint32_t>, kKeys> at_work;  ///< life + 1 of the worker
  std::array<std::atomic<bool>, kMostLives> killed;       ///< lives, set before they are killed
  std::atomic<std::uint8_t>* lines;                       ///< by the enqueue's number

  void note(std::uint64_t n, std::uint8_t what, const char* wrong_after, std::uint8_t wrong) {
    if ((lines[n].fetch_or(what) & wrong) == 0) return;
    ++broken;
    fmt::print(stderr, "enqueue {}: {}\n", n, wrong_after);
  }
};

template <class T>
T* shared(std::size_t count) {
  void* memory =
      ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  return static_cast<T*>(memory);
}

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

std::string args_of(unsigned key, std::uint64_t n) {
  return fmt::format(R"([{{"key":{},"n":{}}}])", key, n);
}
std::uint64_t number_after(std::string_view args, std::string_view name) {
  std::uint64_t number = 0;
  const std::size_t at = args.find(name) + name.size();
  std::from_chars(args.data() + at, args.data() + args.size(), number);
  return number;
}
unsigned key_of(const Job& job) {
  return static_cast<unsigned>(number_after(job.args(), "\"key\":"));
}

UniquePolicy policy(OnConflict conflict) {
  return {.args = true, .args_keys = {"key"}, .on_conflict = conflict};
}

bool acked(Worker& worker, Job& job, Ledger& ledger) {
  const std::uint64_t n = number_after(job.args(), "\"n\":");
  ledger.note(n, kSeen | kEnding, "was refused, and is at work", kRefused);
  if (!worker.ack(job).ok()) return false;
  ledger.note(n, kEnded, "has ended twice", kEnded);
  return true;
}

void produce(const SegmentName& where, Ledger& ledger, std::uint64_t most, unsigned seed) {
  auto producer = must(Producer::attach(where), "attach");
  std::minstd_rand random(seed);
  for (std::uint64_t n; (n = ledger.tried.fetch_add(1)) < most;) {
    const auto key = static_cast<unsigned>(random() % kKeys);
    const std::string args = args_of(key, n);
    JobSpec spec{.type = "unique.storm", .args = args, .retry = {.max_attempts = 1000}};
    if (random() % 16 == 0) spec.scheduled_at_ms = 1;
    const auto unique = must(JobUnique::of(spec, policy(conflict_of(key))), "key");
    spec.unique = &unique;
    const auto id = producer.enqueue(spec);
    const bool stored = id && !producer.deduplicated();
    if (stored) {
      ++ledger.stored;
      ledger.note(n, key < kStrict ? kStored | kStrictly : kStored, "", 0);
    } else if (id || id.code() == Code::kDuplicate) {
      ++(id ? ledger.ignored : ledger.refused);
      ledger.note(n, kRefused, "was refused, and is at work", kSeen);
    } else if (id.code() != Code::kTimeout) {
      throw std::runtime_error("enqueue: " + id.error().message);
    }
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
    const unsigned key = key_of(job);
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
    if (acked(worker, job, ledger)) ++ledger.worked;
  }
}

/// What the lines leave open when nothing is left in the segment. A death may hide one end, and one
/// replacement from the counter.
struct Balance {
  std::uint64_t lost = 0, unsure = 0, replaced = 0;
  Balance(const Ledger& ledger, std::uint64_t most) {
    for (std::uint64_t n = 0; n < most; ++n) {
      const std::uint8_t line = ledger.lines[n].load();
      if ((line & kStored) == 0 || (line & kEnded) != 0) continue;
      ++((line & kStrictly) == 0 ? replaced : (line & kEnding) == 0 ? lost : unsure);
    }
  }
  bool holds(std::uint64_t kills, std::uint64_t cancelled) const {
    return lost == 0 && unsure <= kills && replaced <= cancelled + kills &&
           cancelled <= replaced + kills;
  }
};

int run(std::uint64_t most) {
  const test::LiveSegment segment;
  const SegmentName where = segment.where();
  auto* ledger = shared<Ledger>(1);
  ledger->lines = shared<std::atomic<std::uint8_t>>(most + kKeys);
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
    for (Job job; worker.fetch(job, std::chrono::milliseconds(500));)
      (void)acked(worker, job, *ledger);
  };
  test::eventually([&] {
    drain();
    const QueueInfo queue = observer.queue("default").value();
    return queue.depth == 0 && queue.by_state[static_cast<std::size_t>(State::kActive)] == 0;
  });
  unsigned taken = 0;
  for (unsigned key = 0; key < kKeys; ++key) {
    const std::string args = args_of(key, most + key);
    JobSpec spec{.type = "unique.storm", .args = args};
    const auto unique = must(JobUnique::of(spec, policy(OnConflict::kReject)), "key");
    spec.unique = &unique;
    if (const auto id = producer.enqueue(spec); !id) {
      ++taken;
      fmt::print(stderr, "key {} stays taken: {}\n", key, id.error().message);
    }
  }
  const Balance balance(*ledger, most);
  const std::uint64_t cancelled = observer.queue("default").value().cancelled_total;
  const auto violations = observer.audit();
  for (const Violation& v : violations) fmt::print(stderr, "I{} {}\n", v.invariant, v.text);
  drain();
  fmt::print(
      "{} enqueues of {} keys, {} kills: {} stored, {} refused, {} ignored, {} worked, {} "
      "replaced; {} lost, {} wrong, {} keys stay taken, {} violations\n",
      ledger->tried.load(), kKeys, kills, ledger->stored.load(), ledger->refused.load(),
      ledger->ignored.load(), ledger->worked.load(), balance.replaced, balance.lost,
      ledger->broken.load(), taken, violations.size());
  if (!balance.holds(kills, cancelled))
    fmt::print(stderr, "{} lost, {} in doubt after {} kills, {} replaced and {} cancelled\n",
               balance.lost, balance.unsure, kills, balance.replaced, cancelled);
  return balance.holds(kills, cancelled) && ledger->broken.load() == 0 && taken == 0 &&
                 violations.empty()
             ? 0
             : 1;
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
